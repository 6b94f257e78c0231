"""The trust study's arithmetic, and what it says of a peer that is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from perftests.studies import trust
from perftests.studies.nvbench_peer import PeerAnswer, read
from perftests.studies.spread import rows

if TYPE_CHECKING:
    from pathlib import Path


def test_a_spread_is_the_range_over_the_median_and_a_copy_can_share_it() -> None:
    found = [
        {
            "256": {
                "median_s": s * 1e-6,
                "copy": 4e6 / s,
                "cycles": 198e3,
                "midmean_s": s * 1e-6,
                "empty_s": s * 1e-6 - 97e-6,
            }
        }
        for s in (100.0, 100.1, 99.9, 100.0)
    ]
    (row,) = rows(found, [256])
    assert row["spread"] == pytest.approx(0.002)
    assert row["largest - smallest ns"] == pytest.approx(200)
    assert row["spread of copy fraction"] == pytest.approx(0)
    assert row["spread in cycles"] == 0
    assert row["spread beyond empty"] == pytest.approx(0)
    assert row["each process, ns"] == "+0 +100 -100 +0"
    assert row["reached"] is False


def test_nvbench_answers_are_read_by_the_name_of_the_size() -> None:
    def benchmark(mib: int, mean: str, median: str) -> dict[str, object]:
        tags = {"nv/cold/time/gpu/mean": mean, "nv/cold/time/gpu/median": median, "other": "7"}
        summaries = [
            {"tag": tag, "data": [{"name": "value", "value": value}]} for tag, value in tags.items()
        ]
        return {"name": f"relu{mib}", "states": [{"summaries": summaries}]}

    document = {"benchmarks": [benchmark(16, "1.3e-5", "1.2e-5"), benchmark(1, "5e-6", "4e-6")]}
    found = read(document, {1: 9.0, 16: 4.0})
    assert found == {1: PeerAnswer(5e-6, 4e-6, 9.0), 16: PeerAnswer(1.3e-5, 1.2e-5, 4.0)}


def test_a_part_that_cannot_be_measured_says_why_and_reaches_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(*_: object) -> None:
        raise RuntimeError("nvbench gave no answer: No module named 'cuda.bench'")

    monkeypatch.setattr(trust, "ask", absent)
    facts = {"environment": {"gpu_model": "X", "driver": "1", "cuda": "13", "libraries": {}}}
    monkeypatch.setattr(trust, "facts", lambda: facts)
    assert trust.main(["agreement", "--out", str(tmp_path)]) == 1
    assert "No module named 'cuda.bench'" in capsys.readouterr().out
    assert "Not measured" in (tmp_path / "trust-x.md").read_text()
