"""Our kernels and their peers against the speed of a copy, in one table measured in one process.

    python -m perftests.studies.roof                  # every group, little more than a minute
    python -m perftests.studies.roof relu "odd lengths" --out docs/results

Each cell holds our kernel, today's peers (torch, torch.compile, Triton) and the yardsticks: the
faster of the driver's copy and plain copy kernels of an array of the same size. All go through the
harness's chain of trust: cold L2, host latency hidden, outputs checked. Cells that a microsecond
decides are measured twice, in opposite orders. `python -m perftests.studies.roof` exits with 1 when
a goal was missed or a peer is more than 1 % faster.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite, prod
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any

from perftests.studies.roof_cells import GROUPS, OURS, Cell
from perftests.studies.tables import Row, Section

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from perftests.harness.session import Session

SLOWER = 0.01
"""How much slower than the best peer a cell may be."""
SAMPLE_S = 0.05
TWICE_MIB = 64
"""Up to this size the orders of measuring differ by what is to be told apart."""


@dataclass(frozen=True)
class Measured:
    """Medians in seconds by implementation, failures by implementation, and the copy's rate."""

    seconds: Mapping[str, float]
    failures: Mapping[str, str]
    moved: int
    copy_bytes_per_s: float
    copy_source: str
    driver_s: float | None = None

    def of_copy(self, name: str) -> float:
        """Return an implementation's rate over the copy's."""
        return self.moved / self.seconds[name] / self.copy_bytes_per_s

    def of_driver(self) -> float | None:
        """Return our rate over that of the driver's copy."""
        if self.driver_s is None:
            return None
        return self.driver_s / self.seconds[OURS]


def measure_cell(cell: Cell, session: Session) -> Measured:
    """Measure every implementation of a cell that runs here."""
    import torch

    from kernels.registry import get
    from perftests.harness.chain import measure
    from perftests.suite import workload

    device = torch.device("cuda", 0)
    seconds: dict[str, list[float]] = {}
    failures: dict[str, str] = {}
    order = list(cell.names)
    for names in (order, order[::-1]) if cell.mib <= TWICE_MIB else (order,):
        for name in names:
            implementation = get(cell.case.kernel, name)
            reason = implementation.unavailable(device, cell.case.torch_dtype)
            if reason is not None:
                failures[name] = reason
                continue
            outcome = measure(workload(implementation, cell.case, device), session)
            if outcome.broken is not None:
                failures[name] = str(outcome.broken)
                continue
            seconds.setdefault(name, []).append(median(outcome.seconds))
    moved = workload(get(cell.case.kernel, OURS), cell.case, device).bytes_moved
    bench = session.bench(device)
    with bench.lock.alone(), bench.device.stream():
        peaks = bench.peaks(copied_bytes(cell, moved), "cold")
    driver_s = None
    if cell.goal is not None and cell.goal.driver is not None:
        driver_s = _driver_s(moved, session)
    return Measured(
        {name: mean(times) for name, times in seconds.items()},
        failures,
        moved,
        peaks.copy_bytes_per_s or float("nan"),
        str(peaks.copy_source),
        driver_s,
    )


def copied_bytes(cell: Cell, moved: int) -> int:
    """Return the bytes that the copy beside a cell moves: those of an array of the same size.

    A kernel of one input moves as many itself; one of several is set against the copy of one.
    """
    from kernels.registry import definition

    several = len(definition(cell.case.kernel).inputs) > 1
    return 2 * prod(cell.case.shape) * cell.case.torch_dtype.itemsize if several else moved


def _driver_s(moved: int, session: Session) -> float:
    """Return the median of the driver's copy that moves `moved` bytes in all, through the chain."""
    import torch

    from perftests.harness.chain import measure
    from perftests.harness.workload import Workload

    n = moved // 8

    def make_inputs(seed: int) -> tuple[torch.Tensor, ...]:
        generator = torch.Generator(device="cuda").manual_seed(seed)
        return (torch.randn(n, generator=generator, device="cuda"),)

    copy = Workload(
        kernel="copy",
        implementation="driver",
        launch=lambda inputs, out: out.copy_(inputs[0]),
        make_inputs=make_inputs,
        reference=lambda inputs: inputs[0].double(),
        output_shape=(n,),
        output_dtype=torch.float32,
        bytes_moved=8 * n,
    )
    outcome = measure(copy, session)
    if outcome.broken is not None:
        raise RuntimeError(f"no time for the driver's copy: {outcome.broken}")
    return median(outcome.seconds)


def judged(cell: Cell, found: Measured, aligned_s: float | None = None) -> Row:
    """Return a cell's row. `aligned_s` is our time at the aligned cell of the same size."""
    row: Row = {"cell": cell.label, "MiB": f"{cell.mib:g}"}
    if OURS not in found.seconds:
        reason = found.failures.get(OURS, "not measured")
        missing = dict.fromkeys(("us", "TB/s", "of copy", "goal", "best peer", "peer us"), "-")
        return {**row, **missing, "us of peer": "-", "reached": False, "note": reason}
    ours = found.seconds[OURS]
    peers = {name: s for name, s in found.seconds.items() if name != OURS}
    best = min(peers, key=lambda name: peers[name]) if peers else None
    slower = ours / peers[best] - 1 if best else 0.0
    wanted = _goals(cell, found, aligned_s)
    return {
        **row,
        "us": f"{ours * 1e6:.2f}",
        "TB/s": f"{found.moved / ours / 1e12:.3f}",
        "of copy": f"{found.of_copy(OURS):.3f}",
        "goal": "; ".join(text for text, _ in wanted) or "-",
        "best peer": best or "-",
        "peer us": f"{peers[best] * 1e6:.2f}" if best else "-",
        "us of peer": f"{slower:+.1%}" if best else "-",
        "reached": all(met for _, met in wanted) and slower <= SLOWER,
        "note": "; ".join(f"{name}: {why}" for name, why in found.failures.items()),
    }


def _goals(cell: Cell, found: Measured, aligned_s: float | None) -> list[tuple[str, bool]]:
    """Return each goal of a cell as text with what was found, and whether it is met."""
    goal, wanted = cell.goal, []
    if goal is None:
        return []
    if goal.copy is not None:
        wanted.append((f">= {goal.copy:g}", found.of_copy(OURS) >= goal.copy))
    driver = found.of_driver()
    if goal.driver is not None and driver is not None:
        text = f"or >= {goal.driver:g} of the driver's ({driver:.3f})"
        wanted.append((text, driver >= goal.driver))
        wanted = [("; ".join(t for t, _ in wanted), any(met for _, met in wanted))]
    for name, least in goal.of.items():
        theirs = aligned_s if name == "aligned" else found.seconds.get(name)
        if theirs is None:
            wanted.append((f"{name}: not measured", False))
            continue
        ratio = theirs / found.seconds[OURS]
        wanted.append((f"{name} >= {least:g} ({ratio:.3f})", ratio >= least))
    return wanted


def peers_text(cells: Iterable[tuple[Cell, Measured]]) -> str:
    """Return every implementation's time and share of the copy's rate as a Markdown list."""
    lines = []
    for cell, found in cells:
        times = ", ".join(
            f"{name} {s * 1e6:.2f} us ({found.of_copy(name):.3f})"
            for name, s in found.seconds.items()
        )
        rate = f"{found.copy_bytes_per_s / 1e12:.3f} TB/s by {found.copy_source}"
        lines.append(f"- {cell.label}, {cell.mib:g} MiB: {times}; copy {rate}")
    return "\n".join(lines)


def run(
    groups: Sequence[str], session: Session
) -> tuple[list[Section], list[tuple[Cell, Measured]]]:
    """Measure groups of cells; print each as it is done."""
    import torch

    sections, everything = [], []
    aligned: dict[tuple[str, float], float] = {}
    for group in groups:
        began, rows = time.perf_counter(), []
        for cell in GROUPS[group]():
            found = measure_cell(cell, session)
            everything.append((cell, found))
            key = (cell.case.dtype, cell.mib)
            if group == "relu" and OURS in found.seconds:
                aligned[key] = found.seconds[OURS]
            rows.append(judged(cell, found, aligned.get(key)))
            if cell.mib > TWICE_MIB:
                torch.cuda.empty_cache()
        how = "Cold medians; `of copy` is the rate over the copy's; `us of peer` our time over its"
        sections.append(Section(group, how, rows))
        print(sections[-1].text())
        print(f"({group}: {time.perf_counter() - began:.1f} s)\n", flush=True)
    return sections, everything


def write(
    sections: Sequence[Section],
    everything: Sequence[tuple[Cell, Measured]],
    folder: Path,
    facts: Mapping[str, Any],
    command: str,
) -> Path:
    """Write Markdown and JSON, one name for each GPU model; return the Markdown's path."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = facts["environment"]
    model = str(environment["gpu_model"])
    stem = "roof-" + re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")
    made = datetime.now(UTC).isoformat(timespec="seconds")
    libraries = ", ".join(f"{k} {v}" for k, v in environment["libraries"].items())
    rows = [row for section in sections for row in section.rows]
    reached = sum(row["reached"] is True for row in rows)
    intro = (
        f"Made {made} by `{command}`; driver {environment['driver']}, CUDA {environment['cuda']}, "
        f"{libraries}.\n\n{reached} of {len(rows)} cells reach their goal and have no peer more "
        f"than {SLOWER:.0%} faster.\n"
    )
    text = [
        f"# Kernels against the speed of a copy: {model}\n",
        intro,
        *(section.text() for section in sections),
        "## Every time\n",
        peers_text(everything) + "\n",
    ]
    path = folder / f"{stem}.md"
    path.write_text("\n".join(text))
    document = {
        "made": made,
        "command": command,
        **facts,
        "cells": [
            {
                "cell": cell.label,
                "mib": cell.mib,
                "seconds": dict(found.seconds),
                "failures": dict(found.failures),
                "bytes_moved": found.moved,
                "copy_bytes_per_s": found.copy_bytes_per_s
                if isfinite(found.copy_bytes_per_s)
                else None,
                "copy_source": found.copy_source,
                "driver_s": found.driver_s,
            }
            for cell, found in everything
        ],
        "rows": rows,
    }
    (folder / f"{stem}.json").write_text(json.dumps(document, indent=1) + "\n")
    return path


def main(arguments: list[str] | None = None) -> int:
    """Measure, print and write; return 1 when a goal was missed, 2 when nothing can be measured."""
    parser = argparse.ArgumentParser(description="our kernels against the speed of a copy")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}; all")
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    parser.add_argument("--seconds", type=float, default=SAMPLE_S, help="cap of a sample")
    given = parser.parse_args(arguments)
    unknown = [group for group in given.groups if group not in GROUPS]
    if unknown:
        parser.error(f"no group {unknown[0]!r}: there are {', '.join(GROUPS)}")
    import torch

    from perftests.harness.session import Session
    from perftests.harness.settings import Settings

    if not torch.cuda.is_available():
        print("cannot measure the roof: torch sees no GPU", file=sys.stderr)
        return 2
    session = Session(Settings(max_seconds=given.seconds))
    groups = given.groups or list(GROUPS)
    sections, everything = run(groups, session)
    bench = session.bench(torch.device("cuda", 0))
    command = " ".join(["python -m perftests.studies.roof", *(json.dumps(g) for g in given.groups)])
    facts = {"environment": bench.environment, "device": bench.facts}
    print(write(sections, everything, given.out, facts, command))
    return 0 if all(section.reached for section in sections) else 1


if __name__ == "__main__":
    sys.exit(main())
