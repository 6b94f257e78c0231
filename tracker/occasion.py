"""What a run was measured for: the suite of a commit, or something else, which its notes say.

A person who asks for the newest run means the newest of the suite. A study measures what no suite
has, at sizes of its own; a part measured again or in turns belongs to another run; what was
measured later than its commit says nothing of the newest one.
"""

from dataclasses import dataclass

from tracker.errors import NotFoundError
from tracker.queries import RunInfo, find_run, runs
from tracker.store import Store

AGAIN = "measured again"
IN_TURNS = "measured in turns with another commit"
LATER = "measured later than its commit"
AS_BASE = "measured as a base for the selection"
# What `python -m perftests.studies` notes; the layers share no code.
STUDY = "studies: "
_OTHERS = (AGAIN, IN_TURNS, LATER, AS_BASE, STUDY)
_PAGE = 50


@dataclass(frozen=True, slots=True)
class Meant:
    """The run that a person means.

    `passed_over` are newer ones that are none of the suite, newest first; `repeats` those of them
    that measured some of its cases again, oldest first.
    """

    run: RunInfo
    passed_over: tuple[RunInfo, ...] = ()
    repeats: tuple[RunInfo, ...] = ()

    @property
    def told(self) -> tuple[str, ...]:
        """What there is to say of the choice."""
        others = [run for run in self.passed_over if run not in self.repeats]
        lines = [f"judged with {len(self.repeats)} runs that measured cases again"]
        if others:
            word = "1 run is" if len(others) == 1 else f"{len(others)} runs are"
            lines.append(
                f"the newest run of the suite is judged; {word} newer: {others[0].run_id}, "
                f"{purpose(others[0])} (bandwatch check {others[0].run_id[:12]} judges it)"
            )
        return tuple(lines if self.repeats else lines[1:])


def purpose(run: RunInfo) -> str | None:
    """Return the note that says what else than the suite a run was for, None for the suite."""
    return next((note for note in run.notes if note.startswith(_OTHERS)), None)


def meant(store: Store, reference: str, gpu_model: str | None = None) -> Meant:
    """Return the run that `latest`, a commit or a run id stands for; an id means that very run.

    Raises NotFoundError for none, and where the newest is asked for and none is of the suite.
    """
    named = find_run(store, reference, gpu_model=gpu_model)
    latest = reference == "latest"
    if not latest and named.run_id.startswith(reference):
        return Meant(named)
    passed: list[RunInfo] = []
    sha = None if latest else named.sha
    while found := runs(store, gpu_model=gpu_model, sha=sha, limit=_PAGE, offset=len(passed)):
        for run in found:
            if purpose(run) is None:
                return Meant(run, tuple(passed), _repeats(run, passed))
            passed.append(run)
    if not latest:
        return Meant(named)
    raise NotFoundError(
        f"cannot find a run of the suite in {store.name}: the newest of its {len(passed)} runs, "
        f"{named.run_id}, is another ({purpose(named)}); name it to judge it"
    )


def _repeats(run: RunInfo, newer: list[RunInfo]) -> tuple[RunInfo, ...]:
    """Return what measured some of a run's cases again in fresh processes, oldest first.

    Two states of a changed tree may be called alike: there each run stands for itself.
    """
    if run.checkout.dirty:
        return ()
    return tuple(
        other
        for other in reversed(newer)
        if purpose(other) == AGAIN
        and not other.checkout.dirty
        and other.sha == run.sha
        and other.device.uuid == run.device.uuid
        and other.environment_key == run.environment_key
    )
