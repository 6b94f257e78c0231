"""A stored run judged case by case: finds each baseline, pools repeats, applies the settings."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain

from tracker.busy import busy, hold_back
from tracker.commands import Again, of_compared, of_judged
from tracker.errors import ExitCode
from tracker.evidence import distance, with_pasts
from tracker.forgiven import Forgiven
from tracker.lineage import fork_of
from tracker.model import Case, Checkout, Result
from tracker.occasion import IMPORTED
from tracker.past import Past, Seen
from tracker.picking import Picked, Picker, elsewhere, history_of, line_before
from tracker.queries import RunInfo, both_results, candidates, results
from tracker.queries.columns import collector_paused
from tracker.reasons import Reason, ReasonCode
from tracker.report.judged import Judged
from tracker.sides import Earlier, Side, environment_difference
from tracker.stats.noise import quietness
from tracker.stats.shift import SHORTEST_LEVEL
from tracker.stats.summary import see
from tracker.store import Store
from tracker.suite import settle
from tracker.thresholds import Thresholds
from tracker.units import counted
from tracker.verdict import Policy, Verdict, exit_code, judge
from tracker.watch import combine, line_of_case, watch


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


@collector_paused()
def judge_run(
    store: Store,
    run: RunInfo,
    thresholds: Thresholds,
    *,
    today: date,
    ancestors: Sequence[str] | None = None,
    checkout: Checkout | None = None,
) -> Gate:
    """Return the verdict on every case of a stored run, and on cases that vanished from it.

    `ancestors` are commit ids, newest first, from git; None takes the store's own graph. `checkout`
    is what was measured where the run was recorded as of another commit.
    """
    # What was changed on top of a commit is judged against that commit.
    line = line_before(store, run, ancestors)
    found = [
        info
        for info in candidates(store, run, ancestors=line)
        # Runs of one session, each on a device of its own, began together.
        if info.started_at != run.started_at
    ]
    others = () if found else candidates(store, run, ancestors=line, any_environment=True)
    measured = results(store, run)
    past = Past(store, found)
    picker = Picker(run, line or (), others)
    picked = [picker.pick(past.of(result.case.fingerprint)) for result in measured]
    last = next((info for info in found if info.complete), None)
    gone = _gone(measured, last, past) if run.complete and last is not None else ()
    past.load([*(seen for pick in picked for seen in pick.all), *gone])
    pairs = _looked_at([_pair(r, run, p, past) for r, p in zip(measured, picked, strict=True)])
    settings = _Settings(thresholds, today, _quietness(run, pairs))
    judged = [settings.judged(p.base, p.head, p.head.result, p.told) for p in pairs]
    if others:
        judged = _elsewhere(judged, others[0], run)
    if _on_a_line(run):
        judged = _watched(judged, run, picked, past, settings)
    bases = [pair.base.result for pair in pairs if pair.base is not None]
    judged = _in_quiet(judged, busy(bases, measured, run.environment.backend))
    judged += [
        settings.judged(_side(past.result(seen), seen.info, _rule(seen.info)), None, None)
        for seen in gone
    ]
    cases = tuple(result.case for result in measured)
    notes = thresholds.complaints(cases, today, complete=run.complete)
    gate = _settled(run, judged, notes, Forgiven.on(store, today))
    stands = {p.head.result.case.fingerprint: p.base.checkout for p in pairs if p.base is not None}
    fallback = others[0].checkout if others else None
    return _advised(
        gate,
        lambda case: of_judged(stands.get(case.fingerprint, fallback), checkout or run.checkout),
    )


def compare_runs(
    store: Store, base: RunInfo, head: RunInfo, thresholds: Thresholds, *, today: date
) -> Gate:
    """Return the verdict of head against base on every case that both measured.

    Whatever keeps the two from being compared, such as another environment, is in the verdicts.
    """
    before, after = (
        {result.case.fingerprint: result for result in found}
        for found in both_results(store, base, head)
    )
    rule = f"run {base.run_id} ({_named(base)})"
    pairs = _looked_at(
        [
            _Pair(_side(before[key], base, rule), _side(result, head))
            for key, result in after.items()
            if key in before
        ]
    )
    settings = _Settings(thresholds, today, _quietness(head, pairs))
    judged = [settings.judged(p.base, p.head, p.head.result) for p in pairs]
    why = busy(list(before.values()), list(after.values()), head.environment.backend)
    judged = _in_quiet(judged, why)
    notes = [
        f"{counted(len(missing), 'case')} only in {info.run_id}: {_first(missing)}"
        for info, missing in (
            (base, [r.case for key, r in before.items() if key not in after]),
            (head, [r.case for key, r in after.items() if key not in before]),
        )
        if missing
    ]
    gate = _settled(head, judged, tuple(notes), Forgiven.on(store, today))
    again = of_compared(base.checkout, head.checkout)
    return _advised(gate, lambda _: again)


def _advised(gate: Gate, again: Callable[[Case], Again]) -> Gate:
    """Return the gate, the command beside whatever a verdict asks to measure again."""
    # What came from elsewhere no command here measures again.
    if gate.run.demo or any(note.startswith(IMPORTED) for note in gate.run.notes):
        return gate
    told = [
        replace(item, verdict=again(item.verdict.case).tell(item.verdict)) for item in gate.judged
    ]
    return replace(gate, judged=tuple(told))


def _in_quiet(judged: Sequence[Judged], why: Reason | None) -> list[Judged]:
    """Return the verdicts, none a change where the machine was busy."""
    if why is None:
        return list(judged)
    return [replace(item, verdict=hold_back(item.verdict, why)) for item in judged]


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
    return Judged(verdict, judged.result, (*filter(None, remarks), *judged.remarks))


@dataclass(frozen=True, slots=True)
class _Settings:
    thresholds: Thresholds
    today: date
    quietness: float = 1.0

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
        return Judged(judge(base, head, policy, self.quietness), result, remarks)

    def policy(self, case: Case) -> Policy:
        """Return what counts as a change of a case."""
        return self.thresholds.for_case(case, self.today)[0]


@dataclass(frozen=True, slots=True)
class _Pair:
    """Both sides of a case, and why there is no base where there is none."""

    base: Side | None
    head: Side
    told: tuple[str, ...] = ()


def _pair(result: Result, run: RunInfo, picked: Picked, past: Past) -> _Pair:
    head = _side(result, run, repeats=tuple(map(past.result, picked.repeats)))
    if picked.base is None:
        # What was passed over explains why there is no baseline.
        return _Pair(None, head, (picked.choice.rule,) if picked.choice.excluded else ())
    seen = past.of(result.case.fingerprint)
    history = history_of(seen, run, picked)
    base = _side(
        past.result(picked.base),
        picked.base.info,
        picked.rule,
        repeats=tuple(map(past.result, picked.base_repeats)),
        history=history,
        elsewhere=elsewhere(seen, run, picked) if len(history) < SHORTEST_LEVEL else (),
    )
    return _Pair(base, head)


def _looked_at(pairs: Sequence[_Pair]) -> list[_Pair]:
    """Return the pairs, their bases with what the histories say; samples are looked at together."""
    both = chain.from_iterable((pair.base, pair.head) for pair in pairs)
    see(run.measurements_s for side in both if side for run in side.runs if run.timed)
    sides = iter(with_pasts([pair.base for pair in pairs if pair.base is not None]))
    return [
        pair if pair.base is None else _Pair(next(sides), pair.head, pair.told) for pair in pairs
    ]


def _elsewhere(judged: Sequence[Judged], other: RunInfo, run: RunInfo) -> list[Judged]:
    """Return the verdicts without a base with the reason that runs of another environment are."""
    fields = environment_difference(other.environment, run.environment)
    message = (
        f"earlier runs are of another environment, {'; '.join(fields)}: "
        "measure the base again in this one"
    )
    why = Reason(ReasonCode.OTHER_ENVIRONMENT, message)
    return [
        replace(item, verdict=replace(item.verdict, reasons=(why, *item.verdict.reasons)))
        if fields and item.verdict.has(ReasonCode.NO_BASELINE)
        else item
        for item in judged
    ]


def _quietness(run: RunInfo, pairs: Sequence[_Pair]) -> float:
    """Return how quiet the machine is beside what is expected of it; a GPU's noise is known."""
    if run.environment.backend != "cpu":
        return 1.0
    found = [distance(pair.base, pair.head) for pair in pairs if pair.base is not None]
    return quietness([value for value in found if value is not None])


def _side(
    result: Result,
    run: RunInfo,
    rule: str = "",
    repeats: tuple[Result, ...] = (),
    history: tuple[Earlier, ...] = (),
    elsewhere: tuple[tuple[Earlier, ...], ...] = (),
) -> Side:
    return Side(
        result=result,
        environment=run.environment,
        checkout=run.checkout,
        device=run.device,
        measured_at=run.started_at,
        repeats=repeats,
        history=history,
        elsewhere=elsewhere,
        rule=rule,
    )


def _on_a_line(run: RunInfo) -> bool:
    """Whether a run is the next of a series: of a commit, clean, and of no pull request."""
    return run.sha is not None and not run.checkout.dirty and fork_of(run.checkout) is None


def _watched(
    judged: list[Judged],
    run: RunInfo,
    picked: Sequence[Picked],
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
