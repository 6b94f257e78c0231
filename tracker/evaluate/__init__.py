"""How often decisions err: by simulation with known truth, and by replaying stored series."""
