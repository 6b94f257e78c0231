"""Exports for other tools, read back by independent readers where there are some."""

import csv
import io
import json
import math
import re
import sys
from pathlib import Path

import pytest

from tracker import queries
from tracker.errors import NotFoundError, RecordError, StoreError
from tracker.exporters import Scope, export, flat
from tracker.exporters.formats import write_whole
from tracker.exporters.tables import TABLE
from tracker.model import Correctness, Peaks, Status, Warn
from tracker.store import Store
from tracker.tests.factory import make_case, make_result, make_run

FAILED = make_result(
    make_case(implementation="triton"),
    [],
    status=Status.INCORRECT,
    correctness=Correctness(checked=True, passed=False),
)


@pytest.fixture
def filled(store: Store) -> Store:
    results = (
        make_result(make_case(alignment='in+1 "x"\n'), [1e-4, 2e-4, 4e-4]),
        make_result(make_case("=cmd()", "torch"), [2e-4]),
        FAILED,
    )
    store.record(make_run("run-00000001", 1))
    store.record(make_run("run-00000002", 2, results=results))
    return store


def text(store: Store, form: str, scope: Scope | None = None) -> str:
    return b"".join(export(store, form, scope or Scope(), None)).decode()


def save(store: Store, form: str, path: Path) -> None:
    pieces = export(store, form, Scope(), path)
    if form != "parquet":
        write_whole(pieces, path)


def test_csv_names_units_and_keeps_full_precision(filled: Store) -> None:
    whole = list(csv.DictReader(io.StringIO(text(filled, "csv"))))
    rows = [row for row in whole if row["row"] == "result"]
    assert len(rows) == 5
    assert list(rows[0]) == list(TABLE)
    row = rows[2]
    assert row["run"] == "run-00000002"
    assert float(row["median_s"]) == 2e-4
    assert [float(x) for x in row["measurements_s"].split(" ")] == [1e-4, 2e-4, 4e-4]
    assert float(row["bandwidth_bytes_per_s"]) == 2 * 4 * 2**26 / 2e-4
    assert rows[3]["kernel"] == "'=cmd()"
    assert (rows[4]["median_s"], rows[4]["status"], rows[4]["correct"]) == (
        "",
        "incorrect",
        "false",
    )
    units = [c for c, kind in TABLE.items() if kind in {float, tuple}]
    assert all(c.endswith(("_s", "_fraction", "_cycles")) for c in units)


def test_parquet_has_the_same_table(filled: Store, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "runs.parquet"
    assert list(export(filled, "parquet", Scope(), path)) == []
    table = [row for row in parquet.read_table(path).to_pylist() if row["row"] == "result"]
    assert len(table) == 5
    assert table[2]["measurements_s"] == [1e-4, 2e-4, 4e-4]
    assert table[2]["bytes_moved_bytes"] == 2 * 4 * 2**26
    assert table[4]["median_s"] is None
    assert table[4]["correct"] is False


def test_parquet_without_pyarrow_says_what_to_install(
    filled: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(StoreError, match="pyarrow is missing"):
        export(filled, "parquet", Scope(), tmp_path / "x.parquet")


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_device_or_a_pipe_is_written_itself_and_a_link_stays_one(
    filled: Store, tmp_path: Path, form: str
) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    device = Path("/dev/null").stat()
    save(filled, form, Path("/dev/null"))
    assert Path("/dev/null").stat().st_rdev == device.st_rdev
    (tmp_path / "target").touch()
    (tmp_path / "link").symlink_to("target")
    save(filled, form, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").stat().st_size > 1000
    assert {path.name for path in tmp_path.iterdir()} >= {"link", "target"}
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize("name", ["a-folder", "no/such/folder/x", "/dev/full"])
def test_what_cannot_be_written_is_told_and_leaves_nothing(
    filled: Store, tmp_path: Path, name: str
) -> None:
    (tmp_path / "a-folder").mkdir()
    with pytest.raises(RecordError, match="cannot write"):
        save(filled, "jsonl", tmp_path / name)
    assert not list(tmp_path.rglob("*.partial"))


def test_parquet_needs_a_file(filled: Store) -> None:
    with pytest.raises(RecordError, match="--output"):
        export(filled, "parquet", Scope(), None)


def test_bencher_gets_latency_in_nanoseconds_and_bandwidth(filled: Store) -> None:
    found = json.loads(text(filled, "bmf"))
    assert len(found) == 2  # the incorrect result has no time
    first = next(iter(found.values()))
    assert first["latency"]["value"] == pytest.approx(2e5)
    assert first["bandwidth"]["value"] == pytest.approx(2 * 4 * 2**26 / 2e-4)
    assert first["latency"]["lower_value"] <= first["latency"]["value"]
    assert first["bandwidth"]["lower_value"] <= first["bandwidth"]["value"]


def test_github_action_benchmark_gets_names_units_and_ranges(filled: Store) -> None:
    found = json.loads(text(filled, "github-action-benchmark", Scope(run="run-00000001")))
    assert [set(item) for item in found] == [{"name", "unit", "value", "range", "extra"}] * 2
    assert found[0]["value"] == pytest.approx(1.3e5)
    assert found[0]["unit"] == "ns"
    assert "NVIDIA H200" in found[0]["name"]


@pytest.mark.parametrize("form", ["bmf", "github-action-benchmark"])
def test_cases_with_one_label_are_all_there(store: Store, form: str) -> None:
    cases = (
        make_case(parameters={"a": 1}),
        make_case(parameters={"a": "1"}),
        make_case(implementation="torch"),
        make_case(version=2),
        make_case("a/b", "c"),
        make_case("a", "b/c"),
    )
    store.record(make_run(results=tuple(make_result(case) for case in cases)))
    found = json.loads(text(store, form))
    names = list(found) if isinstance(found, dict) else [item["name"] for item in found]
    assert len(set(names)) == len(cases)
    assert any(name.startswith("relu/torch float32 [67108864] cold") for name in names)
    assert not any(cases[2].fingerprint in name for name in names)


@pytest.mark.parametrize("form", ["bmf", "github-action-benchmark", "openmetrics"])
def test_times_beyond_reason_give_finite_numbers_or_none(store: Store, form: str) -> None:
    tiny, huge = make_result(sample=[5e-324]), make_result(make_case("add"), [1.7e300])
    store.record(make_run(results=(tiny, huge)))
    found = text(store, form)
    assert not re.search(r"\b(?:inf|nan|infinity)\b", found, re.IGNORECASE)
    if form != "openmetrics":
        assert len(json.loads(found)) == 1


def test_a_parser_of_prometheus_reads_every_label_and_value(filled: Store) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    families = {
        family.name: family.samples
        for family in parser.text_string_to_metric_families(text(filled, "openmetrics"))
    }
    (odd, plain) = families["bandwatch_median_seconds"]
    assert odd.labels["alignment"] == 'in+1 "x"\n'
    assert odd.value == 2e-4
    assert plain.labels["kernel"] == "=cmd()"
    assert families["bandwatch_empty_kernel_seconds"][0].value == 2.4e-6
    assert len(families["bandwatch_results"]) == 2


def test_openmetrics_is_well_formed(filled: Store) -> None:
    lines = text(filled, "openmetrics").split("\n")
    assert lines[-2:] == ["# EOF", ""]
    family = ""
    for line in lines[:-2]:
        if line.startswith("# TYPE "):
            family = line.split()[2]
        elif line.startswith("# UNIT "):
            assert family.endswith("_" + line.split()[3])
        elif not line.startswith("#"):
            assert line.startswith(family + "{")
            assert math.isfinite(float(line.rsplit(" ", 1)[1]))
    assert 'alignment="in+1 \\"x\\"\\n"' in "\n".join(lines)
    for name in ("median_seconds", "empty_kernel_seconds"):
        assert sum(line.startswith(f"bandwatch_{name}{{") for line in lines) == 2
    assert any(
        line.startswith("bandwatch_results{") and 'status="incorrect"' in line for line in lines
    )


@pytest.mark.parametrize("form", ["bmf", "github-action-benchmark", "csv", "jsonl", "openmetrics"])
def test_an_unknown_run_is_told(filled: Store, form: str) -> None:
    with pytest.raises(NotFoundError, match="cannot find run"):
        text(filled, form, Scope(run="nothing"))


@pytest.mark.parametrize("form", ["csv", "jsonl", "openmetrics"])
def test_an_empty_store_gives_an_empty_table(store: Store, form: str) -> None:
    assert text(store, form)


def test_strict_json_never_holds_nan(filled: Store) -> None:
    for form in ("bmf", "github-action-benchmark", "jsonl"):
        for line in text(filled, form).splitlines():
            assert "NaN" not in line


def test_the_results_of_a_run_as_csv_end_with_an_empty_kernel_s_time(store: Store) -> None:
    near = Warn("near_floor", "mostly launch")
    bare = make_result(make_case("add"), peaks=Peaks())
    store.record(make_run(results=(make_result(warnings=(near,)), bare)))
    run = queries.find_run(store, "latest")
    rows = list(csv.DictReader(io.StringIO(b"".join(flat.to_csv(store, [run])).decode())))
    assert [row["floor_s"] for row in rows] == ["2.4e-06", ""]
    assert [row["warnings"] for row in rows] == ["near_floor", "clock"]
