"""Verdicts: what is called, what is not, and that nothing passes in silence."""

from dataclasses import replace
from math import exp, inf, log, nan, sqrt
from statistics import median
from typing import Any

import pytest

from tracker import verdict as subject
from tracker.errors import ExitCode
from tracker.model import Correctness, DeviceState, Status, VerdictKind
from tracker.tests.sides import BOARD, CPU, H200, MIB, make_result, make_side
from tracker.verdict import Policy, ReasonCode, exit_code

USUAL_S = 2 * 64 * MIB / 3.6e12


def judge(*sides: Any) -> Any:
    return subject.judge(*sides)


def check(verdict: Any, kind: VerdictKind, *codes: ReasonCode, exits: ExitCode) -> None:
    assert verdict.kind is kind, verdict.reasons
    missing = [code for code in codes if not verdict.has(code)]
    assert not missing, (missing, verdict.reasons)
    assert verdict.exit_code is exits
    assert exit_code([verdict]) is exits
    assert all(reason.message for reason in verdict.reasons)


def check_undecided(verdict: Any, code: ReasonCode, exits: ExitCode = ExitCode.UNDECIDED) -> None:
    check(verdict, VerdictKind.UNDECIDED, code, exits=exits)


@pytest.mark.parametrize("mib", [64, 256, 1024])
@pytest.mark.parametrize("seed", range(5))
def test_a_second_process_of_the_same_code_is_no_change(mib: Any, seed: Any) -> None:
    between = {64: 0.004, 256: 0.0005, 1024: 0.0004}[mib]
    for shift in (-between, between):
        verdict = judge(make_side(mib), make_side(mib, shift, seed=1 + seed))
        check(verdict, VerdictKind.NO_CHANGE, ReasonCode.WITHIN_NOISE, exits=ExitCode.OK)


@pytest.mark.parametrize(("mib", "environment"), [(16, H200), (64, H200), (1024, H200)])
def test_reading_the_input_twice_is_a_regression(mib: Any, environment: Any) -> None:
    verdict = judge(
        make_side(mib, environment=environment),
        make_side(mib, 0.5, environment=environment, seed=1),
    )
    check(verdict, VerdictKind.REGRESSION, ReasonCode.SIGNIFICANT, exits=ExitCode.REGRESSION)
    assert verdict.effect == pytest.approx(-1 / 3, abs=0.005)
    assert verdict.interval[0] < -1 / 3 < verdict.interval[1] < 0


def test_a_gain_is_an_improvement_and_the_mirror_image_of_a_loss() -> None:
    loss = judge(make_side(256), make_side(256, 0.1, seed=1))
    gain = judge(make_side(256, 0.1, seed=1), make_side(256))
    check(gain, VerdictKind.IMPROVEMENT, exits=ExitCode.OK)
    assert (1 + loss.effect) * (1 + gain.effect) == pytest.approx(1)
    assert loss.p_value == pytest.approx(gain.p_value)


def test_a_real_change_below_the_minimal_effect_is_no_change() -> None:
    history = tuple(make_result(1024, seed=s) for s in range(2, 40))
    verdict = judge(
        make_side(1024, history=history),
        make_side(1024, 0.009, seed=1),
        Policy(minimal_effect=0.01),
    )
    check(verdict, VerdictKind.NO_CHANGE, ReasonCode.SMALL_EFFECT, exits=ExitCode.OK)


def test_a_suspicious_case_says_how_many_more_runs_would_decide() -> None:
    verdict = judge(make_side(64), make_side(64, 0.03, seed=1))
    check_undecided(verdict, ReasonCode.SUSPICIOUS)
    assert verdict.more_runs is None or verdict.more_runs > 0
    assert "measure" in verdict.what_would_decide


def test_repeats_decide_what_one_run_could_not() -> None:
    base = make_side(64, repeats=tuple(make_result(64, seed=s) for s in range(10, 18)))
    head = make_side(64, 0.02, seed=1)
    slow = tuple(
        make_result(64, center_s=median(s_.measurements_s) * 1.02, seed=40 + i)
        for i, s_ in enumerate(base.repeats)
    )
    check(
        judge(base, replace(head, repeats=slow)), VerdictKind.REGRESSION, exits=ExitCode.REGRESSION
    )


def test_a_quiet_history_sharpens_the_verdict_and_is_named() -> None:
    history = tuple(make_result(64, seed=s) for s in range(10, 40))
    verdict = judge(make_side(64, history=history), make_side(64, 0.02, seed=1))
    check(verdict, VerdictKind.REGRESSION, exits=ExitCode.REGRESSION)
    assert verdict.noise.sigma < judge(make_side(64), make_side(64)).noise.sigma
    assert "32 runs" in verdict.noise.source


def test_a_comparison_that_can_show_nothing_is_undecided() -> None:
    verdict = judge(make_side(1), make_side(1, seed=1), Policy(resolution=0.05))
    check_undecided(verdict, ReasonCode.TOO_NOISY)
    assert verdict.more_runs is None or verdict.more_runs > 0


@pytest.mark.parametrize(("loss", "blind"), [(0.19, False), (0.21, True)])
def test_no_change_is_said_only_where_a_fifth_less_would_have_shown(
    loss: float, blind: bool
) -> None:
    # Two equal runs of n launches with an error e each show 1 - exp(-t * sqrt(2 * (s^2 + e^2))),
    # of which e is next to nothing here and s, the noise between runs, is one part in ten of the
    # spread. t of 5 degrees at 99.9 % is 6.8688 (from a table).
    noise = -log(1 - loss) / (6.8688 * sqrt(2))
    spread = noise / 0.1
    sides = [make_side(times=_spread(spread)) for _ in range(2)]
    verdict = judge(*sides)
    assert verdict.detectable == pytest.approx(loss, abs=0.004)
    if blind:
        check_undecided(verdict, ReasonCode.TOO_NOISY)
        assert "not one of 20.00 %" in verdict.reasons[0].message
    else:
        check(verdict, VerdictKind.NO_CHANGE, ReasonCode.WITHIN_NOISE, exits=ExitCode.OK)


def _spread(spread: float, count: int = 40_001) -> tuple[float, ...]:
    """Return times, evenly apart in logarithm, whose middle half is as wide as a Gaussian's."""
    half = 2 * spread / 1.4826  # the median of the distances from the middle is half of it
    return tuple(1e-3 * exp(half * (2 * n / (count - 1) - 1)) for n in range(count))


def test_what_took_turns_is_not_told_to_take_turns() -> None:
    blind = Policy(resolution=1e-6)
    apart = subject.judge(make_side(1), make_side(1, seed=1), blind)
    base, head = (replace(make_side(1, seed=seed), in_turns=True) for seed in (0, 1))
    in_turns = subject.judge(base, head, blind)
    assert "bandwatch ab" in apart.what_would_decide
    assert in_turns.what_would_decide == "measure more pairs, or quieten the machine"


def test_the_first_run_has_no_baseline_and_is_no_error() -> None:
    check_undecided(judge(None, make_side()), ReasonCode.NO_BASELINE, ExitCode.OK)


def test_a_bad_first_run_is_named_all_the_same() -> None:
    check_undecided(judge(None, make_side(times=(nan,) * 9)), ReasonCode.NOT_FINITE)


def test_only_a_fit_and_clean_first_run_is_told_to_become_the_baseline() -> None:
    promise = "this one becomes the baseline"
    assert promise in judge(None, make_side()).reasons[-1].message
    wrong = make_side(times=(), status=Status.INCORRECT)
    dirty = make_side(dirty=True)
    for head in (wrong, dirty):
        assert promise not in judge(None, head).reasons[-1].message
    assert "commit, then measure again" in judge(None, dirty).reasons[-1].message


def test_what_is_wrong_with_a_result_is_told_rather_than_that_its_test_failed() -> None:
    failed = make_side(
        times=(),
        status=Status.INCORRECT,
        reasons={"measurements_s": "the test failed in its call phase"},
        correctness=Correctness(checked=True, passed=False, detail="3 elements differ"),
    )
    told = judge(make_side(), failed).reasons[0].message
    assert told.endswith("counts for nothing: 3 elements differ")


def test_a_vanished_case_is_undecided() -> None:
    check_undecided(judge(make_side(), None), ReasonCode.VANISHED)


def test_an_empty_run_is_undecided() -> None:
    assert exit_code([]) is ExitCode.UNDECIDED


@pytest.mark.parametrize("bad", [nan, inf, -1.0, 0.0])
@pytest.mark.parametrize("which", ["base", "head"])
def test_a_measurement_that_is_no_time_is_undecided(bad: Any, which: Any) -> None:
    sides = {"base": make_side(), "head": make_side(seed=1)}
    sides[which] = make_side(times=(*make_result().measurements_s, bad))
    verdict = judge(sides["base"], sides["head"])
    check_undecided(verdict, ReasonCode.NOT_FINITE)
    assert verdict.effect is None


def test_too_few_measurements_are_undecided_however_large_the_effect() -> None:
    check_undecided(judge(make_side(), make_side(times=(1.0, 1.1))), ReasonCode.TOO_FEW)


def test_no_measurement_is_undecided() -> None:
    check_undecided(
        judge(make_side(), make_side(times=(), status=Status.NO_SAMPLE)), ReasonCode.NO_SAMPLE
    )
    check_undecided(judge(make_side(), make_side(times=())), ReasonCode.NO_SAMPLE)


def test_zero_variance_is_named_and_still_judged() -> None:
    base, same, slow = (make_side(times=(t,) * 50) for t in (40e-6, 40e-6, 60e-6))
    check(judge(base, same), VerdictKind.NO_CHANGE, ReasonCode.ZERO_VARIANCE, exits=ExitCode.OK)
    check(
        judge(base, slow),
        VerdictKind.REGRESSION,
        ReasonCode.ZERO_VARIANCE,
        exits=ExitCode.REGRESSION,
    )


def test_a_stale_baseline_cannot_vouch_for_no_change_but_shows_a_loss() -> None:
    base = make_side(measured_at="2026-01-01T00:00:00Z")
    now: dict[str, Any] = {"seed": 1, "measured_at": "2026-03-01T00:00:00+00:00"}
    check_undecided(judge(base, make_side(**now)), ReasonCode.STALE_BASELINE)
    check(judge(base, make_side(64, 0.5, **now)), VerdictKind.REGRESSION, exits=ExitCode.REGRESSION)
    fresh = make_side(seed=1, measured_at="2026-01-30T00:00:00Z")
    check(judge(base, fresh), VerdictKind.NO_CHANGE, exits=ExitCode.OK)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"driver": "590.1"}, "driver_branch: 580 -> 590"),
        ({"gpu_model": "NVIDIA H100"}, "gpu_model: NVIDIA H200 -> NVIDIA H100"),
        ({"libraries": {"torch": "2.13"}}, "libraries.torch: None -> 2.13"),
        ({"clock_policy": "locked 1500"}, "clock_policy: default -> locked 1500"),
        ({"mig": True}, "mig: None -> True"),
    ],
)
def test_environments_that_differ_are_undecided_and_the_field_is_named(
    change: Any, told: Any
) -> None:
    verdict = judge(make_side(), make_side(64, 0.5, environment=replace(H200, **change)))
    check_undecided(verdict, ReasonCode.OTHER_ENVIRONMENT)
    assert told in verdict.reasons[0].message


def test_a_driver_of_the_same_branch_is_the_same_environment() -> None:
    verdict = judge(make_side(), make_side(seed=1, environment=replace(H200, driver="580.99")))
    check(verdict, VerdictKind.NO_CHANGE, exits=ExitCode.OK)


@pytest.mark.parametrize("which", [0, 1])
def test_a_throttled_side_is_unfit(which: Any) -> None:
    sides = [make_side(), make_side(64, 0.5, seed=1)]
    sides[which] = make_side(status=Status.THROTTLED)
    check_undecided(judge(*sides), ReasonCode.THROTTLED, ExitCode.UNFIT)


def test_a_shared_device_is_unfit() -> None:
    head = make_side(64, 0.5, during=DeviceState(other_processes=2))
    check_undecided(judge(make_side(), head), ReasonCode.SHARED_DEVICE, ExitCode.UNFIT)


def test_a_drop_to_zero_is_a_regression() -> None:
    verdict = judge(make_side(), make_side(bytes_moved=0))
    check(verdict, VerdictKind.REGRESSION, ReasonCode.DROP_TO_ZERO, exits=ExitCode.REGRESSION)
    assert verdict.effect == -1


def test_results_over_peak_are_undecided_with_and_without_the_status() -> None:
    check_undecided(judge(make_side(), make_side(status=Status.OVER_PEAK)), ReasonCode.OVER_PEAK)
    check_undecided(judge(make_side(), make_side(64, -0.5)), ReasonCode.OVER_PEAK)


@pytest.mark.parametrize(
    ("status", "code"), [(Status.INCORRECT, ReasonCode.INCORRECT), (Status.ERROR, ReasonCode.ERROR)]
)
def test_a_wrong_head_fails_like_a_regression_and_a_wrong_base_is_undecided(
    status: Any, code: Any
) -> None:
    wrong = make_side(times=(), status=status)
    for base in (make_side(), wrong, None):
        check_undecided(judge(base, wrong), code, ExitCode.REGRESSION)
    check_undecided(judge(wrong, make_side()), code, ExitCode.UNDECIDED)


def test_a_repeat_that_is_wrong_makes_head_wrong() -> None:
    wrong = make_side(times=(), status=Status.INCORRECT).result
    verdict = judge(make_side(), make_side(seed=1, repeats=(wrong,)))
    check_undecided(verdict, ReasonCode.INCORRECT, ExitCode.REGRESSION)


def test_no_waiver_lets_a_wrong_result_pass() -> None:
    verdict = judge(make_side(), make_side(times=(), status=Status.INCORRECT))
    assert replace(verdict, waived="waived by A. Person").exit_code is ExitCode.REGRESSION


def test_the_same_machine_code_is_named_and_points_to_the_environment() -> None:
    base, head = make_side(code_fingerprint="c"), make_side(64, 0.5, seed=1, code_fingerprint="c")
    verdict = judge(base, head)
    check(verdict, VerdictKind.REGRESSION, ReasonCode.SAME_CODE, exits=ExitCode.REGRESSION)
    assert "environment" in verdict.reasons[-1].message
    other = judge(base, make_side(64, 0.5, seed=1, code_fingerprint="d"))
    assert not other.has(ReasonCode.SAME_CODE)
    assert verdict.interval[0] < other.interval[0]


def test_a_slow_clock_is_told_from_slow_code() -> None:
    base = make_side(256, median_cycles=100_000.0)
    clock = make_side(256, 0.1, seed=1, median_cycles=100_010.0)
    check_undecided(judge(base, clock), ReasonCode.CLOCK_MOVED, ExitCode.UNFIT)
    code = make_side(256, 0.1, seed=1, median_cycles=110_000.0)
    check(judge(base, code), VerdictKind.REGRESSION, exits=ExitCode.REGRESSION)


def _on_cpu(slower: float, copy: float, *, backend: Any = CPU) -> Any:
    """Judge a head after twelve quiet runs, slower itself and with a copy slower by a factor."""
    past = tuple(
        make_result(
            64, center_s=USUAL_S * (1 + 0.01 * (s % 3 - 1)), copy=1 + 0.01 * (s % 2), seed=s
        )
        for s in range(12)
    )
    base = make_side(64, environment=backend, history=past)
    return judge(base, make_side(64, slower, environment=backend, copy=copy, seed=20))


def test_a_slow_machine_is_told_from_slow_code_by_its_copy() -> None:
    check_undecided(_on_cpu(1.0, 2.0), ReasonCode.MACHINE_MOVED, ExitCode.UNFIT)
    for copy in (1.0, 1.2, 0.5):  # as ever, by less than half as much, and faster
        check(_on_cpu(1.0, copy), VerdictKind.REGRESSION, exits=ExitCode.REGRESSION)
    check_undecided(_on_cpu(-0.5, 0.5), ReasonCode.MACHINE_MOVED, ExitCode.UNFIT)
    # A GPU is nobody else's: its copy does not excuse a loss.
    check(_on_cpu(0.1, 1.1, backend=H200), VerdictKind.REGRESSION, exits=ExitCode.REGRESSION)


def test_another_board_is_judged_by_copy_fraction() -> None:
    other = replace(BOARD, uuid="GPU-2")
    base = make_side(1024, copy=1.0)
    # The whole board is 3 % slower, its copy too: copy bandwidth falls to 3.6e12 / 1.03.
    board = make_side(1024, 0.03, seed=1, device=other, copy=1.03)
    verdict = judge(base, board)
    check(verdict, VerdictKind.NO_CHANGE, ReasonCode.OTHER_DEVICE, exits=ExitCode.OK)
    assert verdict.metric == "copy fraction"
    slower = make_side(1024, 0.1, seed=1, device=other, copy=1.03)
    check(
        judge(base, slower),
        VerdictKind.REGRESSION,
        ReasonCode.OTHER_DEVICE,
        exits=ExitCode.REGRESSION,
    )


def test_another_board_without_copy_bandwidth_is_undecided() -> None:
    head = make_side(64, 0.5, device=replace(BOARD, uuid="GPU-2"), copy=None)
    check_undecided(judge(make_side(), head), ReasonCode.NO_COPY)


def test_noisy_and_dirty_sides_are_named() -> None:
    verdict = judge(make_side(status=Status.NOISY), make_side(seed=1, dirty=True))
    check(verdict, VerdictKind.NO_CHANGE, ReasonCode.NOISY, ReasonCode.DIRTY, exits=ExitCode.OK)


def test_two_cases_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="not one case"):
        judge(make_side(64), make_side(16))


def test_regression_outranks_unfit_and_unfit_outranks_undecided() -> None:
    slow = judge(make_side(), make_side(64, 0.5, seed=1))
    unfit = judge(make_side(), make_side(status=Status.THROTTLED))
    open_ = judge(make_side(), make_side(times=()))
    first, same = judge(None, make_side()), judge(make_side(), make_side(seed=1))
    assert exit_code([same, open_, unfit, slow]) is ExitCode.REGRESSION
    assert exit_code([same, open_, unfit]) is ExitCode.UNFIT
    assert exit_code([first, same, open_]) is ExitCode.UNDECIDED
    assert exit_code([first, same]) is ExitCode.OK


def test_the_rule_that_picked_the_baseline_is_carried() -> None:
    assert (
        judge(make_side(rule="parent commit"), make_side(seed=1)).baseline_rule == "parent commit"
    )


def test_a_cpu_that_did_not_settle_decides_nothing_however_large_the_shift() -> None:
    cpu = replace(make_side().environment, backend="cpu", gpu_model="a CPU")
    base = make_side(environment=cpu)
    settled = judge(base, make_side(slower=9.0, environment=cpu))
    assert settled.kind is VerdictKind.REGRESSION
    check_undecided(
        judge(base, make_side(slower=9.0, environment=cpu, status=Status.NOISY)),
        ReasonCode.TOO_NOISY,
    )
