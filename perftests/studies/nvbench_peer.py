"""nvbench's answer to the same question, through its Python package `cuda-bench`, beside ours.

Run as `python -m perftests.studies.nvbench_peer OUT.json MIB...`: nvbench wants a process of its
own, and ours measures in the same one before it, since every process shifts its times by some
0.1 us. Launches go through as many places in memory here as there; nvbench has one stream. It
prints our answers and the wall time of each of nvbench's; the JSON is nvbench's.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from itertools import cycle
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from perftests.harness.session import Session

_MEAN, _MEDIAN = "nv/cold/time/gpu/mean", "nv/cold/time/gpu/median"
_WALL_MARK = "wall_s="
_OWN_MARK = "own="
_NAME = "relu"


@dataclass(frozen=True)
class OwnAnswer:
    """Our median, the wall time of the whole chain and of its timing in seconds, and the sample."""

    median_s: float
    wall_s: float
    timing_s: float
    measurements: int
    stopped: str


@dataclass(frozen=True)
class PeerAnswer:
    """Mean and median of nvbench's cold samples and the wall time of it all, in seconds."""

    mean_s: float
    median_s: float | None
    wall_s: float
    own: OwnAnswer


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
    own = [line.split("=", 1)[1] for line in done.stdout.splitlines() if line.startswith(_OWN_MARK)]
    if done.returncode or not path.exists() or len(walls) != len(sizes_mib) or len(own) != 1:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise RuntimeError(f"nvbench gave no answer: {' '.join(last)}")
    ours = {int(mib): OwnAnswer(**each) for mib, each in json.loads(own[0]).items()}
    theirs = json.loads(path.read_text())
    return read(theirs, {int(mib): float(s) for mib, s in walls.items()}, ours)


def read(
    document: Any, walls_s: Mapping[int, float], ours: Mapping[int, OwnAnswer]
) -> dict[int, PeerAnswer]:
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
        found[mib] = PeerAnswer(values[_MEAN], values.get(_MEDIAN), walls_s[mib], ours[mib])
    return found


def main(path: str, sizes_mib: Sequence[int]) -> None:
    """Measure in this process: ours, then nvbench with its own defaults, cold samples only."""
    import torch
    from cuda import bench

    from perftests.studies.timed import new_session

    session = new_session()
    print(f"{_OWN_MARK}{json.dumps(_ours(session, sizes_mib))}", flush=True)
    device = session.bench(torch.device("cuda", 0)).device
    for mib in sizes_mib:
        bench.register(_benchmark(mib, device.sets_needed("cold", 2 * mib << 20)))
    bench.run_all_benchmarks([sys.argv[0], "--json", path])


def _ours(session: Session, sizes_mib: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Return what our harness finds, the yardsticks (copies, empty launch) made before.

    A suite shares those; nvbench has none.
    """
    from perftests.studies.timed import measured

    found = {}
    for mib in sizes_mib:
        measured(session, mib)
        outcome = measured(session, mib)
        walls, stopped = outcome.walls, outcome.result["stop_reason"]
        answer = OwnAnswer(
            median(outcome.seconds),
            walls["total"],
            walls["timing"],
            len(outcome.seconds),
            stopped,
        )
        found[mib] = asdict(answer)
    return found


def _benchmark(mib: int, count: int) -> Callable[[Any], None]:
    """Return nvbench's benchmark at a size, whose launches go through `count` places in memory."""
    import torch

    from perftests.studies.relu import relu_of_torch, relu_workload

    inputs = relu_workload(mib).make_inputs(1)
    places = [((inputs[0].clone(),), torch.empty_like(inputs[0])) for _ in range(count)]
    turns = cycle(places)

    def relu(state: Any) -> None:
        def launch(given: Any) -> None:
            handle = given.get_stream().addressof()
            with torch.cuda.stream(torch.cuda.ExternalStream(handle)):
                relu_of_torch(*next(turns))

        began = time.perf_counter()
        state.exec(launch, batched=False)
        print(f"{_WALL_MARK}{mib} {time.perf_counter() - began}", flush=True)

    relu.__name__ = f"{_NAME}{mib}"
    return relu


if __name__ == "__main__":
    main(sys.argv[1], [int(text) for text in sys.argv[2:]])
