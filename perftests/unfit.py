"""An environment that is unfit for measuring ends the session: one line, exit status 4.

A process that reports to another, as a worker of pytest-xdist does, cannot end the session. It
fails its test and hands the line on with the report; whoever receives it ends the session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from perftests.harness.errors import UnfitError

EXIT = 4
_PROPERTY = "bandwatch-unfit"
_LINE = pytest.StashKey[str]()


def end_session(config: pytest.Config, error: UnfitError) -> NoReturn:
    """End the session, or fail the test where only another process can end it."""
    line = f"environment unfit: {error}"
    if not _reports_to_another(config):
        pytest.exit(line, returncode=EXIT)
    config.stash[_LINE] = line
    pytest.fail(line, pytrace=False)


def fail_if_known(config: pytest.Config) -> None:
    """Fail the test at once where this process knows that the environment is unfit."""
    if _LINE in config.stash:
        pytest.fail(config.stash[_LINE], pytrace=False)


def _reports_to_another(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput") or bool(config.getoption("--bandwatch-reports"))


class Relay:
    """Hands the line on with a failed test's report, or ends the session for one that came."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._hands_on = _reports_to_another(config)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the line into the report."""
        report = yield
        if report.failed and _LINE in self._config.stash:
            report.user_properties.append((_PROPERTY, self._config.stash[_LINE]))
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """End the session before the test is told as failed: there is nothing wrong with it."""
        lines = [str(value) for name, value in report.user_properties if name == _PROPERTY]
        if lines and not self._hands_on:
            pytest.exit(lines[0], returncode=EXIT)
