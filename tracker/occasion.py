"""What a run was measured for: the suite of a commit, or something else, which its notes say.

A person who asks for the newest run means the newest of the suite. A study measures what no suite
has, at sizes of its own; a part measured again or in turns belongs to another run; what was
measured later than its commit says nothing of the newest one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import shorten

from tracker.errors import NotFoundError
from tracker.queries import RunInfo, find_run, runs
from tracker.store import Store
from tracker.units import counted

AGAIN = "measured again"
IN_TURNS = "measured in turns with another commit"
LATER = "measured later than its commit"
AS_BASE = "measured as a base for the selection"
SUITE = "suite"
# How the note of a run begins that another tool measured.
IMPORTED = "imported from "
# What `python -m perftests.studies` notes; the layers share no code.
STUDY = "studies: "
# How such a note begins, and what a table calls it.
_OTHERS = {
    AGAIN: "repeat",
    IN_TURNS: "turns",
    LATER: "backfill",
    AS_BASE: "base",
    STUDY: "study",
}
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
    def left_out(self) -> tuple[RunInfo, ...]:
        """The newer runs that count for nothing here, newest first."""
        return tuple(run for run in self.passed_over if run not in self.repeats)

    @property
    def told(self) -> tuple[str, ...]:
        """What there is to say of the choice where the run is judged."""
        again = counted(len(self.repeats), "run")
        lines = [f"judged with {again} that measured cases again"]
        if others := self.left_out:
            lines.append(
                f"the newest run of the suite is judged; {_counted(others, 'run')} newer: "
                f"{_first(others)} (bandwatch check {others[0].run_id[:12]} judges it)"
            )
        return tuple(lines if self.repeats else lines[1:])

    @property
    def named(self) -> tuple[str, ...]:
        """What there is to say of the choice where the run alone is shown or compared."""
        if not self.passed_over:
            return ()
        others = self.passed_over
        newer = f"{_counted(others, 'newer one')} left out: {_first(others)}"
        return (f"{self.run.run_id} is the newest run of the suite; {newer}",)


def _counted(others: tuple[RunInfo, ...], word: str) -> str:
    return f"1 {word} is" if len(others) == 1 else f"{len(others)} {word}s are"


def _first(others: tuple[RunInfo, ...]) -> str:
    # A study's note names all its parts, and a record may say anything.
    what = shorten(purpose(others[0]) or "", 160, placeholder="...")
    return f"{others[0].run_id}, {what}"


def purpose(run: RunInfo) -> str | None:
    """Return the note that says what else than the suite a run was for, None for the suite."""
    return next((note for note in run.notes if note.startswith(tuple(_OTHERS))), None)


def in_a_word(note: str | None) -> str:
    """Return what a run was for, as `purpose` has it, in a word for a table."""
    return next((word for start, word in _OTHERS.items() if note and note.startswith(start)), SUITE)


def first_of_suite(found: Iterable[RunInfo]) -> RunInfo | None:
    """Return the first of these runs that is of the suite, None where none is."""
    return next((run for run in found if purpose(run) is None), None)


def newest(
    store: Store,
    *,
    gpu_model: str | None = None,
    branch: str | None = None,
    sha: str | None = None,
    dirty: bool | None = None,
    but: RunInfo | None = None,
) -> Meant | None:
    """Return the newest run of the suite among those that match, None where none is of the suite.

    Every default goes through here: what a command or a page shows where no run is named. `but` is
    a run that is not looked at.
    """
    passed: list[RunInfo] = []
    seen = 0
    while found := runs(
        store,
        gpu_model=gpu_model,
        branch=branch,
        sha=sha,
        dirty=dirty,
        limit=_PAGE,
        offset=seen,
    ):
        seen += len(found)
        for run in found:
            if but is not None and run.number == but.number:
                continue
            if purpose(run) is None:
                return Meant(run, tuple(passed), _repeats(run, passed))
            passed.append(run)
    return None


def meant(store: Store, reference: str, gpu_model: str | None = None) -> Meant:
    """Return the run that `latest`, a commit or a run id stands for; an id means that very run.

    Raises NotFoundError for none, and where the newest is asked for and none is of the suite.
    """
    named = find_run(store, reference, gpu_model=gpu_model)
    latest = reference == "latest"
    if not latest and named.run_id.startswith(reference):
        return Meant(named)
    found = newest(store, gpu_model=gpu_model, sha=None if latest else named.sha)
    if found is not None:
        return found
    if not latest:
        return Meant(named)
    where = f" on {gpu_model}" if gpu_model else ""
    raise NotFoundError(
        f"cannot find a run of the suite{where} in {store.name}: the newest run, {named.run_id}, "
        f"is another ({purpose(named)}); name it to have it"
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
