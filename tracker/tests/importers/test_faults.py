"""Files that must not get in: each refused in one line that says where and what."""

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tracker import queries
from tracker.errors import NotFoundError, RecordError, StoreError
from tracker.importers import dated_as_held, is_export, read_files
from tracker.record import read_limited
from tracker.store import Store
from tracker.store.prepare import prepare
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


@pytest.mark.parametrize("change", [lambda found: found.pop(), lambda found: found.append(1e-3)])
def test_results_of_asv_without_their_parameters_are_not_left_out(
    file: Path, change: Callable[[list[Any]], object]
) -> None:
    document = copy_of(ASV)
    change(document["results"]["suite.Copy.time_copy"][0])
    assert "combinations of parameters; expected one each" in refused(write(file, document))


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


def test_a_file_is_named_where_only_the_record_that_it_would_become_is_wrong(file: Path) -> None:
    document = copy_of(PYTEST_BENCHMARK)
    document["benchmarks"][1]["stats"]["q3"] = -1.0
    assert "results[1].summary.q3_s" in refused(write(file, document))
    twice = copy_of(PYTEST_BENCHMARK)
    twice["benchmarks"].append(twice["benchmarks"][0])
    assert "results[2].case is that of results[0]" in refused(write(file, twice))


def test_noise_that_is_no_number_is_left_out_and_the_time_stays(file: Path) -> None:
    document = copy_of(NVBENCH)
    summaries = document["benchmarks"][0]["states"][0]["summaries"]
    value = {"name": "value", "type": "float64", "value": "inf"}
    summaries.append({"tag": "nv/cold/time/gpu/stdev/relative", "data": [value]})
    (run,) = read_files([write(file, document)]).runs
    assert run.results[0].counters is not None
    assert run.results[0].counters["nv/cold/time/gpu/stdev/relative"] is None
    assert run.results[0].measurements_s == (4e-6,)
    summaries[1]["data"][0]["value"] = "inf"
    assert "out.json" in refused(write(file, document))


def test_a_name_that_no_file_can_have_is_refused(file: Path) -> None:
    document = copy_of(NVBENCH)
    sample = document["benchmarks"][0]["states"][0]["summaries"][3]
    sample["data"][0]["value"] = "x" * 5000
    assert "File name too long" in refused(write(file, document))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "latin-1", "utf-32"])
@pytest.mark.parametrize("document", ALL.values(), ids=ALL)
def test_another_encoding_is_refused(file: Path, document: dict[str, Any], encoding: str) -> None:
    file.write_text(json.dumps({**document, "é": 1}, ensure_ascii=False), encoding=encoding)
    assert "UTF-8" in refused(file)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"[" * 200_000, "nested too deep"),
        (b'{"a":' * 100_000, "nested too deep"),
        (b'{"a": ' + b"9" * 1_000_000 + b"}", "beyond 64 bits"),
        (b'{"a": 1e999}', "beyond a 64-bit float"),
        (b'{"a": 1, "a": 2}', "duplicate key"),
        (b'{"a": "\\u0000", "benchmarks": []}', "holds NUL"),
        (b'{"a": "\\ud800", "benchmarks": []}', "surrogate"),
        (b"\x1f\x8b\x08" + b"x" * 40, "gzip, not UTF-8"),
        (b"PK\x03\x04" + b"x" * 40, "not JSON"),
        (b"", "not JSON"),
    ],
)
def test_bytes_made_to_break_a_reader_are_refused(file: Path, data: bytes, told: str) -> None:
    file.write_bytes(data)
    assert told in refused(file)


def test_a_pipe_without_an_end_is_not_read() -> None:
    with pytest.raises(RecordError, match="expected at most 33,554,432"):
        read_limited(Path("/dev/zero"))


_ODD: list[Any] = [
    None, True, 0, -1, 1e308, 5e-324, -0.0, 2**62, 10**20, "", "x" * 5000, "é" * 300, "nan",
    "1e999", [], {}, [[]], [None], "2026-13-01T00:00:00", "9999-12-31T23:59:59-23:59",
    "0001-01-01T00:00:00+23:59", "\x00", [0.1] * 1000, {str(n): n for n in range(300)},
]  # fmt: skip


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for key in value if isinstance(value, dict) else range(len(value)):
        if isinstance(value[key], dict | list):
            yield from _places(value[key], (*path, key))
        else:
            yield (*path, key)


@pytest.mark.parametrize("name", [*ALL, "our records"])
def test_any_value_in_any_place_is_taken_or_refused_in_one_line(file: Path, name: str) -> None:
    whole = {**ALL, "our records": with_records("torch", "triton")}[name]
    rng = random.Random(name)
    for _ in range(150):
        document = copy_of(whole)
        *path, last = rng.choice(list(_places(document)))
        place: Any = document
        for key in path:
            place = place[key]
        if rng.random() < 0.2:
            del place[last]
        else:
            place[last] = rng.choice(_ODD)
        write(file, document)
        try:
            runs = read_files([file]).runs
        except RecordError as error:
            told = str(error)
        else:
            told = f"{file.name}: taken"
            for run in runs:
                prepare(run)
        assert file.name in told, document
        assert "\n" not in told


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


@pytest.mark.parametrize("name", ["pytest-benchmark", "google-benchmark", "asv"])
def test_a_file_without_a_result_is_no_success(file: Path, tmp_path: Path, name: str) -> None:
    empty = copy_of(ALL[name])
    empty["results" if name == "asv" else "benchmarks"] = {} if name == "asv" else []
    assert "no result in it; expected at least one result" in refused(write(file, empty))
    # Beside others it is told and brings no empty run.
    both = read_files([file, write(tmp_path / "full.json", ALL[name])])
    assert len(both.runs) == 1
    assert both.notes[0].startswith("left out ")


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no such file"):
        read_files([tmp_path / "none.json"])


@pytest.fixture
def odd_files(tmp_path: Path) -> Path:
    """A folder of what may stand where a file is expected."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "machine.json").write_text("{}")
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "nowhere").symlink_to("gone")
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("empty", "no file in it ends in .json"),
        ("beside", "no file in it ends in .json"),
        ("pipe.json", "it is a pipe or a device"),
        ("/dev/zero", "it is a pipe or a device"),
        ("nowhere", "there is no such file"),
        ("loop", "symbolic links"),
        ("x" * 300, "File name too long"),
    ],
)
def test_what_is_no_file_with_results_is_told(odd_files: Path, name: str, told: str) -> None:
    assert not is_export(odd_files / name)
    with pytest.raises(NotFoundError, match=told) as caught:
        read_files([odd_files / name])
    assert "\n" not in str(caught.value)


@pytest.mark.timeout(20)
def test_a_pipe_in_a_folder_is_passed_over(odd_files: Path) -> None:
    write(odd_files / "pb.json", PYTEST_BENCHMARK)
    (odd_files / "beside" / "machine.json").unlink()
    assert len(read_files([odd_files]).runs) == 1


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
