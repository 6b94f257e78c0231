"""Text from the store, made safe to show: a subject, a case name or a note is data, never markup.

Names and notes come from record files and from git, that is from anyone who can open a pull
request. They must not run, link, restyle the page or forge a line of it.
"""

import html
import unicodedata
from urllib.parse import urlsplit

ABSENT = "–"  # noqa: RUF001 - an en dash is what a table shows where there is no value
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def plain(text: str | None, limit: int = 200) -> str:
    """Return one line of at most `limit` characters; control and invisible ones show as escapes."""
    if not text:
        return ABSENT
    line = "".join(map(_seen, " ".join(text.split())))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def person(author: str | None) -> str:
    """Return the name of `Ada Lovelace <ada@example.org>`, or the address without one."""
    name = (author or "").partition("<")[0].strip()
    return plain(name or author, 60)


def _seen(character: str) -> str:
    if unicodedata.category(character) not in _UNSEEN:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def in_html(text: str | None, limit: int = 200) -> str:
    """Return `text` for the inside or a quoted attribute of an HTML element."""
    return html.escape(plain(text, limit), quote=True)


def web_link(address: str | None) -> str | None:
    """Return an address that may become a link: absolute, http or https, with a host; else None."""
    if not address or any(c.isspace() or unicodedata.category(c) in _UNSEEN for c in address):
        return None
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    return address if parts.scheme in {"http", "https"} and parts.hostname else None


def csv_cell(value: str) -> str:
    """Return text that no spreadsheet takes for a formula."""
    return f"'{value}" if value.startswith(_FORMULA) else value


def short(sha: str | None) -> str:
    """Return the first seven digits of a commit id, enough for people."""
    return sha[:7] if sha else ABSENT


def ago(seconds: float) -> str:
    """Return an age in its largest unit: `3 h ago`, `12 days ago`."""
    if seconds < 0:
        return "in the future"
    for size, one, many in (
        (86400.0, "day", "days"),
        (3600.0, "h", "h"),
        (60.0, "min", "min"),
    ):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {one if count == 1 else many} ago"
    return "just now"
