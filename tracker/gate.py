"""A stored run judged case by case: finds each baseline, pools repeats, applies the settings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from tracker.baseline import Candidate, Choice, Wanted, choose, incorrect, throttled, usable
from tracker.errors import ExitCode
from tracker.lineage import fork_of
from tracker.model import Case, Result
from tracker.queries import RunInfo, candidates, histories, result_table, results
from tracker.queries import ancestors as known_ancestors
from tracker.report.judged import Judged
from tracker.sides import Side
from tracker.store import Store
from tracker.thresholds import Thresholds
from tracker.verdict import Verdict, exit_code, judge


@dataclass(frozen=True, slots=True)
class _Past:
    """An earlier result of a case; `shared` says that another process used the device."""

    info: RunInfo
    result: Result
    shared: bool


Earlier = Sequence[_Past]


@dataclass(frozen=True, slots=True)
class Gate:
    """The verdicts on one run, the exit code that they lead to, and what else to tell."""

    run: RunInfo
    judged: tuple[Judged, ...]
    code: ExitCode
    notes: tuple[str, ...] = ()

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts alone."""
        return tuple(item.verdict for item in self.judged)


def judge_run(
    store: Store,
    run: RunInfo,
    thresholds: Thresholds,
    *,
    today: date,
    ancestors: Sequence[str] | None = None,
) -> Gate:
    """Return the verdict on every case of a stored run, and on cases that vanished from it.

    `ancestors` are commit ids, newest first, from git; None takes the store's own graph.
    """
    # What was changed on top of a commit is judged against that commit.
    line = _line(store, run, ancestors)
    found = [
        info
        for info in candidates(store, run, ancestors=line)
        # Runs of one session, each on a device of its own, began together.
        if info.started_at != run.started_at
    ]
    earlier = {info.number: info for info in found}
    others = () if found else candidates(store, run, ancestors=line, any_environment=True)
    measured = results(store, run)
    past = _past(store, tuple(earlier.values())) if earlier else {}
    settings = _Settings(thresholds, today)
    judged = [
        _judge_case(result, run, past.get(result.case.fingerprint, ()), line, others, settings)
        for result in measured
    ]
    last = next((info for info in found if info.complete), None)
    if run.complete and last is not None:
        judged += _vanished(measured, last, past, settings)
    cases = tuple(result.case for result in measured)
    notes = thresholds.complaints(cases, today, complete=run.complete)
    return Gate(run, tuple(judged), exit_code(item.verdict for item in judged), notes)


def compare_runs(
    store: Store, base: RunInfo, head: RunInfo, thresholds: Thresholds, *, today: date
) -> Gate:
    """Return the verdict of head against base on every case that both measured.

    Whatever keeps the two from being compared, such as another environment, is in the verdicts.
    """
    settings = _Settings(thresholds, today)
    before = {result.case.fingerprint: result for result in results(store, base)}
    after = {result.case.fingerprint: result for result in results(store, head)}
    rule = f"run {base.run_id} ({_named(base)})"
    judged = [
        settings.judged(_side(before[key], base, rule), _side(result, head), result)
        for key, result in after.items()
        if key in before
    ]
    notes = [
        f"{len(missing)} cases are only in {info.run_id}: {_first(missing)}"
        for info, missing in (
            (base, [r.case for key, r in before.items() if key not in after]),
            (head, [r.case for key, r in after.items() if key not in before]),
        )
        if missing
    ]
    return Gate(head, tuple(judged), exit_code(item.verdict for item in judged), tuple(notes))


@dataclass(frozen=True, slots=True)
class _Settings:
    thresholds: Thresholds
    today: date

    def judged(
        self,
        base: Side | None,
        head: Side | None,
        result: Result | None,
        told: tuple[str, ...] = (),
    ) -> Judged:
        side = head or base
        if side is None:
            raise ValueError("cannot judge a case without a result on either side")
        policy, overrides = self.thresholds.for_case(side.result.case, self.today)
        remarks = (*told, *(override.told() for override in overrides))
        return Judged(judge(base, head, policy), result, remarks)


def _line(store: Store, run: RunInfo, ancestors: Sequence[str] | None) -> Sequence[str] | None:
    """Return the commits that may stand before the run, newest first."""
    if run.sha is None:
        return ancestors
    line = tuple(ancestors or ())
    if ancestors is None or run.checkout.shallow:
        # The store may know what a shallow clone or another repository does not.
        fork = fork_of(run.checkout)
        known = (*([fork] if fork else []), *known_ancestors(store, fork or run.sha))
        line = tuple(dict.fromkeys((*line, *known)))
    return (run.sha, *line) if run.checkout.dirty else line


def _past(store: Store, infos: Sequence[RunInfo]) -> dict[str, Earlier]:
    """Return the earlier results of each case; a history's results carry no device states."""
    table = result_table(store, infos)
    shared = {
        (infos[run].number, table.case_keys[case])
        for run, case, flag in zip(table.run, table.case, table.shared, strict=True)
        if flag
    }
    return {
        key: [_Past(info, result, (info.number, key) in shared) for info, result in found]
        for key, found in histories(store, infos).items()
    }


def _judge_case(
    result: Result,
    run: RunInfo,
    past: Earlier,
    line: Sequence[str] | None,
    others: Sequence[RunInfo],
    settings: _Settings,
) -> Judged:
    choice = _choose(past, run, line, others)
    base, repeats = _base(choice, past, run)
    head = _side(result, run, repeats=repeats)
    # What was passed over explains why there is no baseline.
    passed_over = (choice.rule,) if base is None and choice.excluded else ()
    return settings.judged(base, head, result, passed_over)


def _choose(
    past: Earlier, run: RunInfo, line: Sequence[str] | None, others: Sequence[RunInfo]
) -> Choice:
    known = [_candidate(earlier.info, earlier) for earlier in past]
    known += [_candidate(info, None) for info in others]
    wanted = Wanted(
        sha=f"{run.sha} with changes" if run.checkout.dirty and run.sha else run.sha,
        ancestors=line or (),
        gpu_model=run.gpu_model,
        environment=run.environment_key,
        device=run.device.uuid,
    )
    return choose(known, wanted)


def _candidate(info: RunInfo, earlier: _Past | None) -> Candidate:
    return Candidate(
        run_id=info.run_id,
        sha=info.sha,
        finished=f"{info.started:020.6f}",
        gpu_model=info.gpu_model,
        environment=info.environment_key,
        device=info.device.uuid,
        dirty=info.checkout.dirty,
        throttled=earlier is not None and throttled(earlier.result),
        shared=earlier is not None and earlier.shared,
        incorrect=earlier is not None and incorrect(earlier.result),
    )


def _base(choice: Choice, past: Earlier, run: RunInfo) -> tuple[Side | None, tuple[Result, ...]]:
    """Return the base with its repeats, and earlier results that count as repeats of the head."""
    chosen = next((earlier for earlier in past if earlier.info.run_id == choice.run_id), None)
    if chosen is None:
        return None, ()
    info = chosen.info
    repeats = _repeats(past, info, but=info)
    base = _side(chosen.result, info, choice.rule, repeats=repeats)
    same = info.sha == run.sha or run.checkout.dirty
    return base, () if same else _repeats(past, run, but=run)


def _repeats(past: Earlier, run: RunInfo, *, but: RunInfo) -> tuple[Result, ...]:
    """Return usable results of the same commit on the same device, from other processes."""
    return tuple(
        earlier.result
        for earlier in past
        if earlier.info.number != but.number
        and earlier.info.sha == run.sha
        and earlier.info.device.uuid == run.device.uuid
        and not earlier.shared
        and usable([earlier.result])
    )


def _side(result: Result, run: RunInfo, rule: str = "", repeats: tuple[Result, ...] = ()) -> Side:
    return Side(
        result=result,
        environment=run.environment,
        checkout=run.checkout,
        device=run.device,
        measured_at=run.started_at,
        repeats=repeats,
        rule=rule,
    )


def _vanished(
    measured: Sequence[Result],
    last: RunInfo,
    past: Mapping[str, Earlier],
    settings: _Settings,
) -> list[Judged]:
    """Return a verdict for each case that the last complete run had and this complete run lacks.

    Only within the cache modes that this run measured: another mode was not asked for.
    """
    modes = {result.case.cache for result in measured}
    here = {result.case.fingerprint for result in measured}
    gone = [
        earlier
        for key, found in past.items()
        if key not in here
        for earlier in found
        if earlier.info.number == last.number and earlier.result.case.cache in modes
    ]
    rule = _rule(last)
    return [settings.judged(_side(e.result, e.info, rule), None, None) for e in gone]


def _rule(info: RunInfo) -> str:
    return f"last complete run before, {info.run_id} ({_named(info)})"


def _named(run: RunInfo) -> str:
    return run.sha[:12] if run.sha else "no commit"


def _first(cases: Iterable[Case]) -> str:
    labels = [case.label for case in cases]
    more = f" and {len(labels) - 3} more" if len(labels) > 3 else ""
    return "; ".join(labels[:3]) + more
