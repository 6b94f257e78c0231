"""`bandwatch triage`: what people decide on change points. Everything stays on record."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from tracker.cli.decisions import end_of_day, show_day, who_and_why
from tracker.cli.options import report_command
from tracker.cli.waive import revoke, waive, waivers
from tracker.config import Config
from tracker.errors import NotFoundError
from tracker.forgiven import has_ended
from tracker.loop.changes import Change, changes, survey
from tracker.loop.notify import AUTHOR
from tracker.queries import find_run
from tracker.report.columns import show_change, show_rate, show_sha
from tracker.report.document import Column, Document, Kind, Row, Table, Tone
from tracker.report.formats import Format
from tracker.report.hidden import hidden
from tracker.store import Store
from tracker.store.people import Triage, TriageState, add_triage, triage_states

FIXED = "fixed"
EXPIRED = "expired"
RETRACTED = "retracted"
OPEN = (
    *(TriageState.NEW.value, TriageState.REOPENED.value, TriageState.ACKNOWLEDGED.value),
    EXPIRED,
)
STATES = ("open", "all", *(state.value for state in TriageState), FIXED, EXPIRED, RETRACTED)
# A level that was accepted for good would never be looked at again.
ACCEPTED_DAYS = 180
COLUMNS = (
    Column("state", "state", Kind.WORD),
    Column("case", "case", Kind.CODE),
    Column("bandwidth_change", "change", Kind.NUMBER, show_change),
    Column("before_bytes_per_s", "GB/s before", Kind.NUMBER, show_rate, drop=3),
    Column("after_bytes_per_s", "after", Kind.NUMBER, show_rate, drop=3),
    Column("commit", "commit", Kind.WORD, show_sha),
    Column("gpu_model", "on", Kind.TEXT, drop=1),
    Column("author", "who", Kind.TEXT, drop=2),
    Column("expires_at", "until", Kind.WORD, show_day, drop=4),
    Column("note", "why", Kind.TEXT),
    *(Column(key, None) for key in ("fingerprint", "previous_commit", "p_value")),
)
Said = dict[tuple[str, str, str], Triage]


@click.group("triage", short_help="Decide on change points; waive cases.")
def command() -> None:
    """List change points and note what people decide on them, with author and reason.

    An accepted change and a waived case pass the gate until their last day.

    Nothing is overwritten: a later decision stands beside the earlier ones.

    Example: bandwatch triage list
    """


@command.command("list", short_help="Show change points with their states.")
@click.option("--branch", default="main", show_default=True, help="The branch that is watched.")
@click.option("--gpu", metavar="MODEL", help="Only this GPU model.")
@click.option(
    "--state",
    type=click.Choice(STATES),
    default="open",
    show_default=True,
    help="Only change points in this state.",
)
@report_command
def list_(*, branch: str, gpu: str | None, state: str, form: Format, config: Config) -> Document:
    """Show the change points of a branch, the largest first; by default those that are open.

    Open is what is new, reopened, acknowledged or accepted until a day that is over. Retracted is
    what was told of and more runs deny.

    Example: bandwatch triage list --state accepted
    """
    del form
    with Store.open(config.store.url, read_only=True) as store:
        now, said = survey(store, branch, gpu), triage_states(store, {AUTHOR})
        told = triage_states(store).values()
    found = [*now.changes, *now.gone(told)]
    wanted = {"open": OPEN, "all": STATES}.get(state, (state,))
    kept = [change for change in found if _state(change, said) in wanted]
    kept.sort(key=lambda change: -abs(change.effect))
    rest = len(found) - len(kept)
    others = hidden(rest, f"{rest} in other states", "--state all")
    return _document(kept, said, "; ".join(filter(None, (_counted(len(kept)), others))))


def _action(name: str, state: TriageState, told: str) -> None:
    """Add the command that puts change points into a state."""

    @command.command(name, short_help=told, help=f"{told}\n\n{_HELP}\n\n{_EXAMPLE.format(name)}")
    @click.argument("commit")
    @click.argument("case", nargs=-1)
    @click.option("--note", required=True, metavar="TEXT", help="Why. It stays on record.")
    @click.option("--author", metavar="NAME", help="Who decides.  [default: git's user.name]")
    @click.option("--branch", default="main", show_default=True, help="The branch of the change.")
    @click.option("--gpu", metavar="MODEL", help="Only on this GPU model.")
    @click.option(
        "--until", type=click.DateTime(["%Y-%m-%d"]), metavar="DATE", help=_UNTIL.get(state, _ENDS)
    )
    @report_command
    def act(*, form: Format, config: Config, **given: Any) -> Document:
        del form
        return _note_all(config, state, **given)


_ENDS = "The last day that this holds.  [default: no end]"
_UNTIL = {
    TriageState.ACCEPTED: f"The last day that this holds.  [default: in {ACCEPTED_DAYS} days]"
}
_HELP = (
    "COMMIT is the first commit of the new level, or its beginning. CASE is words of a label or a "
    "fingerprint; without it, every case that changed there is meant."
)
_EXAMPLE = 'Example: bandwatch triage {} 3f2a91c relu cuda_vector --note "needed for accuracy"'
_action("acknowledge", TriageState.ACKNOWLEDGED, "Note that someone looks after a change.")
_action("accept", TriageState.ACCEPTED, "Accept the new level: it is meant.")
_action("reopen", TriageState.REOPENED, "Take back what was decided on a change.")
for _waiver_command in (waive, revoke, waivers):
    command.add_command(_waiver_command)


def _note_all(
    config: Config,
    state: TriageState,
    *,
    commit: str,
    case: tuple[str, ...],
    note: str,
    author: str | None,
    branch: str,
    gpu: str | None,
    until: datetime | None,
) -> Document:
    who, why = who_and_why(author, note)
    if until is None and state is TriageState.ACCEPTED:
        until = datetime.now(UTC) + timedelta(days=ACCEPTED_DAYS)
    ends = end_of_day(until) if until else None
    with Store.open(config.store.url) as store:
        sha = find_run(store, commit, gpu_model=gpu).sha
        found = changes(store, branch, gpu)
        meant = list(_meant(found, sha, case))
        if not meant:
            raise NotFoundError(_none(commit, branch, found))
        for change in meant:
            add_triage(store, replace(_entry(change, state, who, why), expires_at=ends))
        said = triage_states(store, {AUTHOR})
    return _document(meant, said, f"{state.value}: {_counted(len(meant))}, by {who}")


def _meant(found: Sequence[Change], sha: str | None, words: Sequence[str]) -> Iterator[Change]:
    for change in found:
        label, key = change.case.label, change.case.fingerprint
        fits = (word in label or key.startswith(word) for word in " ".join(words).split())
        if change.sha == sha and all(fits):
            yield change


def _none(commit: str, branch: str, found: Sequence[Change]) -> str:
    shas = list(dict.fromkeys(change.sha[:12] for change in found))
    there = ", ".join(shas[:5]) + (f" and {len(shas) - 5} more" if len(shas) > 5 else "")
    return (
        f"cannot find a change point of this case at commit {commit!a} on branch {branch}; "
        f"there are some at: {there or 'no commit'}; `bandwatch triage list --state all` shows them"
    )


def _entry(change: Change, state: TriageState, author: str, note: str) -> Triage:
    return Triage(
        case_fingerprint=change.case.fingerprint,
        gpu_model=change.gpu_model,
        commit_sha=change.sha,
        state=state,
        author=author,
        note=note,
        previous_sha=change.previous_sha,
        effect=change.effect,
    )


def _said(change: Change, said: Said) -> Triage | None:
    """Return what was decided on a change, whose place may have moved a little since."""
    for sha in (change.sha, *change.nearby):
        if entry := said.get((change.case.fingerprint, change.gpu_model, sha)):
            return entry
    return None


def _state(change: Change, said: Said) -> str:
    if change.p_value >= 1:
        return RETRACTED
    if entry := _said(change, said):
        return EXPIRED if has_ended(entry, datetime.now(UTC)) else entry.state.value
    return FIXED if change.recovered else TriageState.NEW.value


def _document(found: Sequence[Change], said: Said, summary: str) -> Document:
    rows = tuple(_row(change, said) for change in found)
    return Document(
        kind="triage",
        title="",
        summary=summary,
        facts={"changes": len(rows)},
        tables=(Table("changes", COLUMNS, rows),) if rows else (),
    )


def _row(change: Change, said: Said) -> Row:
    entry = _said(change, said)
    return Row(
        {
            "state": _state(change, said),
            "case": change.case.label,
            "bandwidth_change": change.effect,
            "before_bytes_per_s": change.before,
            "after_bytes_per_s": change.after,
            "commit": change.sha,
            "gpu_model": change.gpu_model,
            "author": entry.author if entry else None,
            "note": entry.note if entry else None,
            "expires_at": entry.expires_at if entry else None,
            "fingerprint": change.case.fingerprint,
            "previous_commit": change.previous_sha,
            "p_value": change.p_value,
        },
        tone=Tone.WORSE if change.effect < 0 else Tone.BETTER,
    )


def _counted(count: int) -> str:
    return "1 change point" if count == 1 else f"{count} change points"
