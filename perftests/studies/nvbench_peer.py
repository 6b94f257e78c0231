"""nvbench's answer to the same question, through its Python package `cuda-bench`.

Run as `python -m perftests.studies.nvbench_peer MIB OUT.json`: nvbench wants a process of its own.
It prints the wall time of the measurement alone; the JSON is nvbench's.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_MEAN, _MEDIAN = "nv/cold/time/gpu/mean", "nv/cold/time/gpu/median"
_WALL_MARK = "wall_s="


@dataclass(frozen=True)
class PeerAnswer:
    """Mean and median of nvbench's cold samples and the wall time of it all, in seconds."""

    mean_s: float
    median_s: float | None
    wall_s: float


def ask(mib: int, folder: Path) -> PeerAnswer:
    """Return nvbench's answer for a size; raise RuntimeError with its last line without one."""
    path = folder / f"nvbench-{mib}.json"
    done = subprocess.run(
        [sys.executable, "-m", "perftests.studies.nvbench_peer", str(mib), str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    walls = [line for line in done.stdout.splitlines() if line.startswith(_WALL_MARK)]
    if done.returncode or not path.exists() or not walls:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise RuntimeError(f"nvbench gave no answer at {mib} MiB: {' '.join(last)}")
    return read(json.loads(path.read_text()), float(walls[-1].removeprefix(_WALL_MARK)))


def read(document: Any, wall_s: float) -> PeerAnswer:
    """Return the answer in one of nvbench's JSON documents with a single state."""
    summaries = document["benchmarks"][0]["states"][0]["summaries"]
    values = {
        summary["tag"]: float(item["value"])
        for summary in summaries
        for item in summary.get("data", [])
        if item["name"] == "value" and summary["tag"] in {_MEAN, _MEDIAN}
    }
    return PeerAnswer(values[_MEAN], values.get(_MEDIAN), wall_s)


def main(mib: int, path: str) -> None:
    """Measure in this process with nvbench's own defaults, cold samples only."""
    import torch
    from cuda import bench

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
        print(f"{_WALL_MARK}{time.perf_counter() - began}", flush=True)

    bench.register(relu)
    bench.run_all_benchmarks([sys.argv[0], "--json", path])


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
