"""One fresh process that measures tests in a checkout: the step that tests replace.

A process of its own for each measurement draws memory layout, clocks and heat anew, which is the
noise that a verdict has to know.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple, Protocol, Self

from tracker.config import STORE_VARIABLE
from tracker.errors import TrackerError, UnfitError
from tracker.last_words import read_log
from tracker.loop.idle import idle_plugins
from tracker.loop.journal import USAGE, Journal, cut_half_line, read_journal
from tracker.loop.processes import Running
from tracker.loop.repository import outside_hooks
from tracker.loop.settings import LoopSettings
from tracker.loop.strays import TREES, StrayError, prepare, refuse_strays
from tracker.loop.worktrees import BuildError
from tracker.record import Envelope
from tracker.units import counted

INSIDE = Path(__file__).with_name("inside")
_NO_MODULE = re.compile(r"[Nn]o module named '?(?P<name>[\w.]+)")


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
    def told_failures(self) -> str | None:
        """How many tests failed, and why the first did; None where all passed."""
        if not self.failed:
            return None
        test, why = next(iter(self.failed.items()))
        return f"{counted(len(self.failed), 'test')} failed, the first {test}: {why}"

    @property
    def by_test(self) -> dict[str, Envelope]:
        """The envelopes by the test that measured each."""
        return {str(envelope.result.test): envelope for envelope in self.envelopes}


class Measure(Protocol):
    """Measures tests in a checkout; `journal` is its notes, by which it goes on after a crash."""

    def __call__(self, folder: Path, task: Task, journal: Path) -> Measured:
        """Return what was measured; raise BuildError, UnfitError or MeasureError."""


class Job(NamedTuple):
    """What `Measure` is called with."""

    folder: Path
    task: Task
    journal: Path

    @property
    def done(self) -> bool:
        """Whether an earlier process finished it: nothing is left to be run."""
        return read_journal(self.journal).over


@contextmanager
def side_by_side(
    measure: Measure, jobs: Sequence[Job]
) -> Iterator[tuple[Callable[[], Measured], ...]]:
    """Start a process for each job that is not done; give what returns each one's answer, in order.

    Jobs without timing run at once. Those that time start, import and collect, then sleep until
    their answer is asked for, so that one alone is timed; ask first for the answers of the others.
    All that still run end with the context. A `measure` that cannot start them so is called when
    the answer is asked for.
    """
    with ExitStack() as stack:
        if isinstance(measure, PytestMeasure):
            found = [stack.enter_context(measure.start(job)) for job in jobs]
            yield tuple(partial(_answer, process, found) for process in found)
        else:
            yield tuple(partial(measure, *job) for job in jobs)


def _answer(process: "Fresh", found: Sequence["Fresh"]) -> Measured:
    if process.job.task.timing:
        # All others wait or have ended; one that cannot be let go is told before time is lost.
        broken = [one for one in found if not one.settled()]
        if broken:
            return broken[0].answer()
    return process.answer()


@dataclass(frozen=True, slots=True)
class PytestMeasure:
    """Measures with `python -m pytest` in a process of its own.

    `imports` are modules that earlier processes imported only while their tests ran.
    """

    settings: LoopSettings
    imports: dict[str, None] = field(default_factory=dict, compare=False)

    def __call__(self, folder: Path, task: Task, journal: Path) -> Measured:
        """Return what was measured, what an earlier process noted in `journal` included."""
        with self.start(Job(folder, task, journal), waits=False) as process:
            return process.answer()

    def start(self, job: Job, *, waits: bool | None = None) -> "Fresh":
        """Start the process of a job, none where the job is done.

        One that `waits`, as jobs that time do, sleeps before it runs anything until it is let go.
        """
        waits = job.task.timing if waits is None else waits
        before = read_journal(job.journal)
        running = None
        if not before.over:
            running = self._run(job, before.done(), waits=waits)
        return Fresh(job, self, running, waits=waits)

    def _run(self, job: Job, done: frozenset[str], *, waits: bool) -> Running:
        folder, task, journal = job
        journal.parent.mkdir(parents=True, exist_ok=True)
        environment = self._environment(folder, journal)
        cut_half_line(journal)
        lists = (
            ("WANTED", task.tests),
            ("DONE", sorted(done) or None),
            ("IMPORTS", list(self.imports) if waits else None),
        )
        for variable, names in lists:
            if names is not None:
                path = journal.with_suffix(f".{variable.lower()}.json")
                path.write_text(json.dumps(list(names)), "utf-8")
                environment[f"BANDWATCH_{variable}"] = str(path.resolve())
        with journal.with_suffix(".log").open("wb") as log:  # an earlier process has had its say
            return Running(
                self._command(folder, task),
                folder,
                log.fileno(),
                self.settings.time_limit_s,
                environment,
                waits=waits,
            )

    def _command(self, folder: Path, task: Task) -> tuple[str, ...]:
        files = dict.fromkeys(test.partition("::")[0] for test in task.tests or ())
        places = [file for file in files if (folder / file).exists()] if task.tests else []
        timing = "on" if task.timing else "off"
        unwanted = [
            *_missing_plugins(folder),
            *idle_plugins(folder, places, self.settings.arguments),
        ]
        return (
            self.settings.python,
            *("-m", "pytest", "-q", "-p", "bandwatch_inside"),
            *(word for name in unwanted for word in ("-p", f"no:{name}")),
            f"--bandwatch-timing={timing}",
            *(("--bandwatch-quick",) if task.quick else ()),
            *(("-k", task.keyword) if task.keyword else ()),
            *self.settings.arguments,
            *(places or self.settings.suite),
        )

    def _environment(self, folder: Path, journal: Path) -> dict[str, str]:
        environment = outside_hooks(dict(os.environ))
        order = journal.with_suffix(".trees.json").resolve()
        # The checkout first: its own packages, whatever is installed.
        places = map(str, prepare(folder, order))
        path = [str(INSIDE), *places, environment.get("PYTHONPATH", "")]
        environment |= {
            "PYTHONPATH": os.pathsep.join(filter(None, path)),
            TREES: str(order),
            "BANDWATCH_JOURNAL": str(journal.resolve()),
            "BANDWATCH_PARENT": str(os.getpid()),
            # Whatever the suite records by itself goes nowhere.
            STORE_VARIABLE: f"sqlite:///{journal.resolve().with_suffix('.scratch.db')}",
        }
        return environment


@dataclass(slots=True)
class Fresh:
    """The process of one job, ended with the context; `running` is None where the job is done."""

    job: Job
    step: PytestMeasure
    running: Running | None
    waits: bool

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.running is not None:
            self.running.end()

    def settled(self) -> bool:
        """Return whether it waits for its turn or, without one, has ended; wait until it does."""
        if self.running is None:
            return True
        if not self.waits:
            self.running.wait()
            return True
        return self.running.ready()

    def answer(self) -> Measured:
        """Let it go and return what it measured once it has ended; raise what `Measure` does."""
        code = 0
        if self.running is not None:
            if self.waits and self.running.ready():
                self.running.let_go()
            code, self.running = self.running.wait(), None
        found = read_journal(self.job.journal)
        self._refuse_strays(found)
        _refuse_broken(found, code, self.job, self.step.settings.python)
        self.step.imports.update(dict.fromkeys(found.imported))
        return _measured(found)

    def _refuse_strays(self, found: Journal) -> None:
        try:
            refuse_strays(found, self.job.folder, INSIDE, self.step.settings.build)
        except StrayError:
            self.job.journal.unlink()  # nothing of it is to be found by the next call
            raise


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


def _refuse_broken(found: Journal, code: int, job: Job, python: str) -> None:
    place = job.folder.name
    if found.uncollected:
        name, reason = next(iter(found.uncollected.items()))
        raise BuildError(f"cannot collect {name or 'the suite'} in {place}: {reason}")
    if found.unfit is not None:
        raise UnfitError(f"cannot measure: {found.unfit}")
    if found.stopped is not None:
        raise MeasureError(f"cannot measure in {place}: pytest was stopped: {found.stopped[0]}")
    if found.over:
        return
    said, where = read_log(job.journal.with_suffix(".log"))
    if USAGE in {found.finished, code}:
        advice = _advice(said, python)
        raise BuildError(f"cannot start pytest in {place}: {said}; {advice}{where}")
    why = "took too long" if code < 0 else f"died with exit code {code}"
    at = found.phases[-1].nodeid if found.phases else "its start"
    raise MeasureError(
        f"cannot measure in {place}: the process {why} after {at}: {said}; "
        f"{_advice(said, python)}{where}"
    )


def _advice(said: str, python: str) -> str:
    """Return what to do about a reason that is known, ended by a semicolon."""
    if module := _NO_MODULE.search(said):
        return f"install {module['name']} for {python}; "
    if "unrecognized arguments" not in said:
        return ""
    if "--bandwatch-" in said:
        return (
            f"no plugin that {python} loads here has this option: install Bandwatch and its extra "
            "`measure` for it (bandwatch doctor); "
        )
    return (
        "correct addopts of pytest or arguments of [tool.bandwatch.ci], or install the plugin "
        f"that has this option for {python}; "
    )


def _measured(journal: Journal) -> Measured:
    collected = journal.collect()
    return Measured(collected.envelopes, journal.absent, journal.failed(), collected.problems)
