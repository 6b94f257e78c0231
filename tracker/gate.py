"""A stored run judged case by case: finds each baseline, pools repeats, applies the settings."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date

from tracker.baseline import Candidate, Choice, Wanted, choose
from tracker.errors import ExitCode
from tracker.forgiven import Forgiven
from tracker.lineage import fork_of
from tracker.model import Case, Result
from tracker.past import Past, Seen
from tracker.queries import RunInfo, candidates, results
from tracker.queries import ancestors as known_ancestors
from tracker.report.judged import Judged
from tracker.sides import Earlier, Side
from tracker.store import Store
from tracker.suite import settle
from tracker.thresholds import Thresholds
from tracker.verdict import Policy, Verdict, exit_code, judge
from tracker.watch import combine, line_of_case, watch


@dataclass(frozen=True, slots=True)
class _Picked:
    """For one result: its base among earlier results, what repeats the base, what repeats it."""

    choice: Choice
    base: Seen | None = None
    base_repeats: tuple[Seen, ...] = ()
    repeats: tuple[Seen, ...] = ()

    @property
    def all(self) -> tuple[Seen, ...]:
        """Everything whose measurements count."""
        return (*((self.base,) if self.base else ()), *self.base_repeats, *self.repeats)

    def same_commit(self, run: RunInfo) -> bool:
        """Return whether the base is an earlier run of the run's own commit."""
        return self.base is not None and self.base.info.sha == run.sha


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
    others = () if found else candidates(store, run, ancestors=line, any_environment=True)
    measured = results(store, run)
    past = Past(store, found)
    picker = _Picker(run, line or (), others)
    picked = [picker.pick(past.of(result.case.fingerprint)) for result in measured]
    last = next((info for info in found if info.complete), None)
    gone = _gone(measured, last, past) if run.complete and last is not None else ()
    past.load([*(seen for pick in picked for seen in pick.all), *gone])
    settings = _Settings(thresholds, today)
    judged = [
        _judge_case(result, run, pick, past, settings)
        for result, pick in zip(measured, picked, strict=True)
    ]
    if _on_a_line(run):
        judged = _watched(judged, run, picked, past, settings)
    judged += [
        settings.judged(_side(past.result(seen), seen.info, _rule(seen.info)), None, None)
        for seen in gone
    ]
    cases = tuple(result.case for result in measured)
    notes = thresholds.complaints(cases, today, complete=run.complete)
    return _settled(run, judged, notes, Forgiven.on(store, today))


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
    return _settled(head, judged, tuple(notes), Forgiven.on(store, today))


def _settled(
    run: RunInfo, judged: Sequence[Judged], notes: tuple[str, ...], forgiven: Forgiven
) -> Gate:
    """Return the gate once the suite was looked at as a whole: false discovery is held over it."""
    suite = settle([item.verdict for item in judged])
    verdicts = [forgiven.apply(verdict, run.gpu_model, run.sha) for verdict in suite.verdicts]
    found = zip(judged, verdicts, strict=True)
    return Gate(run, tuple(_told(j, v) for j, v in found), exit_code(verdicts), notes)


def _told(judged: Judged, verdict: Verdict) -> Judged:
    # A waiver of what would pass anyway is nobody's concern.
    remarks = (verdict.waived,) if judged.verdict.exit_code is not ExitCode.OK else ()
    return replace(judged, verdict=verdict, remarks=(*filter(None, remarks), *judged.remarks))


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

    def policy(self, case: Case) -> Policy:
        """Return what counts as a change of a case."""
        return self.thresholds.for_case(case, self.today)[0]


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


class _Picker:
    """Finds bases; most cases of a run have the same earlier runs, so one choice serves them."""

    def __init__(self, run: RunInfo, line: Sequence[str], others: Sequence[RunInfo]) -> None:
        self._run, self._others = run, others
        self._choices: dict[tuple[object, ...], Choice] = {}
        self._wanted = Wanted(
            sha=f"{run.sha} with changes" if run.checkout.dirty and run.sha else run.sha,
            ancestors=line,
            gpu_model=run.gpu_model,
            environment=run.environment_key,
            device=run.device.uuid,
        )

    def pick(self, past: Sequence[Seen]) -> _Picked:
        """Return the base among the earlier results of one case, and what counts as repeats."""
        key = tuple((seen.info.number, seen.status, seen.shared) for seen in past)
        if key not in self._choices:
            known = [_candidate(seen.info, seen) for seen in past]
            known += [_candidate(info, None) for info in self._others]
            self._choices[key] = choose(known, self._wanted)
        choice, run = self._choices[key], self._run
        base = next((seen for seen in past if seen.info.run_id == choice.run_id), None)
        if base is None:
            return _Picked(choice)
        same = base.info.sha == run.sha or run.checkout.dirty
        return _Picked(choice, base, _repeats(past, base.info), () if same else _repeats(past, run))


def _candidate(info: RunInfo, seen: Seen | None) -> Candidate:
    return Candidate(
        run_id=info.run_id,
        sha=info.sha,
        finished=f"{info.started:020.6f}",
        gpu_model=info.gpu_model,
        environment=info.environment_key,
        device=info.device.uuid,
        dirty=info.checkout.dirty,
        throttled=seen is not None and seen.throttled,
        shared=seen is not None and seen.shared,
        incorrect=seen is not None and seen.incorrect,
    )


def _repeats(past: Sequence[Seen], run: RunInfo) -> tuple[Seen, ...]:
    """Return usable results of the run's commit on its device, from other processes."""
    return tuple(
        seen
        for seen in past
        if seen.info.number != run.number
        and seen.info.sha == run.sha
        and seen.info.device.uuid == run.device.uuid
        and seen.usable
    )


def _judge_case(
    result: Result, run: RunInfo, picked: _Picked, past: Past, settings: _Settings
) -> Judged:
    head = _side(result, run, repeats=tuple(map(past.result, picked.repeats)))
    if picked.base is None:
        # What was passed over explains why there is no baseline.
        told = (picked.choice.rule,) if picked.choice.excluded else ()
        return settings.judged(None, head, result, told)
    base = _side(
        past.result(picked.base),
        picked.base.info,
        picked.choice.rule,
        repeats=tuple(map(past.result, picked.base_repeats)),
        history=_history(past.of(result.case.fingerprint), run, picked),
    )
    return settings.judged(base, head, result)


def _history(past: Sequence[Seen], run: RunInfo, picked: _Picked) -> tuple[Earlier, ...]:
    """Return the usable runs before the base on the run's device, the furthest ancestor first."""
    counted = {seen.info.number for seen in picked.all}
    return tuple(
        seen.glance
        for seen in reversed(past)  # the nearest ancestor comes first there
        if seen.usable
        and seen.info.device.uuid == run.device.uuid
        and seen.info.number not in counted
        and (seen.info.sha != run.sha or picked.same_commit(run))
    )


def _side(
    result: Result,
    run: RunInfo,
    rule: str = "",
    repeats: tuple[Result, ...] = (),
    history: tuple[Earlier, ...] = (),
) -> Side:
    return Side(
        result=result,
        environment=run.environment,
        checkout=run.checkout,
        device=run.device,
        measured_at=run.started_at,
        repeats=repeats,
        history=history,
        rule=rule,
    )


def _on_a_line(run: RunInfo) -> bool:
    """Whether a run is the next of a series: of a commit, clean, and of no pull request."""
    return run.sha is not None and not run.checkout.dirty and fork_of(run.checkout) is None


def _watched(
    judged: list[Judged],
    run: RunInfo,
    picked: Sequence[_Picked],
    past: Past,
    settings: _Settings,
) -> list[Judged]:
    """Return the verdicts with what the monitor adds to them."""
    lines = {}
    for number, (item, pick) in enumerate(zip(judged, picked, strict=True)):
        if item.result is not None and not pick.same_commit(run):
            seen = past.of(item.result.case.fingerprint)
            line = line_of_case(seen, item.result, run.device.uuid, run.sha or "", pick.repeats)
            if line is not None:
                lines[number] = line
    policies = {n: settings.policy(judged[n].verdict.case) for n in lines}
    found = dict(watch(lines, policies))
    changed = {n: lines[n].before[v.change_at - 1] for n, v in found.items() if v.change_at}
    past.load(changed.values())
    for number, said in found.items():
        item, seen_before = judged[number], changed.get(number)
        if item.result is not None:
            code = past.result(seen_before).code_fingerprint if seen_before else None
            verdict = combine(item.verdict, said, lines[number], code, item.result)
            judged[number] = replace(item, verdict=verdict)
    return judged


def _gone(measured: Sequence[Result], last: RunInfo, past: Past) -> list[Seen]:
    """Return what the last complete run had and this complete run lacks.

    Only within the cache modes that this run measured: another mode was not asked for.
    """
    modes = {result.case.cache for result in measured}
    here = {result.case.fingerprint for result in measured}
    return [
        seen
        for key, seen in past.of_run(last).items()
        if key not in here and seen.case.cache in modes
    ]


def _rule(info: RunInfo) -> str:
    return f"last complete run before, {info.run_id} ({_named(info)})"


def _named(run: RunInfo) -> str:
    return run.sha[:12] if run.sha else "no commit"


def _first(cases: Iterable[Case]) -> str:
    labels = [case.label for case in cases]
    more = f" and {len(labels) - 3} more" if len(labels) > 3 else ""
    return "; ".join(labels[:3]) + more
