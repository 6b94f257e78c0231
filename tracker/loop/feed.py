"""The change points as an Atom feed (RFC 4287), for those who prefer to read it when they like."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import NAMESPACE_URL, uuid5
from xml.sax.saxutils import escape, quoteattr

from tracker.loop.changes import Change
from tracker.report.escape import plain
from tracker.units import bandwidth, percent

NEWEST = 100


def to_atom(found: Sequence[Change], title: str, place: str, page: str | None = None) -> str:
    """Return the newest hundred change points; an entry keeps its id for as long as it exists.

    `place` is where they come from: feeds of several places are several feeds to a reader.
    """
    newest = sorted(found, key=lambda change: -change.started)[:NEWEST]
    updated = _moment(newest[0].started if newest else 0.0)
    link = f"  <link href={quoteattr(page)}/>" if page else ""
    head = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        f"  <title>{_text(title)}</title>",
        f"  <id>urn:uuid:{uuid5(NAMESPACE_URL, f'{place} {title}')}</id>",
        f"  <updated>{updated}</updated>",
        "  <author><name>Bandwatch</name></author>",
    ]
    entries = [line for change in newest for line in _entry(change, page)]
    return "\n".join([*head, *filter(None, [link]), *entries, "</feed>", ""])


def _entry(change: Change, page: str | None) -> list[str]:
    word = "slower" if change.effect < 0 else "faster"
    size = percent(change.effect, signed=True)
    name = f"{change.case.fingerprint}:{_name(change.gpu_model)}:{change.sha}"
    content = (
        f"{change.case.label} on {change.gpu_model}: {bandwidth(change.before)} to "
        f"{bandwidth(change.after)} between {change.previous_sha[:12]} and {change.sha[:12]}"
    )
    return [
        "  <entry>",
        f"    <title>{_text(f'{change.case.label} {word}: {size}')}</title>",
        f"    <id>urn:bandwatch:change:{name}</id>",
        f"    <updated>{_moment(change.started)}</updated>",
        f'    <content type="text">{_text(content)}</content>',
        *([f"    <link href={quoteattr(page)}/>"] if page else []),
        "  </entry>",
    ]


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _text(text: str) -> str:
    return escape(plain(text))


def _name(text: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in text)
