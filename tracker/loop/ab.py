"""Two commits against each other, interleaved in fresh processes, until decided."""

import shutil
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Self

from tracker import git
from tracker.commands import Again, in_turns
from tracker.errors import NotFoundError, TrackerError, UnfitError
from tracker.loop.fresh import Job, Measure, Measured, MeasureError, Task, side_by_side
from tracker.loop.runs import Stamp, to_runs
from tracker.loop.turns import Budget, Name, Pairs, silent, take_turns
from tracker.loop.worktrees import BuildError, Worktrees
from tracker.model import Checkout, Run, VerdictKind
from tracker.occasion import IN_TURNS
from tracker.record import Envelope
from tracker.report.judged import Judged
from tracker.sides import Earlier, Side
from tracker.suite import SUITE_RATE, settle
from tracker.thresholds import Thresholds
from tracker.units import counted
from tracker.verdict import Policy, Verdict, judge

FAILED_TOLD = 10


class NothingSharedError(NotFoundError):
    """Two commits without a case that was measured on both; `failed` are tests of head."""

    def __init__(self, message: str, failed: Mapping[str, str]) -> None:
        super().__init__(message)
        self.failed = failed


@dataclass(frozen=True, slots=True)
class Contest:
    """What to compare: two commits, some tests of theirs or all, and when to stop.

    `resolution`: a case is settled as unchanged once a loss this large would have shown. `earlier`
    are earlier runs of the series, oldest first, by case fingerprint: they tell its noise. `ahead`
    are commits that may be compared next: they are checked while the first processes start.
    """

    base: str
    head: str
    tests: tuple[str, ...] | None = None
    keyword: str | None = None
    quick: bool = False
    budget: Budget = field(default_factory=Budget)
    resolution: float = 0.01
    earlier: Mapping[str, Sequence[Earlier]] = field(default_factory=dict)
    ahead: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdicts, every process's run to be kept, and what else to tell.

    `failed` are tests of head that did not pass, with a line of why.
    """

    judged: tuple[Judged, ...]
    base_runs: tuple[Run, ...]
    head_runs: tuple[Run, ...]
    pairs: int
    notes: tuple[str, ...]
    failed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bench:
    """What measuring needs: worktrees, the measuring step, a folder for journals, a clock.

    Tests replace `measure` and `clock`. `checked` are commits that were built and checked already.
    `spacious`: there are cores for checking what may come next while processes start.
    """

    trees: Worktrees
    measure: Measure
    folder: Path
    stamp: Stamp
    clock: Callable[[], float] = time.monotonic
    progress: Callable[[str], None] = silent
    checked: set[tuple[str, tuple[str, ...] | None]] = field(default_factory=set)
    spacious: bool = False

    def clear(self) -> None:
        """Forget what an interrupted command left."""
        shutil.rmtree(self.folder, ignore_errors=True)


def compare_commits(contest: Contest, bench: Bench, thresholds: Thresholds, today: date) -> Outcome:
    """Build both commits, check them, measure them in turns, judge every case that both have.

    Raises BuildError for a commit that cannot be built, NothingSharedError when no case was
    measured on both, OutOfTimeError for a budget that lasts for nothing.
    """
    contestants = _Contestants.of(contest, bench)
    referee = Referee(
        contest.base,
        contest.budget.looks,
        thresholds,
        today,
        contest.resolution,
        contest.earlier,
        contest.head,
    )
    pairs = take_turns(
        contestants.turns,
        referee.still_open,
        tests=contest.tests,
        budget=contest.budget,
        clock=bench.clock,
        progress=bench.progress,
    )
    if not pairs.both():
        raise NothingSharedError(
            f"cannot compare {contest.base[:12]} with {contest.head[:12]}: no case was measured on "
            f"both; {_why_none(pairs)}",
            pairs.failed["head"],
        )
    return Outcome(
        judged=referee.judge(pairs),
        base_runs=tuple(contestants.runs["base"]),
        head_runs=tuple(contestants.runs["head"]),
        pairs=pairs.rounds,
        notes=tuple(_notes(pairs)),
        failed=pairs.failed["head"],
    )


@dataclass(frozen=True, slots=True)
class _Contestants:
    """The two worktrees of a contest, and the runs that their processes left."""

    contest: Contest
    bench: Bench
    folders: Mapping[Name, Path]
    checkouts: Mapping[Name, Checkout]
    runs: Mapping[Name, list[Run]]
    started: Counter[Name] = field(default_factory=Counter)

    @classmethod
    def of(cls, contest: Contest, bench: Bench) -> Self:
        shas = _shas(contest)
        if bench.trees.settings.build:
            bench.progress(f"building {' and '.join(sha[:12] for sha in shas.values())}")
        bench.trees.prepare(shas.values())
        folders = {name: bench.trees.at(sha) for name, sha in shas.items()}
        checkouts = {name: git.checkout(folder, {}) for name, folder in folders.items()}
        return cls(contest, bench, folders, checkouts, {"base": [], "head": []})

    def turns(
        self, names: Sequence[Name], tests: tuple[str, ...] | None
    ) -> Generator[Measured, None, None]:
        """Measure the sides in this order; their processes start together."""
        contest, bench = self.contest, self.bench
        task = Task(tests, None if tests else contest.keyword, quick=contest.quick)
        jobs = [self._job(name, task) for name in names]
        ahead: Mapping[str, Job] = {}
        if not all(job.done for job in jobs):
            self._check()
            ahead = self._ahead()
        with side_by_side(bench.measure, [*ahead.values(), *jobs]) as answers:
            for sha, answer in zip(ahead, answers, strict=False):
                with suppress(TrackerError):  # told when it is compared
                    answer()
                    bench.checked.add((sha, contest.tests))
            for name, answer in zip(names, answers[len(ahead) :], strict=True):
                started = bench.stamp.now()
                measured = answer()
                checkout = self.checkouts[name]
                self.runs[name].extend(
                    to_runs(measured, checkout, bench.stamp, started, note=IN_TURNS)
                )
                yield measured

    def _job(self, name: Name, task: Task) -> Job:
        number = self.started[name]
        self.started[name] += 1
        return Job(self.folders[name], task, self.bench.folder / f"{name}-{number}.jsonl")

    def _check(self) -> None:
        """Warm each side up by one untimed run of what will be measured, both at once.

        Compiling happens here, so that the first timed process is like the others, and so that the
        processes of one side, which start together, find everything made.
        """
        contest, bench = self.contest, self.bench
        keyed = {name: (sha, contest.tests) for name, sha in _shas(contest).items()}
        new = [name for name, key in keyed.items() if key not in bench.checked]
        if not new:
            return
        bench.progress(f"checking {' and '.join(f'{name} {keyed[name][0][:12]}' for name in new)}")
        task = Task(contest.tests, contest.keyword, quick=contest.quick, timing=False)
        jobs = [Job(self.folders[name], task, bench.folder / f"{name}-check.jsonl") for name in new]
        for job in jobs:
            if job.done:  # in a worktree that is gone
                job.journal.unlink()
        crowded = []
        with side_by_side(bench.measure, jobs) as answers:
            for job, answer in zip(jobs, answers, strict=True):
                try:
                    answer()
                except (UnfitError, MeasureError):
                    crowded.append(job)
        for job in crowded:  # beside another it may lack memory, or a device for one process alone
            job.journal.unlink(missing_ok=True)
            bench.measure(*job)
        bench.checked.update(keyed[name] for name in new)

    def _ahead(self) -> dict[str, Job]:
        """Return the checks of commits that may be compared next, by their ids."""
        new = [
            sha for sha in self.contest.ahead if (sha, self.contest.tests) not in self.bench.checked
        ]
        jobs = {}
        for sha in new:
            with suppress(BuildError):
                jobs[sha] = self._checking(self.bench.trees.at(sha), f"ahead-{sha[:16]}")
        return jobs

    def _checking(self, folder: Path, name: str) -> Job:
        contest = self.contest
        task = Task(contest.tests, contest.keyword, quick=contest.quick, timing=False)
        job = Job(folder, task, self.bench.folder / f"{name}.jsonl")
        if job.done:  # in a worktree that is gone
            job.journal.unlink()
        return job


def _shas(contest: Contest) -> dict[Name, str]:
    return {"base": contest.base, "head": contest.head}


@dataclass(frozen=True, slots=True)
class Referee:
    """Judges pairs of one contest: `base` and `head` name its commits.

    It may decide `looks` times. False discovery is held over all its cases and looks.
    """

    base: str
    looks: int
    thresholds: Thresholds
    today: date
    resolution: float = 0.01
    earlier: Mapping[str, Sequence[Earlier]] = field(default_factory=dict)
    head: str = ""

    def still_open(self, pairs: Pairs) -> Sequence[str]:
        """Return the tests that are not settled yet."""
        found = self._verdicts(pairs)
        return [test for test, verdict in found.items() if not self._settled(verdict)]

    def judge(self, pairs: Pairs) -> tuple[Judged, ...]:
        """Return the verdict on every test that both sides measured."""
        found = self._verdicts(pairs)
        return tuple(self._judged(pairs, test, verdict) for test, verdict in found.items())

    def judge_runs(self, base: Sequence[Run], head: Sequence[Run]) -> tuple[Judged, ...]:
        """Return the verdicts from the runs that a contest left."""
        pairs = Pairs()
        for name, runs in (("base", base), ("head", head)):
            for run in runs:
                envelopes = tuple(Envelope(run.environment, run.device, r) for r in run.results)
                pairs.take("base" if name == "base" else "head", Measured(envelopes))
        return self.judge(pairs)

    def _verdicts(self, pairs: Pairs) -> dict[str, Verdict]:
        alone = [self._verdict(pairs, test) for test in pairs.both()]
        suite = settle(alone, SUITE_RATE / self.looks)
        return dict(zip(pairs.both(), suite.verdicts, strict=True))

    def _judged(self, pairs: Pairs, test: str, verdict: Verdict) -> Judged:
        case = pairs.head[test][0].result.case
        _, overrides = self.thresholds.for_case(case, self.today)
        remarks = tuple(override.told() for override in overrides)
        again = in_turns(self.base, self.head, len(pairs.base[test])) if self.head else Again()
        return Judged(again.tell(verdict), pairs.head[test][0].result, remarks)

    def _settled(self, verdict: Verdict) -> bool:
        if verdict.kind is VerdictKind.NO_CHANGE:
            return verdict.detectable is not None and verdict.detectable <= self.resolution
        return verdict.kind is not VerdictKind.UNDECIDED or not verdict.evidence

    def _verdict(self, pairs: Pairs, test: str) -> Verdict:
        base, head = pairs.base[test], pairs.head[test]
        policy, _ = self.thresholds.for_case(head[0].result.case, self.today)
        rule = f"{self.base[:12]}, measured in turns with it ({len(base)} processes each)"
        earlier = tuple(self.earlier.get(head[0].result.case.fingerprint, ()))
        return judge(_side(base, rule, earlier), _side(head), sequential(policy, self.looks))


def sequential(policy: Policy, looks: int) -> Policy:
    """Return the policy for one of several looks, so that together they err no more than one.

    Bonferroni's share for each look; looks at growing data are so alike that this is cautious.
    """
    return replace(policy, confidence=1 - (1 - policy.confidence) / looks)


def _side(envelopes: Sequence[Envelope], rule: str = "", earlier: tuple[Earlier, ...] = ()) -> Side:
    first, *rest = envelopes
    return Side(
        result=first.result,
        environment=first.environment,
        checkout=Checkout(),
        device=first.device,
        repeats=tuple(envelope.result for envelope in rest),
        history=earlier,
        rule=rule,
        in_turns=True,
    )


def _why_none(pairs: Pairs) -> str:
    if pairs.problems:
        return pairs.problems[0]
    for name, tests in pairs.failed.items():
        for test, why in tests.items():
            return f"{test} failed on {name}: {why}"
    for name, absent in pairs.absent.items():
        if absent:
            return f"{name} has no test {min(absent)}"
    return f"base measured {len(pairs.base)} tests, head {len(pairs.head)}"


def _notes(pairs: Pairs) -> Iterator[str]:
    sides = (("base", pairs.base, pairs.head), ("head", pairs.head, pairs.base))
    for name, one, other in sides:
        if count := len(one.keys() - other.keys()):
            yield f"{counted(count, 'case')} {'is' if count == 1 else 'are'} only in {name}"
    for name, tests in pairs.failed.items():
        told = list(tests.items())[:FAILED_TOLD]
        yield from (f"{test} failed on {name}: {why}" for test, why in told)
        if more := len(tests) - len(told):
            yield f"{counted(more, 'more test')} failed on {name}"
    yield from pairs.problems
