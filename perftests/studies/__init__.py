"""Experiments whose results are kept under docs/results/."""
