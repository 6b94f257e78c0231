"""Commits that the store lacks, measured into their place in history within a time budget."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tracker import git
from tracker.loop.ab import Bench
from tracker.loop.durations import told
from tracker.loop.fresh import MeasureError, Task
from tracker.loop.notebook import Notebook
from tracker.loop.runs import to_runs
from tracker.loop.worktrees import BuildError
from tracker.model import Run
from tracker.occasion import LATER
from tracker.units import counted


@dataclass(frozen=True, slots=True)
class Wish:
    """Which commits, oldest first, how, and for how long.

    `known` gives the commits of the line that were measured already, told by the newest commit's
    run in today's environment. `keyword` selects tests as pytest's -k does.
    """

    line: tuple[str, ...]
    known: Callable[[Run], Collection[str]]
    quick: bool = False
    keyword: str | None = None
    seconds: float | None = None

    @property
    def whole(self) -> bool:
        """Whether all of the suite is measured."""
        return not self.quick and self.keyword is None


@dataclass(slots=True)
class Filled:
    """What was done: results recorded by commit, commits skipped with the reason, commits left.

    `known` had results before and were not measured anew. `failed` tells of recorded commits at
    which tests failed: those have no time.
    """

    recorded: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)


def by_halves(count: int) -> list[int]:
    """Return the positions 0 to count - 1 (newest last) so that any beginning covers them evenly.

    The newest first, then the middle of the largest gap, the newer one of equal gaps: after each
    step the widest unmeasured stretch is about half as wide as a step of that size allows.
    """
    if count <= 0:
        return []
    chosen = [count - 1]
    gaps = [(0, count - 1)]  # half-open stretches without a measurement
    while gaps:
        start, end = max(gaps, key=lambda gap: (gap[1] - gap[0], gap[0]))
        gaps.remove((start, end))
        if start == end:
            continue
        middle = (start + end) // 2
        chosen.append(middle)
        gaps += [(start, middle), (middle + 1, end)]
    return chosen


def backfill(
    wish: Wish, bench: Bench, notebook: Notebook, record: Callable[[Run], object]
) -> Filled:
    """Measure what is missing, newest first by halves, until done or the budget is spent.

    The newest commit that builds is always measured: it tells in which environment we are, and so
    what the store lacks. Where that is nothing new, one more is measured whatever the budget, so
    that each call brings something. Each commit is recorded before the next is measured. Commits
    that do not build are noted in the notebook and not tried again, once another one did: where
    none does, the machine may be what is broken.
    """
    broken = {str(entry["sha"]): str(entry["reason"]) for entry in notebook.entries}
    filled = Filled(skipped={sha: why for sha, why in broken.items() if sha in wish.line})
    work = _Work(wish, bench, notebook, record, filled, bench.clock())
    newest = [sha for sha in reversed(wish.line) if sha not in broken]
    run = next(filter(None, map(work.measure, newest)), None)
    if run is None:
        return filled
    done = {*filled.skipped, *filled.recorded}
    filled.known = tuple(sha for sha in wish.line if sha in work.known and sha not in done)
    absent = [sha for sha in wish.line if sha not in {*done, *filled.known}]
    order = [absent[position] for position in by_halves(len(absent))]
    nothing_new = done <= {*work.known, *filled.skipped}
    for number, sha in enumerate(order):
        if (number or not nothing_new) and work.spent(len(order) - number):
            filled.left = tuple(order[number:])
            break
        work.measure(sha)
    return filled


@dataclass(slots=True)
class _Work:
    wish: Wish
    bench: Bench
    notebook: Notebook
    record: Callable[[Run], object]
    filled: Filled
    begun: float
    tried: int = 0
    known: frozenset[str] = frozenset()
    broken: list[Mapping[str, str]] = field(default_factory=list)

    def spent(self, left: int) -> bool:
        """Return whether one more commit would go past the budget; tell how much is left."""
        elapsed = self.bench.clock() - self.begun
        each = elapsed / self.tried
        if self.wish.seconds is not None and elapsed + each > self.wish.seconds:
            self.bench.progress(f"the time budget is spent: {left} commits are left")
            return True
        self.bench.progress(f"{counted(left, 'commit')} left, {told(each * left)}")
        return False

    def measure(self, sha: str) -> Run | None:
        """Measure and record one commit; return its first run, None when it was skipped."""
        self.tried += 1
        self.bench.progress(f"measuring {sha[:12]}")
        try:
            runs = self._runs(sha)
        except (BuildError, MeasureError) as error:
            self.bench.progress(f"skipping {sha[:12]}: {error}")
            self.filled.skipped[sha] = str(error)
            if isinstance(error, BuildError):
                self.broken.append({"sha": sha, "reason": str(error)})
                self._note_broken()
            return None
        finally:
            self.bench.trees.forget(sha)
        if not self.filled.recorded:  # before this one is among them
            self.known = frozenset(self.wish.known(runs[0]))
        for run in runs:
            self.record(run)
        self.filled.recorded[sha] = sum(len(run.results) for run in runs)
        self._note_broken()
        # What is recorded is not to be found again under another driver.
        self._journal(sha).unlink(missing_ok=True)
        return runs[0]

    def _note_broken(self) -> None:
        if self.filled.recorded and self.broken:
            self.notebook.extend(self.broken)
            self.broken.clear()

    def _runs(self, sha: str) -> Sequence[Run]:
        folder = self.bench.trees.at(sha)
        started = self.bench.stamp.now()
        task = Task(keyword=self.wish.keyword, quick=self.wish.quick)
        measured = self.bench.measure(folder, task, self._journal(sha))
        runs = to_runs(
            measured,
            git.checkout(folder, {}),
            self.bench.stamp,
            started,
            note=LATER,
            complete=self.wish.whole,
        )
        if failures := measured.told_failures:
            self.filled.failed[sha] = failures
            self.bench.progress(f"{sha[:12]}: {failures}")
        if not runs:
            why = next(filter(None, (*measured.problems, failures, "its suite has no such test")))
            raise MeasureError(f"nothing was measured at {sha[:12]}: {why}")
        return runs

    def _journal(self, sha: str) -> Path:
        return self.bench.folder / f"{sha}.jsonl"
