import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from tracker.errors import ExitCode, NotFoundError, RecordError
from tracker.loop.ab import Bench
from tracker.loop.bisect import Answer, Question, bisect
from tracker.loop.bisected import bisect_document
from tracker.loop.notebook import Notebook
from tracker.loop.repository import Repository
from tracker.loop.runs import Stamp
from tracker.loop.settings import LoopSettings
from tracker.loop.worktrees import worktrees
from tracker.model import VerdictKind
from tracker.tests.loop.fake import ADD, RELU, Clock, FakeMeasure, repository
from tracker.thresholds import Thresholds

TODAY = date(2026, 11, 29)


class History:
    """A made-up history and everything needed to bisect it."""

    def __init__(self, tmp_path: Path, speeds: Sequence[float | str]) -> None:
        self.root = tmp_path / "project"
        self.shas = repository(self.root, [{RELU: speed} for speed in speeds])
        self.folder = tmp_path / "journals"
        self.trees = tmp_path / "trees"
        self.told: list[str] = []

    def bisect(
        self,
        measure: FakeMeasure,
        test: str = RELU,
        clock: Callable[[], float] | None = None,
        spacious: bool = False,
        **options: object,
    ) -> Answer:
        found = Repository(self.root)
        with worktrees(found, self.trees, LoopSettings()) as trees:
            clock = clock or Clock()
            stamp = Stamp("bisect")
            bench = Bench(trees, measure, self.folder, stamp, clock, self.told.append)
            bench = replace(bench, spacious=spacious)
            question = Question(test, self.shas[0], self.shas[-1], **options)  # type: ignore[arg-type]
            return bisect(question, bench, found, Thresholds(), TODAY)


def test_the_commit_that_lost_3_percent_is_named(tmp_path: Path) -> None:
    history = History(tmp_path, [1.0] * 6 + [1.03] * 5)
    answer = history.bisect(FakeMeasure())
    assert answer.culprits == (history.shas[6],)
    assert answer.certain
    assert answer.verdict is not None
    assert answer.verdict.kind is VerdictKind.REGRESSION
    assert answer.readings <= 5


def test_few_commits_are_checked_out(tmp_path: Path) -> None:
    history = History(tmp_path, [1.0] * 20 + [1.05] * 12)
    measure = FakeMeasure()
    history.bisect(measure)
    assert len({folder for folder, _, _ in measure.calls}) <= 2 + 6


def test_commits_that_may_be_next_are_checked_ahead_and_no_commit_is_checked_twice(
    tmp_path: Path,
) -> None:
    history = History(tmp_path, [1.0] * 6 + [1.03] * 5)
    measure = FakeMeasure()
    answer = history.bisect(measure, spacious=True)
    assert answer.culprits == (history.shas[6],)
    checks = [folder for folder, _, timing in measure.calls if not timing]
    assert len(checks) == len(set(checks))
    # Before any reading the two ends and what is read first are ready.
    first = next(n for n, line in enumerate(history.told) if line.startswith("reading"))
    assert not history.told[first + 1].startswith("checking")


def test_a_commit_ahead_that_does_not_build_is_told_when_it_is_its_turn(tmp_path: Path) -> None:
    speeds: list[float | str] = [1.0, 1.0, 1.0, 1.0, "no header", 1.05, 1.05, 1.05]
    answer = History(tmp_path, speeds).bisect(FakeMeasure(), spacious=True)
    assert len(answer.culprits) == 2
    assert answer.certain


def test_commits_that_do_not_build_are_skipped_and_told(tmp_path: Path) -> None:
    speeds: list[float | str] = [1.0, 1.0, 1.0, 1.0, "no header", 1.05, 1.05, 1.05]
    history = History(tmp_path, speeds)
    answer = history.bisect(FakeMeasure())
    assert answer.culprits == (history.shas[4], history.shas[5])
    assert answer.certain
    assert "no header" in answer.skipped[history.shas[4]]
    assert "cannot be told apart" in answer.notes[0]


def test_a_commit_without_the_test_is_skipped(tmp_path: Path) -> None:
    history = History(tmp_path, [1.0] * 4 + [1.05] * 4)
    history.shas = repository(
        tmp_path / "other", [{RELU: 1.0}, {ADD: 1.0}, {RELU: 1.0}, {RELU: 1.05}]
    )
    history.root = tmp_path / "other"
    answer = history.bisect(FakeMeasure())
    assert answer.culprits == (history.shas[3],)


def test_ends_that_do_not_differ_end_the_search(tmp_path: Path) -> None:
    history = History(tmp_path, [1.0] * 5)
    answer = history.bisect(FakeMeasure())
    assert answer.culprits == ()
    assert answer.notes == ("the two ends do not differ clearly",)


def test_ends_that_noise_left_undecided_are_measured_further_by_the_next_call(
    tmp_path: Path,
) -> None:
    history = History(tmp_path, [1.0] * 4 + [1.04] * 4)
    counts = []
    for _ in range(3):
        measure = FakeMeasure(between=0.06, seed=3)
        answer = history.bisect(measure)
        assert answer.culprits == ()
        assert "the same command measures them further" in answer.notes[0]
        counts.append(sum(timing for _, _, timing in measure.calls))
    # A made-up process leaves no journal, so the earlier pairs are measured once more here.
    assert counts == [16, 32, 48]


def test_a_large_change_is_looked_for_though_noise_leaves_the_ends_undecided(
    tmp_path: Path,
) -> None:
    history = History(tmp_path, [1.0] * 4 + [2.0] * 4)
    answer = history.bisect(FakeMeasure(between=0.25, seed=5), readings=30)
    assert answer.culprits == (history.shas[4],)


def test_an_end_that_lacks_the_test_is_an_error(tmp_path: Path) -> None:
    history = History(tmp_path, [1.0] * 5)
    with pytest.raises(NotFoundError, match="no case was measured on both"):
        history.bisect(FakeMeasure(), test=ADD)


def test_noise_costs_readings_and_is_told_as_a_probability(tmp_path: Path) -> None:
    history = History(tmp_path, [1.0] * 5 + [1.03] * 4)
    answer = history.bisect(FakeMeasure(between=0.006), readings=30)
    assert answer.culprits == (history.shas[5],)
    assert 0.95 <= answer.probability <= 1
    assert sum(answer.chances.values()) == pytest.approx(1)


@pytest.mark.parametrize("seed", [3, 5])
def test_noise_that_only_the_processes_show_costs_readings_not_the_answer(
    tmp_path: Path, seed: int
) -> None:
    # Ten times what the prior for a GPU expects: two pairs alone would be believed far too much.
    history = History(tmp_path, [1.0] * 4 + [1.08] * 4)
    answer = history.bisect(FakeMeasure(between=0.05, seed=seed), readings=30)
    assert answer.culprits == (history.shas[4],)
    assert answer.readings >= 9
    assert "undecided" in answer.notes[0]


def test_an_interrupted_search_goes_on_with_what_it_knows(tmp_path: Path) -> None:
    history = History(tmp_path, [1.0] * 12 + [1.05] * 8)

    def crash(number: int) -> None:
        if number == 18:
            raise KeyboardInterrupt

    first = FakeMeasure(fail=crash)
    with pytest.raises(KeyboardInterrupt):
        history.bisect(first)
    key = Question(RELU, history.shas[0], history.shas[-1]).key
    known = Notebook.open(history.folder / "bisect.json", "bisect", key).entries
    assert known
    second = FakeMeasure(seed=2)
    answer = history.bisect(second)
    assert answer.culprits == (history.shas[12],)
    assert answer.readings > len(known)
    whole = FakeMeasure()
    assert History(tmp_path / "whole", [1.0] * 12 + [1.05] * 8).bisect(whole).certain
    assert len(second.calls) < len(whole.calls)


def test_the_notebook_of_another_question_is_refused(tmp_path: Path) -> None:
    history = History(tmp_path, [1.0] * 4 + [1.05] * 4)
    history.folder.mkdir()
    Notebook(history.folder / "bisect.json", "bisect", "another").add(skipped=1, reason="x")
    with pytest.raises(RecordError, match="remove it to begin anew"):
        history.bisect(FakeMeasure())


def test_the_budget_of_readings_is_kept_and_the_answer_says_it_is_uncertain(tmp_path: Path) -> None:
    history = History(tmp_path, [1.0] * 12 + [1.05] * 8)
    answer = history.bisect(FakeMeasure(), readings=1)
    assert answer.readings == 1
    assert not answer.certain
    assert 0 < answer.probability < 0.95


class Timed(FakeMeasure):
    """A stand-in whose processes take 7 s each, by `now`."""

    def __init__(self, **options: float) -> None:
        super().__init__(fail=self._pass_time, **options)  # type: ignore[arg-type]
        self.now_s = 0.0

    def _pass_time(self, number: int) -> None:
        self.now_s += 7.0

    def now(self) -> float:
        return self.now_s


def test_the_time_budget_holds_while_the_ends_are_compared(tmp_path: Path) -> None:
    # To the end that is 2 checks and 16 processes: 126 s.
    history = History(tmp_path, [1.0] * 4 + [1.04] * 4)
    measure = Timed(between=0.06, seed=3)
    answer = history.bisect(measure, clock=measure.now, seconds=100.0)
    assert measure.now_s <= 100
    assert answer.culprits == ()
    assert (
        "in the 2 pairs that the time budget allowed; the same command goes on" in answer.notes[0]
    )


@pytest.mark.parametrize("seconds", [60.0, 120.0, 180.0, 240.0])
def test_the_time_budget_holds_for_the_ends_and_the_readings_together(
    tmp_path: Path, seconds: float
) -> None:
    history = History(tmp_path, [1.0] * 12 + [1.05] * 8)
    measure = Timed()
    answer = history.bisect(measure, clock=measure.now, seconds=seconds)
    assert measure.now_s <= seconds
    assert answer.verdict is not None
    assert answer.certain == (seconds >= 240)


def test_a_time_budget_for_nothing_is_told_with_what_was_measured(tmp_path: Path) -> None:
    history = History(tmp_path, [1.0] * 4 + [1.05] * 4)
    measure = Timed()
    answer = history.bisect(measure, clock=measure.now, seconds=30.0)
    assert measure.now_s <= 30
    assert answer.verdict is None
    assert "2 of the first 4 processes" in answer.notes[0]
    question = Question(RELU, history.shas[0], history.shas[-1])
    document = bisect_document(question, answer, Repository(history.root))
    assert "the time did not last for the two ends" in document.summary
    assert document.exit_code is ExitCode.UNDECIDED


def test_the_ends_are_left_as_they_are_once_the_search_has_begun(tmp_path: Path) -> None:
    history = History(tmp_path, [1.0] * 4 + [2.0] * 4)
    first = Timed(between=0.1, seed=5)
    history.bisect(first, clock=first.now, seconds=90.0)
    key = Question(RELU, history.shas[0], history.shas[-1]).key
    entries = Notebook.open(history.folder / "bisect.json", "bisect", key).entries
    begun = [entry["begun"] for entry in entries if "begun" in entry]
    assert begun == [2]
    history.told.clear()
    history.bisect(Timed(between=0.1, seed=5), readings=1)
    assert not any(line.startswith("pair 4") for line in history.told)


def test_progress_says_how_much_is_left(tmp_path: Path) -> None:
    history = History(tmp_path, [1.0] * 6 + [1.03] * 5)
    history.bisect(FakeMeasure())
    assert any(re.search(r"about \d+ more, \d+ s$", line) for line in history.told)


def test_two_changes_are_noticed(tmp_path: Path) -> None:
    history = History(tmp_path, [1.0] * 4 + [1.04] * 4 + [1.08] * 4)
    answer = history.bisect(FakeMeasure(), certainty=0.999, readings=12)
    assert any("more than one commit" in note for note in answer.notes)
