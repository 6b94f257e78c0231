from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pytest

from tracker.errors import NotFoundError, UnfitError
from tracker.loop.ab import Bench, Contest, Outcome, compare_commits, sequential
from tracker.loop.repository import Repository
from tracker.loop.runs import Stamp
from tracker.loop.settings import LoopSettings
from tracker.loop.turns import Budget
from tracker.loop.worktrees import BuildError, worktrees
from tracker.model import VerdictKind
from tracker.tests.loop.fake import ADD, RELU, Clock, FakeMeasure, repository
from tracker.thresholds import Thresholds
from tracker.verdict import Policy

TODAY = date(2026, 11, 29)


def contest(
    tmp_path: Path,
    base: Mapping[str, float | str],
    head: Mapping[str, float | str],
    measure: FakeMeasure | None = None,
    **options: object,
) -> tuple[Outcome, FakeMeasure]:
    root = tmp_path / "project"
    shas = repository(root, [base, head])
    measure = measure or FakeMeasure()
    with worktrees(Repository(root), tmp_path / "trees", LoopSettings()) as trees:
        bench = Bench(trees, measure, tmp_path / "journals", Stamp("bandwatch ab"), Clock())
        chosen = Contest(shas[0], shas[1], **options)  # type: ignore[arg-type]
        return compare_commits(chosen, bench, Thresholds(), TODAY), measure


def kinds(outcome: Outcome) -> dict[str, VerdictKind]:
    return {item.verdict.case.kernel: item.verdict.kind for item in outcome.judged}


def test_a_slow_commit_is_a_regression_and_the_other_case_is_unchanged(tmp_path: Path) -> None:
    outcome, _ = contest(tmp_path, {RELU: 1.0, ADD: 1.0}, {RELU: 1.03, ADD: 1.0})
    assert kinds(outcome) == {"relu": VerdictKind.REGRESSION, "add": VerdictKind.NO_CHANGE}
    found = next(item.verdict for item in outcome.judged if item.verdict.case.kernel == "relu")
    assert found.effect == pytest.approx(1 / 1.03 - 1, abs=0.004)


def test_a_faster_commit_is_an_improvement(tmp_path: Path) -> None:
    outcome, _ = contest(tmp_path, {RELU: 1.0}, {RELU: 0.97})
    assert kinds(outcome) == {"relu": VerdictKind.IMPROVEMENT}


def test_a_steady_drift_is_no_regression(tmp_path: Path) -> None:
    # Every process is 0.1 % slower than the one before: A then B alone would see a loss.
    outcome, _ = contest(tmp_path, {RELU: 1.0}, {RELU: 1.0}, FakeMeasure(drift=0.001))
    assert kinds(outcome)["relu"] is not VerdictKind.REGRESSION
    effect = outcome.judged[0].verdict.effect
    assert effect is not None
    assert abs(effect) < 0.001


def test_decided_cases_are_not_measured_again(tmp_path: Path) -> None:
    _, measure = contest(
        tmp_path,
        {RELU: 1.0, ADD: 1.0},
        {RELU: 1.10, ADD: 1.004},
        FakeMeasure(between=0.002),
        budget=Budget(pairs=6),
        resolution=0.0001,
    )
    timed = [tests for _, tests, timing in measure.calls if timing]
    assert timed[:4] == [None] * 4
    assert (ADD,) in timed[4:]
    assert all(RELU not in (tests or ()) for tests in timed[4:])


def test_both_sides_are_checked_without_timing_before_the_first_turn(tmp_path: Path) -> None:
    _, measure = contest(tmp_path, {RELU: 1.0}, {RELU: 1.0})
    assert [timing for _, _, timing in measure.calls[:3]] == [False, False, True]


def test_a_check_that_found_no_room_beside_the_other_is_made_again_alone(tmp_path: Path) -> None:
    def crowd(number: int) -> None:
        if number == 1:
            raise UnfitError("the device is busy")

    outcome, measure = contest(tmp_path, {RELU: 1.0}, {RELU: 1.0}, FakeMeasure(fail=crowd))
    assert outcome.judged
    assert [timing for _, _, timing in measure.calls[:4]] == [False, False, False, True]
    assert measure.calls[1] == measure.calls[2]


def test_a_machine_that_is_unfit_alone_too_is_told(tmp_path: Path) -> None:
    def never(number: int) -> None:
        raise UnfitError("no device")

    with pytest.raises(UnfitError, match="no device"):
        contest(tmp_path, {RELU: 1.0}, {RELU: 1.0}, FakeMeasure(fail=never))


def test_each_process_leaves_a_run_of_its_own_commit(tmp_path: Path) -> None:
    outcome, _ = contest(tmp_path, {RELU: 1.0}, {RELU: 1.0})
    commits = {run.checkout.commit.sha for run in outcome.base_runs if run.checkout.commit}
    assert len(commits) == 1
    assert commits != {run.checkout.commit.sha for run in outcome.head_runs if run.checkout.commit}
    assert (
        len({run.run_id for run in (*outcome.base_runs, *outcome.head_runs)}) == 2 * outcome.pairs
    )
    assert not any(run.complete or run.checkout.dirty for run in outcome.base_runs)


def test_a_commit_that_does_not_build_is_told(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="missing header"):
        contest(tmp_path, {RELU: "missing header"}, {RELU: 1.0})


def test_commits_without_a_common_case_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no case was measured on both"):
        contest(tmp_path, {RELU: 1.0}, {ADD: 1.0})


def test_a_case_of_one_side_only_is_told(tmp_path: Path) -> None:
    outcome, _ = contest(tmp_path, {RELU: 1.0, ADD: 1.0}, {RELU: 1.0})
    assert outcome.notes == ("1 case is only in base",)


def test_a_test_that_fails_is_told_with_its_side_and_why(tmp_path: Path) -> None:
    wrong = FakeMeasure(failed={ADD: "wrong at element 3"})
    outcome, _ = contest(tmp_path, {RELU: 1.0, ADD: 1.0}, {RELU: 1.0, ADD: 1.0}, wrong)
    assert outcome.failed == {ADD: "wrong at element 3"}
    assert f"{ADD} failed on head: wrong at element 3" in outcome.notes
    assert f"{ADD} failed on base: wrong at element 3" in outcome.notes
    with pytest.raises(NotFoundError, match="failed on base: wrong at element 3"):
        contest(tmp_path / "2", {ADD: 1.0}, {ADD: 1.0}, wrong)


def test_a_test_that_neither_commit_has_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="base has no test perf/test_gone"):
        contest(tmp_path, {RELU: 1.0}, {RELU: 1.0}, tests=("perf/test_gone.py::test_gone",))


def test_several_looks_share_the_error_of_one() -> None:
    assert sequential(Policy(confidence=0.999), 5).confidence == pytest.approx(0.9998)


def test_unchanged_commits_hardly_ever_differ(tmp_path: Path) -> None:
    # 20 null contests at a confidence of 0.999 over all looks.
    root = tmp_path / "project"
    shas = repository(root, [{RELU: 1.0}, {RELU: 1.0}])
    wrong = 0
    with worktrees(Repository(root), tmp_path / "trees", LoopSettings()) as trees:
        for seed in range(20):
            bench = Bench(
                trees, FakeMeasure(seed=seed), tmp_path / f"j{seed}", Stamp("ab"), Clock()
            )
            outcome = compare_commits(Contest(shas[0], shas[1]), bench, Thresholds(), TODAY)
            wrong += outcome.judged[0].verdict.kind in {
                VerdictKind.REGRESSION,
                VerdictKind.IMPROVEMENT,
            }
    assert wrong == 0


def test_what_stays_open_is_told_the_command_for_more_pairs(tmp_path: Path) -> None:
    restless = FakeMeasure(between=0.15)
    outcome, _ = contest(tmp_path, {RELU: 1.0}, {RELU: 1.0}, restless, budget=Budget(8))
    shas = [runs[0].checkout.commit for runs in (outcome.base_runs, outcome.head_runs)]
    names = " ".join(commit.sha[:12] for commit in shas if commit)
    (item,) = outcome.judged
    assert item.verdict.kind is VerdictKind.UNDECIDED
    assert item.verdict.what_would_decide == (
        f"measure more pairs (bandwatch ab {names} --pairs 16), or quieten the machine"
    )
