"""First runs on a CPU: what other programs do to a session is not blamed on the code."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tracker.errors import ExitCode
from tracker.model import Environment, Run, VerdictKind
from tracker.reasons import ReasonCode
from tracker.sides import Side
from tracker.store import Store
from tracker.tests.factory import make_case, make_result, make_run
from tracker.tests.judging import judge_last
from tracker.tests.sides import CPU, H200, make_side
from tracker.tests.sides import make_result as make_one
from tracker.verdict import Verdict, judge

LONE_FACTOR = np.exp(12.924 * np.sqrt(2) * 0.08)
"""The least change of two lone sessions that is called: t of 3 degrees at 99.9 %, 8 % each."""


def first(slower: float, copy: float | None = 1.0, environment: Environment = CPU) -> Verdict:
    """Judge the second run of a case, slower and with a slower copy by these shares and factors."""
    head = make_side(64, slower, environment=environment, copy=copy, seed=1)
    return judge(make_side(64, environment=environment), head)


@pytest.mark.parametrize("gain", [False, True])
def test_where_the_copy_moved_half_as_far_a_change_is_only_suspicious(gain: bool) -> None:
    usual, slow = make_side(64, environment=CPU), make_side(64, 5.0, environment=CPU, copy=2.5)
    verdict = judge(slow, usual) if gain else judge(usual, slow)
    assert verdict.kind is VerdictKind.UNDECIDED
    assert verdict.reasons[0].code is ReasonCode.SUSPICIOUS
    assert "fewer than 8 earlier runs" in verdict.reasons[0].message
    assert verdict.exit_code is ExitCode.UNDECIDED
    assert "in turn" in verdict.what_would_decide


@pytest.mark.parametrize("copy", [2.4, 1.0, 0.4, None])
def test_where_the_copy_did_not_a_large_change_is_called(copy: float | None) -> None:
    assert first(5.0, copy).kind is VerdictKind.REGRESSION
    usual, slow = make_side(64, environment=CPU), make_side(64, 5.0, environment=CPU, copy=copy)
    assert judge(slow, usual).kind is VerdictKind.IMPROVEMENT


def test_a_copy_that_moved_is_no_excuse_on_a_gpu() -> None:
    assert first(0.1, 1.1, H200).kind is VerdictKind.REGRESSION


def test_two_lone_sessions_call_what_other_programs_hardly_do() -> None:
    below, above = (first(LONE_FACTOR * factor - 1) for factor in (0.9, 1.15))
    assert below.kind is VerdictKind.UNDECIDED
    assert below.reasons[0].code is ReasonCode.SUSPICIOUS
    assert below.more_runs is not None
    assert above.kind is VerdictKind.REGRESSION
    assert above.noise is not None
    assert "other work" in above.noise.source


def test_eight_earlier_runs_show_what_is_usual_here() -> None:
    past = tuple(make_one(64, seed=seed) for seed in range(2, 10))
    known = judge(
        make_side(64, environment=CPU, history=past),
        make_side(64, 0.5, environment=CPU, seed=1),
    )
    assert known.kind is VerdictKind.REGRESSION
    fewer = judge(
        make_side(64, environment=CPU, history=past[:7]),
        make_side(64, 0.5, environment=CPU, seed=1),
    )
    assert fewer.kind is VerdictKind.UNDECIDED


def test_what_took_turns_shares_its_sessions() -> None:
    def side(slower: float, copy: float, seed: int) -> Side:
        again = tuple(
            make_one(64, center_s=2 * (64 << 20) / 3.6e12 * (1 + slower), copy=copy, seed=seed + n)
            for n in range(1, 4)
        )
        return make_side(64, slower, environment=CPU, copy=copy, seed=seed, repeats=again)

    base, head = side(0.0, 1.0, 10), side(0.3, 1.2, 20)
    assert judge(replace(base, in_turns=True), head).kind is VerdictKind.REGRESSION
    assert judge(base, head).kind is VerdictKind.UNDECIDED


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "first.db")) as opened:
        yield opened


def suite(number: int, factors: Sequence[float], cases: int, loss: float = 0.0) -> Run:
    """Return a run of a CPU whose cases are slower by these factors, the first by a loss more."""
    rng = np.random.default_rng(number)
    results = []
    for place in range(cases):
        slow = factors[place % len(factors)] / (1 - (loss if place == 0 else 0.0))
        times = (1e-3 * slow * np.exp(rng.normal(0, 0.002, 40))).tolist()
        case = make_case("relu", n=(1 << 20) + place)
        result = make_result(case, times, median_cycles=None, code_fingerprint=None, warnings=())
        results.append(result)
    return make_run(f"run-{number:05d}", number, results=tuple(results), environment=CPU)


def test_six_cases_of_which_two_met_other_programs_alarm_nobody(store: Store) -> None:
    # As seen beside other work: two cases took 2.9 and 3.4 times as long, four did not.
    gate = judge_last(store, suite(1, (1.0,), 6), suite(2, (2.9, 1.0, 1.1, 3.4, 1.0, 1.0), 6))
    assert gate.code is ExitCode.UNDECIDED
    assert all(verdict.kind is VerdictKind.UNDECIDED for verdict in gate.verdicts)


@pytest.mark.parametrize("loss", [0.10, 0.30])
def test_twenty_quiet_cases_show_a_loss_at_once(store: Store, loss: float) -> None:
    gate = judge_last(store, suite(1, (1.0,), 20), suite(2, (1.0,), 20, loss))
    assert gate.verdicts[0].kind is VerdictKind.REGRESSION
    assert sum(verdict.kind is VerdictKind.REGRESSION for verdict in gate.verdicts) == 1


def test_a_smaller_loss_is_suspicious_and_told_what_would_decide(store: Store) -> None:
    first_two = suite(1, (1.0,), 20), suite(2, (1.0,), 20, 0.05)
    (suspect, *others) = judge_last(store, *first_two).verdicts
    assert suspect.has(ReasonCode.SUSPICIOUS)
    assert "measure" in suspect.what_would_decide
    assert all(verdict.kind is VerdictKind.NO_CHANGE for verdict in others)


def test_a_quiet_suite_of_which_one_case_met_other_programs_alarms_nobody(store: Store) -> None:
    # As seen: one case took 6 % longer where the others moved by 0.2 %.
    gate = judge_last(store, suite(1, (1.0,), 20), suite(2, (1.06, *[1.0] * 19), 20))
    assert gate.code is ExitCode.UNDECIDED
