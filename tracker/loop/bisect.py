"""The commit that changed one case's speed, found between two commits by measuring few of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from math import log, log1p
from statistics import variance

from scipy.special import stdtrit

from tracker.errors import NotFoundError
from tracker.evidence import weigh
from tracker.loop.ab import Bench, Contest, Outcome, compare_commits
from tracker.loop.durations import told
from tracker.loop.fresh import MeasureError
from tracker.loop.notebook import Notebook
from tracker.loop.repository import Repository, short
from tracker.loop.search import Level, Reading, Search, Spread
from tracker.loop.turns import Budget, OutOfTimeError
from tracker.loop.worktrees import BuildError
from tracker.model import CHANGES, Checkout, Run, fingerprint
from tracker.sides import Side
from tracker.thresholds import Thresholds
from tracker.units import counted
from tracker.verdict import Verdict

STATE = "bisect.json"
_END_PAIRS = 8
_MOST_END_PAIRS = 40
# Standard errors of the shift from which on a search makes sense, whatever the verdict.
_PLAIN = 3.0
# A loss that the ends would have shown: below it they are called equal.
_RESOLUTION = 0.01
# Of the time budget, at most this much for the ends.
_END_SHARE = 0.5
_STEP_PAIRS = 2
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Question:
    """Which commit after `good`, up to `bad`, changed what `test` measures.

    `certainty`: stop when one commit, or one group that cannot be told apart, is this likely.
    `readings` and `seconds` bound the work, that on the two ends included.
    """

    test: str
    good: str
    bad: str
    first_parent: bool = True
    certainty: float = 0.95
    readings: int = 40
    seconds: float | None = None

    @property
    def key(self) -> str:
        """Stable name of the question: what is measured between what."""
        return fingerprint([self.test, self.good, self.bad, self.first_parent])


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found. `culprits` are the commits that may have done it, most often one.

    `probability` is theirs together, `certain` whether it is as high as was asked for. `levels` are
    the last shifts measured (logarithm of time over that of the good side), `skipped` commits that
    could not be measured with the reason. `verdict` compares the two ends, None where the time did
    not last for that.
    """

    verdict: Verdict | None
    line: tuple[str, ...]
    culprits: tuple[str, ...] = ()
    probability: float = 0.0
    certain: bool = False
    chances: Mapping[str, float] = field(default_factory=dict)
    levels: Mapping[str, Level] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    readings: int = 0
    notes: tuple[str, ...] = ()


def bisect(
    question: Question,
    bench: Bench,
    repository: Repository,
    thresholds: Thresholds,
    today: date,
) -> Answer:
    """Return which commit changed the speed, with its probability.

    Goes on where an interrupted search of the same question stopped: readings are in the notebook
    in `bench.folder`, processes that finished in their journals there. Two ends that noise left
    undecided are measured further by each call. Commits that do not build or lack the test are
    skipped. Raises BuildError when an end does not build, NotFoundError when an
    end lacks the test or nothing lies between.
    """
    line = repository.line(question.good, question.bad, first_parent=question.first_parent)
    if not line:
        raise NotFoundError(
            f"cannot bisect: no commit lies between {question.good[:12]} and {question.bad[:12]}"
        )
    time = _Time(bench.clock, question.seconds)
    steps = _Steps(question, bench, thresholds, today, (question.good, *line), time)
    notebook = Notebook.open(bench.folder / STATE, "bisect", question.key)
    bench.progress(f"{counted(len(line), 'commit')}; first the two ends")
    before = sum("ends" in entry for entry in notebook.entries)
    pairs = min(_END_PAIRS * (1 + before), _MOST_END_PAIRS)
    try:
        middle = (len(line) // 2,) if len(line) > 1 else ()
        budget = _end_budget(pairs, time, notebook)
        ends = steps.measure(0, len(line), "ends", budget, middle)
    except OutOfTimeError as error:
        return Answer(None, line, notes=(f"the two ends: {error}",))
    verdict, step = ends.judged[0].verdict, level(ends)
    if verdict.kind not in CHANGES and abs(step.shift) < _PLAIN * step.error:
        return _no_difference(verdict, line, notebook, pairs, ends.pairs)
    search = Search(len(line), step, spread(ends))
    _recall(search, notebook)
    if _begun(notebook) is None:
        notebook.add(begun=ends.pairs)
    # A reading is a block of pairs as those of the ends were.
    steps.narrow(search, notebook, time.elapsed() * _STEP_PAIRS / ends.pairs)
    return _answer(search, notebook, steps.shas, verdict, question)


@dataclass(frozen=True, slots=True)
class _Time:
    """The seconds of one call, None for as many as it takes; it begins when this is made."""

    clock: Callable[[], float]
    seconds: float | None
    begun: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "begun", self.clock())

    def elapsed(self) -> float:
        """Return the seconds that have passed."""
        return self.clock() - self.begun

    def share(self, part: float = 1.0) -> float | None:
        """Return a part of the seconds that are left."""
        return None if self.seconds is None else part * max(0.0, self.seconds - self.elapsed())


def _end_budget(pairs: int, time: _Time, notebook: Notebook) -> Budget:
    """Return what the ends may take; once the search has begun, nothing more than they have."""
    return Budget(pairs, time.share(_END_SHARE), time.share(), until=_begun(notebook))


def _begun(notebook: Notebook) -> int | None:
    """Return with how many pairs of the ends the search began, None where it has not."""
    found = [int(entry["begun"]) for entry in notebook.entries if "begun" in entry]
    return found[-1] if found else None


def _no_difference(
    verdict: Verdict, line: tuple[str, ...], notebook: Notebook, pairs: int, measured: int
) -> Answer:
    note = "the two ends do not differ clearly"
    hidden = verdict.detectable is None or verdict.detectable > _RESOLUTION
    if hidden and measured < pairs:
        note += f" in the {measured} pairs that the time budget allowed; the same command goes on"
    elif hidden and pairs < _MOST_END_PAIRS:
        notebook.add(ends=pairs)
        note += "; the same command measures them further"
    return Answer(verdict, line, notes=(note,))


@dataclass(frozen=True, slots=True)
class _Steps:
    """Measures pairs of commits for one question; positions count from the good end, 0."""

    question: Question
    bench: Bench
    thresholds: Thresholds
    today: date
    shas: tuple[str, ...]
    time: _Time

    def measure(
        self, against: int, at: int, name: str, budget: Budget, ahead: Sequence[int] = ()
    ) -> Outcome:
        """Compare two commits; those `ahead` are got ready meanwhile where that costs no time."""
        tests, free = (self.question.test,), self.bench.spacious
        # A build takes long: none is made for a commit that may not be needed.
        likely = ahead if free and not self.bench.trees.settings.build else ()
        contest = Contest(
            self.shas[against],
            self.shas[at],
            tests,
            budget=budget,
            ahead=tuple(self.shas[position] for position in likely),
        )
        bench = replace(self.bench, folder=self.bench.folder / name)
        return compare_commits(contest, bench, self.thresholds, self.today)

    def narrow(self, search: Search, notebook: Notebook, each: float) -> None:
        """Read commit after commit until certain, or until the budget is spent.

        `each` is how many seconds a reading is expected to take before the first has been taken.
        """
        begun, taken = self.bench.clock(), 0
        while search.best()[1] < self.question.certainty:
            at = search.next()
            each = (self.bench.clock() - begun) / taken if taken else each
            if at is None or len(search.readings) >= self.question.readings:
                return
            left = self.time.share()
            if left is not None and each > left:
                self.bench.progress("the time budget is spent")
                return
            self._tell(search, at, each)
            try:
                self._read(search, notebook, at)
            except OutOfTimeError as error:
                self.bench.progress(str(error))
                return
            taken += 1

    def _read(self, search: Search, notebook: Notebook, at: int) -> None:
        number = len(search.readings) + len(search.skipped)
        against = search.last_good()
        budget = Budget(_STEP_PAIRS, limit_s=self.time.share())
        try:
            ahead = search.ahead(against, at, self.question.certainty)
            outcome = self.measure(against, at, f"step-{number}", budget, ahead)
            found, differ = level(outcome), spread(outcome)
        except (BuildError, NotFoundError, MeasureError) as error:
            self.bench.progress(f"skipping {self.shas[at][:12]}: {error}")
            search.skipped.add(at)
            notebook.add(skipped=at, reason=str(error))
            return
        reading = Reading(against, at, found, outcome.pairs, differ)
        search.readings.append(reading)
        notebook.add(
            against=against,
            at=at,
            shift=found.shift,
            error=found.error,
            runs=reading.runs,
            squares=differ.squares,
            degrees=differ.degrees,
        )

    def _tell(self, search: Search, at: int, each: float) -> None:
        group, chance = search.best()
        left = search.steps_left(self.question.certainty)
        time_left = f", {told(left * each)}" if left * each >= 1 else ""
        self.bench.progress(
            f"reading {self.shas[at][:12]}, {at} of {search.count}; likeliest so far "
            f"{short([self.shas[i] for i in group])} at {chance:.0%}; about {left} more{time_left}"
        )


def level(outcome: Outcome) -> Level:
    """Return the shift of head against base by time, as a logarithm, with its standard error.

    Raises NotFoundError where a side has no time, as after a failed correctness check.
    """
    evidence = weigh(_side(outcome.base_runs), _side(outcome.head_runs), _CONFIDENCE)
    if not evidence:
        case = outcome.judged[0].verdict.case.label
        raise NotFoundError(f"cannot compare {case}: a side has no time")
    comparison = evidence[0].comparison
    low, high = (log1p(end) for end in comparison.interval)
    degrees = min(comparison.noise.degrees, 1e9)
    error = (high - low) / 2 / float(stdtrit(degrees, (1 + _CONFIDENCE) / 2))
    return Level(log1p(comparison.effect), error)


def spread(outcome: Outcome) -> Spread:
    """Return how the processes of each side differed in their medians."""
    found = Spread()
    for side in (outcome.base_runs, outcome.head_runs):
        summaries = [result.summary for run in side for result in run.results]
        logs = [log(summary.median_s) for summary in summaries if summary and summary.median_s > 0]
        if len(logs) > 1:
            found += Spread(variance(logs) * (len(logs) - 1), len(logs) - 1)
    return found


def _side(runs: Sequence[Run]) -> Side:
    first, *rest = runs
    repeats = tuple(run.results[0] for run in rest)
    return Side(first.results[0], first.environment, Checkout(), first.device, repeats=repeats)


def _recall(search: Search, notebook: Notebook) -> None:
    for entry in notebook.entries:
        if "skipped" in entry:
            search.skipped.add(int(entry["skipped"]))
        elif "shift" in entry:
            found = Level(float(entry["shift"]), float(entry["error"]))
            differ = Spread(float(entry.get("squares", 0.0)), int(entry.get("degrees", 0)))
            place = int(entry["against"]), int(entry["at"])
            search.readings.append(Reading(*place, found, int(entry.get("runs", 0)), differ))


def _answer(
    search: Search,
    notebook: Notebook,
    shas: Sequence[str],
    verdict: Verdict,
    question: Question,
) -> Answer:
    group, probability = search.best()
    reasons = {int(e["skipped"]): str(e["reason"]) for e in notebook.entries if "skipped" in e}
    chances = search.probabilities()
    return Answer(
        verdict=verdict,
        line=tuple(shas[1:]),
        culprits=tuple(shas[position] for position in group),
        probability=probability,
        certain=probability >= question.certainty,
        chances={sha: float(chance) for sha, chance in zip(shas[1:], chances, strict=True)},
        levels={shas[reading.at]: reading.level for reading in search.readings},
        skipped={shas[position]: why for position, why in reasons.items()},
        readings=len(search.readings),
        notes=_notes(search, shas, group, verdict),
    )


def _notes(
    search: Search, shas: Sequence[str], group: Sequence[int], verdict: Verdict
) -> tuple[str, ...]:
    notes = []
    if verdict.kind not in CHANGES:
        notes.append(
            "noise leaves the two ends undecided: the probabilities hold if they differ at all"
        )
    if odd := sorted({reading.at for reading in search.odd()}):
        notes.append(
            f"{short([shas[i] for i in odd])} fits neither level: more than one commit may have "
            "changed the speed; bisect each part alone"
        )
    if len(group) > 1:
        notes.append(f"{len(group)} commits cannot be told apart: those between do not build")
    return tuple(notes)
