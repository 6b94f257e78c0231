"""A stored run against its baseline: which one is found, what is pooled, what vanished."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracker.errors import ExitCode
from tracker.gate import Gate, compare_runs, judge_run
from tracker.model import Case, Correctness, DeviceState, Run, Status, VerdictKind
from tracker.queries import find_run
from tracker.reasons import ReasonCode
from tracker.report.verdicts import Heading, verdict_document
from tracker.store import Store
from tracker.tests.factory import DEVICE, H200, make_case, make_result, make_run, sha
from tracker.thresholds import Override, Thresholds

TODAY = date(2026, 11, 29)
ADD = make_case("add", n=1 << 26)
RELU = make_case("relu", n=1 << 26)
OTHER = replace(DEVICE, uuid="GPU-99999999-2222-3333-4444-555555555555")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "gate.db")) as opened:
        yield opened


def sample(factor: float = 1.0, seed: int = 1) -> Sequence[float]:
    """Return 40 times around 130 us with a noise of 0.2 %."""
    rng = np.random.default_rng(seed)
    return [float(t) for t in 1.3e-4 * factor * np.exp(rng.normal(0, 0.002, 40))]


def measured(
    number: int | None, *, factor: float = 1.0, cases: Sequence[Case] = (RELU,), **more: Any
) -> Run:
    run_id = more.pop("run_id", f"run-of-commit-{number}")
    seed = more.pop("seed", number or 0)
    cycles = 257_400.0 * factor
    results = tuple(make_result(c, sample(factor, seed), median_cycles=cycles) for c in cases)
    return make_run(run_id, number, **{"results": results, **more})


def judge(store: Store, run: Run, thresholds: Thresholds | None = None, **more: Any) -> Gate:
    info = find_run(store, run.run_id)
    return judge_run(store, info, thresholds or Thresholds(), today=TODAY, **more)


def record(store: Store, *runs: Run) -> None:
    for run in runs:
        store.record(run)


def only(gate: Gate) -> Any:
    (judged,) = gate.judged
    return judged.verdict


def test_the_first_run_has_no_baseline_and_that_is_no_error(store: Store) -> None:
    run = measured(1)
    record(store, run)
    gate = judge(store, run)
    assert gate.judged[0].outcome == "no baseline"
    assert gate.code is ExitCode.OK


def test_a_run_is_judged_against_its_parent(store: Store) -> None:
    slow = measured(2, factor=1.2)
    record(store, measured(1), slow)
    gate = judge(store, slow)
    verdict = only(gate)
    assert verdict.kind is VerdictKind.REGRESSION
    assert verdict.effect == pytest.approx(1 / 1.2 - 1, abs=0.01)
    assert "the parent commit" in verdict.baseline_rule
    assert gate.code is ExitCode.REGRESSION


def test_the_same_again_is_no_change_against_this_commit(store: Store) -> None:
    again = measured(1, run_id="run-again-1", seed=5, minute=9)
    record(store, measured(1), again)
    verdict = only(judge(store, again))
    assert verdict.kind is VerdictKind.NO_CHANGE
    assert "this commit" in verdict.baseline_rule


def test_a_faster_run_is_an_improvement(store: Store) -> None:
    fast = measured(2, factor=0.92)
    record(store, measured(1), fast)
    assert only(judge(store, fast)).kind is VerdictKind.IMPROVEMENT


def test_git_s_ancestors_reach_over_commits_that_were_never_measured(store: Store) -> None:
    head = measured(9, factor=1.2, parents=(8,))
    record(store, measured(1), head)
    assert judge(store, head).judged[0].outcome == "no baseline"
    verdict = only(judge(store, head, ancestors=[sha(8), sha(7), sha(1)]))
    assert verdict.kind is VerdictKind.REGRESSION
    assert "3 commits back" in verdict.baseline_rule


def compared_line(gate: Gate) -> str:
    lines = verdict_document(Heading(""), gate.judged, gate.code, limit=None).fact_lines
    return next(line for line in lines if line.startswith("compared: "))


def test_it_is_said_how_many_runs_were_compared_and_what_the_brackets_are(store: Store) -> None:
    # Of the same machine code, which asks for ten times the evidence: 99.99 and not 99.9 %.
    lone = measured(1)
    head = measured(2, seed=3)
    record(store, lone, head)
    assert compared_line(judge(store, head)) == (
        "compared: 1 run of head with 1 run of the base; in brackets the 99.99 % interval, "
        "wide while one run a side cannot show the noise"
    )
    again = measured(1, run_id="run-1-again", seed=4, minute=30)
    later = measured(2, run_id="run-2-again", seed=5, minute=40)
    record(store, again, later)
    info = find_run(store, later.run_id)
    pooled = judge_run(store, info, Thresholds(), today=TODAY)
    line = "compared: 2 runs of head with 2 runs of the base; in brackets the 99.99 % interval"
    assert compared_line(pooled) == line
    alone = compare_runs(store, find_run(store, lone.run_id), info, Thresholds(), today=TODAY)
    assert compared_line(alone).startswith("compared: 1 run of head with 1 run of the base; ")


def test_the_level_before_the_base_is_told_with_its_runs(store: Store) -> None:
    runs = [measured(number, seed=number) for number in range(1, 13)]
    record(store, *runs)
    # Eleven runs before head, of which one is the base and ten its level.
    assert compared_line(judge(store, runs[-1])) == (
        "compared: 1 run of head with 11 runs of the base and of the level before it; "
        "in brackets the 99.99 % interval"
    )


def test_the_second_commit_of_a_branch_is_judged_against_its_merge_base(store: Store) -> None:
    head = measured(5, factor=1.2, parents=(4,))
    record(store, measured(1), measured(1, run_id="run-1-again", seed=4, minute=30), head)
    rule = only(judge(store, head, ancestors=[sha(1)])).baseline_rule
    assert (
        rule
        == f"newest clean run of the merge base, {sha(1)[:12]} (run-1-again) and 1 more run of it"
    )
    (line,) = judge(store, head, ancestors=[sha(4), sha(1)]).verdicts
    assert "the ancestor 2 commits back" in line.baseline_rule


def test_uncommitted_changes_are_judged_against_the_commit_below(store: Store) -> None:
    changed = measured(2, factor=1.2, dirty=True, run_id="run-changed", minute=50)
    record(store, measured(1, factor=1.2), measured(2), changed)
    verdict = only(judge(store, changed))
    assert verdict.kind is VerdictKind.REGRESSION
    assert sha(2)[:12] in verdict.baseline_rule


def test_a_dirty_run_is_never_a_baseline(store: Store) -> None:
    head = measured(2)
    record(store, measured(1, dirty=True), head)
    assert judge(store, head).judged[0].outcome == "no baseline"


def test_an_incorrect_result_is_never_a_baseline(store: Store) -> None:
    wrong = make_result(
        RELU,
        [],
        status=Status.INCORRECT,
        correctness=Correctness(checked=True, passed=False),
        reasons={"measurements_s": "wrong"},
    )
    head = measured(3, factor=1.2)
    record(store, measured(1), measured(2, results=(wrong,)), head)
    verdict = only(judge(store, head))
    assert verdict.kind is VerdictKind.REGRESSION
    assert sha(1)[:12] in verdict.baseline_rule


def test_a_result_of_a_shared_device_is_never_a_baseline(store: Store) -> None:
    busy = make_result(RELU, sample(), during=DeviceState(other_processes=1))
    head = measured(3, factor=1.2)
    record(store, measured(1), measured(2, results=(busy,)), head)
    verdict = only(judge(store, head))
    assert verdict.kind is VerdictKind.REGRESSION
    assert sha(1)[:12] in verdict.baseline_rule


def test_another_environment_is_no_baseline_and_that_is_told(store: Store) -> None:
    head = measured(2)
    record(store, measured(1, environment=replace(H200, driver="570.1")), head)
    judged = judge(store, head).judged[0]
    assert judged.outcome == "no baseline"
    assert "1 with another environment" in judged.remarks[0]


def test_runs_of_head_s_commit_are_pooled(store: Store) -> None:
    first = measured(2, run_id="run-head-1", seed=2, minute=5)
    second = measured(2, run_id="run-head-2", seed=3, minute=6)
    record(store, measured(1), first, second)
    (evidence, *_) = only(judge(store, second)).evidence
    assert evidence.comparison.head_runs == 2
    assert evidence.comparison.base_runs == 1


def test_runs_of_the_base_s_commit_are_pooled(store: Store) -> None:
    head = measured(2, minute=30)
    record(store, measured(1), measured(1, run_id="run-base-2", seed=7, minute=8), head)
    (evidence, *_) = only(judge(store, head)).evidence
    assert evidence.comparison.base_runs == 2


def test_a_case_that_a_complete_run_lacks_has_vanished(store: Store) -> None:
    head = measured(2, cases=(RELU,))
    record(store, measured(1, cases=(RELU, ADD)), head)
    gate = judge(store, head)
    gone = [item for item in gate.judged if item.result is None]
    assert [item.verdict.case.kernel for item in gone] == ["add"]
    assert gone[0].verdict.has(ReasonCode.VANISHED)
    assert gate.code is ExitCode.UNDECIDED


def test_nothing_vanishes_from_a_part_of_the_suite(store: Store) -> None:
    head = measured(2, cases=(RELU,), complete=False)
    record(store, measured(1, cases=(RELU, ADD)), head)
    assert [item.verdict.case.kernel for item in judge(store, head).judged] == ["relu"]


def test_nothing_vanishes_against_a_part_of_the_suite(store: Store) -> None:
    head = measured(3, cases=(RELU,))
    record(store, measured(1, cases=(RELU,)), measured(2, cases=(ADD,), complete=False), head)
    assert [item.verdict.case.kernel for item in judge(store, head).judged] == ["relu"]


def test_another_cache_mode_that_was_not_asked_for_has_not_vanished(store: Store) -> None:
    hot = make_case("relu", n=1 << 26, cache="hot")
    head = measured(2, cases=(RELU,))
    record(store, measured(1, cases=(RELU, hot)), head)
    assert len(judge(store, head).judged) == 1


def test_an_override_changes_the_verdict_and_is_told(store: Store) -> None:
    override = Override("relu/*", {"minimal_effect": 0.5}, "A. Person", "being rewritten")
    slow = measured(2, factor=1.2)
    record(store, measured(1), slow)
    judged = judge(store, slow, Thresholds(overrides=(override,))).judged[0]
    assert judged.verdict.kind is VerdictKind.NO_CHANGE
    assert "being rewritten" in judged.remarks[0]


def test_a_run_without_a_commit_meets_runs_without_one(store: Store) -> None:
    head = measured(None, run_id="run-no-commit-2", factor=1.2, minute=9)
    record(store, measured(None, run_id="run-no-commit-1"), head)
    verdict = only(judge(store, head))
    assert verdict.kind is VerdictKind.REGRESSION
    assert "outside a checkout" in verdict.baseline_rule


def test_two_runs_are_compared_on_what_both_measured(store: Store) -> None:
    base = measured(1, cases=(RELU, ADD))
    head = measured(5, factor=1.2, cases=(RELU,), parents=())
    record(store, base, head)
    a, b = find_run(store, base.run_id), find_run(store, head.run_id)
    gate = compare_runs(store, a, b, Thresholds(), today=TODAY)
    assert only(gate).kind is VerdictKind.REGRESSION
    assert base.run_id in only(gate).baseline_rule
    assert gate.notes == (f"1 case only in {base.run_id}: {ADD.label}",)


def test_two_runs_of_different_environments_are_undecided(store: Store) -> None:
    base = measured(1, environment=replace(H200, power_limit_w=500.0))
    head = measured(2, factor=1.2)
    record(store, base, head)
    a, b = find_run(store, base.run_id), find_run(store, head.run_id)
    gate = compare_runs(store, a, b, Thresholds(), today=TODAY)
    assert only(gate).has(ReasonCode.OTHER_ENVIRONMENT)
    assert gate.code is ExitCode.UNDECIDED


def test_a_pull_request_is_judged_against_its_base_not_its_own_push(store: Store) -> None:
    base = measured(1)
    push = measured(2, factor=1.2)
    merged = measured(3, factor=1.2, parents=(2,))
    checkout = replace(merged.checkout, head=sha(3), base=sha(1), merge_base=sha(1))
    merged = replace(merged, checkout=checkout)
    record(store, base, push, merged)
    verdict = only(judge(store, merged))
    assert verdict.kind is VerdictKind.REGRESSION
    assert sha(1)[:12] in verdict.baseline_rule


def test_a_test_merge_stands_on_the_base_that_it_joined(store: Store) -> None:
    old, base = measured(1, factor=1.2), measured(2)
    merge = measured(5, factor=1.2, parents=(2, 4), minute=40)
    checkout = replace(merge.checkout, head=sha(4), base=sha(2), merge_base=sha(1))
    merge = replace(merge, checkout=checkout)
    record(store, old, base, merge)
    verdict = only(judge(store, merge))
    assert verdict.kind is VerdictKind.REGRESSION
    assert sha(2)[:12] in verdict.baseline_rule


def test_a_shallow_clone_s_line_is_completed_from_the_store(store: Store) -> None:
    head = measured(3, factor=1.2)
    head = replace(head, checkout=replace(head.checkout, shallow=True))
    record(store, measured(1), measured(2, results=()), head)
    verdict = only(judge(store, head, ancestors=[sha(2)]))
    assert sha(1)[:12] in verdict.baseline_rule


def replaced(store: Store, noise: float, loss: float, past: int = 20) -> Any:
    """Return the verdict on the second run of a new board, 1 % slower than the one before it."""
    rng = np.random.default_rng(11)
    wander = np.exp(rng.normal(0, noise, past + 2))
    wander[-1] = wander[-2] * (1 + loss)
    for number, factor in enumerate(wander, start=1):
        more = {"device": OTHER, "factor": 1.01 * factor} if number > past else {"factor": factor}
        run = measured(number, seed=3, **more)
        record(store, run)
    return only(judge(store, run))


def test_a_replaced_board_keeps_the_noise_that_the_board_before_had(store: Store) -> None:
    verdict = replaced(store, 0.0005, 0.012)
    assert verdict.kind is VerdictKind.REGRESSION
    assert "20 runs on other boards" in verdict.noise.source
    assert verdict.effect == pytest.approx(-0.012, abs=0.001)


def test_a_board_without_predecessors_has_the_prior(store: Store) -> None:
    verdict = replaced(store, 0.0005, 0.012, past=0)
    assert verdict.kind is VerdictKind.UNDECIDED
    assert "other boards" not in verdict.noise.source


def test_a_restless_board_makes_its_successor_be_judged_with_care(store: Store) -> None:
    verdict = replaced(store, 0.01, 0.012)
    assert verdict.kind is VerdictKind.NO_CHANGE
    assert verdict.noise.sigma > 0.005


def test_the_level_of_the_board_before_is_not_the_new_one_s(store: Store) -> None:
    verdict = replaced(store, 0.0005, 0.0)
    assert verdict.kind is VerdictKind.NO_CHANGE
    assert verdict.effect == 0


def test_a_series_that_jumps_from_run_to_run_is_not_called_slower(store: Store) -> None:
    factors = (1.0, 1.06, 1.0, 1.06, 1.0, 1.0)
    runs = [
        measured(n, factor=f, parents=(n - 1,) if n > 1 else (), minute=n)
        for n, f in enumerate(factors, 1)
    ]
    record(store, *runs)
    slow = measured(7, factor=1.06, parents=(6,), minute=7)
    record(store, slow)
    assert only(judge(store, slow)).kind is not VerdictKind.REGRESSION


def test_a_steady_series_still_calls_the_same_loss(store: Store) -> None:
    runs = [measured(n, parents=(n - 1,) if n > 1 else (), minute=n) for n in range(1, 7)]
    slow = measured(7, factor=1.06, parents=(6,), minute=7)
    record(store, *runs, slow)
    assert only(judge(store, slow)).kind is VerdictKind.REGRESSION


def test_what_would_do_for_one_case_is_undecided_among_hundreds(store: Store) -> None:
    cases = tuple(make_case("relu", n=(1 << 26) + k) for k in range(200))
    record(store, measured(1, cases=cases))
    alone = measured(2, factor=1.02, parents=(1,), minute=2, cases=cases[:1], complete=False)
    slower = tuple(replace(result, code_fingerprint="changed") for result in alone.results)
    alone = replace(alone, results=slower)
    record(store, alone)
    single = only(judge(store, alone))
    rest = tuple(make_result(c, sample(1.0, 3), median_cycles=257_400.0) for c in cases[1:])
    suite = measured(3, parents=(1,), minute=3, results=(*slower, *rest))
    record(store, suite)
    among = judge(store, suite).judged[0].verdict
    assert single.kind is VerdictKind.REGRESSION
    assert among.kind is VerdictKind.UNDECIDED
    assert among.has(ReasonCode.SUSPICIOUS)
