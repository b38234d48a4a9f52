"""What an unfinished build has finished: documents by key, kept in files."""
