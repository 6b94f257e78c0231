"""A/A: the same median in fresh processes, one after the other.

All of them start and import at once and then wait for their turn, without a CUDA context: imports
take longer than measuring. Run as `python -m perftests.studies.spread MIB...` this is one of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import median
from typing import TYPE_CHECKING, TypeAlias

from perftests.harness.sampling import LARGEST_BATCH, warm_up
from perftests.studies.tables import Row, Section
from perftests.studies.turns import midmean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftests.harness.session import Session

RUNS = 10
GOALS = {1: 0.005, 16: 0.003, 64: 0.0015, 256: 0.0005}
_TIMEOUT_S = 60
_Found: TypeAlias = "dict[str, dict[str, float]]"


def spread(sizes_mib: Sequence[int] = tuple(GOALS), runs: int = RUNS) -> Section:
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
        for _ in range(runs)
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
        f"torch ReLU, fp32, cold; (largest - smallest) / median over {runs} fresh processes; the "
        "copy fraction is the rate over that of a copy in the same process; beyond empty is the "
        "mean of the middle half less that of an empty launch in the same process"
    )
    return Section("A/A spread of the median", how, rows(found, sizes_mib))


def rows(found: Sequence[_Found], sizes_mib: Sequence[int]) -> list[Row]:
    """Return a row for each size from what each process found."""
    made: list[Row] = []
    for mib in sizes_mib:
        medians = [run[str(mib)]["median_s"] for run in found]
        fractions = [run[str(mib)]["median_s"] * run[str(mib)]["copy"] for run in found]
        cycles = [run[str(mib)]["cycles"] for run in found]
        beyond = [run[str(mib)]["midmean_s"] - run[str(mib)]["empty_s"] for run in found]
        middle = median(medians)
        wide = _wide(medians)
        made.append(
            {
                "MiB": mib,
                "median us": middle * 1e6,
                "largest - smallest ns": (max(medians) - min(medians)) * 1e9,
                "spread": wide,
                "spread of copy fraction": _wide(fractions),
                "spread beyond empty": (max(beyond) - min(beyond)) / middle,
                "spread in cycles": _wide(cycles),
                "each process, ns": " ".join(f"{(s - middle) * 1e9:+.0f}" for s in medians),
                "goal": GOALS[mib],
                "reached": wide <= GOALS[mib],
            }
        )
    return made


def _wide(values: Sequence[float]) -> float:
    return (max(values) - min(values)) / median(values)


def _answer(process: subprocess.Popen[str]) -> _Found:
    out, err = process.communicate("go\n", timeout=_TIMEOUT_S)
    if process.returncode:
        raise RuntimeError(f"a process of the A/A study failed: {' '.join(err.splitlines()[-1:])}")
    found: _Found = json.loads(out.strip().splitlines()[-1])
    return found


def main(sizes_mib: Sequence[int]) -> None:
    """Wait for the turn, then print each size's median and copy rate as JSON."""
    import cupy  # noqa: F401  imported early: this costs a second that the others need not wait for

    from perftests.studies.timed import measured, new_session

    print("ready", flush=True)
    sys.stdin.readline()
    session, found = new_session(), {}
    empty_s = _empty_s(session)
    for mib in sizes_mib:
        outcome = measured(session, mib)
        copy = outcome.result["peaks"]["copy_bytes_per_s"]
        found[mib] = {
            "median_s": median(outcome.seconds),
            "midmean_s": midmean(outcome.seconds),
            "empty_s": empty_s,
            "copy": copy,
            "cycles": outcome.result["median_cycles"],
        }
    print(json.dumps(found))


def _empty_s(session: Session) -> float:
    """Return what an empty launch shows by the same timer, finer than the timer's step."""
    import torch

    bench = session.bench(torch.device("cuda", 0))
    with bench.lock.alone(), bench.device.stream():
        runner = bench.device.runner("cold", [bench.device.kernels.empty])  # type: ignore[union-attr]
        warm_up(runner, floor_s=0.05, cap_s=0.5)
        return midmean(runner.batch(LARGEST_BATCH).seconds + runner.batch(LARGEST_BATCH).seconds)


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]])
