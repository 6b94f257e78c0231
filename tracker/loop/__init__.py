"""The loop around a pull request: measure commits side by side, gate, bisect, backfill, tell."""
