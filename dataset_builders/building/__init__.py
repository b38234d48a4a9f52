"""Builds: points compiled by many processes into a journal that survives interruptions."""
