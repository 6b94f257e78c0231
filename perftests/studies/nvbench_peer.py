"""nvbench's answer to the same question, through its Python package `cuda-bench`, beside ours.

Run as `python -m perftests.studies.nvbench_peer OUT.json MIB...`: nvbench wants a process of its
own, and ours measures in the same one before it, since every process shifts its times by some
0.1 us. Launches go through the same places in memory here as there; each run of nvbench has one
stream, and since a context shifts its times too, that is of another context each time. It prints
our answers and the wall time of each of nvbench's; the JSON is nvbench's.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from itertools import cycle
from statistics import StatisticsError, median
from typing import TYPE_CHECKING, Any

from tracker.last_words import telling_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from perftests.harness.cuda import CudaDevice, StreamHandle
    from perftests.harness.session import Session

_MEAN, _MEDIAN = "nv/cold/time/gpu/mean", "nv/cold/time/gpu/median"
_WALL_MARK = "wall_s="
_OWN_MARK = "own="
_NAME = "relu"
RUNS = 3


@dataclass(frozen=True)
class OwnAnswer:
    """Our median, the wall time of the whole chain and of its timing in seconds, and the sample.

    `first_s` is the wall time of the first answer at this size, yardsticks and first call included.
    """

    median_s: float
    wall_s: float
    timing_s: float
    first_s: float
    measurements: int
    stopped: str


@dataclass(frozen=True)
class PeerAnswer:
    """nvbench's cold samples and the wall time of one of its runs, in seconds.

    Of several runs mean, median and wall time are the middle one's; `range_s` is how far their
    medians lie apart.
    """

    mean_s: float
    median_s: float
    range_s: float
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
    walls = [line.removeprefix(_WALL_MARK).split() for line in marked]
    own = [line.split("=", 1)[1] for line in done.stdout.splitlines() if line.startswith(_OWN_MARK)]
    whole = len(walls) == RUNS * len(sizes_mib) and len(own) == 1
    if done.returncode or not path.exists() or not whole:
        raise RuntimeError(f"nvbench gave no answer: {telling_line(done.stderr or done.stdout)}")
    ours = {int(mib): OwnAnswer(**each) for mib, each in json.loads(own[0]).items()}
    theirs = json.loads(path.read_text())
    try:
        return read(theirs, [(int(mib), float(s)) for mib, s in walls], ours)
    except (KeyError, StatisticsError) as error:
        raise RuntimeError(f"nvbench's document lacks an answer: {error!r}") from error


def read(
    document: Any, walls_s: Sequence[tuple[int, float]], ours: Mapping[int, OwnAnswer]
) -> dict[int, PeerAnswer]:
    """Return the answers in one of nvbench's JSON documents, benchmarks named relu<MiB>_<run>.

    `walls_s` are sizes and wall times of the runs. Raises KeyError where a run has no
    median, StatisticsError where a size has no run.
    """
    found = {}
    for mib, own in ours.items():
        runs = [
            _values(benchmark["states"][0]["summaries"])
            for benchmark in document["benchmarks"]
            if benchmark["name"].startswith(f"{_NAME}{mib}_")
        ]
        medians = [values[_MEDIAN] for values in runs]
        found[mib] = PeerAnswer(
            median(values[_MEAN] for values in runs),
            median(medians),
            max(medians) - min(medians),
            median(seconds for size, seconds in walls_s if size == mib),
            own,
        )
    return found


def _values(summaries: Any) -> dict[str, float]:
    """Return the values that are asked for, by tag."""
    return {
        summary["tag"]: float(item["value"])
        for summary in summaries
        for item in summary.get("data", [])
        if item["name"] == "value" and summary["tag"] in {_MEAN, _MEDIAN}
    }


def main(path: str, sizes_mib: Sequence[int]) -> None:
    """Measure in this process: ours, then nvbench with its own defaults, cold samples only."""
    import torch
    from cuda import bench

    from perftests.harness.cuda import StreamHandle
    from perftests.studies.timed import new_session

    session = new_session()
    print(f"{_OWN_MARK}{json.dumps(_ours(session, sizes_mib))}", flush=True)
    device: Any = session.bench(torch.device("cuda", 0)).device
    with device.stream():
        streams = device.streams()
    for mib in sizes_mib:
        for run, stream in enumerate(streams[:RUNS]):
            bench.register(_benchmark(mib, run, device, StreamHandle(stream.cuda_stream)))
    bench.run_all_benchmarks([sys.argv[0], "--json", path])


def _ours(session: Session, sizes_mib: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Return what our harness finds, the yardsticks (copies, empty launch) made by a first answer.

    A suite shares those; nvbench has none.
    """
    from perftests.studies.timed import measured

    found = {}
    for mib in sizes_mib:
        first = measured(session, mib)
        outcome = measured(session, mib)
        walls, stopped = outcome.walls, outcome.result["stop_reason"]
        answer = OwnAnswer(
            median(outcome.seconds),
            walls["total"],
            walls["timing"],
            first.walls["total"],
            len(outcome.seconds),
            stopped,
        )
        found[mib] = asdict(answer)
    return found


def _benchmark(mib: int, run: int, device: CudaDevice, stream: StreamHandle) -> Any:
    """Return nvbench's benchmark at a size, whose launches go through our places in turn."""
    import torch

    from perftests.harness.buffers import POISON_NAN, BufferSets, allocate, footprint_bytes
    from perftests.studies.relu import relu_of_torch, relu_workload

    def relu(state: Any) -> None:
        workload = relu_workload(mib)
        values = workload.make_inputs(1)
        places = device.sets_needed("cold", footprint_bytes(workload, values))
        with device.arena.region():
            sets = BufferSets(allocate(workload, values), places, device.arena)
            sets.load(values, POISON_NAN)
            turns = cycle([(buffers.input_tensors, buffers.output_tensor) for buffers in sets])

            def launch(given: Any) -> None:
                handle = given.get_stream().addressof()
                with torch.cuda.stream(torch.cuda.ExternalStream(handle)):
                    relu_of_torch(*next(turns))

            state.set_stream(stream)
            device.synchronize()
            began = time.perf_counter()
            state.exec(launch, batched=False)
            print(f"{_WALL_MARK}{mib} {time.perf_counter() - began}", flush=True)

    relu.__name__ = f"{_NAME}{mib}_{run}"
    return relu


if __name__ == "__main__":
    main(sys.argv[1], [int(text) for text in sys.argv[2:]])
