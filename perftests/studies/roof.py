"""Our kernels and their peers against the speed of a copy, in one table measured in one process.

    python -m perftests.studies.roof                  # every group, little more than a minute
    python -m perftests.studies.roof relu "odd lengths" --out docs/results

Each cell holds our kernel, today's peers (torch, torch.compile, Triton) and the yardsticks: the
faster of the driver's copy and plain copy kernels of an array of the same size. All kernels go
through the harness's chain of trust; then all candidates of a cell, copies too, are timed in random
turns with a cold L2, and the rounds' spread is the error that stands beside each ratio.
`python -m perftests.studies.roof` exits with 1 when a goal was missed, or a peer is more than 1 %
faster, by more than twice that error.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perftests.studies.roof_cells import GROUPS, Cell
from perftests.studies.roof_judged import SLOWER, WITHIN, judged
from perftests.studies.roof_measured import Measured, measure_cell
from perftests.studies.tables import Section, slug, versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from perftests.harness.session import Session

SAMPLE_S = 0.015
"""Cap of the chain's own sample: it checks, and the turns tell the time."""
LARGE_MIB = 64
HOW = (
    "Cold times in random turns; `of copy` is the rate over the fastest copy's and `us of peer` "
    "our time over the best peer's, each with its standard error"
)


def peers_text(cells: Iterable[tuple[Cell, Measured]]) -> str:
    """Return every implementation's time and share of the copy's rate as a Markdown list."""
    lines = []
    for cell, found in cells:
        if not found.times:
            continue
        times = ", ".join(
            f"{name} {t.seconds * 1e6:.3f} us ({found.of_copy(name).value:.4f})"
            for name, t in found.times.items()
        )
        copies = ", ".join(
            f"{name} {found.copied / t.seconds / 1e12:.3f}" for name, t in found.copies.items()
        )
        lines.append(f"- {cell.label}, {cell.mib:g} MiB: {times}; copies in TB/s: {copies}")
    return "\n".join(lines)


def run(
    groups: Sequence[str], session: Session
) -> tuple[list[Section], list[tuple[Cell, Measured]]]:
    """Measure groups of cells; print each as it is done."""
    import torch

    sections, everything = [], []
    for group in groups:
        began, rows = time.perf_counter(), []
        for cell in GROUPS[group]():
            found = measure_cell(cell, session)
            everything.append((cell, found))
            rows.append(judged(cell, found))
            if cell.mib > LARGE_MIB:
                torch.cuda.empty_cache()
        sections.append(Section(group, HOW, rows))
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
    model = str(facts["environment"]["gpu_model"])
    path = folder / f"roof-{slug(model)}.md"
    made = datetime.now(UTC).isoformat(timespec="seconds")
    rows = [row for section in sections for row in section.rows]
    text = [
        f"# Kernels against the speed of a copy: {model}\n",
        _intro(rows, facts["environment"], made, command),
        *(section.text() for section in sections),
        "## Every time\n",
        peers_text(everything) + "\n",
    ]
    path.write_text("\n".join(text))
    cells = [_as_data(cell, found) for cell, found in everything]
    document = {"made": made, "command": command, **facts, "cells": cells, "rows": rows}
    path.with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n")
    return path


def _intro(
    rows: Sequence[Mapping[str, Any]], environment: Mapping[str, Any], made: str, command: str
) -> str:
    """Return what was measured where, and how many cells reach their goal."""
    reached = sum(row["reached"] is True for row in rows)
    close = sum(row["reached"] == WITHIN for row in rows)
    return (
        f"Made {made} by `{command}`; {versions(environment)}.\n\n"
        f"{reached} of {len(rows)} cells reach their goal and have no peer more than {SLOWER:.0%} "
        f"faster; {close} more miss by less than twice the comparison's standard error.\n"
    )


def _as_data(cell: Cell, found: Measured) -> dict[str, Any]:
    return {
        "cell": cell.label,
        "mib": cell.mib,
        "times": {name: asdict(t) for name, t in found.times.items()},
        "failures": dict(found.failures),
        "bytes_moved": found.moved,
        "bytes_copied": found.copied,
        "copies": {name: asdict(t) for name, t in found.copies.items()},
        "aligned": asdict(found.aligned) if found.aligned else None,
    }


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
