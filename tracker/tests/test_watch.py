"""The monitor on stored runs: what several runs show, with repeats, clocks, boards and code."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracker.errors import ExitCode
from tracker.gate import judge_run
from tracker.model import Run, VerdictKind
from tracker.queries import find_run
from tracker.reasons import ReasonCode
from tracker.stats.look import look
from tracker.stats.monitor import Monitor
from tracker.store import Store
from tracker.tests.factory import DEVICE, make_case, make_result, make_run, sha
from tracker.thresholds import Thresholds
from tracker.verdict import Policy, Verdict

CASE = make_case("relu", n=1 << 26)
USUAL_S = 1.3e-4
NOISE = 0.003
PAST = 40
OTHER = replace(DEVICE, uuid="GPU-99999999-2222-3333-4444-555555555555")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "watch.db")) as opened:
        yield opened


def measured(number: int, slower: float = 0.0, *, again: int = 0, **more: Any) -> Run:
    """Return the run of a commit, `slower` by a fraction; `again` numbers further ones of it."""
    rng = np.random.default_rng([number, again])
    between = more.pop("between", rng.normal(0, NOISE))
    center = USUAL_S * (1 + slower) * np.exp(between)
    times = [float(t) for t in center * np.exp(rng.normal(0, 0.002, 40))]
    own = {"median_cycles": 2e9 * center, "code_fingerprint": f"code-{number}"}
    result = make_result(CASE, times, **own | more.pop("fields", {}))
    more = {"minute": 2 * number + again, "results": (result,), **more}
    return make_run(f"run-{number:04d}-{again:03d}", number, **more)


def steady(**more: Any) -> list[Run]:
    return [measured(number, **more) for number in range(1, PAST + 1)]


def judged(store: Store, runs: Sequence[Run], policy: Policy | None = None) -> Verdict:
    """Record the runs and return the verdict on the last."""
    thresholds = Thresholds(policy or Policy())
    for run in runs:
        store.record(run)
    info = find_run(store, runs[-1].run_id)
    (item,) = judge_run(store, info, thresholds, today=date(2026, 11, 30)).judged
    return item.verdict


def test_a_small_loss_is_called_once_several_commits_show_it(store: Store) -> None:
    seen = [judged(store, [*steady(), measured(PAST + 1, 0.01, between=0.0)])]
    seen += [judged(store, [measured(PAST + n, 0.01, between=0.0)]) for n in (2, 3, 4)]
    kinds = [verdict.kind for verdict in seen]
    assert VerdictKind.REGRESSION in kinds
    assert kinds[0] is not VerdictKind.REGRESSION, "the gate alone does not see it"
    first = seen[kinds.index(VerdictKind.REGRESSION)]
    assert sha(PAST + 1)[:12] in first.reasons[0].message
    assert first.effect == pytest.approx(-0.01, abs=0.004)
    assert first.exit_code is ExitCode.REGRESSION
    assert "the monitor" in first.baseline_rule
    assert kinds.count(VerdictKind.REGRESSION) == 1, "one loss is called once"


def called(store: Store, runs: Sequence[Run]) -> Verdict:
    """Return the first verdict after the steady past that is no `no change`, or the last."""
    found = judged(store, [*runs[: PAST + 1]])
    for run in runs[PAST + 1 :]:
        if found.kind is not VerdictKind.NO_CHANGE and not found.has(ReasonCode.SUSPICIOUS):
            break
        found = judged(store, [run])
    return found


def test_a_clock_that_slowed_is_named_and_is_unfit(store: Store) -> None:
    slow: dict[str, Any] = {"between": 0.0, "fields": {"median_cycles": 2e9 * USUAL_S}}
    verdict = called(store, [*steady(), *(measured(PAST + n, 0.01, **slow) for n in (1, 2, 3, 4))])
    assert verdict.has(ReasonCode.CLOCK_MOVED)
    assert verdict.exit_code is ExitCode.UNFIT


def test_the_same_machine_code_points_to_the_environment(store: Store) -> None:
    one: dict[str, Any] = {"fields": {"code_fingerprint": "one"}}
    slow = [measured(PAST + n, 0.01, between=0.0, **one) for n in (1, 2, 3, 4)]
    verdict = called(store, [*steady(**one), *slow])
    assert verdict.kind is VerdictKind.REGRESSION
    assert verdict.has(ReasonCode.SAME_CODE)


def test_a_replaced_board_is_judged_by_its_copies(store: Store) -> None:
    board: dict[str, Any] = {"between": 0.0, "device": OTHER}
    slow_board = make_result(CASE).peaks
    copies = replace(slow_board, copy_bytes_per_s=(slow_board.copy_bytes_per_s or 0) / 1.012)
    runs = [measured(PAST + n, 0.012, **board, fields={"peaks": copies}) for n in (1, 2, 3, 4)]
    verdict = judged(store, [*steady(), *runs])
    assert verdict.kind is VerdictKind.NO_CHANGE
    lost = [measured(PAST + n, 0.04, **board, fields={"peaks": copies}) for n in (5, 6, 7, 8)]
    verdicts = [judged(store, [run]) for run in lost]
    assert VerdictKind.REGRESSION in [v.kind for v in verdicts]


def test_repeats_confirm_a_loss_at_the_commit_that_made_it(store: Store) -> None:
    head = measured(PAST + 1, 0.0, between=3.4 * NOISE)
    first = judged(store, [*steady(), head])
    assert first.kind is not VerdictKind.REGRESSION
    assert first.worth_repeating or first.has(ReasonCode.SUSPICIOUS)
    again = [measured(PAST + 1, 0.0, again=n, between=3.2 * NOISE) for n in (1, 2, 3)]
    verdict = judged(store, again)
    assert verdict.kind is VerdictKind.REGRESSION
    assert verdict.has(ReasonCode.CONFIRMED) or verdict.has(ReasonCode.SIGNIFICANT)


def test_repeats_dismiss_a_run_that_was_only_unlucky(store: Store) -> None:
    head = measured(PAST + 1, 0.0, between=2.4 * NOISE)
    again = [measured(PAST + 1, 0.0, again=n, between=-0.5 * NOISE) for n in (1, 2)]
    verdict = judged(store, [*steady(), head, *again])
    assert verdict.kind is VerdictKind.NO_CHANGE
    assert verdict.has(ReasonCode.DISMISSED)
    assert not verdict.worth_repeating


def test_what_the_gate_could_not_have_seen_no_repeat_dismisses(store: Store) -> None:
    head = measured(PAST + 1, 0.0, between=2.4 * NOISE)
    again = [measured(PAST + 1, 0.0, again=n, between=-0.5 * NOISE) for n in (1, 2)]
    verdict = judged(store, [*steady(), head, *again], Policy(resolution=1e-4))
    assert verdict.kind is VerdictKind.UNDECIDED
    assert verdict.reasons[0].code is ReasonCode.TOO_NOISY


def test_a_drift_is_told_beside_the_verdict(store: Store) -> None:
    runs = [measured(n, 0.0006 * n) for n in range(1, PAST + 2)]
    verdict = judged(store, runs)
    assert verdict.has(ReasonCode.DRIFT)
    assert verdict.kind is VerdictKind.NO_CHANGE


def test_a_short_series_is_left_to_the_gate(store: Store) -> None:
    verdict = judged(store, [measured(n, 0.01 if n > 9 else 0.0) for n in range(1, 13)])
    assert "monitor" not in verdict.baseline_rule


@pytest.mark.parametrize("drop", [0.0, 0.005, 0.02])
def test_what_is_not_looked_at_is_quiet_for_the_monitor(drop: float) -> None:
    rng = np.random.default_rng(3)
    rows = 100 * (1 + 0.01 * rng.standard_normal((150, 44)))
    rows[:, 41:] *= 1 - drop
    seen = look(rows)
    assert seen.worth.mean() < 0.4 or drop
    for row in rows[~seen.worth]:
        monitor = Monitor()
        *_, last = [monitor.update(float(value)) for value in row]
        assert last.kind is VerdictKind.NO_CHANGE
        assert not last.worth_repeating
    for row in rows[seen.worth & ~seen.unsettled][:20]:
        whole, short = Monitor(), Monitor()
        *_, last = [whole.update(float(value)) for value in row]
        short.learn([float(value) for value in row[:-10]])
        *_, same = [short.update(float(value)) for value in row[-10:]]
        assert same == last
