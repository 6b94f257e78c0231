"""The pictures of the documentation are drawn from runs, and only from those that are there."""

from pathlib import Path

import pytest

from tracker.evaluate.pictures import main
from tracker.store import Store
from tracker.tests.test_watch import measured

pytest.importorskip("matplotlib")


def test_a_long_series_gives_the_monitors_and_the_historys_picture(tmp_path: Path) -> None:
    address = str(tmp_path / "long.db")
    with Store.open(address) as store:
        for number in range(1, 25):
            store.record(measured(number))
    assert main([address, "--out", str(tmp_path)]) == 0
    found = {path.stem for path in tmp_path.glob("*.png")}
    assert found == {"decides-process", "decides-monitor", "decides-history"}
    assert all(path.stat().st_size > 5000 for path in tmp_path.glob("*.png"))


def test_a_store_without_gpu_runs_gives_none(tmp_path: Path) -> None:
    address = str(tmp_path / "empty.db")
    Store.open(address).close()
    assert main([address, "--out", str(tmp_path)]) == 0
    assert list(tmp_path.glob("*.png")) == []
