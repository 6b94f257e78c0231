"""What a session keeps of earlier runs, and which of them say what is usual for a case."""

from dataclasses import replace
from pathlib import Path

import pytest

from tracker.loop.judging import earlier_runs
from tracker.loop.session import Session
from tracker.model import Environment, Run
from tracker.tests.cli.conftest import run_of_commit
from tracker.tests.factory import H200


def session_of(folder: Path, *bases: Run) -> Session:
    session = Session.begin(folder / "records", "key")
    session.keep("head", [run_of_commit(4)])
    session.keep("base", bases)
    return session


@pytest.mark.parametrize(
    ("environment", "seen"),
    [
        (H200, 2),
        (replace(H200, driver="999.1"), 1),
        (replace(H200, libraries={**H200.libraries, "torch": "2.12.0"}), 1),
    ],
    ids=["the same", "another driver", "another torch"],
)
def test_earlier_runs_of_another_environment_say_nothing_of_a_case(
    environment: Environment, seen: int, tmp_path: Path
) -> None:
    old = replace(run_of_commit(2), environment=environment)
    session = session_of(tmp_path, run_of_commit(3), old)
    found = earlier_runs(session, run_of_commit(4).device.uuid)
    assert found
    assert {len(runs) for runs in found.values()} == {seen}


def test_runs_of_the_very_commit_are_no_earlier_ones(tmp_path: Path) -> None:
    session = session_of(
        tmp_path, run_of_commit(3), replace(run_of_commit(4), run_id="run-once-more")
    )
    found = earlier_runs(session, run_of_commit(4).device.uuid)
    assert {len(runs) for runs in found.values()} == {1}
