"""The pytest plugin of the harness: the fixture `gpu_benchmark` and its flags.

    def test_mine(gpu_benchmark):
        gpu_benchmark(Workload(kernel="mine", implementation="v1", launch=..., ...))

It measures by itself, then replays the sample into pytest-benchmark where that is installed. The
result travels as a record, in `benchmark.extra_info["bandwatch"]` and as a user property of the
test's report.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from perftests import unfit
from perftests.early import bind_timers
from perftests.fresh import ReportWriter, run_elsewhere
from perftests.harness.budget import Budget
from perftests.harness.errors import ChainBrokenError, HarnessError, SettingError, UnfitError
from perftests.harness.replay import SampleClock, refuse, replay
from perftests.harness.settings import known_mode
from perftests.lost import LOST, LossWatch
from perftests.machine import (  # noqa: F401  hooks of pytest-benchmark
    pytest_benchmark_compare_machine_info,
    pytest_benchmark_update_machine_info,
)
from perftests.nsight import add_counters
from perftests.options import (
    add_options,
    measures,
    settings_from,
    timing_enabled,
    worker_count,
    worker_index,
)
from perftests.progress import follow
from perftests.untold import UntoldWatch

if TYPE_CHECKING:
    from collections.abc import Generator

    import torch

    from perftests.harness.chain import Outcome
    from perftests.harness.session import Session
    from perftests.harness.settings import Settings
    from perftests.harness.workload import Workload

PROPERTY = "bandwatch"
"""Name of the user property, and key in extra_info, under which a result's record travels."""
SETTINGS: pytest.StashKey[Settings] = pytest.StashKey()
_SESSION: pytest.StashKey[Session] = pytest.StashKey()
_REPLAYS = pytest.StashKey[bool]()
_CLOCK = pytest.StashKey[SampleClock]()
_BUDGET_S: pytest.StashKey[float] = pytest.StashKey()
_CASES: pytest.StashKey[int] = pytest.StashKey()


class GpuBenchmark(Protocol):
    """What the fixture gives: call it once in a test."""

    def __call__(self, workload: Workload, *, mode: str | None = None) -> Outcome:
        """Check and time a workload; fail the test where a link of the chain breaks.

        `mode` is the cache mode, by default the first of `--bandwatch-mode`.
        """


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the flags."""
    add_options(parser)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Read the flags, register the fixture that fits what else is installed, follow progress."""
    config.stash[SETTINGS] = settings_from(config)
    config.stash[_REPLAYS] = _replays(config)
    fixture = _ReplayedFixture() if config.stash[_REPLAYS] else _LoneFixture()
    config.pluginmanager.register(fixture, "perftests.gpu_benchmark")
    config.pluginmanager.register(unfit.Relay(config), "perftests.unfit")
    config.pluginmanager.register(LossWatch(), "perftests.lost")
    config.pluginmanager.register(UntoldWatch(), "perftests.untold")
    if config.stash[SETTINGS].timing:
        bind_timers(config)
        follow(config)
    reports = config.getoption("--bandwatch-reports")
    if reports:
        config.pluginmanager.register(ReportWriter(config, Path(reports)), "perftests.reports")


def _replays(config: pytest.Config) -> bool:
    """Whether gpu_benchmark asks for pytest-benchmark's fixture.

    It does when there are times to replay, and when pytest-benchmark has to recognise the test to
    skip or disable it. A plain run leaves it alone: an unused `benchmark` fixture warns.
    """
    manager = config.pluginmanager
    if not (manager.hasplugin("benchmark") or manager.hasplugin("pytest_benchmark.plugin")):
        return False
    asked = ("--benchmark-skip", "--benchmark-disable")
    return timing_enabled(config) or any(config.getoption(name, False) for name in asked)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """End the session at once where a GPU is named that is not there; workers need not look."""
    config, name = session.config, session.config.getoption("--bandwatch-device")
    is_worker = hasattr(config, "workerinput")
    if is_worker or config.option.collectonly or not name.startswith("cuda"):
        return
    from perftests.harness.session import choose_device

    try:
        choose_device(name)
    except UnfitError as error:
        raise pytest.UsageError(f"environment unfit: {error}") from None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each gpu_benchmark test a clock of its own, as the nearest `benchmark` marker.

    Markers of one name are not merged by pytest, so the keywords of one already there move over.
    """
    if not config.stash[_REPLAYS]:
        return
    for item in items:
        if not measures(item):
            continue
        clock = item.stash[_CLOCK] = SampleClock()
        known = item.get_closest_marker("benchmark")
        keywords = {**(known.kwargs if known else {}), "timer": clock}
        item.add_marker(pytest.mark.benchmark(**keywords), append=False)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Run a test in a fresh process once this one has lost its device."""
    config = item.config
    timing = config.stash[SETTINGS].timing
    return run_elsewhere(item, timing=timing, budget=lambda: session_of(config).budget) or None


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Tell what a measurement refuses in one line; a test may catch it before."""
    try:
        return (yield)
    except HarnessError as error:
        if not measures(pyfuncitem):
            raise
        if isinstance(error, ChainBrokenError) and error.sticky:
            pyfuncitem.config.stash.setdefault(LOST, pyfuncitem.nodeid)
        caller, told = pyfuncitem.funcargs["gpu_benchmark"], str(error)
        if isinstance(caller, _Caller):
            caller.not_called(error)
    pytest.fail(told, pytrace=False)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Count the cases that share the session's time; parallel workers each take their part."""
    count = sum(map(measures, session.items))
    session.config.stash[_CASES] = -(-count // worker_count())


def offer_budget(config: pytest.Config, seconds: float) -> None:
    """Set the sampling time that all cases share, where `--bandwatch-budget` does not."""
    config.stash[_BUDGET_S] = config.getoption("--bandwatch-budget") or seconds


class _ReplayedFixture:
    """The fixture where pytest-benchmark takes part; naming its fixture makes it see the test."""

    @pytest.fixture
    def gpu_benchmark(self, request: pytest.FixtureRequest, benchmark: Any) -> GpuBenchmark:
        """Time a callable on a GPU (or the CPU) and check what it computes."""
        return _Caller(request, benchmark)


class _LoneFixture:
    """The fixture where pytest-benchmark is absent or has nothing to do."""

    @pytest.fixture
    def gpu_benchmark(self, request: pytest.FixtureRequest) -> GpuBenchmark:
        """Check what a callable computes, and time it where asked."""
        return _Caller(request, None)


class _Caller:
    """The callable that a test gets."""

    def __init__(self, request: pytest.FixtureRequest, benchmark: Any) -> None:
        self._node = request.node
        self._config = request.config
        self._benchmark = benchmark
        self._used = False

    def __call__(self, workload: Workload, *, mode: str | None = None) -> Outcome:
        """Check and time a workload; fail the test where a link of the chain breaks."""
        if self._used:
            raise SettingError(
                f"cannot measure {workload.label}: gpu_benchmark was called before in this test; "
                "write one test for each workload, or parametrise it"
            )
        mode = known_mode(self._only_mode(workload) if mode is None else mode)
        self._used = True
        outcome = self._measured(workload, mode)
        if outcome.broken is None:
            self._ask_for_more(outcome)
        self._node.user_properties.append((PROPERTY, outcome.envelope))
        if self._benchmark is not None:
            self._benchmark.extra_info[PROPERTY] = outcome.envelope
        if outcome.broken is not None:
            if outcome.broken.sticky:
                self._config.stash[LOST] = self._node.nodeid
            self._refuse(workload, mode, outcome)
        if self._benchmark is not None and (outcome.seconds or self._benchmark.disabled):
            clock = self._node.stash[_CLOCK]
            replay(self._benchmark, clock, outcome.seconds, outcome.timer or "none")
        return outcome

    def not_called(self, error: HarnessError) -> None:
        """Tell pytest-benchmark of an error that came before the call, such as a workload's."""
        if not self._used and self._benchmark is not None:
            refuse(self._benchmark, error)

    def _only_mode(self, workload: Workload) -> str:
        """Return the mode of a test that names none; say so where several were asked for."""
        first, *others = self._config.stash[SETTINGS].modes
        if others:
            told = (
                f"{workload.label}: measured in mode {first} alone, the first of --bandwatch-mode: "
                "the test names none; parametrise it with `mode` to measure in several"
            )
            warnings.warn(pytest.PytestWarning(told), stacklevel=3)
        return first

    def _measured(self, workload: Workload, mode: str) -> Outcome:
        from perftests.harness.chain import measure

        unfit.fail_if_known(self._config)
        try:
            session = session_of(self._config)
            return measure(workload, session, mode=mode, test=self._node.nodeid)
        except UnfitError as error:
            unfit.end_session(self._config, error)
        except HarnessError as error:
            if self._benchmark is not None:
                refuse(self._benchmark, error)
            raise

    def _ask_for_more(self, outcome: Outcome) -> None:
        """Read the counters where asked for, and say so where counters or energy are missing."""
        settings, result = self._config.stash[SETTINGS], outcome.result
        if settings.ncu:
            add_counters(self._config, self._node.nodeid, result)
        for name, asked in (("energy", settings.energy), ("counters", settings.ncu)):
            if asked and result[name] is None:
                warnings.warn(
                    pytest.PytestWarning(f"{name} {result['reasons'][name]}"), stacklevel=3
                )

    def _refuse(self, workload: Workload, mode: str, outcome: Outcome) -> None:
        """Fail the test; pytest-benchmark gets no time."""
        if self._benchmark is not None and outcome.broken is not None:
            refuse(self._benchmark, outcome.broken)
        pytest.fail(
            f"{workload.label} {mode}: no time is reported, the chain of trust broke: "
            f"{outcome.broken}",
            pytrace=False,
        )


def session_of(config: pytest.Config) -> Session:
    """Return the measuring session of this pytest run, made when first asked for."""
    from perftests.harness.session import Session

    if _SESSION not in config.stash:
        seconds = config.stash.get(_BUDGET_S, config.getoption("--bandwatch-budget"))
        budget = Budget(seconds, config.stash.get(_CASES, 1)) if seconds else None
        config.stash[_SESSION] = Session(config.stash[SETTINGS], budget)
    return config.stash[_SESSION]


@pytest.fixture(scope="session")
def bandwatch_device(request: pytest.FixtureRequest) -> torch.device:
    """The device that `--bandwatch-device` chooses; parallel workers take the GPUs in turn."""
    from perftests.harness.session import choose_device

    try:
        return choose_device(request.config.getoption("--bandwatch-device"), worker_index())
    except UnfitError as error:
        unfit.end_session(request.config, error)
