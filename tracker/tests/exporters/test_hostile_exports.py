"""Exports that somebody changed, cut, forged or blew up: refused in one line, nothing written."""

import csv
import io
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tracker import queries
from tracker.errors import RecordError, StoreError, TrackerError
from tracker.exporters import tables
from tracker.exporters.tables import TABLE
from tracker.importers import document, is_export, restore
from tracker.importers import tables as reader
from tracker.store import Store
from tracker.store.checking import check_store
from tracker.store.people import active_waivers
from tracker.tests.exporters.test_round_trip import exported, fill_unevenly
from tracker.tests.factory import make_case, make_result, make_run

Rows = list[dict[str, Any]]
Change = Callable[[Rows], object]


@pytest.fixture(scope="session")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one store in each form."""
    folder = tmp_path_factory.mktemp("exports")
    with Store.open(str(folder / "source.db")) as source:
        fill_unevenly(source)
        for form in ("jsonl", "csv"):
            exported(source, folder / form, form)
        if pytest.importorskip("pyarrow"):
            exported(source, folder / "parquet", "parquet")
    return folder


@pytest.fixture
def empty(tmp_path: Path, empty_file: Path) -> Iterator[Store]:
    path = tmp_path / "empty.db"
    path.write_bytes(empty_file.read_bytes())
    with Store.open(str(path)) as store:
        yield store


@contextmanager
def refused(store: Store, told: str) -> Iterator[None]:
    with pytest.raises(TrackerError, match=told) as caught:
        yield
    message = str(caught.value)
    assert message.startswith("cannot ")
    assert "\n" not in message
    assert len(message) < 700
    assert queries.overview(store).runs == 0
    assert store.revision() == 0


def rows_of(path: Path) -> Rows:
    return list(csv.DictReader(io.StringIO(path.read_text(), newline="")))


def write_csv(path: Path, rows: Rows) -> Path:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(TABLE), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(out.getvalue(), newline="")
    return path


def first(rows: Rows, kind: str) -> dict[str, Any]:
    # Of runs one that is whole: the first ones of this store have been thinned.
    ours = {"run-uneven-0001"} if kind in {"run", "result"} else {""}
    return next(row for row in rows if row["row"] == kind and row["run"] in ours)


def setting(kind: str, **cells: str) -> Change:
    return lambda rows: first(rows, kind).update(cells)


def in_record(kind: str, *path: Any, value: object) -> Change:
    def change(rows: Rows) -> None:
        row = first(rows, kind)
        whole = json.loads(row["record"])
        place = whole
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        row["record"] = json.dumps(whole)

    return change


def _swap_results(rows: Rows) -> None:
    one = first(rows, "result")
    two = next(
        row for row in rows if len(row["measurements_s"]) not in {0, len(one["measurements_s"])}
    )
    one["measurements_s"], two["measurements_s"] = two["measurements_s"], one["measurements_s"]


CHANGED: dict[str, tuple[Change, str]] = {
    "a time": (setting("result", median_s="1.0"), "median_s is '1.0' 1 rows on, but the row's"),
    "a commit": (setting("run", commit="0" * 40), "commit is"),
    "a measurement": (setting("result", measurements_s="1e-05"), "summary.count is 6 for 1"),
    "no measurements": (setting("result", measurements_s=""), "without measurements"),
    "nan": (setting("result", measurements_s="nan " * 5 + "nan"), "not finite"),
    "text for a time": (setting("result", measurements_s="fast"), "measurements_s: could not"),
    "two results' samples": (_swap_results, "measurements"),
    "a kind": (setting("commit", row="remark"), "row is 'remark'; expected store, commit"),
    "a result alone": (lambda rows: rows.insert(1, first(rows, "result")), "row is 'result'"),
    "a run without results": (
        lambda rows: rows.remove(first(rows, "result")),
        "after 3 of 4 results",
    ),
    "more results": (in_record("run", "results", value=5), "after 4 of 5 results"),
    "too many results": (in_record("run", "results", value=10**9), "at most 100,000"),
    "no number of results": (in_record("run", "results", value="x"), "results is 'x'"),
    "a header": (in_record("run", "run", "run_id", value="x"), "run_id must match"),
    "a digest": (in_record("run", "stored", "digest", value="x"), "64 hexadecimal digits"),
    "another digest": (in_record("run", "stored", "digest", value="0" * 64), "another digest"),
    "a revision": (in_record("run", "stored", "revision", value=-1), "whole number of 0 or more"),
    "a later revision": (
        in_record("run", "stored", "revision", value=2**62),
        "a run of revision 4611686018427387904 in a store of revision",
    ),
    "thinned though it is not": (
        in_record("run", "stored", "thinned_at", value="2026-03-02T00:00:00Z"),
        "a thinned run with measurements",
    ),
    "a time that does not exist": (
        in_record("run", "stored", "recorded_at", value="2026-02-30T00:00:00Z"),
        "recorded_at",
    ),
    "a store's id": (in_record("store", "store_id", value="x"), "32 hexadecimal digits"),
    "a store's time": (in_record("store", "created_at", value="noon"), "created_at"),
    "a store's revision": (in_record("store", "revision", value=0.5), "whole number"),
    "whether it is whole": (in_record("store", "whole", value=1), "true or false"),
    "a cell of a commit": (setting("commit", kernel="relu"), "cells that are not its"),
    "an unknown commit": (in_record("commit", "parents", value=["f" * 40]), "malformed"),
    "a commit's time": (in_record("commit", "commit_time", value="noon"), "commit_time must match"),
    "a commit's author": (in_record("commit", "author", value=7), "author must be"),
    "whether it is known": (in_record("commit", "known", value="yes"), "known is 'yes'"),
    "one commit twice": (lambda rows: rows.insert(2, first(rows, "commit")), "stands in it twice"),
    "a state": (in_record("triage", "triage", value=1), "expected an object with"),
    "another state": (in_record("triage", "state", value="solved"), "'solved' is not a valid"),
    "nobody's triage": (in_record("triage", "author", value=" "), "no author given"),
    "a number for a note": (in_record("triage", "note", value=7), "note is 7"),
    "an effect": (in_record("triage", "effect", value="x"), "effect is 'x'"),
    "a waiver for ever": (in_record("waiver", "expires_at", value=None), "never expire"),
    "a waiver's end": (in_record("waiver", "expires_at", value="soon"), "no time with a zone"),
    "counts": (in_record("end", "runs", value=1), "nothing was changed"),
    "counts of a kind": (setting("end", record="7"), "expected an object"),
    "no end": (lambda rows: rows.pop(), "ends before its last line"),
    "two ends": (lambda rows: rows.append(rows[-1]), "something stands after the end"),
    "no start": (lambda rows: rows.pop(0), "expected the first line"),
    "twice one key": (setting("store", record='{"a":1,"a":2}'), "duplicate key"),
    "NaN in a record": (setting("store", record='{"a":NaN}'), "NaN is not JSON"),
}


@pytest.mark.parametrize("what", CHANGED)
def test_a_table_that_somebody_changed_is_refused(
    exports: Path, empty: Store, tmp_path: Path, what: str
) -> None:
    change, told = CHANGED[what]
    rows = rows_of(exports / "csv")
    change(rows)
    with refused(empty, told):
        restore(write_csv(tmp_path / "changed.csv", rows), empty)


def test_rewriting_a_table_without_a_change_keeps_it_whole(
    exports: Path, empty: Store, tmp_path: Path
) -> None:
    assert restore(write_csv(tmp_path / "same.csv", rows_of(exports / "csv")), empty).identical


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda data: data.replace(b"\xc3\xa9", b"\xe9"), "is not UTF-8"),
        (lambda data: data.replace(b"row,run,started_at,", b"row,run,started_at,x,", 1), "columns"),
        (lambda data: data[: len(data) // 2], "cells; expected|unexpected end of data|not JSON"),
        (lambda data: data.split(b"\n", 1)[0] + b'\n"' + b"x\n" * 200_000, "field larger than"),
        (lambda data: data.replace(b"\nrun,", b"\nrun,,", 1), "cells; expected"),
        (lambda data: data.split(b"\n", 1)[0] + b"\n", "expected the first line"),
        (lambda data: data + b'"\x00"', "cells; expected"),
    ],
)
def test_bytes_that_are_no_table_are_refused(
    exports: Path,
    empty: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[bytes], bytes],
    told: str,
) -> None:
    monkeypatch.setattr(reader, "MAX_BYTES", 300_000)
    path = tmp_path / "changed.csv"
    path.write_bytes(change((exports / "csv").read_bytes()))
    with refused(empty, told):
        restore(path, empty)
    assert csv.field_size_limit() == 131_072


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_a_thing_larger_than_the_limit_is_not_read(
    exports: Path, empty: Store, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    from tracker.importers import lines

    for module in (lines, reader):
        monkeypatch.setattr(module, "MAX_THING", 2000)
    assert document.MAX_THING == 256 * 2**20
    with refused(empty, r"longer than 2,000 bytes|unfolds into more than 2,000 bytes"):
        restore(exports / form, empty)


def test_a_small_file_that_unfolds_into_a_large_one_is_refused(
    empty: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    monkeypatch.setattr(reader, "MAX_THING", 2**23)
    path, schema = tmp_path / "bomb.parquet", tables.arrow_schema()
    text = "x" * 2**24
    columns = [pa.array([text if f.name == "record" else None], f.type) for f in schema]
    parquet.write_table(pa.Table.from_arrays(columns, schema=schema), path, compression="zstd")
    assert path.stat().st_size < 2**16
    with refused(empty, "unfolds into more than 8,388,608 bytes"):
        restore(path, empty)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda data: data[:-100], "no sound Parquet file"),
        (lambda data: data[:4], "no sound Parquet file"),
        (lambda data: data[:4] + b"PAR1", "no sound Parquet file"),
        (
            lambda data: data[:200] + bytes(400) + data[600:],
            "no sound Parquet|not UTF|not JSON|says",
        ),
    ],
)
def test_a_damaged_parquet_file_is_refused(
    exports: Path,
    empty: Store,
    tmp_path: Path,
    change: Callable[[bytes], bytes],
    told: str,
) -> None:
    path = tmp_path / "bad.parquet"
    path.write_bytes(change((exports / "parquet").read_bytes()))
    assert is_export(path)
    with refused(empty, told):
        restore(path, empty)


def test_a_parquet_table_of_other_columns_or_types_is_refused(
    exports: Path, empty: Store, tmp_path: Path
) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table, path = parquet.read_table(exports / "parquet"), tmp_path / "bad.parquet"
    place = table.schema.get_field_index("median_s")
    parquet.write_table(
        table.set_column(place, "median_s", table["median_s"].cast(pa.string())), path
    )
    with refused(empty, "other types"):
        restore(path, empty)
    parquet.write_table(table.drop_columns(["kernel"]), path)
    with refused(empty, "its columns are not those"):
        restore(path, empty)
    slow = table["median_s"].to_pylist()
    slow[next(n for n, value in enumerate(slow) if value)] *= 2
    parquet.write_table(table.set_column(place, "median_s", pa.array(slow)), path)
    with refused(empty, "median_s is"):
        restore(path, empty)


def test_without_pyarrow_it_is_said_what_to_install(
    exports: Path, empty: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with refused(empty, "pyarrow is missing"):
        restore(exports / "parquet", empty)


def message_of(path: Path, store: Store) -> str:
    try:
        restore(path, store)
    except (RecordError, StoreError) as error:
        return str(error)
    return ""


def _mutated(data: bytes, rng: random.Random) -> bytes:
    """Cut, repeat, drop, swap or overwrite something somewhere."""
    lines = data.splitlines(keepends=True)
    a, b = (rng.randrange(len(lines)) for _ in range(2))
    at = rng.randrange(len(data))
    choice = rng.randrange(7)
    if choice == 0:
        return data[:at]
    if choice == 1:
        return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    if choice == 2:
        return data[:at] + data[at + rng.randrange(1, 30) :]
    if choice == 3:
        lines.insert(a, lines[b])
    elif choice == 4:
        lines[a], lines[b] = lines[b], lines[a]
    elif choice == 5:
        del lines[a]
    else:
        digits = [n for n, byte in enumerate(data) if 48 <= byte <= 57]
        at = rng.choice(digits)
        return data[:at] + b"7" + data[at + 1 :]
    return b"".join(lines)


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_whatever_is_changed_at_random_is_refused_or_harmless(
    exports: Path, tmp_path: Path, empty_file: Path, form: str
) -> None:
    whole = (exports / form).read_bytes()
    rng = random.Random(form)
    path, target = tmp_path / "changed", tmp_path / "target.db"
    refusals = 0
    for _ in range(25):
        path.write_bytes(_mutated(whole, rng))
        if not is_export(path):
            continue
        target.write_bytes(empty_file.read_bytes())
        with Store.open(str(target)) as store:
            told = message_of(path, store)
            if told:
                refusals += 1
                assert "\n" not in told
                assert queries.overview(store).runs == 0
                continue
            assert list(check_store(store)) == []
            active_waivers(store, "2026-06-01T00:00:00Z")
    assert refusals > 12


def test_an_export_beside_other_files_goes_in_with_all_of_them_or_not_at_all(
    exports: Path, empty: Store, tmp_path: Path
) -> None:
    from tracker.importers import bring_in

    cut = tmp_path / "cut.jsonl"
    cut.write_bytes((exports / "jsonl").read_bytes()[:-50])
    ours = make_run("run-of-our-own", 1, results=(make_result(make_case(n=7)),))
    with refused(empty, "cannot read|cannot import"):
        bring_in(empty, [ours], [exports / "csv", cut])
    outcomes, (one, two) = bring_in(empty, [ours], [exports / "csv", exports / "jsonl"])
    assert [outcome.inserted for outcome in outcomes] == [True]
    assert (one.identical, one.added["runs"], two.held) == (False, 11, 11)
    assert empty.revision() == 1
    outcomes, _ = bring_in(empty, [ours], [exports / "csv"])
    assert [(o.inserted, o.revision) for o in outcomes] == [(False, 1)]
    assert empty.revision() == 1
