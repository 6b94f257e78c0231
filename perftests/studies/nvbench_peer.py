"""nvbench's answer to the same question, through its Python package `cuda-bench`.

Run as `python -m perftests.studies.nvbench_peer OUT.json MIB...`: nvbench wants a process of its
own. It prints the wall time of each measurement alone; the JSON is nvbench's.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

_MEAN, _MEDIAN = "nv/cold/time/gpu/mean", "nv/cold/time/gpu/median"
_WALL_MARK = "wall_s="
_NAME = "relu"


@dataclass(frozen=True)
class PeerAnswer:
    """Mean and median of nvbench's cold samples and the wall time of it all, in seconds."""

    mean_s: float
    median_s: float | None
    wall_s: float


def ask(sizes_mib: Sequence[int], folder: Path) -> dict[int, PeerAnswer]:
    """Return nvbench's answer for each size; raise RuntimeError with its last line without one."""
    path = folder / "nvbench.json"
    done = subprocess.run(
        [sys.executable, "-m", "perftests.studies.nvbench_peer", str(path), *map(str, sizes_mib)],
        capture_output=True,
        text=True,
        check=False,
    )
    marked = [line for line in done.stdout.splitlines() if line.startswith(_WALL_MARK)]
    walls = dict(line.removeprefix(_WALL_MARK).split() for line in marked)
    if done.returncode or not path.exists() or len(walls) != len(sizes_mib):
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise RuntimeError(f"nvbench gave no answer: {' '.join(last)}")
    return read(json.loads(path.read_text()), {int(mib): float(s) for mib, s in walls.items()})


def read(document: Any, walls_s: Mapping[int, float]) -> dict[int, PeerAnswer]:
    """Return the answers in one of nvbench's JSON documents, benchmarks named relu<MiB>."""
    found = {}
    for benchmark in document["benchmarks"]:
        mib = int(benchmark["name"].removeprefix(_NAME))
        values = {
            summary["tag"]: float(item["value"])
            for summary in benchmark["states"][0]["summaries"]
            for item in summary.get("data", [])
            if item["name"] == "value" and summary["tag"] in {_MEAN, _MEDIAN}
        }
        found[mib] = PeerAnswer(values[_MEAN], values.get(_MEDIAN), walls_s[mib])
    return found


def main(path: str, sizes_mib: Sequence[int]) -> None:
    """Measure in this process with nvbench's own defaults, cold samples only."""
    from cuda import bench

    for mib in sizes_mib:
        bench.register(_benchmark(mib))
    bench.run_all_benchmarks([sys.argv[0], "--json", path])


def _benchmark(mib: int) -> Callable[[Any], None]:
    import torch

    from perftests.studies.relu import relu_of_torch, relu_workload

    inputs = relu_workload(mib).make_inputs(1)
    out = torch.empty_like(inputs[0])

    def relu(state: Any) -> None:
        def launch(given: Any) -> None:
            handle = given.get_stream().addressof()
            with torch.cuda.stream(torch.cuda.ExternalStream(handle)):
                relu_of_torch(inputs, out)

        began = time.perf_counter()
        state.exec(launch, batched=False)
        print(f"{_WALL_MARK}{mib} {time.perf_counter() - began}", flush=True)

    relu.__name__ = f"{_NAME}{mib}"
    return relu


if __name__ == "__main__":
    main(sys.argv[1], [int(text) for text in sys.argv[2:]])
