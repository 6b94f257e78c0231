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
from tracker.lineage import fork_of, line_of
from tracker.loop.ab import Bench, Contest, compare_commits
from tracker.loop.durations import counted
from tracker.loop.fresh import MeasureError, Task
from tracker.loop.judging import earlier_runs, judge_session, scratch_store
from tracker.loop.runs import to_runs
from tracker.loop.session import Role, Session
from tracker.loop.turns import Budget
from tracker.loop.waived import keep_waivers
from tracker.loop.worktrees import BuildError, build
from tracker.merge_base import base_of, line_from
from tracker.model import Checkout, Run, VerdictKind, fingerprint
from tracker.occasion import AGAIN
from tracker.queries import ancestors, candidates, find_run, load_run
from tracker.reasons import ReasonCode
from tracker.report.judged import Judged
from tracker.store import Store

_CHANGES = frozenset({VerdictKind.REGRESSION, VerdictKind.IMPROVEMENT})
# Enough for the level of a series, repeats of its commits included.
_BASE_RUNS = 40
_LEARNED = 200
_TOLD = 500
# Before anybody is alarmed, a change must stand in so many further processes.
_CONFIRMATIONS = 2
NOT_MEASURED = "stopped"
FAILED = "failed"
FAILED_TOLD = 10
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
        code = ExitCode.UNFIT if isinstance(error, UnfitError) else ExitCode.UNDECIDED
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
        session.note("ancestors", shas=list(_line(shop)))
    other = _other_side(plan, shop)
    with shop.lock():
        _measure(plan, shop)
        _keep_baseline(shop)
        if plan.record:
            _record(shop)
        _measure_again(plan, shop, other)
    if plan.record:
        _record(shop)


def _line(shop: Workshop) -> Sequence[str]:
    """Return the commits that may stand before the measured one, newest first.

    By hand a branch stands on its merge base, as its pull request will. CI's branches without a
    pull request may live long: there every commit counts.
    """
    checkout, root = shop.checkout, shop.config.root
    base = None if shop.bench.stamp.ci else base_of(checkout, root)
    return line_from(base, root) if base else line_of(checkout, root) or ()


def _known_line(store: Store, shop: Workshop, line: Sequence[str]) -> Sequence[str]:
    """Return the line with what the store knows of it, where a shallow clone does not."""
    checkout = shop.checkout
    if not checkout.shallow or checkout.commit is None:
        return line
    # A shallow clone has the oldest commit's own words of its parents, not them.
    fork = fork_of(checkout)
    oldest = git.commit(line[-1], shop.config.root) if line and not fork else checkout.commit
    starts = (fork,) if fork else oldest.parents
    known = [sha for start in (*line, *starts) for sha in (start, *ancestors(store, start))]
    whole = tuple(dict.fromkeys(known))
    shop.session.note("ancestors", shas=list(whole))
    return whole


def _line_with_results(
    store: Store, shop: Workshop, heads: Sequence[Run], line: Sequence[str]
) -> Sequence[str]:
    """Return the line, or that of all ancestors where a merge base's has no result."""
    whole = line_of(shop.checkout, shop.config.root) or ()
    if set(whole) <= set(line) or any(
        _candidates(store, head, line, shop.checkout, own=False) for head in heads
    ):
        return line
    if any(_candidates(store, head, whole, shop.checkout, own=False) for head in heads):
        told = f"no result of the merge base {line[0][:12]}: judged against the nearest ancestor"
        shop.session.note("problem", text=f"{told}; --ab measures the merge base")
    shop.session.note("ancestors", shas=list(whole))
    return whole


def _measure(plan: Plan, shop: Workshop) -> None:
    session, bench = shop.session, shop.bench
    if session.has("kept head"):
        return
    if not session.has("checked"):
        bench.progress("checking correctness")
        task = Task(keyword=plan.keyword, quick=plan.quick, timing=False)
        checked = bench.measure(shop.config.root, task, bench.folder / "check.jsonl")
        _note_failed(session, checked.failed)
        session.note("checked", failed=len(checked.failed))
    bench.progress("measuring")
    started = bench.stamp.now()
    journal = bench.folder / "measure.jsonl"
    task = Task(keyword=plan.keyword, quick=plan.quick)
    measured = bench.measure(shop.config.root, task, journal)
    for problem in measured.problems:
        session.note("problem", text=problem)
    _note_failed(session, measured.failed)
    runs = to_runs(measured, shop.checkout, bench.stamp, started, complete=plan.whole)
    if not runs:
        why = next(iter((*measured.problems, *measured.failed.values())), "no test measures")
        raise MeasureError(f"nothing was measured: {why}")
    session.keep("head", runs)


def _note_failed(session: Session, failed: Mapping[str, str]) -> None:
    """Note tests that failed, each once: a test that left no record would be missed by nobody."""
    known = session.words(FAILED, "tests")
    new = {test: why for test, why in failed.items() if test not in known}
    if new:
        texts = [f"{test} failed: {why}"[:_TOLD] for test, why in new.items()]
        session.note(FAILED, tests=list(new), texts=texts[:FAILED_TOLD])


def _keep_baseline(shop: Workshop) -> None:
    """Copy the runs that the verdicts will rest on out of the store."""
    session = shop.session
    if session.has("kept base"):
        return
    heads = session.runs("head")
    line: Sequence[str] = session.shas("ancestors")
    found: dict[str, Run] = {}
    file = shop.config.store.file
    if file is not None and not file.exists():  # the first run of all
        session.keep("base", ())
        return
    try:
        with Store.open(shop.config.store.url, read_only=True) as store:
            line = _known_line(store, shop, line)
            line = _line_with_results(store, shop, heads, line)
            for head in heads:
                for run_id in _candidates(store, head, line, shop.checkout):
                    found[run_id] = load_run(store, run_id)
            keep_waivers(session, store)
    except (StoreError, GitError) as error:
        session.note("problem", text=f"no baseline from the store: {error}")
    session.keep("base", found.values())


def _candidates(
    store: Store, head: Run, line: Sequence[str], checkout: Checkout, *, own: bool = True
) -> tuple[str, ...]:
    """Return the ids of the runs that may be a baseline of a run which the store need not hold.

    With `own` earlier runs of the very commit are among them.
    """
    with scratch_store() as scratch:
        scratch.record(head)
        info = replace(find_run(scratch, head.run_id), number=-1)
    below = (checkout.commit.sha,) if checkout.dirty and checkout.commit else ()
    found = candidates(store, info, ancestors=(*below, *line), limit=_BASE_RUNS)
    sha = checkout.commit.sha if checkout.commit and not checkout.dirty else None
    return tuple(
        run.run_id for run in found if run.run_id != head.run_id and (own or run.sha != sha)
    )


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
    return item.verdict.kind in _CHANGES or item.verdict.worth_repeating or _open(item)


def _open(item: Judged) -> bool:
    undecided = item.verdict.kind is VerdictKind.UNDECIDED
    return undecided and bool(item.verdict.evidence) and item.verdict.has(ReasonCode.SUSPICIOUS)


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
        if isinstance(error, UnfitError):
            raise
        shop.session.note("problem", text=f"not compared in turns: {error}")
        return
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
