"""How far the harness's times can be trusted, in figures measured on the GPU at hand.

    python -m perftests.studies.trust            # all parts, about five minutes
    python -m perftests.studies.trust agreement spread planted overhead

`agreement` sets it against nvbench on the same kernel in the same run; `spread` repeats one median
in fresh processes; `planted` finds known slow-downs; `overhead` says how much of the wall time is
not work of the GPU. Figures go to docs/results/ as text and JSON.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from perftests.studies.nvbench_peer import ask
from perftests.studies.tables import Row, Section, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from perftests.harness.chain import Outcome
    from perftests.harness.session import Session

SIZES_MIB = (1, 16, 64, 256, 1024)
RUNS = 10
SPREAD_GOALS = {1: 0.005, 16: 0.003, 64: 0.0015, 256: 0.0005, 1024: 0.0005}
AGREEMENT_GOALS = {1: 0.05, 16: 0.01, 64: 0.01, 256: 0.01, 1024: 0.01}
PLANTED = (0.005, 0.01, 0.02, 0.05)
PLANTED_MIB = 256
WALL_GOAL = 0.2
OVERHEAD_GOAL = 0.3


def measured(session: Session, mib: int, *, more: float = 0.0) -> Outcome:
    """Return the outcome at a size; raise RuntimeError when the chain broke."""
    from perftests.harness.chain import measure
    from perftests.studies.relu import relu_workload

    outcome = measure(relu_workload(mib, more=more), session)
    if outcome.broken is not None:
        raise RuntimeError(f"no time at {mib} MiB: {outcome.broken}")
    return outcome


def new_session() -> Session:
    """Return a session with the default limits on the first GPU."""
    from perftests.harness.session import Session
    from perftests.harness.settings import Settings

    return Session(Settings())


def agreement(folder: Path) -> Section:
    """Compare medians and wall times with nvbench's at each size.

    The yardsticks (copies, empty launch) are made before: a suite shares them; nvbench has none.
    """
    session = new_session()
    rows: list[Row] = []
    for mib in SIZES_MIB:
        measured(session, mib)
        began = time.perf_counter()
        outcome = measured(session, mib)
        wall_s = time.perf_counter() - began
        peer = ask(mib, folder)
        theirs = peer.mean_s if peer.median_s is None else peer.median_s
        ours = median(outcome.seconds)
        goal = AGREEMENT_GOALS[mib]
        rows.append(
            {
                "MiB": mib,
                "harness us": ours * 1e6,
                "nvbench us": theirs * 1e6,
                "nvbench mean us": peer.mean_s * 1e6,
                "difference": ours / theirs - 1,
                "goal": goal,
                "reached": abs(ours / theirs - 1) <= goal,
                "harness wall s": wall_s,
                "of it timing s": outcome.walls["timing"],
                "nvbench wall s": peer.wall_s,
                "wall share": wall_s / peer.wall_s,
                "a fifth": wall_s / peer.wall_s <= WALL_GOAL,
                "measurements": len(outcome.seconds),
                "stopped": outcome.result["stop_reason"],
            }
        )
    return Section("Agreement with nvbench", "torch ReLU, fp32, cold, same run, medians", rows)


def spread(folder: Path) -> Section:
    """Repeat the median of each size in fresh processes."""
    del folder
    runs = []
    for _ in range(RUNS):
        done = subprocess.run(
            [sys.executable, "-m", "perftests.studies.trust", "--one-process"],
            capture_output=True,
            text=True,
            check=True,
        )
        runs.append(json.loads(done.stdout.strip().splitlines()[-1]))
    rows: list[Row] = []
    for mib in SIZES_MIB:
        medians = [run[str(mib)]["median_s"] for run in runs]
        fractions = [run[str(mib)]["median_s"] * run[str(mib)]["copy"] for run in runs]
        wide = (max(medians) - min(medians)) / median(medians)
        rows.append(
            {
                "MiB": mib,
                "median us": median(medians) * 1e6,
                "spread": wide,
                "spread of copy fraction": (max(fractions) - min(fractions)) / median(fractions),
                "goal": SPREAD_GOALS[mib],
                "reached": wide <= SPREAD_GOALS[mib],
            }
        )
    what = f"(largest - smallest) / median over {RUNS} fresh processes"
    return Section("A/A spread of the median", what, rows)


def one_process() -> None:
    """Print each size's median and copy rate as JSON: one run of the A/A study."""
    session, found = new_session(), {}
    for mib in SIZES_MIB:
        outcome = measured(session, mib)
        copy = outcome.result["peaks"]["copy_bytes_per_s"]
        found[str(mib)] = {"median_s": median(outcome.seconds), "copy": copy}
    print(json.dumps(found))


def planted(folder: Path) -> Section:
    """Plant slow-downs by more data and count how often base and head come out in order."""
    del folder
    session = new_session()
    rows: list[Row] = []
    measured(session, PLANTED_MIB)
    for share in PLANTED:
        effects = []
        for run in range(RUNS):
            order = (0.0, share) if run % 2 == 0 else (share, 0.0)
            found = {more: measured(session, PLANTED_MIB, more=more) for more in order}
            base, head = median(found[0.0].seconds), median(found[share].seconds)
            effects.append(head / base - 1)
        right = sum(effect > 0 for effect in effects)
        rows.append(
            {
                "planted": share,
                "found median": median(effects),
                "found least": min(effects),
                "found most": max(effects),
                "ordered right": f"{right} of {RUNS}",
                "reached": right == RUNS,
            }
        )
    return Section("Planted slow-downs", f"torch ReLU, {PLANTED_MIB} MiB, A/B in turn", rows)


def overhead(folder: Path) -> Section:
    """Say what share of the wall time is not work of the GPU inside the timed part."""
    del folder
    session = new_session()
    rows: list[Row] = []
    for mib in SIZES_MIB:
        measured(session, mib)
        walls = measured(session, mib).walls
        timing = walls["timing"]
        rows.append(
            {
                "MiB": mib,
                "wall s": walls["total"],
                "timing s": timing,
                "GPU busy s": walls["busy"],
                "outside GPU work": 1 - walls["busy"] / timing,
                "checks share of wall": 1 - (timing + walls["yardsticks"]) / walls["total"],
                "goal": OVERHEAD_GOAL,
                "reached": 1 - walls["busy"] / timing <= OVERHEAD_GOAL,
            }
        )
    how = "of warm-up and timed loop, the share in which the GPU is idle"
    return Section("Overhead", how, rows)


PARTS: dict[str, Callable[[Path], Section]] = {
    "agreement": agreement,
    "spread": spread,
    "planted": planted,
    "overhead": overhead,
}


def main(arguments: list[str] | None = None) -> int:
    """Run the parts asked for and write the results; return 1 when a goal was missed."""
    parser = argparse.ArgumentParser(description="figures of the harness on this GPU")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all")
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    parser.add_argument("--one-process", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.one_process:
        one_process()
        return 0
    unknown = [part for part in given.parts if part not in PARTS]
    if unknown:
        parser.error(f"no part {unknown[0]!r}: there are {', '.join(PARTS)}")
    sections: list[Section] = []
    with tempfile.TemporaryDirectory() as folder:
        for part in given.parts or PARTS:
            began = time.perf_counter()
            sections.append(PARTS[part](Path(folder)))
            print(sections[-1].text())
            print(f"({part}: {time.perf_counter() - began:.1f} s)\n", flush=True)
    write(sections, given.out, facts())
    return 0 if all(section.reached for section in sections) else 1


def facts() -> dict[str, Any]:
    """Return environment and device of the results."""
    import torch

    bench = new_session().bench(torch.device("cuda", 0))
    return {"environment": bench.environment, "device": bench.facts}


if __name__ == "__main__":
    sys.exit(main())
