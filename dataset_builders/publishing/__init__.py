"""Publishes a dataset folder to the Hub: the changes, in one commit."""
