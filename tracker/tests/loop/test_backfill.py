from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from tracker.loop.ab import Bench
from tracker.loop.backfill import Filled, Wish, backfill, by_halves
from tracker.loop.notebook import Notebook
from tracker.loop.repository import Repository
from tracker.loop.runs import Stamp
from tracker.loop.settings import LoopSettings
from tracker.loop.worktrees import BuildError, worktrees
from tracker.model import Run
from tracker.tests.loop.fake import RELU, Clock, FakeMeasure, repository


@pytest.mark.parametrize("count", [0, 1, 2, 3, 10, 100])
def test_halves_visit_each_position_once_the_newest_first(count: int) -> None:
    order = by_halves(count)
    assert sorted(order) == list(range(count))
    assert order[:1] == ([count - 1] if count else [])


@pytest.mark.parametrize("taken", [2, 4, 8, 16])
def test_any_beginning_covers_the_range_evenly(taken: int) -> None:
    seen = sorted(by_halves(64)[:taken])
    gaps = [after - before - 1 for before, after in zip([-1, *seen], seen, strict=False)]
    assert max(gaps) <= 2 * 64 / taken


class History:
    def __init__(self, tmp_path: Path, speeds: Sequence[float | str]) -> None:
        self.root, self.folder = tmp_path / "project", tmp_path / "journals"
        self.shas = repository(self.root, [{RELU: speed} for speed in speeds])
        self.trees = tmp_path / "trees"
        self.runs = list[Run]()

    def fill(
        self,
        measure: FakeMeasure,
        known: Collection[str] = (),
        seconds: float | None = None,
    ) -> Filled:
        with worktrees(Repository(self.root), self.trees, LoopSettings()) as trees:
            bench = Bench(trees, measure, self.folder, Stamp("backfill"), Clock(10))
            notebook = Notebook.open(self.folder / "broken.json", "backfill", "broken")
            wish = Wish(tuple(self.shas), lambda _: known, seconds=seconds)
            return backfill(wish, bench, notebook, self.runs.append)


def test_every_missing_commit_is_recorded_under_its_own_id(tmp_path: Path) -> None:
    history = History(tmp_path, [1.0] * 5)
    filled = history.fill(FakeMeasure(), known=history.shas[:2])
    assert set(filled.recorded) == set(history.shas[2:])
    measured = [run.checkout.commit.sha for run in history.runs if run.checkout.commit]
    assert measured == [history.shas[4], history.shas[3], history.shas[2]]
    assert all(run.complete and run.notes for run in history.runs)


def test_the_budget_leaves_the_rest_for_the_next_call(tmp_path: Path) -> None:
    history = History(tmp_path, [1.0] * 8)
    filled = history.fill(FakeMeasure(), seconds=40)
    assert 1 <= len(filled.recorded) < 8
    assert set(filled.left) | set(filled.recorded) == set(history.shas)


def test_a_budget_of_less_than_a_commit_still_fills_the_range_call_by_call(tmp_path: Path) -> None:
    history = History(tmp_path, [1.0] * 4)
    known: set[str] = set()
    for _ in range(4):
        filled = history.fill(FakeMeasure(), known=frozenset(known), seconds=1)
        assert len(filled.recorded) <= 2
        known |= set(filled.recorded)
    assert known == set(history.shas)
    assert filled.left == ()


def test_what_had_results_is_counted_apart(tmp_path: Path) -> None:
    history = History(tmp_path, [1.0] * 4)
    filled = history.fill(FakeMeasure(), known=history.shas[1:])
    assert filled.known == tuple(history.shas[1:3])
    assert set(filled.recorded) == {history.shas[0], history.shas[3]}


def test_a_commit_that_does_not_build_is_tried_once(tmp_path: Path) -> None:
    history = History(tmp_path, [1.0, "no header", 1.0, "no header"])
    first = history.fill(FakeMeasure())
    assert set(first.skipped) == {history.shas[1], history.shas[3]}
    assert set(first.recorded) == {history.shas[0], history.shas[2]}
    again = FakeMeasure()
    history.fill(again, known=history.shas)
    assert {name for name, _, _ in again.calls} == {history.shas[2][:16]}


def test_a_crash_keeps_what_was_recorded(tmp_path: Path) -> None:
    history = History(tmp_path, [1.0] * 6)

    def crash(number: int) -> None:
        if number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        history.fill(FakeMeasure(fail=crash))
    assert len(history.runs) == 3
    assert list(history.trees.iterdir()) == []


def test_a_range_in_which_nothing_builds_ends(tmp_path: Path) -> None:
    history = History(tmp_path, ["no header", "no header"])
    filled = history.fill(FakeMeasure())
    assert filled.recorded == {}
    assert set(filled.skipped) == set(history.shas)


def test_where_nothing_builds_the_machine_may_be_broken_and_all_is_tried_again(
    tmp_path: Path,
) -> None:
    history = History(tmp_path, [1.0, 1.0, "no header", 1.0])

    def no_compiler(number: int) -> None:
        raise BuildError("cannot start pytest: no plugin has this option")

    assert history.fill(FakeMeasure(fail=no_compiler)).recorded == {}
    mended = history.fill(FakeMeasure())
    assert set(mended.recorded) == {history.shas[0], history.shas[1], history.shas[3]}
    assert set(mended.skipped) == {history.shas[2]}
