"""How fast a store is at the size that a team reaches in years: `python -m perftests.scale`."""
