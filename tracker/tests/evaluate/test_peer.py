"""The comparison with Apache Otava: its side is faked, ours is real."""

import sys
from pathlib import Path

import numpy as np
import pytest

from tracker.evaluate import peer

# A module that tells a change where the last value is below 97.
FAKE = """
class Point:
    def __init__(self, index): self.index = index

def compute_change_points(series):
    return ([Point(len(series) - 1)] if series[-1] < 97 else []), []
"""


@pytest.fixture
def otava(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> peer.Otava:
    (tmp_path / "otava").mkdir()
    (tmp_path / "otava" / "__init__.py").touch()
    (tmp_path / "otava" / "analysis.py").write_text(FAKE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return peer.Otava(sys.executable)


def test_the_first_alarm_of_each_row_is_told(otava: peer.Otava) -> None:
    rows = np.full((3, 30), 100.0)
    rows[0, 24] = rows[1, 20] = 96.0
    assert otava.first_alarms(rows, 21, 0) == [25, 21, None]
    assert otava.first_alarms(rows, 21, 22) == [25, None, None]


def test_our_first_alarm_is_the_monitors() -> None:
    rows = 100 + np.random.default_rng(1).standard_normal((4, 45))
    rows[:2, 40:] *= 0.9
    found = peer.our_first_alarms(rows, 41, losses_only=True)
    assert found[0] is not None
    assert 43 <= found[0] <= 45
    assert found[2:] == [None, None]


def test_rates_count_only_runs_until_the_first_alarm() -> None:
    assert peer.per_100_runs([None, 30], 21, 40) == pytest.approx(100 / 30)
    assert peer.share_found([None, 30]) == 0.5


def test_an_interpreter_without_otava_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "")
    assert peer.main(["--otava", sys.executable, "--series", "2"]) == 2
    assert "otava" in capsys.readouterr().err.splitlines()[-1]
