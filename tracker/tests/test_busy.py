"""A CPU that was busy with other work: named, and no reason to hide slow code on a quiet one."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from tracker.errors import ExitCode
from tracker.gate import compare_runs
from tracker.model import Environment, Run, Status, VerdictKind
from tracker.queries import find_run
from tracker.reasons import ReasonCode
from tracker.store import Store
from tracker.tests.factory import H200, make_case, make_result, make_run
from tracker.tests.judging import judge_last
from tracker.thresholds import Thresholds

CPU = Environment("cpu", "a CPU")
CASES = [make_case("relu", n=(1 << 20) + number) for number in range(20)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "busy.db")) as opened:
        yield opened


def suite(number: int, slow: float = 1.0, restless: int = 0, environment: Environment = CPU) -> Run:
    """Return a run whose first case is slower by a factor and whose last ones did not settle."""
    rng = np.random.default_rng(number)
    results = []
    for place, case in enumerate(CASES):
        usual_s = 1e-3 * (slow if place == 0 else 1.0) * np.exp(rng.normal(0, 0.002))
        times: Sequence[float] = (usual_s * np.exp(rng.normal(0, 0.002, 40))).tolist()
        result = make_result(case, times, median_cycles=None, code_fingerprint=None, warnings=())
        settled = place < len(CASES) - restless
        results.append(result if settled else replace(result, status=Status.NOISY))
    return make_run(f"run-{number:05d}", number, results=tuple(results), environment=environment)


def test_slow_code_on_a_quiet_cpu_is_found(store: Store) -> None:
    gate = judge_last(store, suite(1), suite(2, slow=2.0, restless=1))
    assert gate.verdicts[0].kind is VerdictKind.REGRESSION
    assert gate.code is ExitCode.REGRESSION


@pytest.mark.parametrize(("of_base", "of_head"), [(0, 2), (2, 0), (2, 6)])
def test_a_change_is_undecided_where_many_cases_did_not_settle(
    store: Store, of_base: int, of_head: int
) -> None:
    gate = judge_last(store, suite(1, restless=of_base), suite(2, slow=2.0, restless=of_head))
    verdict = gate.verdicts[0]
    assert verdict.kind is VerdictKind.UNDECIDED
    assert verdict.reasons[0].code is ReasonCode.BUSY_MACHINE
    for name, count in (("base", of_base), ("head", of_head)):
        assert (f"{count} of 20 cases of {name}" in verdict.reasons[0].message) == (count > 0)
    assert "quiet" in verdict.what_would_decide
    assert verdict.effect == pytest.approx(-0.5, abs=0.02), "what was seen is told all the same"
    assert gate.code is ExitCode.UNFIT


def test_two_named_runs_are_held_to_the_same(store: Store) -> None:
    judge_last(store, suite(1), suite(2, slow=2.0, restless=6))
    base, head = (find_run(store, name) for name in ("run-00001", "run-00002"))
    gate = compare_runs(store, base, head, Thresholds(), today=date(2026, 11, 30))
    assert gate.verdicts[0].has(ReasonCode.BUSY_MACHINE)
    assert gate.code is ExitCode.UNFIT


def test_a_gpu_is_nobody_else_s(store: Store) -> None:
    gate = judge_last(
        store,
        suite(1, environment=H200),
        suite(2, slow=2.0, restless=6, environment=H200),
    )
    assert gate.verdicts[0].kind is VerdictKind.REGRESSION


def test_unchanged_cases_of_a_busy_cpu_are_left_alone(store: Store) -> None:
    gate = judge_last(store, suite(1), suite(2, restless=6))
    assert not any(verdict.has(ReasonCode.BUSY_MACHINE) for verdict in gate.verdicts)
