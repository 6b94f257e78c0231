"""What the gate told stands in where a history is too short for change points."""

from pathlib import Path

import numpy as np
import pytest

from dashboard import gated
from dashboard.data import Snapshot
from dashboard.gated import FEW_RUNS
from dashboard.tests import pages
from dashboard.tests.conftest import Open, fill
from dashboard.tests.runs import H200, REGRESSED, REGRESSION_AT, Plan, run, sha
from tracker.store import Store

PLAN = Plan(commits=REGRESSION_AT + 9, measurements=16)


def store_of(folder: Path, first: int, last: int) -> str:
    """Return a store of the commits from `first` to `last`; the slow-down is in between."""
    rng = np.random.default_rng(11)
    return fill(
        folder / "short.db", (run(rng, index, plan=PLAN) for index in range(first, last + 1))
    )


@pytest.mark.parametrize("after", [0, 1])
def test_a_loss_that_is_too_young_for_a_change_point_is_on_the_first_page(
    app: Open, tmp_path: Path, after: int
) -> None:
    page = app(store=store_of(tmp_path, REGRESSION_AT - 4, REGRESSION_AT + after))
    table = pages.table(page)
    row = table[table["case"] == REGRESSED.label].iloc[0]
    assert list(row["verdict"]) == ["▲ slower"]
    assert row["since"] == sha(REGRESSION_AT)[:7]


def test_long_histories_leave_it_to_change_points(tmp_path: Path) -> None:
    address = store_of(tmp_path, REGRESSION_AT - FEW_RUNS, REGRESSION_AT)
    with Store.open(address, read_only=True) as store:
        assert gated.seen(Snapshot(store, store.revision()), H200, "main") == ()
