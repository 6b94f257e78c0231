"""Whether a pytest session covered the whole suite, and if not, why.

A case that a complete run lacks has vanished; one that a selection left out has not.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

# Options that run a part, by their attribute in pytest's options, as people know them.
_PARTS: Mapping[str, str] = {
    "keyword": "-k",
    "markexpr": "-m",
    "deselect": "--deselect",
    "ignore": "--ignore",
    "ignore_glob": "--ignore-glob",
    "lf": "--last-failed",
    "stepwise": "--stepwise",
    "collectonly": "--collect-only",
    "benchmark_skip": "--benchmark-skip",
    "bandwatch_quick": "--bandwatch-quick",
}


def narrowed_by(
    options: object, arguments: Sequence[str], suite: Sequence[Path], here: Path
) -> str | None:
    """Return what kept the session from covering `suite`, in words, None when nothing did.

    `arguments` are the paths that pytest was given or found in its settings, relative to `here`.
    """
    for name, flag in _PARTS.items():
        if getattr(options, name, None):
            return f"{flag} selected a part"
    given = [_path(argument, here) for argument in arguments]
    for folder in suite:
        if not any(path is not None and folder.is_relative_to(path) for path in given):
            return f"the paths given leave out {folder.name}"
    return None


def _path(argument: str, here: Path) -> Path | None:
    """Return the folder that an argument covers whole, None for a single test."""
    if "::" in argument:
        return None
    return (here / argument).resolve()
