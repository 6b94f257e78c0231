"""Experiments whose results are kept under docs/results/."""

import os

# torch's profiler looks for allocations and would print two lines for each look; its level is read
# when torch is imported, which is after this.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")
