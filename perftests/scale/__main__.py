"""Measure every figure and write docs/results/store-scale.md: `python -m perftests.scale`.

The SQLite stores (0.4 GB) are made on the first run and kept in --folder; those on PostgreSQL
(0.7 GB, with --ten-million 6 GB) are made in /tmp each time and removed. On two quiet processors
it takes about 7 minutes, with --ten-million about 15. The table holds what was measured last of
each figure, so that it can be made in parts: -k "not million", then --ten-million -k million.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from perftests.scale.report import table
from perftests.scale.stores import FACTS

ROOT = Path(__file__).parents[2]
KEPT = "kept.json"


def main() -> int:
    """Run the benchmarks in pytest, then write the table."""
    parser = argparse.ArgumentParser(prog="python -m perftests.scale", description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / ".bandwatch" / "scale")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "results" / "store-scale.md")
    parser.add_argument("-k", dest="selection", default="", help="measure only these again")
    parser.add_argument("--ten-million", action="store_true", help="also 10,000,000 on PostgreSQL")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    measured = given.folder.resolve() / "measured.json"
    command = [
        *(sys.executable, "-m", "pytest", "-q", "perftests/scale/bench_store.py"),
        *("-k", given.selection, f"--benchmark-json={measured}", "--benchmark-columns=median,min"),
    ]
    settings = {
        "BANDWATCH_SCALE_FOLDER": str(given.folder.resolve()),
        "BANDWATCH_SCALE_ROUNDS": str(given.rounds),
        "BANDWATCH_SCALE_HUGE": "yes" if given.ten_million else "no",
    }
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **settings}, check=False)
    if done.returncode:
        return done.returncode
    facts = json.loads((given.folder / FACTS).read_text())
    text = table(_kept(given.folder / KEPT, json.loads(measured.read_text())), facts)
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(text)
    print(text)
    return 0


def _kept(path: Path, measured: dict[str, Any]) -> dict[str, Any]:
    """Return what was measured now, with what was measured before of the others; and keep it."""
    kept = json.loads(path.read_text()) if path.exists() else {}
    for benchmark in measured["benchmarks"]:
        benchmark["extra_info"]["at"] = measured["datetime"][:16].replace("T", " ")
        kept[benchmark["fullname"]] = benchmark
    path.write_text(json.dumps(kept))
    return {**measured, "benchmarks": list(kept.values())}


if __name__ == "__main__":
    sys.exit(main())
