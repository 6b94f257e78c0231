"""A/A: the same median in fresh processes, one after the other.

All of them start and import at once and then wait for their turn, without a CUDA context: imports
take longer than measuring. Run as `python -m perftests.studies.spread MIB...` this is one of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import median, stdev
from typing import TYPE_CHECKING, TypeAlias

from perftests.studies.tables import Row, Section
from tracker.last_words import telling_line

if TYPE_CHECKING:
    from collections.abc import Sequence

RUNS = 10
GOALS = {1: 0.005, 16: 0.003, 64: 0.0015, 256: 0.0005}
_TIMEOUT_S = 60
_PLAIN_LAUNCHES = 100
_PLAIN_ALL = _PLAIN_LAUNCHES + 20
"""The first ones warm up."""
_PLAIN_FLUSH_BYTES = 256 << 20
_Found: TypeAlias = "dict[str, dict[str, float]]"


def spread(sizes_mib: Sequence[int] = tuple(GOALS)) -> Section:
    """Repeat the median of each size in fresh processes; raise RuntimeError when one fails."""
    command = [sys.executable, "-m", "perftests.studies.spread", *map(str, sizes_mib)]
    waiting = [
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(RUNS)
    ]
    try:
        for process in waiting:
            if process.stdout is not None:
                process.stdout.readline()
        found = [_answer(process) for process in waiting]
    finally:
        for process in waiting:
            process.kill()
    how = (
        f"torch ReLU, fp32, cold; the standard deviation of the median over {RUNS} fresh "
        f"processes, as a share of it; plain events are the median of {_PLAIN_LAUNCHES} launches "
        "in the same processes, each after a flush and between two events, at one place and on one "
        "stream: figures such as 1.7, 0.65, 0.3 and 0.04 %, beside which the goals were set, are "
        "standard deviations of that; the copy fraction is the rate over a copy's in the process; "
        "less an empty launch, what is above that of the process's own empty kernel, as a share of "
        "the median: what shifts all launches of a process alike is not in it"
    )
    return Section("A/A spread of the median", how, rows(found, sizes_mib))


def rows(found: Sequence[_Found], sizes_mib: Sequence[int]) -> list[Row]:
    """Return a row for each size from what each process found."""
    made: list[Row] = []
    for mib in sizes_mib:
        each = [run[str(mib)] for run in found]
        medians = [one["median_s"] for one in each]
        middle = median(medians)
        made.append(
            {
                "MiB": mib,
                "median us": middle * 1e6,
                "spread": _spread(medians),
                "spread by plain events": _spread([one["plain_s"] for one in each]),
                "spread of the copy fraction": _spread(
                    [one["median_s"] * one["copy"] for one in each]
                ),
                "spread in cycles": _spread([one["cycles"] for one in each]),
                "spread less an empty launch": stdev(
                    one["median_s"] - one["floor_s"] for one in each
                )
                / middle,
                "largest - smallest ns": (max(medians) - min(medians)) * 1e9,
                "each process, ns": " ".join(f"{(s - middle) * 1e9:+.0f}" for s in medians),
                "goal": GOALS[mib],
                "reached": _spread(medians) <= GOALS[mib],
            }
        )
    return made


def _spread(values: Sequence[float]) -> float:
    return stdev(values) / median(values)


def _answer(process: subprocess.Popen[str]) -> _Found:
    out, err = process.communicate("go\n", timeout=_TIMEOUT_S)
    if process.returncode:
        raise RuntimeError(f"a process of the A/A study failed: {telling_line(err)}")
    found: _Found = json.loads(out.strip().splitlines()[-1])
    return found


def main(sizes_mib: Sequence[int]) -> None:
    """Wait for the turn, then print each size's median and copy rate as JSON."""
    import cupy  # noqa: F401  imported early: this costs a second that the others need not wait for

    from perftests.studies.timed import measured, new_session

    print("ready", flush=True)
    sys.stdin.readline()
    session, found = new_session(), {}
    for mib in sizes_mib:
        outcome = measured(session, mib)
        found[mib] = {
            "median_s": median(outcome.seconds),
            "plain_s": _plain_s(mib),
            "copy": outcome.result["peaks"]["copy_bytes_per_s"],
            "cycles": outcome.result["median_cycles"],
            "floor_s": outcome.result["peaks"]["floor_s"],
        }
    print(json.dumps(found))


def _plain_s(mib: int) -> float:
    """Return the median by events alone, as one would time by hand: nothing hides the host."""
    import torch

    from perftests.studies.relu import relu_of_torch, relu_workload

    inputs = relu_workload(mib).make_inputs(1)
    out, flushed = torch.empty_like(inputs[0]), torch.empty(_PLAIN_FLUSH_BYTES, dtype=torch.uint8)
    flushed = flushed.to(out.device)
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(_PLAIN_ALL)]
    for start, stop in pairs:
        flushed.zero_()
        start.record()
        relu_of_torch(inputs, out)
        stop.record()
    torch.cuda.synchronize()
    return median(float(a.elapsed_time(b)) * 1e-3 for a, b in pairs[-_PLAIN_LAUNCHES:])


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]])
