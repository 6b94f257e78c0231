"""A store exported and imported: identical into an empty store, nothing lost or changed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracker import queries
from tracker.errors import NotFoundError, RecordError, StoreError
from tracker.exporters import Scope, export
from tracker.exporters.formats import write_whole
from tracker.importers import is_export, restore
from tracker.model import Checkout, Correctness, FirstCall, Inputs, Status, Warn
from tracker.store import Store
from tracker.store.checking import check_store
from tracker.store.people import (
    Triage,
    TriageState,
    Waiver,
    WaiverAction,
    add_triage,
    add_waiver,
    triage_log,
    waiver_log,
)
from tracker.store.pruning import prune
from tracker.tests.factory import H200, make_case, make_commit, make_result, make_run, sha
from tracker.tests.store.test_keeping import NOW, all_digests, fill

WHOLE = Scope()
FORMS = ("jsonl", "csv", "parquet")
# Text that CSV, JSON, spreadsheets or terminals treat in a way of their own.
ODD = "é \"x\", =1+1\r\n\t\u2028\u202e☃ '0'; -@"


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    if request.param == "parquet":
        pytest.importorskip("pyarrow")
    return str(request.param)


def odd_results() -> tuple[Any, ...]:
    """Each optional part present, absent or extreme."""
    extreme = [5e-324, 1e150, 0.1 + 0.2, 1 / 3, 32e-9, 1e22]
    return (
        make_result(make_case("=cmd()", ODD, parameters={"å": ODD, "n": 3, "x": 0.1, "b": True})),
        make_result(make_case("none"), [], status=Status.ERROR, reasons={"status": ODD}),
        make_result(
            make_case("wrong", alignment="+1", cache="-warm"),
            [],
            status=Status.INCORRECT,
            correctness=Correctness(checked=True, passed=False, worst_error=0.5, detail=ODD),
        ),
        make_result(
            make_case("odd", n=0),
            extreme,
            bytes_moved=None,
            flop=2**63 - 1,
            timer=None,
            median_cycles=None,
            first_call=FirstCall(),
            before=None,
            code_fingerprint=None,
            energy={"joules": None, "watts": 1e-300},
            counters={"a": None, "b": "n/a", "c": 0.0},
            warnings=(Warn("clock", ODD), Warn("x", "")),
        ),
        make_result(make_case("single", n=1), [1e-9]),
    )


def fill_unevenly(store: Store) -> None:
    """Cases, environments and thinned runs in an order that no table is sorted by."""
    fill(store)
    add_waiver(store, Waiver("add/*", "Bob", "", "2028-01-01T00:00:00Z", "NVIDIA H200"))
    names = ("triton", "cuda_vector", "torch", "cuda_scalar")
    results = tuple(make_result(make_case(implementation=name)) for name in names)
    prune(store, now_s=NOW, older_than_days=1, keep_runs=1, apply=True)
    store.record(make_run("run-uneven-0001", 5, minute=100, results=results))
    store.record(make_run("run-uneven-0002", 4, minute=101, results=results[::-1]))
    store.record(make_run("run-odd-results", 6, minute=102, results=odd_results(), command=ODD))
    pull = Checkout(
        make_commit(12, [10, 11]), ODD, head=sha(11), base=sha(10), merge_base=sha(9), shallow=True
    )
    other = replace(H200, gpu_model="=NVIDIA", driver=None, libraries={}, ecc=None)
    store.record(
        make_run("run-without-any", 12, minute=103, results=(), checkout=pull, environment=other)
    )
    store.record(make_run("run-in-the-demo", None, minute=104, dirty=True, demo=True, ci={}))
    for state in TriageState:
        add_triage(store, Triage("0" * 16, "NVIDIA H200", sha(2), state, ODD, ODD, sha(1), -0.25))
    add_waiver(store, Waiver("add/*", "Bob", ODD, None, action=WaiverAction.REVOKED))


def exported(store: Store, path: Path, form: str = "jsonl", scope: Scope = WHOLE) -> Path:
    pieces = export(store, form, scope, path)
    if form != "parquet":
        write_whole(pieces, path)
    return path


@pytest.mark.parametrize(
    "target", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
)
def test_an_empty_store_becomes_identical(
    store: Store, other: Callable[[str], str], target: str, tmp_path: Path, form: str
) -> None:
    fill_unevenly(store)
    file = exported(store, tmp_path / "all", form)
    assert is_export(file)
    with Store.open(other(target)) as copy:
        done = restore(file, copy)
        assert done.identical
        assert done.added == {"commits": 12, "runs": 11, "triage": 5, "waivers": 3}
        # The check that `db copy` makes: every row of every table.
        assert all_digests(copy) == all_digests(store)
        assert list(check_store(copy)) == []
        assert triage_log(copy) == triage_log(store)
        assert waiver_log(copy) == waiver_log(store)
        for info in queries.runs(store, limit=None):
            assert queries.load_run(copy, info.run_id) == queries.load_run(store, info.run_id)
        if form != "parquet":
            again = exported(copy, tmp_path / "again", form)
            assert again.read_bytes() == file.read_bytes()


def test_inputs_and_flush_come_back_from_the_store_and_from_each_form(
    store: Store, other: Callable[[str], str], tmp_path: Path, form: str
) -> None:
    """Not among the odd results: dumps of stores that older versions filled lack them."""
    most = Inputs(-1, 2**62, ODD, specials=False)
    given = (
        make_result(make_case("drawn"), inputs=most, flush_bytes=0),
        make_result(make_case("drawn", n=2), inputs=Inputs(0), flush_bytes=2**62),
        make_result(make_case("drawn", n=3)),
    )
    run = make_run(results=given)
    store.record(run)
    assert queries.load_run(store, run.run_id) == run
    with Store.open(other("sqlite")) as copy:
        assert restore(exported(store, tmp_path / "all", form), copy).identical
        assert queries.load_run(copy, run.run_id) == run
        assert all_digests(copy) == all_digests(store)
        assert list(check_store(copy)) == []


@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.floats(5e-324, 1e6, exclude_max=True), min_size=1, max_size=30),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40),
    st.booleans(),
)
def test_any_sample_and_any_text_survive_each_form(
    tmp_path: Path, empty_file: Path, sample: list[float], text: str, thinned: bool
) -> None:
    pytest.importorskip("pyarrow")
    paths = [tmp_path / name for name in ("source.db", *FORMS)]
    for path in paths:
        path.write_bytes(empty_file.read_bytes())
    case = make_case(parameters={"text": text})
    with Store.open(str(paths[0])) as source:
        result = make_result(case, sample, timer=text, reasons={"energy": text})
        source.record(make_run(results=(result,), command=text))
        if thinned:
            prune(source, now_s=NOW, older_than_days=1, keep_runs=0, apply=True)
        for form, path in zip(FORMS, paths[1:], strict=True):
            file = exported(source, tmp_path / "all", form)
            with Store.open(str(path)) as copy:
                assert restore(file, copy).identical
                assert all_digests(copy) == all_digests(source)


def test_a_case_in_a_spelling_of_before_stays_as_it_was(
    store: Store, tmp_path: Path, form: str
) -> None:
    case = make_case(parameters={"a\u030a": 1.0})
    store.record(make_run(results=(make_result(case),)))
    with Store.open(str(tmp_path / "copy.db")) as copy:
        assert restore(exported(store, tmp_path / "all", form), copy).identical
        assert all_digests(copy) == all_digests(store)
        (result,) = queries.load_run(copy, "run-00000001").results
        assert repr(result.case) == repr(case)


def test_an_empty_store_goes_through_every_form(store: Store, tmp_path: Path, form: str) -> None:
    file = exported(store, tmp_path / "all", form)
    with Store.open(str(tmp_path / "copy.db")) as copy:
        assert restore(file, copy).added["runs"] == 0
        assert all_digests(copy)["runs"] == all_digests(store)["runs"]


def test_importing_an_export_twice_changes_nothing(store: Store, tmp_path: Path, form: str) -> None:
    fill_unevenly(store)
    before, revision = all_digests(store), store.revision()
    done = restore(exported(store, tmp_path / "all", form), store)
    assert (done.identical, done.held, sum(done.added.values())) == (False, 11, 0)
    assert all_digests(store) == before
    assert store.revision() == revision


def test_an_export_is_added_to_a_store_that_holds_runs(
    store: Store, tmp_path: Path, form: str
) -> None:
    with Store.open(str(tmp_path / "a.db")) as source:
        fill_unevenly(source)
        file = exported(source, tmp_path / "all", form)
        store.record(make_run("run-00000001", 1))
        store.record(make_run("run-of-our-own", 1, minute=55))
        done = restore(file, store)
        assert (done.identical, done.held, done.added["runs"]) == (False, 1, 10)
        assert queries.overview(store).runs == 12
        assert list(check_store(store)) == []
        assert waiver_log(store) == waiver_log(source)
        assert queries.load_run(store, "run-uneven-0002") == queries.load_run(
            source, "run-uneven-0002"
        )


def test_a_part_of_a_store_can_be_moved_and_does_not_pass_for_the_whole(
    store: Store, tmp_path: Path, form: str
) -> None:
    fill(store)
    with Store.open(str(tmp_path / "copy.db")) as copy:
        done = restore(exported(store, tmp_path / "all", form, Scope(run="run-00000002")), copy)
        assert (done.identical, done.added["runs"]) == (False, 1)
        assert [run.run_id for run in queries.runs(copy)] == ["run-00000002"]
        assert copy.revision() == 1
        assert all_digests(copy)["meta"] != all_digests(store)["meta"]
        model = Scope(gpu_model="NVIDIA Ä100 'x'")
        done = restore(exported(store, tmp_path / "all", form, model), copy)
        assert [run.run_id for run in queries.runs(copy)] == ["run-without-one", "run-00000002"]


def test_a_gpu_model_without_runs_is_no_empty_export(store: Store, form: str) -> None:
    fill(store)
    with pytest.raises(NotFoundError, match="holds no GPU model 'H2000'"):
        list(export(store, form, Scope(gpu_model="H2000"), Path("never-written")))


def _cut(lines: list[bytes]) -> list[bytes]:
    return lines[:-1]


def _half_a_line(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], lines[3][:40]]


def _one_less(lines: list[bytes]) -> list[bytes]:
    del lines[-4]
    return lines


def _changed(lines: list[bytes]) -> list[bytes]:
    return [line.replace(b'"bytes_moved":536870912', b'"bytes_moved":536870913') for line in lines]


def _bad_commit(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[1].replace(b'"sha":"0', b'"sha":"x'), *lines[2:]]


def _without_digest(lines: list[bytes]) -> list[bytes]:
    return [line.replace(b'"stored":{', b'"kept":{') for line in lines]


def _unknown(lines: list[bytes]) -> list[bytes]:
    return [lines[0], b'{"what":1}\n', *lines[1:]]


def _nan(lines: list[bytes]) -> list[bytes]:
    return [line.replace(b'"bytes_moved":536870912', b'"bytes_moved":NaN') for line in lines]


def _more(lines: list[bytes]) -> list[bytes]:
    return [*lines, lines[1]]


def _other_version(lines: list[bytes]) -> list[bytes]:
    return [lines[0].replace(b'"lines":1', b'"lines":2'), *lines[1:]]


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (_cut, "it ends before its last line; nothing was changed"),
        (_half_a_line, "line 4: not JSON"),
        (_one_less, "nothing was changed; export it again"),
        (_changed, "its content has another digest"),
        (_bad_commit, "commit.sha must match"),
        (_without_digest, "it is malformed"),
        (_unknown, "expected one of commit, run, triage, waiver"),
        (_more, "something stands after the end"),
        (_nan, "NaN is not JSON"),
        (_other_version, "version 1"),
    ],
)
def test_a_damaged_export_brings_nothing(
    store: Store, tmp_path: Path, damage: Callable[[list[bytes]], list[bytes]], told: str
) -> None:
    with Store.open(str(tmp_path / "a.db")) as source:
        fill(source)
        file = exported(source, tmp_path / "all.jsonl")
    file.write_bytes(b"".join(damage(file.read_bytes().splitlines(keepends=True))))
    with pytest.raises(RecordError, match=told):
        restore(file, store)
    assert queries.overview(store).runs == 0
    assert store.revision() == 0


def test_an_export_in_conflict_with_the_store_brings_nothing(store: Store, tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "a.db")) as source:
        fill(source)
        file = exported(source, tmp_path / "all.jsonl")
    store.record(make_run("run-00000003", 3, command="another"))
    with pytest.raises(StoreError, match=r"run-00000003.*nothing was changed"):
        restore(file, store)
    assert queries.overview(store).runs == 1


def test_a_file_that_cannot_be_written_leaves_nothing(
    store: Store, tmp_path: Path, form: str
) -> None:
    fill(store)
    with pytest.raises(RecordError, match="cannot write"):
        exported(store, tmp_path / "none" / "all", form)
    assert list(tmp_path.glob("*.partial")) == []
