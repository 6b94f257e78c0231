"""The compilers and profilers on the path."""

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence

from tracker.doctor.finding import Finding, Level

AREA = "tools"
_TIMEOUT_S = 30
_VERSION = re.compile(r"(?:release |Version |version )?(\d+\.\d+(?:\.\d+)*)")


def tool_version(command: Sequence[str]) -> str | None:
    """Return the last version number that a tool prints of itself, None when it does not run."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(
            list(command), capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if done.returncode != 0:
        return None
    lines = [match[1] for line in done.stdout.splitlines() if (match := _VERSION.search(line))]
    return lines[-1] if lines else "unknown version"


def check_tools(
    *, gpu: bool, look: Callable[[Sequence[str]], str | None] = tool_version
) -> tuple[Finding, ...]:
    """Return findings on g++ (CPU runs), nvcc and ncu (both optional)."""
    return (
        _check_gxx(look(["g++", "-dumpfullversion"]), gpu=gpu),
        _optional("nvcc", look(["nvcc", "--version"]), "static checks can use NVRTC instead"),
        _optional("ncu", look(["ncu", "--version"]), "hardware counters are left out"),
    )


def _check_gxx(found: str | None, *, gpu: bool) -> Finding:
    if found:
        return Finding(AREA, "g++", Level.OK, found)
    level = Level.INFO if gpu else Level.WARN
    text = "not found; the CUDA sources cannot run on the CPU, only torch can"
    return Finding(AREA, "g++", level, text, "apt-get install g++")


def _optional(name: str, found: str | None, without: str) -> Finding:
    if found:
        return Finding(AREA, name, Level.OK, found)
    return Finding(AREA, name, Level.INFO, f"not found; {without}")
