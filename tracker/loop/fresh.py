"""One fresh process that measures tests in a checkout: the step that tests replace.

A process of its own for each measurement draws memory layout, clocks and heat anew, which is the
noise that a verdict has to know.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol

from tracker.config import STORE_VARIABLE
from tracker.errors import TrackerError, UnfitError
from tracker.loop.journal import Journal, read_journal
from tracker.loop.repository import outside_hooks
from tracker.loop.settings import LoopSettings
from tracker.loop.worktrees import BuildError, run_limited
from tracker.record import Envelope

INSIDE = Path(__file__).with_name("inside")
_USAGE = 4


class MeasureError(TrackerError):
    """A measuring process that died or took too long; what it had measured is kept."""


@dataclass(frozen=True, slots=True)
class Task:
    """What to measure: tests by their ids, or the suite, or what `keyword` (-k) selects of it.

    `timing` false checks correctness alone. `quick` asks for the suite's small selection.
    """

    tests: tuple[str, ...] | None = None
    keyword: str | None = None
    quick: bool = False
    timing: bool = True


@dataclass(frozen=True, slots=True)
class Measured:
    """What one process brought back.

    `absent` are wanted tests that this commit lacks, `failed` tests that did not pass, with a line
    of why, `problems` records that could not be used.
    """

    envelopes: tuple[Envelope, ...] = ()
    absent: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def by_test(self) -> dict[str, Envelope]:
        """The envelopes by the test that measured each."""
        return {str(envelope.result.test): envelope for envelope in self.envelopes}


class Measure(Protocol):
    """Measures tests in a checkout; `journal` is its notes, by which it goes on after a crash."""

    def __call__(self, folder: Path, task: Task, journal: Path) -> Measured:
        """Return what was measured; raise BuildError, UnfitError or MeasureError."""


@dataclass(frozen=True, slots=True)
class PytestMeasure:
    """Measures with `python -m pytest` in a process of its own."""

    settings: LoopSettings

    def __call__(self, folder: Path, task: Task, journal: Path) -> Measured:
        """Return what was measured, what an earlier process noted in `journal` included."""
        before = read_journal(journal)
        if before.finished is not None:
            return _measured(before)
        code = self._run(folder, task, journal, before.done())
        found = read_journal(journal)
        _refuse_broken(found, code, folder, journal)
        return _measured(found)

    def _run(self, folder: Path, task: Task, journal: Path, done: frozenset[str]) -> int:
        environment = self._environment(folder, journal)
        journal.parent.mkdir(parents=True, exist_ok=True)
        for variable, tests in (("WANTED", task.tests), ("DONE", sorted(done) or None)):
            if tests is not None:
                path = journal.with_suffix(f".{variable.lower()}.json")
                path.write_text(json.dumps(list(tests)), "utf-8")
                environment[f"BANDWATCH_{variable}"] = str(path)
        with journal.with_suffix(".log").open("ab") as log:
            return run_limited(
                self._command(folder, task),
                folder,
                log.fileno(),
                self.settings.time_limit_s,
                environment,
            )

    def _command(self, folder: Path, task: Task) -> tuple[str, ...]:
        files = dict.fromkeys(test.partition("::")[0] for test in task.tests or ())
        places = [file for file in files if (folder / file).exists()] if task.tests else []
        timing = "on" if task.timing else "off"
        return (
            self.settings.python,
            *("-m", "pytest", "-q", "-p", "bandwatch_inside"),
            *(word for name in _missing_plugins(folder) for word in ("-p", f"no:{name}")),
            f"--bandwatch-timing={timing}",
            *(("--bandwatch-quick",) if task.quick else ()),
            *(("-k", task.keyword) if task.keyword else ()),
            *self.settings.arguments,
            *(places or self.settings.suite),
        )

    def _environment(self, folder: Path, journal: Path) -> dict[str, str]:
        environment = outside_hooks(dict(os.environ))
        # The checkout first: its own packages, whatever is installed.
        path = [str(INSIDE), str(folder), environment.get("PYTHONPATH", "")]
        environment |= {
            "PYTHONPATH": os.pathsep.join(filter(None, path)),
            "BANDWATCH_JOURNAL": str(journal.resolve()),
            # Whatever the suite records by itself goes nowhere.
            STORE_VARIABLE: f"sqlite:///{journal.resolve().with_suffix('.scratch.db')}",
        }
        return environment


def _missing_plugins(folder: Path) -> list[str]:
    """Return installed pytest plugins that this checkout should bring and does not have yet.

    Their packages come from the checkout, so pytest would fail to import them.
    """
    found = []
    for entry in entry_points(group="pytest11"):
        parts = entry.value.partition(":")[0].split(".")
        place = folder.joinpath(*parts)
        if (folder / parts[0]).is_dir() and not (
            place.is_dir() or place.with_suffix(".py").is_file()
        ):
            found.append(entry.name)
    return found


def _refuse_broken(found: Journal, code: int, folder: Path, journal: Path) -> None:
    log = journal.with_suffix(".log")
    if found.uncollected:
        name, reason = next(iter(found.uncollected.items()))
        raise BuildError(f"cannot collect {name or 'the suite'} in {folder.name}: {reason}")
    if found.stopped is not None and found.stopped[1] == UnfitError.exit_code:
        raise UnfitError(f"cannot measure: {found.stopped[0]}")
    if found.finished is None:
        if code == _USAGE:
            raise BuildError(f"cannot start pytest in {folder.name}: {_tail(log)}")
        why = "took too long" if code < 0 else f"died with exit code {code}"
        at = found.phases[-1].nodeid if found.phases else "its start"
        raise MeasureError(
            f"cannot measure in {folder.name}: the process {why} after {at}: {_tail(log)}"
        )


def _tail(log: Path) -> str:
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines()]
    told = [line for line in lines if line]
    return (told[-1] if told else "it printed nothing")[:300]


def _measured(journal: Journal) -> Measured:
    collected = journal.collect()
    return Measured(collected.envelopes, journal.absent, journal.failed(), collected.problems)
