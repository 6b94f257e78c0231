"""Change points on their page, the overview and the series, and what people say of them."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dashboard import changes
from dashboard.session import ALLOW_TRIAGE
from dashboard.tests import pages
from dashboard.tests.conftest import Open
from dashboard.tests.runs import (
    COMMITS,
    H200,
    IMPROVED,
    REGRESSED,
    REGRESSION_AT,
    commit,
    median_s,
    sha,
)
from dashboard.tests.test_hostile import HOSTILE
from tracker.store import Store
from tracker.store.people import Triage, TriageState, add_triage, triage_log


@pytest.fixture
def own_store(full_store: str, tmp_path: Path) -> str:
    """A copy of the full store that a test may write to."""
    shutil.copy(full_store.removeprefix("sqlite:///"), tmp_path / "own.db")
    return f"sqlite:///{tmp_path / 'own.db'}"


def note(store: str, state: TriageState, text: str = "a reason") -> None:
    with Store.open(store) as opened:
        entry = Triage(REGRESSED.fingerprint, H200, sha(REGRESSION_AT), state, "Grace", text)
        add_triage(opened, entry)


def test_both_planted_changes_are_listed_with_range_author_and_certainty(app: Open) -> None:
    page = app("changes", gpu=H200)
    assert not page.exception
    table = pages.table(page)
    assert [v[0] for v in table["verdict"]] == ["▲ slower", "▼ faster"]
    first = table.iloc[0]
    assert first["range"] == f"{sha(REGRESSION_AT - 1)[:7]} to {sha(REGRESSION_AT)[:7]}"
    assert first["author"] == commit(REGRESSION_AT).author
    assert first["change"].startswith("\N{MINUS SIGN}4.")
    assert table["kernel"].tolist() == [REGRESSED.kernel, IMPROVED.kernel]
    assert table["states"].tolist() == ["new", "new"]


def test_the_selected_change_has_its_series_and_a_command_that_searches_the_range(
    app: Open,
) -> None:
    page = app("changes", gpu=H200)
    told = pages.chart(page)[1]
    assert REGRESSED.label in told
    assert f"at {sha(REGRESSION_AT)[:7]}" in told
    ends = f"{sha(REGRESSION_AT - 1)} {sha(REGRESSION_AT)}"
    assert f"bandwatch bisect {REGRESSED.fingerprint} {ends}" in pages.codes(page)


def test_the_overview_says_since_which_commit(app: Open) -> None:
    table = pages.table(app())
    row = table[table["case"] == REGRESSED.label].iloc[0]
    assert list(row["verdict"]) == ["▲ slower"]
    assert row["since"] == sha(REGRESSION_AT)[:7]
    moved = 8 * (1 << 26) / 1e9
    both = zip(row["bandwidth"].split(" to "), (REGRESSION_AT - 1, REGRESSION_AT), strict=True)
    for text, index in both:
        true = moved / median_s(REGRESSED, index, H200)
        assert float(text) == pytest.approx(true, rel=0.005)
    assert row["sure"].startswith("p ")
    assert len(row["trend"]) == COMMITS


def test_the_series_has_a_rule_and_a_step_of_levels(app: Open) -> None:
    _, told, frames = pages.chart(app("series", kernel="relu", case=REGRESSED.label))
    assert "changes: ▲" in told
    points = next(frame for frame in frames if "baseline" in frame)
    assert points["baseline"].nunique() == 3  # before and after the step, and the older CUDA


def test_a_short_window_leaves_older_changes_out(app: Open) -> None:
    page = app("changes", gpu=H200, window="20 commits")
    assert pages.table(page)["kernel"].tolist() == [REGRESSED.kernel]


def test_accepted_changes_leave_the_overview_and_the_open_list(app: Open, own_store: str) -> None:
    note(own_store, TriageState.ACCEPTED)
    page = app("changes", store=own_store, gpu=H200, state="open")
    assert pages.table(page)["kernel"].tolist() == [IMPROVED.kernel]
    assert any("1 in other states" in caption.value for caption in page.caption)
    assert REGRESSED.label not in pages.table(app(store=own_store))["case"].tolist()


def test_acknowledged_changes_stay_open_with_their_note_and_log(app: Open, own_store: str) -> None:
    note(own_store, TriageState.ACKNOWLEDGED, HOSTILE)
    page = app("changes", store=own_store, gpu=H200, state="acknowledged")
    assert pages.table(page)["states"].tolist() == ["acknowledged"]
    log = pages.table(page, -1)
    assert (log["author"].iloc[0], log["state"].iloc[0]) == ("Grace", "acknowledged")
    assert log["note"].iloc[0] == HOSTILE
    assert "<script" not in pages.html(page)


def test_without_the_flag_there_is_no_form(app: Open) -> None:
    page = app("changes", gpu=H200)
    assert not page.text_input
    assert any("--allow-triage" in caption.value for caption in page.caption)


def test_with_the_flag_people_decide_and_it_stays_on_record(
    app: Open, own_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["app.py", ALLOW_TRIAGE])
    page = app("changes", store=own_store, gpu=H200, state="open")
    page.selectbox(key="triage-action").set_value("accept")
    page.text_input(key="triage-author").set_value("Ada")
    page.text_input(key="triage-note").set_value("wanted: the tail is checked now")
    page.button[0].click().run()
    assert not page.exception
    with Store.open(own_store, read_only=True) as store:
        (entry,) = triage_log(store)
    assert (entry.author, entry.state, entry.commit_sha) == (
        "Ada",
        TriageState.ACCEPTED,
        sha(REGRESSION_AT),
    )
    assert entry.effect == pytest.approx(-0.049, abs=0.005)
    assert pages.table(page)["kernel"].tolist() == [IMPROVED.kernel]


def test_a_decision_needs_a_name_and_a_reason(
    app: Open, own_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["app.py", ALLOW_TRIAGE])
    page = app("changes", store=own_store, gpu=H200)
    page.button[0].click().run()
    assert "Give a name and a reason" in page.warning[0].value
    with Store.open(own_store, read_only=True) as store:
        assert triage_log(store) == ()


def test_changes_of_one_range_and_kernel_stand_together() -> None:
    rows = pd.DataFrame(
        {
            "sha": ["b", "b", "b", "c"],
            "previous_sha": ["a", "a", "a", "b"],
            "kernel": ["relu", "relu", "add", "relu"],
            "kind": ["regression"] * 4,
            "effect": [-0.02, -0.05, -0.01, -0.03],
            "p_value": [1e-3, 1e-9, 1e-4, 1e-5],
            "state": ["new", "accepted", "new", "new"],
            **dict.fromkeys(("subject", "author", "measured"), ["x"] * 4),
            "started": [1.0] * 4,
        }
    )
    groups = changes.grouped(rows)
    assert groups["cases"].tolist() == [2, 1, 1]
    assert groups["effect"].tolist() == [-0.05, -0.01, -0.03]
    assert groups["states"].iloc[0] == "new, accepted"
    assert np.concatenate(groups["members"].to_list()).tolist() == [0, 1, 2, 3]
