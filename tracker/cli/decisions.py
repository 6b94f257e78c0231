"""What every decision of a person has: who, why, and until when."""

from datetime import UTC, datetime

from tracker import git
from tracker.errors import ConfigError
from tracker.report.document import ABSENT, Value


def show_day(value: Value) -> str:
    """Return the day of a time."""
    return str(value)[:10] if value else ABSENT


def who_and_why(author: str | None, note: str) -> tuple[str, str]:
    """Return who decides and the reason. Raises ConfigError where either is missing."""
    who = (author or git.identity() or "").strip()
    if not who:
        raise ConfigError("cannot note who decided: git has no user.name here; give --author NAME")
    if not note.strip():
        raise ConfigError("cannot note a decision without a reason; give --note TEXT")
    return who, note.strip()


def end_of_day(day: datetime) -> str:
    """Return the last second of a day, which must not be over. Raises ConfigError."""
    end = day.replace(hour=23, minute=59, second=59, microsecond=0, tzinfo=UTC)
    if end < datetime.now(UTC):
        raise ConfigError(f"cannot decide until {day:%Y-%m-%d}: that day is over; give a later one")
    return end.isoformat()
