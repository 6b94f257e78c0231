"""`bandwatch triage waive`, `revoke`, `waivers`: cases that may not fail the gate for a while."""

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from tracker.cli.decisions import end_of_day, show_day, who_and_why
from tracker.cli.options import report_command
from tracker.config import Config
from tracker.errors import NotFoundError
from tracker.forgiven import has_ended
from tracker.queries import series_list
from tracker.report.document import Column, Document, Kind, Row, Table
from tracker.report.formats import Format
from tracker.store import Store
from tracker.store.people import Waiver, WaiverAction, add_waiver, waiver_log
from tracker.units import counted

COLUMNS = (
    Column("state", "state", Kind.WORD),
    Column("pattern", "cases", Kind.CODE),
    Column("gpu_model", "on", Kind.TEXT, drop=1),
    Column("author", "who", Kind.TEXT, drop=2),
    Column("expires_at", "until", Kind.WORD, show_day),
    Column("note", "why", Kind.TEXT),
    Column("at", None),
)


@click.command("waive", short_help="Let cases pass the gate until a day.")
@click.argument("pattern")
@click.option(
    "--until",
    type=click.DateTime(["%Y-%m-%d"]),
    required=True,
    metavar="DATE",
    help="The last day of the waiver. Every waiver has one.",
)
@click.option("--note", required=True, metavar="TEXT", help="Why. It stays on record.")
@click.option("--author", metavar="NAME", help="Who decides.  [default: git's user.name]")
@click.option("--gpu", metavar="MODEL", help="Only on this GPU model.")
@report_command
def waive(
    *,
    pattern: str,
    until: datetime,
    note: str,
    author: str | None,
    gpu: str | None,
    form: Format,
    config: Config,
) -> Document:
    """Let the cases whose label fits PATTERN pass the gate, however slow but never if wrong.

    The verdict is still told, with who waived it until when and why. In PATTERN * stands for any
    text; `bandwatch list --cases` shows the labels. So a case passes too that was removed on
    purpose and that the gate misses.

    Example: bandwatch triage waive "relu/*" --until 2027-01-31 --note "driver bug 4711"
    """
    del form
    who, why = who_and_why(author, note)
    entry = Waiver(pattern, who, why, end_of_day(until), gpu)
    with Store.open(config.store.url) as store:
        fitting = _fitting(store, entry)
        add_waiver(store, entry)
    return _document([entry], f"{counted(fitting, 'case')} waived until {until:%Y-%m-%d}, by {who}")


def _fitting(store: Store, entry: Waiver) -> int:
    """Return how many cases a waiver lets pass. Raises NotFoundError for one that fits none."""
    known = series_list(store)
    fitting = {seen.case_key for seen in known if entry.covers(seen.case.label, seen.gpu_model)}
    if not fitting:
        where = f" on {entry.gpu_model}" if entry.gpu_model else ""
        raise NotFoundError(
            f"cannot waive {entry.pattern!r}: no recorded case{where} has a label that fits; "
            "bandwatch list --cases shows the labels"
        )
    return len(fitting)


@click.command("revoke", short_help="End a waiver before its day.")
@click.argument("pattern")
@click.option("--note", required=True, metavar="TEXT", help="Why. It stays on record.")
@click.option("--author", metavar="NAME", help="Who decides.  [default: git's user.name]")
@click.option("--gpu", metavar="MODEL", help="The waiver of this GPU model.")
@report_command
def revoke(
    *, pattern: str, note: str, author: str | None, gpu: str | None, form: Format, config: Config
) -> Document:
    """End the waiver that was granted with this very PATTERN, and --gpu where it had one.

    Example: bandwatch triage revoke "relu/*" --note "driver 590 is fine"
    """
    del form
    who, why = who_and_why(author, note)
    with Store.open(config.store.url) as store:
        held = [w for w in _newest(waiver_log(store)) if _state(w) == "active"]
        if not any((w.pattern, w.gpu_model) == (pattern, gpu) for w in held):
            there = ", ".join(repr(w.pattern) for w in held) or "none"
            raise NotFoundError(f"cannot revoke {pattern!r}: no such waiver holds; active: {there}")
        entry = Waiver(pattern, who, why, None, gpu, WaiverAction.REVOKED)
        add_waiver(store, entry)
    return _document([entry], f"revoked by {who}")


@click.command("waivers", short_help="Show waivers, also those that ended.")
@report_command
def waivers(*, form: Format, config: Config) -> Document:
    """Show the newest entry on each pattern, active ones first; the whole log stays on record.

    Example: bandwatch triage waivers
    """
    del form
    with Store.open(config.store.url, read_only=True) as store:
        found = _newest(waiver_log(store))
    found.sort(key=lambda entry: (_state(entry) != "active", entry.pattern))
    active = sum(_state(entry) == "active" for entry in found)
    return _document(found, f"{active} of {len(found)} waivers hold")


def _newest(log: Sequence[Waiver]) -> list[Waiver]:
    return list({(entry.pattern, entry.gpu_model): entry for entry in log}.values())


def _state(entry: Waiver) -> str:
    if entry.action is WaiverAction.REVOKED:
        return "revoked"
    return "ended" if has_ended(entry, datetime.now(UTC)) else "active"


def _document(found: Sequence[Waiver], summary: str) -> Document:
    names = [column.key for column in COLUMNS if column.key != "state"]
    rows = tuple(
        Row({"state": _state(entry)} | {name: getattr(entry, name) for name in names})
        for entry in found
    )
    return Document(
        kind="waivers",
        title="",
        summary=summary,
        facts={"waivers": len(rows)},
        tables=(Table("waivers", COLUMNS, rows),) if rows else (),
    )
