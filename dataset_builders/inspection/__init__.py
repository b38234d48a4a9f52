"""What a finished dataset folder holds: is it sound, how do two differ, can rows be made again."""
