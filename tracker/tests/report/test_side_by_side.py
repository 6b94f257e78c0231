"""Two runs side by side, without verdicts."""

import pytest

from tracker.queries.results import SIDE, SideBySide
from tracker.report.side_by_side import side_by_side_document
from tracker.report.verdicts import Heading

BASE = (1.0, 2.0, 4.0, None, 8.0)
HEAD = (1.1, 2.0, 1.0, 1.0, 9.0)
NAMES = ("a", "b", "c", "d", "e")
FOUND = SideBySide(
    NAMES,
    tuple(f"key of {name}" for name in NAMES),
    {name: BASE if name == "median_s" else (7.0,) * 5 for name in SIDE},
    {name: HEAD if name == "median_s" else (9.0,) * 5 for name in SIDE},
)


def test_people_see_what_changed_most_either_way_and_machines_all() -> None:
    document = side_by_side_document(Heading("Comparison"), FOUND, limit=2)
    (table,) = document.tables
    assert [row.values["case"] for row in table.visible()] == ["c", "e"]
    assert [row.values["case"] for row in table.rows] == list(NAMES)
    assert table.hidden_note == "3 that changed less are hidden; --all shows them"
    assert document.exit_code == 0


def test_a_change_is_head_over_base_and_none_where_one_was_not_timed() -> None:
    (table,) = side_by_side_document(Heading("Comparison"), FOUND, limit=None).tables
    changes = {row.values["case"]: row.values["time_change"] for row in table.visible()}
    assert changes.pop("d") is None
    assert changes == {
        "a": pytest.approx(0.1),
        "b": 0.0,
        "c": pytest.approx(-0.75),
        "e": pytest.approx(0.125),
    }
    assert table.hidden_note is None


def test_machines_get_every_number_of_both_summaries() -> None:
    (table,) = side_by_side_document(Heading("Comparison"), FOUND, limit=1).tables
    keys = table.machine_keys()
    assert len(keys) == len(set(keys)) == 3 + 2 * len(SIDE)
    (first, *_) = table.rows
    assert set(first.values) == set(keys)
    assert (first.values["base_min_s"], first.values["min_s"]) == (7.0, 9.0)
