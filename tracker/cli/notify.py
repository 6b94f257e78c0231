"""`bandwatch notify`: tell the team of change points on main, each once."""

import json
import os
from pathlib import Path

import click

from tracker.cli.options import note, refuse_idle, report_command
from tracker.config import Config
from tracker.errors import ConfigError
from tracker.loop.changes import changes
from tracker.loop.feed import NEWEST, to_atom
from tracker.loop.notify import Telling, news, tell
from tracker.loop.settings import read_loop_settings
from tracker.loop.webhook import Form, address_from, form_of, headline, message, post
from tracker.report.columns import show_change, show_rate, show_sha
from tracker.report.document import Column, Document, Kind, Row, Table, Tone
from tracker.report.formats import Format
from tracker.store import Store
from tracker.units import counted

COLUMNS = (
    Column("news", "news", Kind.WORD),
    Column("case", "case", Kind.CODE),
    Column("bandwidth_change", "change", Kind.NUMBER, show_change),
    Column("before_bytes_per_s", "GB/s before", Kind.NUMBER, show_rate),
    Column("after_bytes_per_s", "after", Kind.NUMBER, show_rate),
    Column("previous_commit", "last good", Kind.WORD, show_sha),
    Column("commit", "first", Kind.WORD, show_sha),
    Column("gpu_model", "on"),
)


@click.command("notify", short_help="Tell the team of change points, each once.")
@click.option("--branch", default="main", show_default=True, help="The branch that is watched.")
@click.option("--gpu", metavar="MODEL", help="Only this GPU model.")
@click.option("--dry-run", is_flag=True, help="Show what would be sent; send and note nothing.")
@click.option(
    "--as",
    "style",
    type=click.Choice([str(form) for form in Form]),
    help="The form of the message.  [default: by the webhook's host]",
)
@click.option(
    "--feed",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write all change points into this file as an Atom feed, and send nothing.",
)
@report_command
def command(
    *,
    branch: str,
    gpu: str | None,
    dry_run: bool,
    style: str | None,
    feed: Path | None,
    form: Format,
    config: Config,
) -> Document:
    """Post new, worsened and recovered change points to the webhook in BANDWATCH_WEBHOOK.

    Each is told once, on whichever machine the command runs: the store knows what was told. The
    address is never shown and never stored. A message that certainly did not arrive is tried again
    by the next call; one that a crash interrupted or that got no answer is not, and is named in
    the output.

    Example: bandwatch notify --dry-run
    """
    del form
    page = read_loop_settings(config.root).page
    if feed is not None:
        refuse_idle("--feed sends nothing, it writes the file", "dry_run", "style")
        return _feed(config, branch, gpu, feed, page)
    address = None if dry_run else address_from(os.environ)
    with Store.open(config.store.url, read_only=dry_run) as store:
        telling = news(store, branch, gpu)
        chosen = Form(style) if style else form_of(address or "")
        if address is None:
            note(json.dumps(message(telling, chosen, page), indent=2))
        else:
            tell(store, telling, lambda what: post(address, message(what, chosen, page)))
    return _document(telling, sent=not dry_run)


def _feed(config: Config, branch: str, gpu: str | None, path: Path, page: str | None) -> Document:
    with Store.open(config.store.url, read_only=True) as store:
        found = changes(store, branch, gpu)
    title = f"Bandwidth changes on {branch}{f', {gpu}' if gpu else ''}"
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.write_text(to_atom(found, title, page or config.store.shown, page), "utf-8")
        partial.replace(path)  # whoever serves it reads a whole one
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}") from None
    every = counted(len(found), "change point")
    told = f"the newest {NEWEST} of {every}" if len(found) > NEWEST else every
    return Document(
        kind="feed",
        title="",
        summary=f"{told} in {path}",
        facts={"changes": len(found)},
    )


def _document(telling: Telling, *, sent: bool) -> Document:
    rows = tuple(
        Row(
            {
                "news": item.news.value,
                "case": item.change.case.label,
                "bandwidth_change": item.change.effect,
                "before_bytes_per_s": item.change.before,
                "after_bytes_per_s": item.change.after,
                "previous_commit": group.previous_sha,
                "commit": group.sha,
                "gpu_model": group.gpu_model,
            },
            tone=Tone.WORSE if item.change.effect < 0 else Tone.BETTER,
        )
        for group in telling.groups
        for item in group.items
    )
    done = "sent" if sent and rows else "would be sent" if rows else "nothing to send"
    return Document(
        kind="notify",
        title="",
        summary=f"{headline(telling)}; {done}",
        facts={"news": len(rows), "groups": len(telling.groups), "sent": sent and bool(rows)},
        tables=(Table("news", COLUMNS, rows),) if rows else (),
        notes=tuple(
            f"nobody knows whether this was sent before a crash: {what}" for what in telling.unsure
        ),
    )
