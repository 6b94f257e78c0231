"""Files that must not get in: each refused in one line that says where and what."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracker import queries
from tracker.errors import NotFoundError, RecordError, StoreError
from tracker.importers import dated_as_held, read_files
from tracker.store import Store
from tracker.tests.importers.samples import (
    ASV,
    GOOGLE_BENCHMARK,
    NVBENCH,
    PYTEST_BENCHMARK,
    copy_of,
    with_records,
    write,
)

ALL = {
    "pytest-benchmark": PYTEST_BENCHMARK,
    "nvbench": NVBENCH,
    "google-benchmark": GOOGLE_BENCHMARK,
    "asv": ASV,
}


def refused(path: Path, form: str = "auto") -> str:
    with pytest.raises(RecordError) as caught:
        read_files([path], form)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 700
    assert path.name in message
    return message


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "out.json"


@pytest.mark.parametrize("document", ALL.values(), ids=ALL)
def test_a_truncated_file_is_refused(file: Path, document: dict[str, Any]) -> None:
    whole = json.dumps(document)
    file.write_text(whole[: len(whole) * 2 // 3])
    assert "not JSON" in refused(file)


@pytest.mark.parametrize("name", ["pytest-benchmark", "nvbench", "google-benchmark"])
def test_a_bare_nan_is_refused(file: Path, name: str) -> None:
    document = {**copy_of(ALL[name]), "extra": float("nan")}
    assert "NaN is not JSON" in refused(write(file, document))


def test_nan_is_not_smuggled_in_by_a_name_of_asv(file: Path) -> None:
    document = {**copy_of(PYTEST_BENCHMARK), "commit_hash": "x", "extra": float("nan")}
    assert "NaN is not JSON" in refused(write(file, document))


def test_infinity_is_refused_in_asv_where_nan_means_skipped(file: Path) -> None:
    document = copy_of(ASV)
    document["results"]["suite.time_sum"][0] = [float("inf")]
    assert "suite.time_sum gave inf" in refused(write(file, document))


def test_fifty_megabytes_are_not_read(file: Path) -> None:
    with file.open("wb") as stream:
        stream.truncate(50 * 1024 * 1024)
    assert "expected at most 33,554,432" in refused(file)


def _set(*path: Any, value: object) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        place: Any = document
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


FAULTS = [
    ("pytest-benchmark", _set("version", value="3.4.1"), "expected pytest-benchmark 4 or 5"),
    ("pytest-benchmark", _set("datetime", value="yesterday"), "expected an ISO 8601 time"),
    ("pytest-benchmark", _set("benchmarks", value={}), "benchmarks is {}; expected a list"),
    (
        "pytest-benchmark",
        _set("benchmarks", 1, "stats", "mean", value="fast"),
        "benchmarks[1].stats.mean is 'fast'; expected a number",
    ),
    (
        "pytest-benchmark",
        _set("benchmarks", 0, "stats", "data", value=[1e-4, "x"]),
        "benchmarks[0].stats.data",
    ),
    ("pytest-benchmark", _set("benchmarks", 0, value=7), "benchmarks[0] is 7; expected an object"),
    ("nvbench", _set("benchmarks", 0, "states", 0, "device", value=3), "no device 3"),
    (
        "nvbench",
        _set("benchmarks", 0, "states", 0, "summaries", value=[]),
        "expected one with the tag nv/cold/time/gpu/mean",
    ),
    ("nvbench", _set("benchmarks", value=[]), "no state in it"),
    ("google-benchmark", _set("benchmarks", 0, "time_unit", value="h"), "expected ns, us, ms, s"),
    ("google-benchmark", _set("context", "date", value="noon"), "expected an ISO 8601 time"),
    ("asv", _set("commit_hash", value="HEAD"), "expected a commit's id"),
    ("asv", _set("date", value="x"), "date is 'x'; expected a number"),
    ("asv", _set("date", value=1e300), "its values are not what asv writes"),
    ("asv", _set("results", "suite.time_sum", value="x"), "expected a list of columns"),
    ("asv", _set("results", "suite.Copy.time_copy", 1, value=7), "not what asv writes"),
]


@pytest.mark.parametrize(("name", "change", "told"), FAULTS)
def test_a_wrong_value_is_named_with_its_path(
    file: Path, name: str, change: Callable[[dict[str, Any]], None], told: str
) -> None:
    document = copy_of(ALL[name])
    change(document)
    assert told in refused(write(file, document))


def test_a_damaged_record_inside_pytest_benchmark_is_refused(file: Path) -> None:
    document = with_records("torch")
    document["benchmarks"][0]["extra_info"]["bandwatch"]["result"]["status"] = "fine"
    assert "benchmarks[0].extra_info.bandwatch" in refused(write(file, document))


def test_one_case_twice_in_a_file_is_refused(file: Path) -> None:
    document = with_records("torch", "torch")
    assert "two results of" in refused(write(file, document))


@pytest.mark.parametrize("text", ["[]", "7", '"x"', "null"])
def test_a_file_that_is_no_object_is_refused(file: Path, text: str) -> None:
    file.write_text(text)
    assert "expected an object" in refused(file)


def test_an_unknown_format_is_refused_with_those_that_are_known(file: Path) -> None:
    assert "expected record, pytest-benchmark, asv, nvbench" in refused(write(file, {"a": 1}))
    assert "it is no nvbench file" in refused(write(file, PYTEST_BENCHMARK), "nvbench")


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no such file"):
        read_files([tmp_path / "none.json"])


def test_several_files_go_in_together_or_not_at_all(store: Store, tmp_path: Path) -> None:
    good = write(tmp_path / "a.json", PYTEST_BENCHMARK)
    other = write(tmp_path / "b.json", GOOGLE_BENCHMARK)
    store.record_all(read_files([other]).runs)
    (clash,) = read_files([other]).runs
    changed = write(tmp_path / "c.json", PYTEST_BENCHMARK)
    assert changed.read_bytes() == good.read_bytes()
    from dataclasses import replace

    before = store.revision()
    runs = (*read_files([good]).runs, replace(clash, command="another"))
    with pytest.raises(StoreError, match="nothing was changed"):
        store.record_all(runs)
    assert queries.overview(store).runs == 1
    assert store.revision() == before


@pytest.mark.parametrize("document", ALL.values(), ids=ALL)
def test_importing_twice_changes_nothing(
    store: Store, tmp_path: Path, document: dict[str, Any]
) -> None:
    import os

    file = write(tmp_path / "a.json", document)
    first = store.record_all(dated_as_held(store, read_files([file])))
    assert all(outcome.inserted for outcome in first)
    # A copy of the file: its time is another.
    os.utime(file, (1_700_000_000, 1_700_000_000))
    second = store.record_all(dated_as_held(store, read_files([file])))
    assert not any(outcome.inserted for outcome in second)
    assert [o.revision for o in second] == [o.revision for o in first]
    run = queries.load_run(store, first[0].run_id)
    assert len(run.results) == first[0].results
