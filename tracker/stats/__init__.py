"""Statistics of timings: numpy in, dataclasses out; no store, clock or random state inside."""
