"""What this machine can measure, what is missing, and the command that fixes it."""
