"""`--bandwatch-ncu`: run a test again under Nsight Compute and store what it counted."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from perftests import child
from perftests.harness.counters import CountersError, read_counters

_REFUSED: pytest.StashKey[str] = pytest.StashKey()
"""Why this session gets no counters at all, once that is known."""


def add_counters(config: pytest.Config, nodeid: str, result: dict[str, Any]) -> None:
    """Put the counters of a test into its result, or the reason why there are none."""
    try:
        result["counters"] = _counters(config, nodeid, result["case"]["cache"])
    except CountersError as error:
        result["reasons"]["counters"] = f"not read: {error}"
        if error.final:
            config.stash[_REFUSED] = str(error)


def _counters(config: pytest.Config, nodeid: str, mode: str) -> dict[str, float | str | None]:
    if _REFUSED in config.stash:
        raise CountersError(config.stash[_REFUSED])
    if config.getoption("--bandwatch-device") == "cpu":
        raise CountersError("Nsight Compute counts on a GPU", final=True)
    with tempfile.TemporaryDirectory() as kept:
        words = arguments(config, nodeid, Path(kept))
        return read_counters(words, child.folder(config), flush=mode == "cold")


def arguments(config: pytest.Config, nodeid: str, cache: Path) -> list[str]:
    """Return what makes Python run one test with its workload marked for a profiler."""
    words = child.arguments(config, [nodeid], cache)
    return [*words, "--bandwatch-profile", "--bandwatch-timing=off"]
