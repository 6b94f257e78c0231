"""Measuring: the harness, its pytest plugin, the suites and the studies."""
