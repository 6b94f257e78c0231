"""Database errors as one clear line each: what happened, and what to do."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from json import JSONDecodeError

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from tracker.errors import StoreAwayError, StoreError
from tracker.store.address import hide, secrets, shown

RESTORE = "restore a backup, or see `bandwatch db check`"
_DAMAGED = f"the file is damaged: {RESTORE}"
_SPACE = "nothing was written; free some space and try again"
_LOCKED = "another process has held it for too long; nothing was written; try again"
_READ_ONLY = "it can only be read; nothing was written"
# By SQLite's primary result code, in its low byte: https://sqlite.org/rescode.html
_SQLITE = {
    5: f"the store is locked: {_LOCKED}",
    6: f"the store is locked: {_LOCKED}",
    8: _READ_ONLY,
    10: f"the disk failed: {_SPACE}",
    11: _DAMAGED,
    13: f"the disk is full: {_SPACE}",
    14: "the file or its folder cannot be opened, or only read; check that they exist, and who may "
    "write there",
    26: f"the file is no SQLite database, or damaged: {RESTORE}",
}
# By SQLSTATE: https://www.postgresql.org/docs/15/errcodes-appendix.html
_POSTGRESQL = {
    "25006": _READ_ONLY,
    "28000": "the server refused this role; check the role and its password",
    "28P01": "the server refused this role; check the role and its password",
    "3D000": "the server has no such database; create it first (docs/operate.md)",
    "42501": "this role may not do that; take one that may (docs/operate.md)",
    "53100": f"the server's disk is full: {_SPACE}",
    "55P03": f"the store is locked: {_LOCKED}",
    "57014": "the server stopped it after its time limit; nothing was written; try again",
}
_GONE = ("08", "57P")
# A connection that fails has no SQLSTATE yet, only the server's text.
_REFUSED = {
    "authentication failed": _POSTGRESQL["28P01"],
    "no password supplied": _POSTGRESQL["28P01"],
    "pg_hba.conf": _POSTGRESQL["28000"],
    "does not exist": _POSTGRESQL["3D000"],
}


@contextmanager
def telling(action: str, url: URL) -> Iterator[None]:
    """Turn what a database raises inside into a StoreError that says what could not be done."""
    try:
        yield
    except sqlite3.Error as error:
        # Outside SQLAlchemy: where a file is switched to write-ahead logging or copied.
        raise StoreError(f"cannot {action} in {shown(url)}: {_told(error, url)}") from None
    except (UnicodeDecodeError, JSONDecodeError) as error:
        # Text that no store wrote; the driver raises the first for its own messages too.
        told = f"{_DAMAGED} ({clean(str(error), url)})"
        raise StoreError(f"cannot {action} in {shown(url)}: {told}") from None
    except DBAPIError as error:
        kind = StoreAwayError if is_lost(error) else StoreError
        raise kind(f"cannot {action} in {shown(url)}: {explain(error, url)}") from None
    except PoolTimeoutError:
        raise StoreError(
            f"cannot {action} in {shown(url)}: the store is locked: {_LOCKED}"
        ) from None
    except SQLAlchemyError as error:
        raise StoreError(f"cannot {action} in {shown(url)}: {clean(str(error), url)}") from None


def explain(error: DBAPIError, url: URL) -> str:
    """Return one sentence on a database error, without secrets."""
    known = None
    if is_lost(error):
        text = str(error.orig)
        refused = next((told for part, told in _REFUSED.items() if part in text), None)
        known = refused or "the server cannot be reached or went away; check it, then try again"
    return _told(error.orig, url, known)


def _told(original: object, url: URL, known: str | None = None) -> str:
    code = getattr(original, "sqlite_errorcode", None)
    state = getattr(original, "sqlstate", None)
    told = _SQLITE.get(code & 0xFF) if code is not None else _POSTGRESQL.get(state or "", known)
    detail = clean(str(original), url)
    return f"{told} ({detail})" if told else detail


def is_lost(error: DBAPIError) -> bool:
    """Return whether the connection broke, so that trying again on a new one may succeed."""
    if error.connection_invalidated:
        return True
    state = getattr(error.orig, "sqlstate", None)
    name = type(error.orig).__name__
    if name == "OperationalError" and state is None:
        return getattr(error.orig, "sqlite_errorcode", None) is None
    return state is not None and state.startswith(_GONE)


def clean(text: str, url: URL) -> str:
    """Return text as one line of at most 300 characters in which no secret stands."""
    for secret in secrets(url):
        text = text.replace(secret, "***")
    line = hide(" ".join(text.split()))
    return line if len(line) <= 300 else f"{line[:297]}..."
