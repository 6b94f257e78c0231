"""Turn the runs of a store into the recorded runs that ship with the package.

    python -m tracker.demo.ship STORE FOLDER [--planted SHA]

It is run in the checkout that was measured: the commits between the runs are shipped too.

`--planted` names the commit whose slow-down was put there on purpose: its runs say so in a note.
Runs of trees with changes stay behind: what no commit holds is no history. Measurements are kept; a
file is gzipped without its time: the same run, the same bytes.
"""

import argparse
import gzip
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from tracker import git
from tracker.demo import COMMITS
from tracker.errors import GitError, TrackerError
from tracker.model import Commit, Run
from tracker.queries import load_run, runs
from tracker.record import dump_run
from tracker.store import Store

NOTE = (
    "planted: this commit slows relu down on purpose, so that a real regression is there to look at"
)


def as_demo(run: Run, planted: str | None) -> Run:
    """Return the run marked as a demo, with the note where its commit is the planted one."""
    commit = run.checkout.commit
    mark = planted is not None and commit is not None and commit.sha.startswith(planted)
    return replace(run, demo=True, notes=(*run.notes, NOTE) if mark else run.notes)


def ship(address: str, folder: Path, planted: str | None) -> tuple[Path, ...]:
    """Write each run of the store at `address` into `folder` and return the files, oldest first.

    Raises StoreError for a store that cannot be read.
    """
    written = []
    shas = []
    with Store.open(address, read_only=True) as store:
        for number, info in enumerate(reversed(runs(store, dirty=False, limit=None))):
            run = as_demo(load_run(store, info.run_id), planted)
            path = folder / f"{number:02d}-{(info.sha or 'no-commit')[:10]}.json.gz"
            text = json.dumps(dump_run(run), separators=(",", ":"), allow_nan=False)
            path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
            written.append(path)
            shas += [info.sha] if info.sha else []
    (folder / COMMITS).write_text("".join(map(_line, between(shas))))
    return tuple(written)


def between(shas: Sequence[str]) -> tuple[Commit, ...]:
    """Return the measured commits and those between them, from git; none outside their checkout."""
    try:
        known = git.history(ref=shas[-1]) if shas else ()
    except GitError:
        return ()
    places = [place for place, commit in enumerate(known) if commit.sha in shas]
    return known[: max(places, default=-1) + 1]


def _line(commit: Commit) -> str:
    return json.dumps(asdict(commit) | {"author": None}, separators=(",", ":")) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 2 for a store or folder that cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m tracker.demo.ship", description=__doc__)
    parser.add_argument("store")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--planted", metavar="SHA", help="the commit with the planted slow-down")
    given = parser.parse_args(arguments)
    try:
        for path in ship(given.store, given.folder, given.planted):
            print(path)
    except (TrackerError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
