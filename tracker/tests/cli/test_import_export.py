"""`bandwatch import` and `bandwatch export` from the command line."""

import json
from pathlib import Path

from tracker import queries
from tracker.store import Store
from tracker.tests.cli.conftest import Command
from tracker.tests.importers.samples import PYTEST_BENCHMARK, with_records, write


def test_import_records_foreign_files_once(bandwatch: Command, project: Path) -> None:
    write(project / "pb.json", PYTEST_BENCHMARK)
    answer = bandwatch("import", "pb.json", "--format", "json")
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["facts"]["recorded"] == 1
    again = json.loads(bandwatch("import", "pb.json", "--format", "json").out)
    assert again["facts"] | {"store": ""} == {"recorded": 0, "unchanged": 1, "store": ""}


def test_import_merges_shards(bandwatch: Command, project: Path) -> None:
    write(project / "a.json", with_records("cuda_vector", "torch"))
    write(project / "b.json", with_records("torch", "triton"))
    answer = bandwatch("import", "a.json", "b.json", "--run-id", "nightly-7")
    assert answer.code == 0, answer.err
    assert "merged 2 shards of run nightly-7" in answer.out + answer.err
    with Store.open("runs.db", read_only=True) as store:
        assert queries.find_run(store, "nightly-7").results == 3


def test_import_of_nonsense_writes_nothing(bandwatch: Command, project: Path) -> None:
    (project / "x.json").write_text('{"a": NaN}')
    answer = bandwatch("import", "x.json")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.count("\n") == 1
    assert not (project / "runs.db").exists()


def test_a_store_moves_through_its_export(bandwatch: Command, filled: Path) -> None:
    answer = bandwatch("export", "--output", "all.jsonl")
    assert (answer.code, answer.out) == (0, "")
    assert "wrote all.jsonl" in answer.err
    moved = bandwatch("import", "all.jsonl", "--store", "sqlite:///moved.db")
    assert moved.code == 0, moved.err
    assert "identical to the exported one" in " ".join(moved.out.split())
    assert "imported 4 of 4 runs" in moved.out
    assert bandwatch("export", "--store", "sqlite:///moved.db").out == (
        filled / "all.jsonl"
    ).read_text("utf-8")


def test_export_writes_to_standard_output(bandwatch: Command, filled: Path) -> None:
    answer = bandwatch("export", "latest", "--format", "bmf")
    assert answer.code == 0
    assert len(json.loads(answer.out)) == 3
    assert bandwatch("export", "--format", "csv").out.startswith("row,run,started_at,commit,")


def test_export_of_a_missing_store_is_wrong_use(bandwatch: Command, project: Path) -> None:
    answer = bandwatch("export", "--format", "csv")
    assert (answer.code, answer.out) == (2, "")
    assert "there is no such file" in answer.err
