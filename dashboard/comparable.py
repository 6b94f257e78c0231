"""Why a run can or cannot be compared with another one, in sentences."""

from tracker.queries import RunInfo
from tracker.sides import environment_difference

# Statuses that keep a result out of every comparison.
_UNFIT = ("throttled", "incorrect", "error", "no_sample", "over_peak")


def obstacles(run: RunInfo, other: RunInfo) -> list[str]:
    """Return what keeps the two from being compared, empty where nothing does."""
    if run.gpu_model != other.gpu_model:
        return [f"another GPU model: {run.gpu_model}, not {other.gpu_model}"]
    found = [
        f"another environment: {difference}"
        for difference in environment_difference(other.environment, run.environment)
    ]
    if run.checkout.dirty:
        found.append("measured with uncommitted changes: it is never a baseline")
    if run.demo != other.demo:
        found.append("recorded demo data is compared with demo data only")
    for status in _UNFIT:
        if count := run.statuses.get(status, 0):
            cases = "1 case is" if count == 1 else f"{count} cases are"
            found.append(f"{cases} {status.replace('_', ' ')}: left out of every comparison")
    return found


def remarks(run: RunInfo, other: RunInfo) -> list[str]:
    """Return what to know of a comparison that is possible."""
    found = []
    if run.device.uuid != other.device.uuid:
        found.append("another board of the same model: judged by the fraction of its own copy")
    if not run.complete:
        found.append("a part of the suite: cases that it lacks are not counted as vanished")
    if run.thinned:
        found.append("its measurements were pruned: summaries only")
    return found
