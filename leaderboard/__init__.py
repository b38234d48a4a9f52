"""The leaderboard: what a submission is, and how it is verified again."""
