"""The host's clocks as they are when pytest loads the plugin.

A test's module, which is measured code, comes later: what it puts into `time` changes nothing here.
"""

from time import monotonic, perf_counter, perf_counter_ns

__all__ = ["monotonic", "perf_counter", "perf_counter_ns"]
