"""Where a store is: a URL or a path, and what of it may be shown."""

import re
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from tracker.errors import StoreError

EXPECTED = "expected sqlite:///FILE, a file's path, or postgresql://USER@HOST/DATABASE"
_FILE = "sqlite:///"
# A URL with too few slashes, or the words that libpq takes.
_SERVERS = re.compile(r"^\s*postgres(ql)?:|\b(host|dbname|user|password)\s*=", re.IGNORECASE)
_SECRET = re.compile(r"pass|secret|token|key", re.IGNORECASE)
_CREDENTIALS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<user>[^\s/@:]*):\S*@")
# As a URL or libpq names it, or a variable set before a command.
_PARAMETER = re.compile(r"(?i)\b(?P<key>\w*(?:password|passwd|pwd|secret|token))=[^\s&;'\"]+")
_DRIVERS = {"postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg"}


def parse_address(text: str) -> URL:
    """Return the address of a store. Raises StoreError, which never shows a password."""
    if not text.strip():
        raise StoreError(f"cannot open a store: no address given; {EXPECTED}")
    if "://" not in text:
        _refuse_no_path(text)
        return URL.create("sqlite", database=text)
    if text.startswith(_FILE):
        # A file's name may hold what ends the path of a URL.
        database = text.removeprefix(_FILE)
        if database in {"", ":memory:"}:
            raise StoreError(f"cannot open the store {text}: it has no file; {EXPECTED}")
        return URL.create("sqlite", database=database)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise StoreError(f"cannot open the store {hide(text)}: not a URL; {EXPECTED}") from error
    url = url.set(drivername=_DRIVERS.get(url.drivername, url.drivername))
    if url.drivername not in {"sqlite", "postgresql+psycopg"}:
        raise StoreError(
            f"cannot open the store {shown(url)}: {url.drivername} is no known engine; {EXPECTED}"
        )
    if url.drivername == "sqlite" and (url.database or ":memory:") == ":memory:":
        raise StoreError(f"cannot open the store {shown(url)}: it has no file; {EXPECTED}")
    if "@" in (url.host or ""):
        # The rest of the password would be taken for the host, and be shown as such.
        raise StoreError(
            f"cannot open the store {hide(text)}: its password holds an @; write it as %40; "
            f"{EXPECTED}"
        )
    if url.drivername != "sqlite" and not url.database:
        raise StoreError(f"cannot open the store {shown(url)}: it names no database; {EXPECTED}")
    return url


def _refuse_no_path(text: str) -> None:
    """Raise StoreError for what is meant as a server's address and would be taken for a file."""
    if _SERVERS.search(text):
        raise StoreError(f"cannot open the store {hide(text)}: not a URL; {EXPECTED}")


def file_of(url: URL) -> Path | None:
    """Return the file of an SQLite store, None for a server's."""
    return Path(url.database or "") if url.drivername == "sqlite" else None


def shown(url: URL) -> str:
    """Return the address as output, logs and errors may show it: without secrets."""
    if url.drivername == "sqlite":
        return f"sqlite:///{url.database or ''}"
    query = {k: "***" if _SECRET.search(k) else v for k, v in url.query.items()}
    plain = url.set(drivername=url.get_backend_name(), query=query)
    return plain.render_as_string(hide_password=True)


def secrets(url: URL) -> tuple[str, ...]:
    """Return the texts that may appear nowhere, longest first."""
    found = [str(url.password)] if url.password else []
    for key, value in url.query.items():
        if _SECRET.search(key):
            found.extend([value] if isinstance(value, str) else value)
    return tuple(sorted((s for s in found if s), key=len, reverse=True))


def redact(text: str) -> str:
    """Return `text` with the password of every URL in it and every secret parameter as `***`."""
    hidden = _CREDENTIALS.sub(lambda m: f"{m['scheme']}{m['user']}:***@", text)
    return _PARAMETER.sub(lambda m: f"{m['key']}=***", hidden)


def hide(text: str) -> str:
    """Return text without anything that looks like a URL's credentials."""
    text = re.sub(r"(:/{0,2})\S*@", r"\1***@", text)
    named = r"((?:pass|secret|token|key)\w*\s*=\s*)('[^']*'|[^&\s]+)"
    return re.sub(named, r"\1***", text, flags=re.IGNORECASE)
