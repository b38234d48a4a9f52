"""The leaderboard's package. It takes no submissions yet: it holds no code so far."""
