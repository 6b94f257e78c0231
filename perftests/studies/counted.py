"""Counters of launches that a study names, all read in one process under Nsight Compute.

    counters("sweep", [("float32", 256, 128, 1), ("float32", 256, 1024, 8)])

runs `python -m perftests.studies.counted sweep ...` under ncu. There the study's module is asked
for each launch, `launch_of(*spec)`, which is warmed up and then profiled: one kernel each.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import torch

from perftests.harness.counters import CountersError, parse_each, profile
from perftests.studies.recording import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftests.harness.counters import Counters

Spec = tuple[str | int, ...]


def counters(study: str, specs: Sequence[Spec]) -> list[Counters]:
    """Return the counters of each launch, cold caches. Raises CountersError saying why not."""
    if not torch.cuda.is_available():
        raise CountersError("Nsight Compute counts on a GPU", final=True)
    arguments = ["-m", "perftests.studies.counted", study, *map(json.dumps, specs)]
    found = parse_each(profile(arguments, ROOT, flush=True))
    if len(found) != len(specs):
        raise CountersError(f"ncu saw {len(found)} kernels in {len(specs)} launches")
    return found


def main(study: str, specs: Sequence[Spec]) -> None:
    """Launch each between a profiler's marks."""
    module = import_module(f"perftests.studies.{study}")
    for spec in specs:
        launch = module.launch_of(*spec)
        launch()  # compiles, loads and allocates
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        launch()
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()


if __name__ == "__main__":
    main(sys.argv[1], [tuple(json.loads(text)) for text in sys.argv[2:]])
