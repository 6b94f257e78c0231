"""The pages that quote studies say what the studies' documents say, to the last digit."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from perftests.studies import pages
from perftests.studies.pages import NoFigureError, figure, filled, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PLANTED = {
    "floor_s": 4.41e-6,
    "sections": [
        {
            "title": "Times",
            "units": {"time": "us", "saved": "%", "over one": "x"},
            "rows": [
                {"kernel": "add", "n": 1, "time": 1.5e-6, "saved": 0.5, "over one": 1.25},
                {"kernel": "add", "n": 2, "time": 123.456e-6, "saved": 0.1234, "over one": 2.0},
            ],
        }
    ],
    "cells": [
        {
            "cell": f"relu off {offset}",
            "mib": 256,
            "times": {"torch": {"seconds": seconds}},
            "copies": {"a": {"seconds": 2e-4}, "b": {"seconds": 1e-4}},
            "bytes_moved": 300,
            "bytes_copied": 400,
        }
        for offset, seconds in ((1, 1e-4), (2, 1.5e-4))
    ],
    "rows": [{"reached": True}, {"reached": False}, {"reached": True}],
}


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A project with one document and pages of its own."""
    (tmp_path / "docs" / "results").mkdir(parents=True)
    (tmp_path / "docs" / "results" / "some-nvidia-h200.json").write_text(json.dumps(PLANTED))
    for name in pages.PAGES:
        (tmp_path / f"{name}.md.in").write_text("# A\n\nIt is [[some | - | - | floor_s | us .1f]].")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "HERE", tmp_path)
    pages._document.cache_clear()
    yield tmp_path
    pages._document.cache_clear()


@pytest.mark.parametrize("name", pages.PAGES)
def test_a_page_agrees_with_the_documents_that_it_quotes(name: str) -> None:
    text = (pages.ROOT / "docs" / f"{name}.md").read_text("utf-8")
    assert text == pages.page(name), "stale: run python -m perftests.studies.pages"


def test_each_document_that_a_page_quotes_a_figure_of_is_named_in_it() -> None:
    for name in pages.PAGES:
        template = (pages.HERE / f"{name}.md.in").read_text("utf-8")
        quoted = {mark.split("|")[0].strip() for mark in re.findall(r"\[\[(.+?)\]\]", template)}
        assert quoted
        assert all(f"results/{study}-nvidia-h200.md" in template for study in quoted)


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    ("mark", "told"),
    [
        ("some | Times | kernel=add, n=2 | time", "123.5"),
        ("some | Times | kernel=add, n=2 | time | us .2f", "123.46"),
        ("some | Times | kernel=add | saved", "50.0%"),
        ("some | Times | n=2 | saved | % .1f", "12.3"),
        ("some | Times | n=1 | over one", "1.25x"),
        ("some | - | - | floor_s | us .1f", "4.4"),
        ("some | cells | cell=relu off 1, mib=256 | torch share | .2f", "0.75"),
        ("some | cells | cell=relu off*, mib=256 | torch share | .2f", "0.50 to 0.75"),
        ("some | rows | - | missed", "1"),
        ("some | rows | - | all", "3"),
        ("some | Times | n=2 | time | .1f ÷ some | Times | n=1 | time | .1f", "82.3"),
    ],
)
def test_a_figure_stands_as_in_its_table_or_as_asked_for(mark: str, told: str) -> None:
    assert figure(mark) == told


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    "mark",
    [
        "some | Times | kernel=relu | time",
        "some | Times | kernel=add | speed",
        "some | Lengths | kernel=add | time",
        "some | cells | cell=add, mib=256 | torch share | .2f",
        "other | Times | kernel=add | time",
    ],
)
def test_a_figure_that_no_document_has_is_an_error_that_names_it(mark: str) -> None:
    with pytest.raises(NoFigureError, match="has no"):
        filled(f"It is [[{mark}]].")


def test_a_page_that_lags_behind_its_documents_is_noticed_and_mended(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pages.main([]) == 0
    written = root / "docs" / "bias.md"
    assert written.read_text() == "# A\n\nIt is 4.4.\n"
    assert pages.main(["--check"]) == 0
    changed: dict[str, Any] = {**PLANTED, "floor_s": 2.7e-6}
    (root / "docs" / "results" / "some-nvidia-h200.json").write_text(json.dumps(changed))
    pages._document.cache_clear()
    assert pages.main(["--check"]) == 1
    assert "bias.md is stale" in capsys.readouterr().err
    assert pages.main([]) == 0
    assert "It is 2.7." in written.read_text()


def test_a_page_without_its_document_cannot_be_filled(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "docs" / "results" / "some-nvidia-h200.json").unlink()
    assert pages.main([]) == 2
    assert "docs/results has no some-nvidia-h200.json" in capsys.readouterr().err


def test_paragraphs_and_items_are_wrapped_and_tables_are_not() -> None:
    row = "| a | " + "long " * 40 + "|"
    text = f"# Title\n\n{'word ' * 21}1234 %\n\n- {'item ' * 30}\n- b\n\n{row}\n"
    found = wrapped(text).split("\n")
    assert found[2].endswith("word")
    assert found[3] == "1234 %"
    assert found[6].startswith("  item")
    assert row in found
