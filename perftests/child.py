"""A pytest of our own in another process: the same project, plugins, options and device.

A lost device and Nsight Compute need one. Options that pytest's own configuration names (`addopts`)
are read again there; those of the command line and of PYTEST_ADDOPTS are carried as far as they say
what a test finds. What says which tests to run, how many at once and where to write is not.
"""

from __future__ import annotations

import inspect
import os
import re
import shlex
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perftests.harness.errors import HarnessError
from perftests.options import worker_index

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pytest

_LISTS = (("plugins", "-p"), ("override_ini", "-o"), ("pythonwarnings", "-W"))
_VALUES = (("importmode", "--import-mode"), ("confcutdir", "--confcutdir"))
_DROPPED = ("PYTEST_XDIST", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST")
_OPTION = re.compile(r"-(?!\d|$)")
"""What is an option and no value, which may be a negative number."""
_LONGEST_WORDS = 100_000
"""Linux takes 2 MiB of words and environment together, and 128 KiB of any one."""
_OURS = ("perftests.plugin", "tracker.pytest_plugin")


def environment() -> dict[str, str]:
    """Return this process's environment without what makes the child one of its test workers."""
    return {k: v for k, v in os.environ.items() if not k.startswith(_DROPPED)}


def folder(config: pytest.Config) -> Path:
    """Return where the child starts: where this session did, for options that name files."""
    return config.invocation_params.dir


def arguments(config: pytest.Config, nodeids: Iterable[str], cache: Path) -> list[str]:
    """Return what makes Python run these tests as this session would; `cache` is a folder for it.

    Whether to time and what to write is the caller's to add.
    """
    return [
        *("-m", "pytest", *_named([_placed(config, nodeid) for nodeid in nodeids], cache)),
        *("-p", "perftests.plugin", *_of_pytest(config, cache), *_of_the_user(config), "-q"),
        f"--bandwatch-device={_device(config)}",
        f"--bandwatch-mode={config.getoption('--bandwatch-mode')}",
        *(["--bandwatch-quick"] if config.getoption("--bandwatch-quick") else []),
    ]


def _named(tests: list[str], cache: Path) -> list[str]:
    """Return the tests, or a file of them where the system would not take so many words."""
    if sum(len(test.encode()) + 1 for test in tests) <= _LONGEST_WORDS:
        return tests
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / "tests.txt"
    path.write_text("".join(f"{test}\n" for test in tests), encoding="utf-8")
    return [f"@{path}"]


def _placed(config: pytest.Config, nodeid: str) -> str:
    """Return a test's id, which begins at the root folder, with the whole path of its file."""
    file, colons, rest = nodeid.partition("::")
    return f"{config.rootpath / file}{colons}{rest}"


def _of_pytest(config: pytest.Config, cache: Path) -> Iterator[str]:
    """Yield what says where the project is and which plugins and settings it has."""
    option = config.getoption
    yield f"--rootdir={config.rootpath}"
    if config.inipath is not None:
        yield from ("-c", str(config.inipath))
    for name, flag in _LISTS:
        for value in option(name, None) or ():
            yield from (flag, value)
    yield from (f"{flag}={option(name)}" for name, flag in _VALUES if option(name, None))
    if option("doctestmodules", default=False):
        yield "--doctest-modules"
    if config.pluginmanager.hasplugin("cacheprovider"):
        yield from ("-o", f"cache_dir={cache}")
    if hasattr(config.option, "numprocesses"):
        yield "-n0"
    yield "--maxfail=0"


def _device(config: pytest.Config) -> str:
    """Return the device that this process measures on: the child is nobody's worker."""
    name = str(config.getoption("--bandwatch-device"))
    if name == "cpu":
        return name
    from perftests.harness.session import choose_device

    try:
        chosen = choose_device(name, worker_index())
    except HarnessError:
        return name
    return name if chosen.type == "cpu" else str(chosen)


def _of_the_user(config: pytest.Config) -> list[str]:
    """Return the options given that the project's own conftest files and plugins registered."""
    known = _Options()
    for plugin in config.pluginmanager.get_plugins():
        hook = getattr(plugin, "pytest_addoption", None)
        if hook is not None and _is_of_the_project(config, plugin):
            given = {"parser": known, "pluginmanager": config.pluginmanager}
            wanted = inspect.signature(hook).parameters
            with suppress(Exception):  # it asks more of a parser: its options are not carried
                hook(**{name: given[name] for name in wanted if name in given})
    words = shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))
    return list(known.among([*words, *map(str, config.invocation_params.args)]))


def _is_of_the_project(config: pytest.Config, plugin: object) -> bool:
    file, name = getattr(plugin, "__file__", None), getattr(plugin, "__name__", "")
    if not file or name in _OURS or "site-packages" in Path(file).parts:
        return False
    return any(Path(file).is_relative_to(root) for root in (config.rootpath, folder(config)))


class _Options:
    """Stands in for pytest's parser and its groups: notes options and how many values they take."""

    def __init__(self) -> None:
        self._values: dict[str, float] = {}

    def getgroup(self, *_: Any, **__: Any) -> _Options:
        return self

    def addoption(self, *names: str, **attributes: Any) -> None:
        takes = attributes.get("action", "store") in {"store", "append", "extend"}
        count = attributes.get("nargs", 1)
        many = count if isinstance(count, int) else inf
        self._values.update(dict.fromkeys(names, many if takes else 0))

    def addini(self, *_: Any, **__: Any) -> None:
        """Note nothing: settings are read again."""

    def among(self, words: Sequence[str]) -> Iterator[str]:
        """Yield what of a command line are options noted here, with their values."""
        left = 0.0
        for word in words:
            if not _OPTION.match(word):
                if left > 0:
                    yield word
                left -= 1
                continue
            name, equals, _ = word.partition("=")
            left = 0 if equals else self._values.get(name, 0)
            if name in self._values:
                yield word
