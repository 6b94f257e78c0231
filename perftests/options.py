"""Flags of the measuring plugin, and the one place that decides whether this session times.

`pytest` alone checks correctness. Any of these turns timing on: `--benchmark` (the recording
plugin's flag), `--benchmark-only`, `--benchmark-enable`, `--benchmark-json`,
`--benchmark-autosave`, `--benchmark-save`, `--benchmark-compare`, `--benchmark-histogram`,
`--benchmark-csv`, or `--bandwatch-timing on`. `--benchmark-disable`, `--benchmark-skip` and
`--bandwatch-timing off` turn it off.

A flag that would have no effect is refused where it was typed. In `addopts`, PYTEST_ADDOPTS or the
settings it waits for a session that has a use for it.
"""

from __future__ import annotations

import argparse
import os
import re
from typing import TYPE_CHECKING, Any

import pytest

from perftests.harness.errors import SettingError
from perftests.harness.settings import Settings, parse_modes

if TYPE_CHECKING:
    from collections.abc import Callable

_TURNS_ON = (
    "--benchmark",
    "--benchmark-only",
    "--benchmark-enable",
    "--benchmark-json",
    "--benchmark-autosave",
    "--benchmark-save",
    "--benchmark-compare",
    "--benchmark-histogram",
    "--benchmark-csv",
)
_OF_TIMING = (
    "--bandwatch-budget",
    "--bandwatch-max-seconds",
    "--bandwatch-max-samples",
    "--bandwatch-energy",
    "--bandwatch-ncu",
)
"""Flags that say how to time, and nothing else."""


def add_options(parser: pytest.Parser) -> None:
    """Register the flags."""
    group = parser.getgroup("bandwatch", "trusted timing of GPU kernels")
    add = group.addoption
    add(
        "--bandwatch-timing",
        choices=("auto", "on", "off"),
        default="auto",
        help="time gpu_benchmark tests, or check them only; auto: on with --benchmark and with any "
        "flag of pytest-benchmark that asks for results (default: %(default)s)",
    )
    add(
        "--bandwatch-device",
        default="auto",
        metavar="DEVICE",
        help="auto, cpu, cuda or cuda:N (default: %(default)s)",
    )
    add(
        "--bandwatch-mode",
        default="cold",
        metavar="MODES",
        help="cache modes, comma-separated: cold, hot, rotated (default: %(default)s); the suite "
        "measures in each of them, a test of your own that names no mode in the first",
    )
    add(
        "--bandwatch-quick",
        action="store_true",
        help="a small selection with looser limits: half a minute on a GPU",
    )
    add(
        "--bandwatch-budget",
        type=_positive(float),
        metavar="S",
        help="sampling time that all cases share: each may take its part of what is left; checks, "
        "compilation and yardsticks come on top",
    )
    add("--bandwatch-max-seconds", type=_positive(float), metavar="S", help="time cap of a case")
    add("--bandwatch-max-samples", type=_positive(int), metavar="N", help="sample cap of a case")
    add(
        "--bandwatch-lock-timeout",
        type=_positive(float),
        default=120.0,
        metavar="S",
        help="how long to wait for a device that another process holds (default: %(default)s)",
    )
    add(
        "--bandwatch-energy",
        action="store_true",
        help="also measure the energy of each timed case, about a second each",
    )
    add(
        "--bandwatch-ncu",
        action="store_true",
        help="also read Nsight Compute's counters of each timed case, in a process each",
    )
    add("--bandwatch-profile", action="store_true", help=argparse.SUPPRESS)
    add("--bandwatch-reports", metavar="FILE", help=argparse.SUPPRESS)


def _positive(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        value = kind(text)
        if not value > 0:
            raise ValueError(text)
        return value

    parse.__name__ = f"positive {kind.__name__}"
    return parse


def measures(item: pytest.Item) -> bool:
    """Return whether a test asks for the fixture `gpu_benchmark`."""
    return "gpu_benchmark" in getattr(item, "fixturenames", ())


def timing_enabled(config: pytest.Config) -> bool:
    """Return whether `gpu_benchmark` tests are timed in this session, as the module says."""
    chosen = config.getoption("--bandwatch-timing", "auto")
    if chosen != "auto":
        return bool(chosen == "on")
    forced = _given(config, "--benchmark-only")
    if _given(config, "--benchmark-skip") and not forced:
        return False
    if _given(config, "--benchmark-disable") and not _given(config, "--benchmark-enable"):
        return False
    return any(_given(config, name) for name in _TURNS_ON)


def _given(config: pytest.Config, name: str) -> bool:
    return bool(config.getoption(name, None))


def settings_from(config: pytest.Config) -> Settings:
    """Return the session's settings; raise pytest.UsageError for flags without a meaning."""
    option = config.getoption
    try:
        modes = parse_modes(option("--bandwatch-mode"))
    except SettingError as error:
        raise pytest.UsageError(f"--bandwatch-mode: {error}") from None
    device = option("--bandwatch-device")
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
        raise pytest.UsageError(
            f"--bandwatch-device: cannot measure on {device!r}; expected auto, cpu, cuda or cuda:N"
        )
    timing = timing_enabled(config)
    _refuse_idle(config, timing=timing)
    return Settings(
        timing=timing,
        quick=option("--bandwatch-quick"),
        max_seconds=option("--bandwatch-max-seconds"),
        max_samples=option("--bandwatch-max-samples"),
        lock_seconds=option("--bandwatch-lock-timeout"),
        energy=option("--bandwatch-energy") and timing,
        ncu=option("--bandwatch-ncu") and timing,
        profile=option("--bandwatch-profile") and not timing,
        modes=modes,
    )


def _refuse_idle(config: pytest.Config, *, timing: bool) -> None:
    """Raise pytest.UsageError for a flag that was typed and would have no effect."""
    if config.option.help or config.option.collectonly:
        return
    if timing and _typed(config, "--bandwatch-profile"):
        raise pytest.UsageError(
            "--bandwatch-profile: this session times; add --bandwatch-timing=off"
        )
    if timing or _serves_another(config):
        return
    for name in _OF_TIMING:
        if _typed(config, name):
            raise pytest.UsageError(
                f"{name}: this session times nothing; add --benchmark or --bandwatch-timing=on"
            )


def _typed(config: pytest.Config, name: str) -> bool:
    """Whether a flag stands on this session's own command line."""
    return any(str(word).partition("=")[0] == name for word in config.invocation_params.args)


def _serves_another(config: pytest.Config) -> bool:
    """Whether a session or command of ours started this one, with the flags of its own user."""
    started = any(config.getoption(f"--bandwatch-{name}") for name in ("profile", "reports"))
    return started or config.pluginmanager.hasplugin("bandwatch_inside")


def worker_count() -> int:
    """Return how many processes share the cases: pytest-xdist's workers, else 1."""
    count = os.environ.get("PYTEST_XDIST_WORKER_COUNT", "")
    return max(1, int(count)) if count.isdigit() else 1


def worker_index() -> int | None:
    """Return this process's place among pytest-xdist's workers, None outside of them."""
    name = os.environ.get("PYTEST_XDIST_WORKER", "")
    return int(name[2:]) if name.startswith("gw") and name[2:].isdigit() else None
