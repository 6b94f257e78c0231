"""How long the suite of all kernels takes, as a user runs it."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from perftests.studies.tables import Row, Section

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_S = {"quick": 30.0, "quick again": 30.0, "default": 120.0}
_QUICK = ("--bandwatch-quick",)
FLAGS: Mapping[str, tuple[str, ...]] = {"quick": _QUICK, "quick again": _QUICK, "default": ()}
_ROOT = Path(__file__).parents[2]


def command(name: str) -> list[str]:
    """Return what times a selection of the suite and stores nothing."""
    return [
        *(sys.executable, "-m", "pytest", "perftests", "--ignore=perftests/tests", "-q"),
        *("-p", "perftests.plugin", "-p", "no:cacheprovider", "--bandwatch-timing=on"),
        *FLAGS[name],
    ]


def suites() -> Section:
    """Run the selections, each in a process of its own; what one compiled the next finds."""
    rows: list[Row] = []
    for name, most_s in MOST_S.items():
        began = time.perf_counter()
        done = subprocess.run(command(name), cwd=_ROOT, capture_output=True, text=True, check=False)
        rows.append(row(name, time.perf_counter() - began, most_s, done.returncode, done.stdout))
    how = (
        "All kernels, checked and timed cold, imports too; the first run compiles what the cache "
        "of compiled kernels does not have, here or before"
    )
    return Section("Suites", how, rows)


def row(name: str, wall_s: float, most_s: float, status: int, output: str) -> Row:
    """Return a selection's row; a run in which a test failed reaches nothing."""
    passed = re.search(r"(\d+) passed", output)
    return {
        "suite": name,
        "cases": int(passed[1]) if passed else 0,
        "exit": status,
        "wall s": wall_s,
        "at most s": most_s,
        "reached": status == 0 and wall_s <= most_s,
    }
