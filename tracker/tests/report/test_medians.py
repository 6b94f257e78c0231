"""Two runs side by side, without verdicts."""

import numpy as np
import pytest

from tracker.queries.results import Medians
from tracker.report.medians import medians_document
from tracker.report.verdicts import Heading

BASE = np.array([1.0, 2.0, 4.0, np.nan, 8.0])
HEAD = np.array([1.1, 2.0, 1.0, 1.0, 9.0])
NAMES = ("a", "b", "c", "d", "e")
FOUND = Medians(NAMES, tuple(f"key of {name}" for name in NAMES), BASE, HEAD)


def test_people_see_what_changed_most_either_way_and_machines_all() -> None:
    document = medians_document(Heading("Comparison"), FOUND, limit=2)
    (table,) = document.tables
    assert [row.values["case"] for row in table.visible()] == ["c", "e"]
    assert [row.values["case"] for row in table.rows] == list(NAMES)
    assert table.hidden_note == "3 that changed less are hidden; --all shows them"
    assert document.exit_code == 0


def test_a_change_is_head_over_base_and_none_where_one_was_not_timed() -> None:
    (table,) = medians_document(Heading("Comparison"), FOUND, limit=None).tables
    changes = {row.values["case"]: row.values["time_change"] for row in table.visible()}
    assert changes.pop("d") is None
    assert changes == {
        "a": pytest.approx(0.1),
        "b": 0.0,
        "c": pytest.approx(-0.75),
        "e": pytest.approx(0.125),
    }
    assert table.hidden_note is None
