"""Empty, partial and failed states: each page says what is the case and what to do."""

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashboard.pages import PAGES
from dashboard.tests import pages
from dashboard.tests.conftest import Open, fill
from dashboard.tests.runs import Plan, run
from tracker.store import Store
from tracker.store.migrate import VERSION_TABLE

NAMES = [Path(page.file).stem for page in PAGES]
ALL_PAGES = pytest.mark.parametrize("name", NAMES)
PLAN = Plan(commits=2, measurements=8)


@ALL_PAGES
def test_no_store_offers_the_commands_that_make_one(app: Open, tmp_path: Path, name: str) -> None:
    page = app(name, store=f"sqlite:///{tmp_path / 'none.db'}")
    assert not page.exception
    assert "There is no store yet" in pages.html(page)
    assert {"make bench", "bandwatch demo"} <= set(pages.codes(page))


@ALL_PAGES
def test_an_empty_store_says_so(app: Open, tmp_path: Path, name: str) -> None:
    page = app(name, store=fill(tmp_path / "empty.db", iter(())))
    assert not page.exception
    assert "The store holds no run yet" in pages.html(page)


@ALL_PAGES
def test_a_store_newer_than_the_code_is_refused_in_one_line(
    app: Open, tmp_path: Path, name: str
) -> None:
    address = fill(tmp_path / "newer.db", iter(()))
    with sqlite3.connect(tmp_path / "newer.db") as raw:
        raw.execute(f"update {VERSION_TABLE} set version_num = '9999'")
    page = app(name, store=address)
    assert not page.exception
    assert "The store cannot be read" in pages.html(page)
    assert "newer than this version" in pages.html(page)


def test_a_file_that_is_no_store_is_refused(app: Open, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("not a database, but long enough to be read as one" * 50)
    assert "The store cannot be read" in pages.html(app(store=f"sqlite:///{tmp_path / 'text.db'}"))


def test_a_database_that_is_away_is_told_without_its_password(app: Open) -> None:
    page = app(store="postgresql://someone:hunter2@127.0.0.1:1/none")
    shown = pages.html(page) + "".join(pages.codes(page))
    assert "The store cannot be read" in shown
    assert "hunter2" not in shown


def test_a_read_only_store_is_shown(app: Open, tmp_path: Path) -> None:
    folder = tmp_path / "frozen"
    folder.mkdir()
    address = fill(folder / "store.db", iter([run(np.random.default_rng(0), 1, plan=PLAN)]))
    (folder / "store.db").chmod(0o444)
    folder.chmod(0o555)
    try:
        page = app(store=address)
    finally:
        folder.chmod(0o755)
    assert not page.exception
    assert "no baseline" in pages.html(page)


def _blocks(block: Any) -> list[Any]:
    """Return the blocks that hold elements, at any depth."""
    inner = [child for child in block.children.values() if hasattr(child, "children")]
    own = [block] if len(inner) < len(block.children) else []
    return [*own, *(found for child in inner for found in _blocks(child))]


def _has(block: Any, kind: str) -> bool:
    return any(child.type == kind for child in block.children.values())


def test_one_run_only_says_what_a_comparison_needs(app: Open, tmp_path: Path) -> None:
    address = fill(tmp_path / "one.db", iter([run(np.random.default_rng(0), 0, plan=PLAN)]))
    page = app(store=address)
    assert "One run only" in pages.html(page)
    assert "over 1 run" in pages.chart(app("series", store=address))[1]
    compared = app("compare", store=address)
    assert "One run only" in pages.html(compared)
    # Below the filters, not squeezed in beside them.
    (filters,) = [box for box in _blocks(compared.main) if _has(box, "selectbox")]
    assert not _has(filters, "html")


@pytest.mark.parametrize(
    ("finished", "words"),
    [(False, "in progress or was aborted"), (True, "measured a selection")],
)
def test_a_run_without_an_end_or_of_a_part_is_told(
    app: Open, tmp_path: Path, finished: bool, words: str
) -> None:
    rng = np.random.default_rng(0)
    whole = run(rng, 0, plan=PLAN)
    part = run(rng, 1, plan=PLAN)
    end = part.finished_at if finished else None
    part = replace(part, results=part.results[:3], complete=False, finished_at=end)
    page = app(store=fill(tmp_path / "part.db", iter([whole, part])))
    assert not page.exception
    assert words in pages.html(page)


def test_a_new_run_shows_on_the_next_interaction(app: Open, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    address = fill(tmp_path / "grows.db", iter([run(rng, 0, plan=PLAN)]))
    page = app(store=address)
    before = pages.html(page)
    with Store.open(address) as store:
        store.record(run(rng, 1, plan=PLAN, subject="A newer subject"))
    after = pages.html(page.run())
    assert "A newer subject" not in before
    assert "A newer subject" in after


def test_a_case_that_vanished_from_a_complete_run_is_not_run(app: Open, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    first, second = run(rng, 0, plan=PLAN), run(rng, 1, plan=replace(PLAN, commits=9))
    gone = first.results[0].case
    second = replace(second, results=second.results[1:])
    page = app(store=fill(tmp_path / "gone.db", iter([first, second])))
    row = pages.table(page).iloc[0]
    assert list(row["verdict"]) == ["! not run"]
    assert row["case"] == gone.label


def test_a_run_of_undecided_cases_alone_is_told(app: Open, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    plan = replace(PLAN, commits=9, measurements=3)
    address = fill(tmp_path / "few.db", iter([run(rng, 0, plan=plan), run(rng, 1, plan=plan)]))
    assert "Nothing could be decided" in pages.html(app(store=address))


@ALL_PAGES
def test_a_run_without_results_breaks_no_page(app: Open, tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(0)
    first, second = run(rng, 0, plan=PLAN), replace(run(rng, 1, plan=PLAN), results=())
    page = app(name, store=fill(tmp_path / "nothing.db", iter([first, second])))
    assert not page.exception
    if name in {"kernels", "roofline", "correctness"}:
        assert "This run has no results" in pages.html(page)


def test_a_store_of_uncommitted_work_alone_says_so(app: Open, tmp_path: Path) -> None:
    found = run(np.random.default_rng(0), 0, plan=PLAN)
    found = replace(found, checkout=replace(found.checkout, dirty=True))
    page = app(store=fill(tmp_path / "dirty.db", iter([found])))
    assert not page.exception
    assert "No run of a commit yet" in pages.html(page)
