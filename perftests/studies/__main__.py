"""Run studies: measure, write docs/results/ and put the results into the store.

    python -m perftests.studies --list
    python -m perftests.studies ladder roofline --out docs/results
    python -m perftests.studies all

Each study goes on its own: one that fails loses no other, and the exit status is then 1.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from perftests.harness.errors import HarnessError
from perftests.studies import frame, recording
from perftests.studies.document import CPU_NOTE, SMALL_NOTE, Setting, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from perftests.studies.frame import Catalogue, Scope
    from perftests.studies.recording import Header


def main(arguments: list[str] | None = None) -> int:
    """Run what is asked for; return 0, 1 when a study failed, 2 for what cannot be asked."""
    parser = _parser()
    given = parser.parse_args(arguments)
    catalogue = frame.discover()
    if given.list:
        for name, study in catalogue.studies.items():
            print(f"{name:14} {study.title}")
        for name, why in catalogue.broken.items():
            print(f"{name:14} cannot be imported: {why}")
        return 0
    if not given.names:
        parser.error("no study named: give names, or all; --list shows them")
    unknown = frame.unknown(given.names, catalogue)
    if unknown:
        known = ", ".join([*catalogue.studies, *catalogue.broken])
        parser.error(f"no study {unknown[0]!r}: there are {known}; or all")
    try:
        scope = frame.new_scope(given.device, small=given.small)
        facts, floor_s = scope.facts(), scope.floor_s()
    except HarnessError as error:
        parser.error(str(error))
    said = sys.argv[1:] if arguments is None else arguments
    header = recording.Header(
        _now(),
        command_line(said),
        recording.checkout(),  # before the write-ups change the tree
    )
    names = _wanted(given.names, catalogue)
    _tell(scope)
    setting = Setting(header.command, facts, header.commit, scope.small, floor_s)
    failed = _run_all(names, catalogue, scope, setting, given.out)
    if not given.no_store:
        failed += _recorded(scope, header, names, given.store)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def command_line(arguments: Sequence[str]) -> str:
    """Return the call for a reader: where files and store were put is the machine's affair."""
    kept: list[str] = []
    place = False
    for argument in arguments:
        if not place and not argument.startswith(("--out=", "--store=")):
            kept += [] if argument in _PLACES else [argument]
        place = argument in _PLACES and not place
    return shlex.join(["python", "-m", "perftests.studies", *kept])


_PLACES = ("--out", "--store")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m perftests.studies", description="re-run the claims behind the suite"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="studies, or all")
    parser.add_argument("--list", action="store_true", help="show the studies and do nothing")
    parser.add_argument("--out", type=Path, default=Path("docs/results"), help="where to write")
    parser.add_argument("--small", action="store_true", help="small sizes; a CPU always does")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--no-store", action="store_true", help="record nothing")
    parser.add_argument("--store", metavar="URL", help="the store, if not the project's")
    return parser


def _wanted(names: list[str], catalogue: Catalogue) -> list[str]:
    every = sorted([*catalogue.studies, *catalogue.broken])
    wanted = every if "all" in names else list(dict.fromkeys(names))
    hosted = {name for name, study in catalogue.studies.items() if study.host}
    return sorted(wanted, key=lambda name: name not in hosted)


def _tell(scope: Scope) -> None:
    """Say first of all when the figures are not those of the claim's sizes."""
    if not scope.gpu:
        print(f"{CPU_NOTE}.", flush=True)
    elif scope.small:
        print(f"{SMALL_NOTE}.", flush=True)


def _run_all(
    names: list[str], catalogue: Catalogue, scope: Scope, setting: Setting, out: Path
) -> list[str]:
    """Run the studies in turn; return those that failed. An interrupt loses no earlier result."""
    ran: dict[str, bool] = {}
    try:
        for name in names:
            ran[name] = _ran(name, catalogue, scope, setting, out)
    except KeyboardInterrupt:
        print("interrupted: what was measured before is recorded", file=sys.stderr)
    return [name for name in names if not ran.get(name, False)]


def _ran(name: str, catalogue: Catalogue, scope: Scope, setting: Setting, out: Path) -> bool:
    """Run and write up one study; return False, having said why, when it failed."""
    if name in catalogue.broken:
        print(f"{name} cannot be imported: {catalogue.broken[name]}", file=sys.stderr, flush=True)
        return False
    try:
        done = frame.run(catalogue.studies[name], scope)
        path = write(done, setting, out)
    except Exception as error:  # noqa: BLE001 - the other studies go on
        traceback.print_exc()
        print(f"{name} failed: {frame.reason_of(error)}", file=sys.stderr, flush=True)
        return False
    print(f"{name}: {done.seconds:.1f} s, {path}\n{done.findings.verdict}\n", flush=True)
    return True


def _recorded(scope: Scope, header: Header, names: list[str], store: str | None) -> list[str]:
    """Put what was kept into the store; return ["the record"] when that failed."""
    if not scope.kept:
        print("nothing was timed: nothing is recorded")
        return []
    runs = recording.documents(scope.kept, header, _now(), names)
    try:
        print(recording.record(runs, store))
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return ["the record"]
    return []


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


if __name__ == "__main__":
    sys.exit(main())
