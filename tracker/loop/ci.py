"""The one command of CI: fit, check, measure, record, judge, measure again what looks suspicious.

Each step notes in the session that it is done; what was measured is on disk before it is judged.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from tracker import git
from tracker.config import Config, prepare_folder
from tracker.errors import (
    ConfigError,
    ExitCode,
    GitError,
    StoreError,
    TrackerError,
    UnfitError,
)
from tracker.loop.ab import FAILED_TOLD, Bench, Contest, NothingSharedError, compare_commits
from tracker.loop.before import keep_baseline, line_before
from tracker.loop.fresh import Job, MeasureError, Task, side_by_side
from tracker.loop.judging import earlier_runs, judge_session
from tracker.loop.runs import to_runs
from tracker.loop.session import Role, Session
from tracker.loop.strays import StrayError
from tracker.loop.turns import Budget
from tracker.loop.worktrees import BuildError, build
from tracker.merge_base import base_of
from tracker.model import CHANGES, Checkout, Run, Status, VerdictKind, fingerprint
from tracker.occasion import AGAIN
from tracker.reasons import ReasonCode
from tracker.report.judged import Judged
from tracker.store import Store
from tracker.units import counted

_LEARNED = 200
_TOLD = 500
# Before anybody is alarmed, a change must stand in so many further processes.
_CONFIRMATIONS = 2
NOT_MEASURED = "stopped"
FAILED = "failed"
UNRECORDED = "unrecorded"
RECORDED: tuple[Role, ...] = ("head", "repeat", "turn-base", "turn-head")


@dataclass(frozen=True, slots=True)
class Plan:
    """What was asked for.

    `keyword` selects tests as pytest's -k does. `base` names the commit to compare with in turns;
    None finds it. `repeats` bounds the further processes for suspicious cases, `pairs` those of a
    comparison in turns.
    """

    quick: bool = False
    keyword: str | None = None
    turns: bool = False
    record: bool = True
    base: str | None = None
    repeats: int = 4
    pairs: int = 8

    def key(self, checkout: Checkout, arguments: Sequence[str]) -> str:
        """Return the name of this plan for this tree: an interrupted session of it may go on."""
        sha = checkout.commit.sha if checkout.commit else None
        asked = [self.quick, self.keyword, self.turns, list(arguments)]
        return fingerprint([sha, checkout.tree, *asked])

    @property
    def whole(self) -> bool:
        """Whether all of the suite is measured: what such a run lacks has vanished."""
        return not self.quick and self.keyword is None


@dataclass(frozen=True, slots=True)
class Workshop:
    """What the command works with; tests replace `bench.measure`, `fit` and the clock.

    `fit` gives the reason why nothing can be measured here, None when it can. `lock` is held while
    something is measured, not while something is built.
    """

    config: Config
    bench: Bench
    session: Session
    checkout: Checkout
    today: date
    fit: Callable[[], str | None]
    lock: Callable[[], AbstractContextManager[None]] = nullcontext


def run_ci(plan: Plan, shop: Workshop) -> None:
    """Take every step that the session does not have yet.

    What goes wrong is noted in the session with its exit code, so that there is always a report;
    the next call goes on from there. Raises ConfigError for settings that have no meaning.
    """
    try:
        _steps(plan, shop)
    except ConfigError:
        raise
    except TrackerError as error:
        unfit = error.exit_code == ExitCode.UNFIT
        code = ExitCode.UNFIT if unfit else ExitCode.UNDECIDED
        shop.session.note(NOT_MEASURED, text=str(error), code=int(code))
    else:
        shop.session.note("finished")


def _steps(plan: Plan, shop: Workshop) -> None:
    session, progress = shop.session, shop.bench.progress
    if (reason := shop.fit()) is not None:
        raise UnfitError(f"cannot measure here: {reason}; see bandwatch doctor")
    if not session.has("built"):
        settings = shop.bench.trees.settings
        if settings.build:
            progress("building")
        build(shop.config.root, settings, shop.bench.folder / "build.log")
        session.note("built")
    if not session.has("ancestors"):
        session.note("ancestors", shas=list(line_before(shop)))
    other = _other_side(plan, shop)
    with shop.lock():
        _measure(plan, shop)
        keep_baseline(shop)
        if plan.record:
            _record(shop)
        _measure_again(plan, shop, other)
    if plan.record:
        _record(shop)


def _measure(plan: Plan, shop: Workshop) -> None:
    session, bench = shop.session, shop.bench
    if session.has("kept head"):
        return
    # The process that measures imports and collects meanwhile, then sleeps until all was checked.
    steps = ("measure",) if session.has("checked") else ("check", "measure")
    jobs = [_job(plan, shop, step) for step in steps]
    with side_by_side(bench.measure, jobs) as answers:
        for answer in answers[:-1]:
            bench.progress("checking correctness")
            checked = answer()
            _note_failed(session, checked.failed)
            session.note("checked", failed=len(checked.failed))
        bench.progress("measuring")
        started = bench.stamp.now()
        measured = answers[-1]()
    for problem in measured.problems:
        session.note("problem", text=problem)
    _note_failed(session, measured.failed)
    runs = to_runs(measured, shop.checkout, bench.stamp, started, complete=plan.whole)
    if not runs:
        why = next(iter((*measured.problems, *measured.failed.values())), "no test measures")
        raise MeasureError(f"nothing was measured: {why}")
    session.keep("head", runs)


def _job(plan: Plan, shop: Workshop, step: str) -> Job:
    task = Task(keyword=plan.keyword, quick=plan.quick, timing=step == "measure")
    return Job(shop.config.root, task, shop.bench.folder / f"{step}.jsonl")


def _note_failed(session: Session, failed: Mapping[str, str]) -> None:
    """Note tests that failed, each once: a test that left no record would be missed by nobody."""
    known = session.words(FAILED, "tests")
    new = {test: why for test, why in failed.items() if test not in known}
    if new:
        texts = [f"{test} failed: {why}"[:_TOLD] for test, why in new.items()]
        session.note(FAILED, tests=list(new), texts=texts[:FAILED_TOLD])


def _record(shop: Workshop) -> None:
    """Put every measured run into the store; doing it again changes nothing.

    A store that cannot take them does not keep them from being judged: the files are kept.
    """
    session, config = shop.session, shop.config
    try:
        prepare_folder(config.store)
        with Store.open(config.store.url) as store:
            for role in RECORDED:
                for run in session.runs(role):
                    store.record(run)
            if shop.checkout.commit is not None:
                store.learn_commits(git.history(config.root, limit=_LEARNED))
    except (StoreError, GitError, ConfigError) as error:
        if not session.has(UNRECORDED):
            session.note(UNRECORDED, text=f"not recorded: {error}")
        return
    if not session.has("recorded"):
        session.note("recorded", store=config.store.shown)


def _measure_again(plan: Plan, shop: Workshop, other: str | None) -> None:
    if shop.session.has("kept turn-head"):
        return  # by an earlier call: what was compared in turns is not measured again
    judged = judge_session(shop.session, shop.config.thresholds, shop.today).judged
    if other is not None:
        wanted = [item for item in judged if _suspicious(item) or _unresolved(item)]
        if wanted:
            _in_turns(plan, shop, other, wanted)
        return
    for number in range(len(shop.session.runs("repeat")), plan.repeats):
        open_cases = [item for item in judged if _suspicious(item)]
        if not open_cases or (number >= _CONFIRMATIONS and not any(map(_open, open_cases))):
            return
        _repeat(shop, open_cases, number)
        judged = judge_session(shop.session, shop.config.thresholds, shop.today).judged


def _suspicious(item: Judged) -> bool:
    """Return whether more processes could confirm or clear a case."""
    return item.verdict.kind in CHANGES or item.verdict.worth_repeating or _open(item)


def _open(item: Judged) -> bool:
    if item.verdict.kind is not VerdictKind.UNDECIDED or not item.verdict.evidence:
        return False
    return item.verdict.has(ReasonCode.SUSPICIOUS) or _unsettled(item)


def _unsettled(item: Judged) -> bool:
    """Return whether what would be a change did not settle; a fresh process may."""
    noisy = item.result is not None and item.result.status is Status.NOISY
    kept = item.verdict.has(ReasonCode.TOO_NOISY) and item.verdict.has(ReasonCode.SIGNIFICANT)
    return noisy and kept


def _unresolved(item: Judged) -> bool:
    """Return whether the stored baseline cannot tell, as where there is none: turns may."""
    undecided = item.verdict.kind is VerdictKind.UNDECIDED
    return _without_baseline(item) or (undecided and bool(item.verdict.evidence))


def _without_baseline(item: Judged) -> bool:
    return item.verdict.has(ReasonCode.NO_BASELINE) or item.verdict.has(
        ReasonCode.OTHER_ENVIRONMENT
    )


def _tests(items: Sequence[Judged]) -> tuple[str, ...]:
    return tuple(item.result.test for item in items if item.result and item.result.test)


def _repeat(shop: Workshop, items: Sequence[Judged], number: int) -> None:
    bench, tests = shop.bench, _tests(items)
    cases = counted(len(tests), "suspicious case")
    bench.progress(f"measuring {cases} again, in a fresh process")
    started = bench.stamp.now()
    journal = bench.folder / f"repeat-{number}.jsonl"
    measured = bench.measure(shop.config.root, Task(tests), journal)
    _note_failed(shop.session, measured.failed)
    runs = to_runs(measured, shop.checkout, bench.stamp, started, note=AGAIN)
    shop.session.keep("repeat", runs)


def _in_turns(plan: Plan, shop: Workshop, other: str, items: Sequence[Judged]) -> None:
    commit = shop.checkout.commit
    if commit is None:
        return
    cases = counted(len(items), "case")
    shop.bench.progress(f"measuring {cases} in turns with {other[:12]}")
    budget = Budget(plan.pairs)
    device = shop.session.runs("head")[0].device.uuid
    earlier = earlier_runs(shop.session, device)
    contest = Contest(other, commit.sha, _tests(items), budget=budget, earlier=earlier)
    bench = replace(shop.bench, folder=shop.bench.folder / "turns")
    try:
        outcome = compare_commits(contest, bench, shop.config.thresholds, shop.today)
    except TrackerError as error:
        # Beside a comparison that would have been with itself no other verdict counts.
        if isinstance(error, UnfitError | StrayError):
            raise
        if isinstance(error, NothingSharedError):
            _note_failed(shop.session, error.failed)
        shop.session.note("problem", text=f"not compared in turns: {error}")
        return
    _note_failed(shop.session, outcome.failed)
    # In one step: half of a contest is none.
    both: dict[Role, Sequence[Run]] = {
        "turn-base": outcome.base_runs,
        "turn-head": outcome.head_runs,
    }
    shop.session.keep_all(both, looks=budget.looks, pairs=outcome.pairs)


def _other_side(plan: Plan, shop: Workshop) -> str | None:
    """Return the commit to compare with in turns, built; None where that cannot be done."""
    if not plan.turns:
        return None
    checkout, commit = shop.checkout, shop.checkout.commit
    problem = None
    if commit is None:
        problem = "outside a git checkout there is no other commit"
    elif checkout.dirty:
        problem = "uncommitted changes cannot be checked out beside the base"
    else:
        try:
            base = find_base(plan.base, checkout, shop.config.root)
            for sha in (base, commit.sha):
                shop.bench.progress(f"building {sha[:12]}")
                shop.bench.trees.at(sha)
        except (GitError, BuildError) as error:
            where = "; this clone is shallow: fetch its whole history" if checkout.shallow else ""
            problem = f"{error}{where}"
        else:
            return base
    shop.session.note("problem", text=f"not compared in turns: {problem}")
    return None


def find_base(name: str | None, checkout: Checkout, root: Path) -> str:
    """Return the commit that a change is compared with.

    The one named, else what a pull request stands on, else where the branch left the main one, else
    the parent. Raises GitError where there is none.
    """
    if name is not None:
        return git.resolve(name, root)
    if checkout.commit is None:
        raise GitError("cannot find a base: no commit is checked out")
    return base_of(checkout, root) or git.resolve(f"{checkout.commit.sha}^", root)
