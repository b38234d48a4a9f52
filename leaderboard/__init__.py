"""The leaderboard: submissions that are data, and their revalidation. See docs/leaderboard.md."""
