"""From a dataset folder to the Hub: what changed, in one commit."""
