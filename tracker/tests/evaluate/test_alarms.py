"""False alarms and found losses counted from a store with known content."""

import json
import lzma
from pathlib import Path

import numpy as np
import pytest

from tracker.evaluate.alarms import alarms_document, main
from tracker.evaluate.share import interval
from tracker.model import Run
from tracker.store import Store
from tracker.tests.factory import make_case, make_result, make_run

CASE = make_case("relu", n=1 << 26)


def run(number: int, factor: float, *, parent: int | None = None, planted: str = "") -> Run:
    rng = np.random.default_rng(number)
    times = [float(t) for t in 1.3e-4 * factor * np.exp(rng.normal(0, 0.002, 40))]
    flag = f" --planted-loss={planted}" if planted else ""
    result = make_result(CASE, times, median_cycles=257_400.0 * factor, code_fingerprint=planted)
    more = {"parents": (parent or number - 1,)} if number > 1 else {}
    command = f"pytest --benchmark{flag}"
    return make_run(f"run-{number:08d}", number, results=(result,), command=command, **more)


@pytest.fixture
def filled(tmp_path: Path) -> str:
    """Return a store of 6 unchanged runs, the last a false alarm by construction, and 2 planted."""
    address = str(tmp_path / "alarms.db")
    runs: tuple[Run, ...] = (
        *(run(number, 1.0) for number in range(1, 6)),
        run(7, 1 / 0.95, parent=5, planted="0.05"),
        run(8, 1.0, parent=5, planted="0.02"),
        run(9, 1.2, parent=5),
    )
    with Store.open(address) as store:
        for one in runs:
            store.record(one)
    return address


def test_alarms_of_unchanged_runs_and_found_losses_are_counted(filled: str) -> None:
    with Store.open(filled, read_only=True) as store:
        document = alarms_document(store)
    assert document.facts["false_alarms"] == 1
    assert document.facts["unchanged_runs"] == 6
    rows = {row.values["loss"]: row.values for row in document.tables[0].rows}
    assert (rows[0.05]["found"], rows[0.05]["share"], rows[0.05]["before"]) == (1, 1.0, 5)
    assert rows[0.05]["met"] is None, "five runs are no level: no goal is set"
    assert rows[0.02]["found"] == 0
    assert rows[0.05]["effect"] == pytest.approx(-0.05, abs=0.004)
    false, missed = document.tables[2].rows, document.tables[3].rows
    assert [row.values["run"] for row in false] == ["run-00000009"]
    assert [row.values["run"] for row in missed] == ["run-00000008"]


def test_the_documents_are_written_beside_each_other(filled: str, tmp_path: Path) -> None:
    assert main([filled, "--out", str(tmp_path / "out")]) == 0
    page = tmp_path / "out" / "alarms-nvidia-h200.md"
    assert "1 false alarms in 6 unchanged runs" in page.read_text()
    assert json.loads(page.with_suffix(".json").read_text())["facts"]["false_alarms"] == 1


def test_packed_evidence_gives_the_same_tables(
    filled: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = tmp_path / "alarms.db.xz"
    packed.write_bytes(lzma.compress(Path(filled).read_bytes()))
    assert main([filled]) == 0
    plain = capsys.readouterr().out
    assert main([str(packed)]) == 0
    assert capsys.readouterr().out == plain
    packed.write_bytes(b"no such thing")
    assert main([str(packed)]) == 2
    assert "not packed with xz" in capsys.readouterr().err


def test_a_store_without_runs_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = str(tmp_path / "empty.db")
    Store.open(address).close()
    assert main([address]) == 2
    assert "no run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    # Clopper and Pearson, Biometrika 26 (1934); 0 of n: 1 - 0.025 ** (1 / n).
    [(0, 100, 0.0, 0.03622), (100, 100, 0.96378, 1.0), (9, 10, 0.55498, 0.99747)],
)
def test_the_interval_of_a_share_is_the_exact_one(
    hits: int, of: int, low: float, high: float
) -> None:
    assert interval(hits, of) == pytest.approx((low, high), abs=2e-5)
