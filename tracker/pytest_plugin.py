"""`pytest --benchmark`: records what tests measured, judges it, prints the table, sets the status.

Measuring is another plugin's: a test leaves its record (schema 1) as the user property `bandwatch`
of its report. Without the flag this plugin does nothing.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tracker.errors import ExitCode, TrackerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracker.merge_base import Selection
    from tracker.session import Ending

# Statuses of pytest that say nothing about what was measured; all others stand.
_REPLACED = frozenset({pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED})
# Flags of ours that say where to record and whether to time.
_NOT_HOW = frozenset({"--bandwatch-store", "--bandwatch-timing"})
# Flags that say something about --benchmark, and nothing without it.
_BESIDE = {
    "--benchmark-base": "says what --benchmark compares with",
    "--bandwatch-store": "says where --benchmark records",
}
# Flags of pytest-benchmark whose output is the reason to give them.
_SHOWS = ("benchmark_compare", "benchmark_compare_fail", "benchmark_histogram", "benchmark_verbose")
# Those that say how its table looks: the reason where they were typed.
_LOOKS = (
    *("--benchmark-columns", "--benchmark-sort", "--benchmark-group-by"),
    *("--benchmark-name", "--benchmark-time-unit"),
)
# Flags of pytest-benchmark that keep the times in files of its own.
_KEEPS = ("benchmark_json", "benchmark_save", "benchmark_autosave", "benchmark_csv")
# What a parallel worker sends under.
_STRAYS = "bandwatch_strays"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the flags."""
    group = parser.getgroup("bandwatch", "recording and judging of measured results")
    group.addoption(
        "--benchmark",
        action="store_true",
        dest="bandwatch_benchmark",
        help="measure, record the results in the store, judge each against its baseline; the exit "
        "status is 1 for a regression, 3 for a vanished case or nothing measured",
    )
    group.addoption(
        "--benchmark-base",
        action="store_true",
        dest="bandwatch_base",
        help="with --benchmark: where no store has results of the merge base (on the main branch: "
        "of the commit below), measure it first",
    )
    group.addoption(
        "--bandwatch-store",
        metavar="URL",
        help="where --benchmark records; before BANDWATCH_STORE and [tool.bandwatch] store",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Take part in a session that has the flag, runs tests and reports to a person."""
    if config.option.collectonly or config.option.help:
        return
    if _serves_another(config):
        if hasattr(config, "workerinput") and config.getoption("bandwatch_benchmark"):
            config.pluginmanager.register(StraysTold(config), "bandwatch-strays")
        return
    if not config.getoption("bandwatch_benchmark"):
        for name, use in _BESIDE.items():
            if _typed(config, name):
                raise pytest.UsageError(f"{name} {use}: give both")
        if not _any_set(config, _KEEPS):
            config.pluginmanager.register(Unrecorded(), "bandwatch-unrecorded")
        return
    # pytest-benchmark's table of seconds would stand above ours; its files are written as ever.
    if not _any_set(config, _SHOWS) and not any(_typed(config, name) for name in _LOOKS):
        config.option.benchmark_quiet = True
    config.pluginmanager.register(Recorder(config), "bandwatch-recorder")


def _serves_another(config: pytest.Config) -> bool:
    """Whether another session or command takes what this one finds: ours, or that of xdist."""
    ours = ("--bandwatch-profile", "--bandwatch-reports")
    started = any(config.getoption(name, default=None) for name in ours)
    inside = config.pluginmanager.hasplugin("bandwatch_inside")
    return hasattr(config, "workerinput") or started or inside


def _typed(config: pytest.Config, name: str) -> bool:
    """Whether a flag stands on the command line; what does in addopts may be for other sessions."""
    return any(str(word).partition("=")[0] == name for word in config.invocation_params.args)


def _any_set(config: pytest.Config, names: Iterable[str]) -> bool:
    return any(getattr(config.option, name, None) for name in names)


class Unrecorded:
    """Tells at the end of a session without the flag that what it measured is recorded nowhere."""

    def __init__(self) -> None:
        self._measured: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that left a time."""
        for name, value in report.user_properties:
            result = value.get("result") if isinstance(value, dict) else None
            if name == "bandwatch" and isinstance(result, dict) and result.get("measurements_s"):
                self._measured.add(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say so in a line."""
        if count := len(self._measured):
            what = "1 result was" if count == 1 else f"{count} results were"
            terminalreporter.write_line(
                f"bandwatch: {what} measured and not recorded; that takes --benchmark"
            )


class StraysTold:
    """Tells the session what one of its parallel workers imported from another worktree."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._modules = 0
        self._strays: str | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send it with each report: a worker that crashes sends nothing at its end."""
        if len(sys.modules) != self._modules:
            self._modules = len(sys.modules)
            self._strays = self._strays or _strays(self._config)
        setattr(report, _STRAYS, self._strays)


def _strays(config: pytest.Config) -> str | None:
    """Return why nothing here is of this worktree's commit, None where all is."""
    from tracker.loop.strays import StrayError, refuse_own_strays

    try:
        refuse_own_strays(config.rootpath, Path(__file__).resolve().parent)
    except StrayError as error:
        return str(error)
    return None


class Recorder:
    """Collects the records of one session, then stores and judges them."""

    def __init__(self, config: pytest.Config) -> None:
        from tracker.collect import Collector

        self._config = config
        self._collector = Collector()
        self._ending: Ending | None = None
        self._strays: str | None = None

    def pytest_sessionstart(self) -> None:
        """Open the store before anything is measured."""
        from tracker.session import Session

        parameters = self._config.invocation_params
        try:
            self._session = Session.begin(
                self._config.getoption("bandwatch_store"),
                root=self._config.rootpath,
                here=parameters.dir,
                arguments=[str(argument) for argument in parameters.args],
                environ=os.environ,
                base=self._selection() if self._config.getoption("bandwatch_base") else None,
                tell=self._tell,
            )
        except TrackerError as error:
            pytest.exit(f"bandwatch: {error}", returncode=int(error.exit_code))

    def pytest_collection_finish(self) -> None:
        """Refuse another worktree's code before it is measured."""
        if told := _strays(self._config):
            del self._session
            pytest.exit(f"bandwatch: {told}", returncode=int(ExitCode.UNFIT))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take one phase of one test, and what a parallel worker tells with it."""
        self._strays = self._strays or getattr(report, _STRAYS, None)
        self._collector.add(report)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Record and judge; set the exit status unless pytest's own says more."""
        if not hasattr(self, "_session"):
            return
        self._ending = self._ended(session, exitstatus)
        if exitstatus in _REPLACED:
            session.exitstatus = self._ending.status

    def _ended(self, session: pytest.Session, exitstatus: int) -> Ending:
        from tracker.session import Ending

        # Some are imported by a test alone.
        if strays := self._strays or _strays(self._config):
            return Ending((), ExitCode.UNFIT, (strays,))
        try:
            partial = self._partial(session, exitstatus)
            return self._session.end(self._collector.collect(), partial=partial)
        except TrackerError as error:
            return Ending((), ExitCode(error.exit_code), (str(error),))

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the verdicts, and where the results are."""
        from tracker.report.escape import plain
        from tracker.report.text import stream_width, to_text

        if self._ending is None:
            return
        terminalreporter.section("bandwatch")
        colour = terminalreporter.hasmarkup
        for document in self._ending.documents:
            text = to_text(document, width=stream_width(tty=colour), colour=colour)
            terminalreporter.write(text)
        for line in self._ending.lines:
            terminalreporter.write_line(plain(line))

    def _selection(self) -> Selection:
        """Return what this session measures, for the commit that it is compared with."""
        from tracker.merge_base import Selection

        config, here = self._config, Path(self._config.invocation_params.dir)
        given = config.args if config.args_source is config.ArgsSource.ARGS else []
        marks = ("-m", config.option.markexpr) if config.option.markexpr else ()
        return Selection(
            paths=tuple(_within(str(path), here, config.rootpath) for path in given),
            keyword=config.option.keyword or None,
            words=(*_measuring_flags(config), *marks),
            cpu=config.getoption("--bandwatch-device", default=None) == "cpu",
        )

    def _tell(self, text: str) -> None:
        from tracker.report.escape import plain

        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.write_line(f"bandwatch: {plain(text)}")

    def _partial(self, session: pytest.Session, exitstatus: int) -> str | None:
        """Return why the session did not cover the whole suite, None when it did."""
        from tracker.selection import narrowed_by

        if exitstatus not in {*_REPLACED, pytest.ExitCode.TESTS_FAILED}:
            return "the session was interrupted"
        if session.shouldfail or session.shouldstop:
            return f"the session stopped early ({session.shouldfail or session.shouldstop})"
        root = self._config.rootpath
        suite = self._session.config.suite or self._config.getini("testpaths") or ["."]
        return narrowed_by(
            self._config.option,
            [str(argument) for argument in self._config.args],
            [(root / folder).resolve() for folder in suite],
            Path(self._config.invocation_params.dir),
        )


def _within(path: str, here: Path, root: Path) -> str:
    """Return a path or test id as one relative to the project."""
    file, colons, test = path.partition("::")
    whole = (here / file).resolve()
    inside = whole.relative_to(root) if whole.is_relative_to(root) else whole
    return f"{inside}{colons}{test}"


def _measuring_flags(config: pytest.Config) -> Iterator[str]:
    """Yield the flags that say how to measure, with their values; the base needs the same."""
    value_follows = False
    for argument in map(str, config.invocation_params.args):
        name = argument.partition("=")[0]
        if value_follows:
            value_follows = False
            yield argument
        elif name.startswith("--bandwatch-") and name not in _NOT_HOW:
            value_follows = "=" not in argument and not isinstance(config.getoption(name), bool)
            yield argument
