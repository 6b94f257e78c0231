"""The rule that picks a baseline."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.baseline import Candidate, Exclusion, Wanted, choose, usable
from tracker.model import DeviceState, Status
from tracker.tests.sides import make_result

WANTED = Wanted("head", ("parent", "grand", "old"), "H200", "env", "GPU-1")
PARENT = Candidate("run-parent", "parent", "2026-01-02", "H200", "env", "GPU-1")
GRAND = replace(PARENT, run_id="run-grand", sha="grand", finished="2026-01-09")
SAME = replace(PARENT, run_id="run-same", sha="head", finished="2026-01-10")


def test_the_nearest_ancestor_wins_over_a_newer_run_of_an_older_one() -> None:
    choice = choose([GRAND, PARENT, SAME], WANTED)
    assert (choice.run_id, choice.distance) == ("run-parent", 1)
    assert "parent commit" in choice.rule


def test_an_older_ancestor_is_taken_when_the_parent_was_never_measured() -> None:
    choice = choose([GRAND, SAME], WANTED)
    assert choice.run_id == "run-grand"
    assert "2 commits back" in choice.rule


def test_on_a_branch_the_merge_base_is_called_so_and_no_parent() -> None:
    branch = replace(WANTED, ancestors=("base", "grand", "old"), fork="base")
    base = replace(PARENT, run_id="run-base", sha="base")
    assert choose([base, GRAND], branch).rule.startswith("newest clean run of the merge base, base")
    assert "the ancestor 1 commit before the merge base, grand" in choose([GRAND], branch).rule
    old = replace(GRAND, sha="old")
    assert "the ancestor 2 commits before the merge base, old" in choose([old], branch).rule


def test_changes_stand_on_the_commit_below_them_and_that_on_its_merge_base() -> None:
    changed = Wanted("head with changes", ("head", "base"), "H200", "env", "GPU-1", "base", "head")
    assert "the commit below the changes, head" in choose([SAME], changed).rule
    base = replace(PARENT, sha="base")
    assert "the merge base, base" in choose([base], changed).rule


def test_the_newest_run_of_one_commit_wins() -> None:
    newer = replace(PARENT, run_id="newer", finished="2026-01-03")
    assert choose([newer, PARENT], WANTED).run_id == "newer"


def test_the_same_device_goes_before_a_newer_run_of_another_board() -> None:
    other = replace(PARENT, run_id="other", finished="2026-01-03", device="GPU-2")
    assert choose([other, PARENT], WANTED).run_id == "run-parent"
    assert choose([other], WANTED).run_id == "other"


def test_without_an_ancestor_an_earlier_run_of_this_commit_serves() -> None:
    choice = choose([SAME], WANTED)
    assert choice.run_id == "run-same"
    assert "this commit" in choice.rule


def test_outside_a_checkout_runs_outside_a_checkout_are_compared() -> None:
    nowhere = replace(PARENT, sha=None)
    assert choose([nowhere], replace(WANTED, sha=None, ancestors=())).run_id == "run-parent"
    assert choose([nowhere], WANTED).excluded == (("run-parent", Exclusion.UNKNOWN_COMMIT),)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"gpu_model": "H100"}, Exclusion.OTHER_MODEL),
        ({"environment": "other"}, Exclusion.OTHER_ENVIRONMENT),
        ({"sha": "branch"}, Exclusion.UNRELATED),
        ({"dirty": True}, Exclusion.DIRTY),
        ({"throttled": True}, Exclusion.THROTTLED),
        ({"shared": True}, Exclusion.SHARED),
        ({"incorrect": True}, Exclusion.INCORRECT),
    ],
)
def test_an_unfit_run_is_passed_over_and_the_reason_is_told(
    change: dict[str, object], why: Exclusion
) -> None:
    unfit = replace(PARENT, **change)  # type: ignore[arg-type]
    assert choose([unfit, GRAND], WANTED).run_id == "run-grand"
    alone = choose([unfit], WANTED)
    assert alone.run_id is None
    assert alone.excluded == (("run-parent", why),)
    assert why.value in alone.rule


def test_an_empty_store_has_no_baseline() -> None:
    assert choose([], WANTED).run_id is None
    assert "no earlier run" in choose([], WANTED).rule


@given(st.permutations([PARENT, GRAND, SAME, replace(PARENT, run_id="x", dirty=True)]))
def test_the_order_of_candidates_does_not_matter(order: list[Candidate]) -> None:
    assert choose(order, WANTED).run_id == "run-parent"


def test_results_that_may_not_stand_in_a_baseline() -> None:
    good = make_result()
    assert usable([good, replace(good, status=Status.NOISY)])
    for status in (
        Status.THROTTLED,
        Status.INCORRECT,
        Status.ERROR,
        Status.OVER_PEAK,
        Status.NO_SAMPLE,
    ):
        assert not usable([good, replace(good, status=status)])
    assert not usable([replace(good, during=DeviceState(other_processes=1))])
    assert usable([replace(good, during=DeviceState(other_processes=0))])
