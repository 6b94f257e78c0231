"""What can go wrong, one class a situation, and the exit code that each leads to.

A message says what could not be done, what was found, what was expected and what to do.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the command and the gate return to the shell."""

    OK = 0
    REGRESSION = 1
    USAGE = 2
    UNDECIDED = 3
    UNFIT = 4
    INTERNAL = 5


class TrackerError(Exception):
    """Base of every error that is told in one line instead of a traceback."""

    exit_code = ExitCode.USAGE


class RecordError(TrackerError):
    """A record file that is not strict JSON, not of a known schema, too large or inconsistent."""


class StoreError(TrackerError):
    """A store that cannot be opened, read or written as asked."""


class StoreAwayError(StoreError):
    """A server that cannot be reached or went away: it says nothing of what the store holds."""


class WriteError(TrackerError):
    """A report or an export that cannot be written where it was to go."""


class ConfigError(TrackerError):
    """A setting in pyproject.toml, the environment or a flag that has no valid meaning."""


class NotFoundError(TrackerError):
    """A run, commit, case or GPU model that the store does not hold."""


class GitError(TrackerError):
    """A fact that git could not give."""


class UnfitError(TrackerError):
    """Nothing can be measured or compared here: no device, the lock is held, clocks moved."""

    exit_code = ExitCode.UNFIT
