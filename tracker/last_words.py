"""The one line of a failed process's output that tells why it failed.

Its last line seldom does: pytest ends with the root folder, make with the rule, a compiler with the
number of errors, pip with its newest version.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from tracker.report.escape import plain

NOTHING = "it printed nothing"
LIMIT = 300
# Enough for what matters: a log may be as long as it likes.
_MOST, _WIDEST = 200_000, 2_000
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_TRACEBACK = "Traceback (most recent call last):"
_CONFTEST = re.compile(r"ImportError while loading conftest '(?P<file>[^']*)'")
# pytest's plugins, argparse, pip, git, the linker: "ERROR: ...", "prog: error: ...", "fatal: ...".
_SAID = re.compile(
    r"^(?:[\w .+/\\-]{1,80}: )?(?:fatal error|fatal|error|ERROR)"
    r"(?:\[\w+\])?: (?P<what>\S.*)$"
)
# "cuda.cu:3:5: error: ..." of GCC and Clang, "cuda.cu(3): error: ..." of NVCC and NVRTC.
_COMPILER = re.compile(r"^\S+?(?::\d+(?::\d+)?|\(\d+(?:,\d+)?\)): (?:catastrophic |fatal )?error\b")
_LINKER = re.compile(r"undefined reference to |cannot find -l|multiple definition of ")
_CMAKE = re.compile(r"^CMake Error\b")
_UNCAUGHT = re.compile(r"^(?:what\(\): |Fatal Python error: )")
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?::\s|$)")
# What stands around the reason, or repeats that there is one.
_FRAME = re.compile(
    r"^(?:inifile: |rootdir: |configfile: |plugins: |no tests ran\b|ERROR: usage: |usage: "
    r"|(?:g?make|ninja)(?:\[\d+\])?: (?:\*\*\* |build stopped|Entering |Leaving )"
    r"|compilation terminated|collect2: |\d+ errors? (?:generated|detected)|\[notice\] "
    r"|-- Configuring incomplete|error: subprocess-exited-with-error|note: |hint: |warning: "
    r"|terminate called|Aborted|During handling of |[\s^~|=_*.+-]+$)",
    re.IGNORECASE,
)


def telling_line(output: str) -> str:
    """Return the line of a failed process's output that says why, harmless and without passwords.

    What a compiler or a linker reports comes first, then an exception, then what a tool calls an
    error; else the last line that is more than a frame.
    """
    # Late: failures are few, and this loads the database's package.
    from tracker.store.address import redact

    lines = [line for line in map(_bare, output[-_MOST:].splitlines()) if line.strip()]
    for find in _FINDERS:
        if found := find(lines):
            return plain(redact(found))[:LIMIT]
    return NOTHING


def read_log(log: Path) -> tuple[str, str]:
    """Return what tells of a failure in a process's log, and in words where all of it is."""
    text = log.read_text("utf-8", "replace") if log.is_file() else ""
    here = Path.cwd()
    place = log.relative_to(here) if log.is_relative_to(here) else log
    return telling_line(text), f"all that it printed is in {place}"


def _bare(line: str) -> str:
    """Return a line without colours and without what pytest puts before its own failures."""
    return _ESCAPES.sub("", line[:_WIDEST]).removeprefix("INTERNALERROR> ").rstrip()


def _by_pytest(lines: Sequence[str]) -> str | None:
    """Return the exception that pytest shows, in lines that begin with E below its traceback."""
    groups = [
        [line[1:].strip() for line in group]
        for shown, group in groupby(lines, lambda line: line.startswith("E  "))
        if shown
    ]
    if not groups:
        return None
    raised = next(filter(_EXCEPTION.match, groups[-1]), groups[-1][0])
    conftest = next(filter(None, map(_CONFTEST.match, lines)), None)
    return f"{raised} (in {conftest['file']})" if conftest else raised


def _by_compiler(lines: Sequence[str]) -> str | None:
    return _first(lines, lambda line: _COMPILER.match(line) or _LINKER.search(line))


def _by_cmake(lines: Sequence[str]) -> str | None:
    """Return CMake's error with the sentence below it."""
    for number, line in enumerate(lines):
        if _CMAKE.match(line):
            return " ".join(text.strip() for text in lines[number : number + 2])
    return None


def _by_traceback(lines: Sequence[str]) -> str | None:
    """Return the first line of the last exception that ended a traceback."""
    if not any(line.strip() == _TRACEBACK for line in lines):
        return None
    raised = list(_raised(lines))
    return raised[-1] if raised else None


def _raised(lines: Sequence[str]) -> Iterator[str]:
    depth: int | None = None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if line.strip() == _TRACEBACK:
            depth = indent
        elif depth is not None and indent <= depth:
            yield line.strip()
            depth = None


def _by_words(lines: Sequence[str]) -> str | None:
    found = (_SAID.match(line.strip()) for line in lines if not _FRAME.match(line.strip()))
    said = next(filter(None, found), None)
    if said is not None:
        return said["what"]
    uncaught = _first(lines, _UNCAUGHT.match)
    return uncaught.removeprefix("what(): ").strip() if uncaught else None


def _by_end(lines: Sequence[str]) -> str | None:
    """Return the last line that is more than a frame, the last of all where none is."""
    told = [line.strip() for line in lines if not _FRAME.match(line.strip())]
    last = told or [line.strip() for line in lines]
    return last[-1] if last else None


def _first(lines: Sequence[str], fits: Callable[[str], object]) -> str | None:
    return next((line.strip() for line in lines if fits(line.strip())), None)


_FINDERS = (_by_pytest, _by_compiler, _by_cmake, _by_traceback, _by_words, _by_end)
