"""What a change is compared with before it is merged: results of its merge base.

They come from the local store, else from the team's, which is only read. Where neither has any, the
line of all ancestors serves, and it is said.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tracker import git
from tracker.baseline import usable
from tracker.config import StoreChoice
from tracker.errors import GitError, RecordError, StoreError
from tracker.lineage import fork_of, line_of
from tracker.model import Checkout, Run, fingerprint
from tracker.occasion import AS_BASE
from tracker.queries import RunInfo, candidates, load_run, results, runs
from tracker.store import Store
from tracker.units import counted

MAIN_BRANCHES = ("origin/HEAD", "origin/main", "main", "origin/master", "master")
_COPIED = 12


def base_of(checkout: Checkout, root: Path) -> str | None:
    """Return the commit that a branch or a pull request left the main line at.

    None on the main line itself, outside a checkout and where git knows no main branch.
    """
    if fork := fork_of(checkout):
        return fork
    commit = checkout.commit
    if commit is None:
        return None
    for branch in MAIN_BRANCHES:
        try:
            found = git.merge_base(branch, commit.sha, root)
        except GitError:
            continue
        if found is not None:
            return found if found != commit.sha else None
    return None


def below(checkout: Checkout, root: Path) -> str | None:
    """Return what is to be measured as the base: the merge base, else the commit below."""
    if base := base_of(checkout, root):
        return base
    commit = checkout.commit
    if commit is None or checkout.dirty:
        return commit.sha if commit else None
    return commit.parents[0] if commit.parents else None


@dataclass(frozen=True, slots=True)
class Selection:
    """What this session measures, so that the base is measured alike.

    `paths` as given to pytest, relative to the project; `words` are further flags.
    """

    paths: tuple[str, ...] = ()
    keyword: str | None = None
    words: tuple[str, ...] = ()
    cpu: bool = False

    def note(self, machine: Sequence[str]) -> str:
        """Return what a run of the base that was measured for this selection carries.

        `machine` are its devices and driver: on others it is measured anew.
        """
        key = fingerprint([list(self.paths), self.keyword, list(self.words), list(machine)])
        return f"{AS_BASE} {key}"


def silent(text: str) -> None:
    """Tell nobody how far the work is."""
    del text


@dataclass(frozen=True, slots=True)
class Standing:
    """The commits that a run is judged against, newest first, and in words what they are."""

    line: Sequence[str] | None
    told: str | None = None


def standing(
    store: Store,
    run: RunInfo,
    root: Path,
    *,
    here: str = "the store",
    team: StoreChoice | None,
    tried: bool = False,
) -> Standing:
    """Return what a stored run of a branch is judged against.

    Results of the merge base that only the team's store has are copied into `store`. `tried`: it
    was to be measured, and what became of that is told already.
    """
    base = base_of(run.checkout, root)
    if base is None:
        return Standing(line_of(run.checkout, root))
    line = line_from(base, root)
    wanted = {result.case.fingerprint for result in results(store, run, measurements=False)}
    local = covered(store, run, line, wanted)
    copied, problem = 0, ""
    if team is not None and local != wanted:
        copied, problem = _copy(store, run, line, team)
    found = covered(store, run, line, wanted) if copied else local
    if not found:
        missing = f"no comparable result of the merge base {base[:12]} in {here}{problem}"
        advice = "" if tried else "; --benchmark-base measures the merge base"
        whole = line_of(run.checkout, root)
        any_ancestor = whole is None or covered(store, run, whole, wanted)
        instead = f"judged against {'the nearest ancestor' if any_ancestor else 'nothing'}{advice}"
        return Standing(whole, f"{missing}: {instead}")
    parts = [f"{_cases(local)} from {here}"] if local else []
    parts += [f"{_cases(found - local)} from {team.shown}"] if team and found > local else []
    parts += [f"{_cases(wanted - found)} without a result"] if found != wanted else []
    told = f"judged against the merge base {base[:12]} or what stands before it"
    return Standing(line, f"{told}: {', '.join(parts)}{problem}")


def covered(
    store: Store, run: RunInfo, line: Sequence[str], wanted: Collection[str]
) -> frozenset[str]:
    """Return the cases of which a comparable run on a line of commits has a usable result."""
    found: set[str] = set()
    for info in candidates(store, run, ancestors=tuple(line)):
        missing = sorted(set(wanted) - found)
        if info.sha == run.sha or not missing:
            continue
        known = results(store, info, cases=missing, measurements=False)
        found |= {result.case.fingerprint for result in known if usable([result])}
    return frozenset(found)


def line_from(base: str, root: Path) -> tuple[str, ...]:
    """Return a commit and what stands before it, newest first."""
    try:
        return (base, *git.ancestors(root, base))
    except GitError:  # a shallow clone may know its id alone
        return (base,)


def _copy(store: Store, run: RunInfo, line: Sequence[str], team: StoreChoice) -> tuple[int, str]:
    """Copy what a run is judged against from the team's store; return how many, else why none."""
    try:
        with Store.open(team.url, read_only=True) as shared:
            infos = candidates(
                shared, replace(run, number=-1), ancestors=tuple(line), limit=_COPIED
            )
            found = [load_run(shared, info.run_id) for info in infos if info.sha in line]
        for known in found:
            store.record(known)
    except (StoreError, RecordError) as error:
        return 0, f"; the team's store {team.shown} cannot be read: {error}"
    return len(found), "" if found else f", none in {team.shown}"


def known_of(store: Store, base: str, devices: Collection[str], note: str) -> RunInfo | None:
    """Return a run of the base on one of the devices that covers what is wanted, None without one.

    It does when it is of the whole suite, or carries the note of an earlier wish for the same on
    this machine.
    """
    return next(
        (
            info
            for info in runs(store, sha=base, dirty=False)
            if note in info.notes or (info.complete and info.gpu_model in devices)
        ),
        None,
    )


def noted(run: Run, note: str) -> Run:
    """Return the run with the note of the wish that it was measured for."""
    return replace(run, notes=(*run.notes, note))


def _cases(found: Collection[str]) -> str:
    return counted(len(found), "case")
