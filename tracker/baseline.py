"""Which earlier run a new one is judged against, and the rule that picked it, in words.

The newest clean run of an ancestor commit, else the newest earlier run of this commit; on the same
GPU model in a comparable environment. A throttled, shared, incorrect or dirty run is never one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tracker.model import Result, Status
from tracker.units import counted


class Exclusion(StrEnum):
    """Why a candidate may not be a baseline."""

    OTHER_MODEL = "another GPU model"
    OTHER_ENVIRONMENT = "another environment"
    UNRELATED = "a commit that is no ancestor"
    UNKNOWN_COMMIT = "outside a checkout"
    DIRTY = "uncommitted changes"
    THROTTLED = "throttled"
    SHARED = "a shared device"
    INCORRECT = "incorrect or failed"


@dataclass(frozen=True, slots=True)
class Candidate:
    """An earlier result, or a whole run, that might be a baseline.

    `run_id` is what the caller gets back; `finished` orders runs of one commit (later text is
    larger).
    """

    run_id: str
    sha: str | None
    finished: str
    gpu_model: str
    environment: str
    device: str = ""
    dirty: bool = False
    throttled: bool = False
    shared: bool = False
    incorrect: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be judged: its commit and environment, and its commit's ancestors, newest first.

    `ancestors` start with the parent. For a branch or a pull request, pass the merge base and its
    ancestors, and name it as `fork`; for changes that are not committed, the commit `below` first.
    """

    sha: str | None
    ancestors: Sequence[str]
    gpu_model: str
    environment: str
    device: str = ""
    fork: str | None = None
    below: str | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The baseline's run (None without one), the rule that picked it, and what was passed over."""

    run_id: str | None
    rule: str
    distance: int | None = None
    excluded: tuple[tuple[str, Exclusion], ...] = ()


def choose(candidates: Iterable[Candidate], wanted: Wanted) -> Choice:
    """Return the baseline for `wanted` among `candidates`, in any order, `wanted` itself left out.

    Among runs of one commit, one of the same device goes before a newer one of another board.
    """
    depth = {sha: distance for distance, sha in enumerate(wanted.ancestors, start=1)}
    fit: list[tuple[int, Candidate]] = []
    excluded: list[tuple[str, Exclusion]] = []
    for candidate in candidates:
        reason = _exclusion(candidate, wanted, depth)
        if reason is not None:
            excluded.append((candidate.run_id, reason))
        else:
            fit.append(
                (0 if _same_commit(candidate, wanted) else depth[candidate.sha or ""], candidate)
            )
    if not fit:
        return Choice(None, _no_baseline(excluded), excluded=tuple(excluded))
    ancestors = [pair for pair in fit if pair[0] > 0]
    distance = min(d for d, _ in ancestors or fit)
    best = max(
        (c for d, c in fit if d == distance), key=lambda c: (c.device == wanted.device, c.finished)
    )
    return Choice(best.run_id, _rule(best, distance, wanted), distance, tuple(excluded))


def usable(results: Iterable[Result]) -> bool:
    """Return whether all may stand in a baseline: none throttled, shared, incorrect or failed."""
    return all(not (throttled(r) or shared(r) or incorrect(r)) for r in results)


def throttled(result: Result) -> bool:
    """Return whether the device throttled while the result was measured."""
    return result.status is Status.THROTTLED


def shared(result: Result) -> bool:
    """Return whether another process used the device before, during or after."""
    states = (result.before, result.during, result.after)
    return any(state is not None and bool(state.other_processes) for state in states)


def incorrect(result: Result) -> bool:
    """Return whether the result failed or its time may not be trusted at all."""
    return result.status not in {Status.OK, Status.NOISY, Status.THROTTLED}


def _same_commit(candidate: Candidate, wanted: Wanted) -> bool:
    return candidate.sha == wanted.sha


def _exclusion(candidate: Candidate, wanted: Wanted, depth: dict[str, int]) -> Exclusion | None:
    checks = (
        (candidate.gpu_model != wanted.gpu_model, Exclusion.OTHER_MODEL),
        (candidate.environment != wanted.environment, Exclusion.OTHER_ENVIRONMENT),
        (candidate.sha is None and wanted.sha is not None, Exclusion.UNKNOWN_COMMIT),
        (not _same_commit(candidate, wanted) and candidate.sha not in depth, Exclusion.UNRELATED),
        (candidate.dirty, Exclusion.DIRTY),
        (candidate.throttled, Exclusion.THROTTLED),
        (candidate.shared, Exclusion.SHARED),
        (candidate.incorrect, Exclusion.INCORRECT),
    )
    return next((reason for failed, reason in checks if failed), None)


def _rule(best: Candidate, distance: int, wanted: Wanted) -> str:
    if best.sha is None:
        return f"newest earlier run outside a checkout ({best.run_id})"
    if distance == 0:
        return f"newest earlier run of this commit, {best.sha[:12]} ({best.run_id})"
    where = _where(best.sha, distance, wanted)
    return f"newest clean run of {where}, {best.sha[:12]} ({best.run_id})"


def _where(sha: str, distance: int, wanted: Wanted) -> str:
    """Return in words where an ancestor stands; what is before a merge base is counted from it."""
    if sha == wanted.below:
        return "the commit below the changes"
    if sha == wanted.fork:
        return "the merge base"
    if wanted.fork in wanted.ancestors:
        before = distance - 1 - wanted.ancestors.index(wanted.fork)
        return f"the ancestor {counted(before, 'commit')} before the merge base"
    return "the parent commit" if distance == 1 else f"the ancestor {distance} commits back"


_PASSED_OVER = "no baseline: of "


def all_elsewhere(rule: str) -> bool:
    """Return whether a rule says of all earlier runs that they are of another environment."""
    runs, _, found = rule.partition(" earlier runs, ")
    told = f"{runs.removeprefix(_PASSED_OVER)} with {Exclusion.OTHER_ENVIRONMENT}"
    return runs.startswith(_PASSED_OVER) and found == told


def _no_baseline(excluded: list[tuple[str, Exclusion]]) -> str:
    if not excluded:
        return "no baseline: the store holds no earlier run of this case"
    counts = {reason: sum(r is reason for _, r in excluded) for reason in Exclusion}
    found = ", ".join(f"{count} with {reason.value}" for reason, count in counts.items() if count)
    return f"{_PASSED_OVER}{len(excluded)} earlier runs, {found}"
