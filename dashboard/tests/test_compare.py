"""The comparison of two runs."""

from dashboard.tests import pages
from dashboard.tests.conftest import Open
from dashboard.tests.runs import CUDA_AT, H200, REGRESSED, REGRESSION_AT, sha

SIDES = {"gpu": H200, "base": sha(REGRESSION_AT - 1), "head": sha(REGRESSION_AT)}


def test_a_link_with_two_commits_shows_the_planted_regression_alone(app: Open) -> None:
    page = app("compare", **SIDES)
    assert not page.exception
    table = pages.table(page)
    assert table["case"].tolist() == [REGRESSED.label]
    assert list(table["verdict"].iloc[0]) == ["▲ slower"]
    assert table["change"].iloc[0].startswith("\N{MINUS SIGN}4.")
    assert any(
        "1 decided case shown; hidden: 14 undecided and 23 no change" in c.value
        for c in page.caption
    )


def test_a_link_by_commit_chooses_both_runs(app: Open) -> None:
    page = app("compare", **SIDES)
    assert str(page.selectbox(key="base_run").value).startswith(sha(REGRESSION_AT - 1)[:7])
    assert str(page.selectbox(key="head_run").value).startswith(sha(REGRESSION_AT)[:7])


def test_another_choice_replaces_the_linked_run_and_stays(app: Open) -> None:
    page = app("compare", **SIDES)
    newest = page.selectbox(key="head_run").options[0]
    page.selectbox(key="head_run").set_value(newest).run()
    assert page.selectbox(key="head_run").value == newest
    page.selectbox(key="kernel").set_value("relu").run()
    assert page.selectbox(key="head_run").value == newest


def test_all_rows_are_there_on_request_the_surest_first(app: Open) -> None:
    table = pages.table(app("compare", show="all", **SIDES))
    assert len(table) == 38
    assert table["case"].iloc[0] == REGRESSED.label


def test_intervals_and_both_distributions_are_drawn(app: Open) -> None:
    page = app("compare", **SIDES)
    assert "1 regression" in pages.chart(page, 0)[1]
    told = pages.chart(page, 1)[1]
    assert f"base {sha(REGRESSION_AT - 1)[:7]}" in told
    assert f"head {sha(REGRESSION_AT)[:7]}" in told
    quartiles = pages.table(page, 1)
    assert quartiles["side"].str[:4].tolist() == ["base", "head"]
    assert (quartiles["Median (us)"].diff().iloc[1]) > 0


def test_other_environments_are_told_and_nothing_is_decided(app: Open) -> None:
    page = app("compare", gpu=H200, base=sha(CUDA_AT - 1), head=sha(CUDA_AT))
    shown = pages.html(page)
    assert "These runs are not comparable" in shown
    assert "cuda: 12.9 -&gt; 13.0" in shown
    assert "hidden: 38 undecided" in " ".join(c.value for c in page.caption)


def test_without_a_link_the_newest_run_meets_the_one_before(app: Open) -> None:
    page = app("compare")
    head, base = page.selectbox(key="head_run"), page.selectbox(key="base_run")
    assert head.value is None
    assert head.placeholder == head.options[0]
    assert base.placeholder == base.options[1]


def test_an_unknown_run_is_told(app: Open) -> None:
    page = app("compare", base="0123456789abcdef0123", head=sha(REGRESSION_AT))
    assert not page.exception
    assert "0123456789abcdef0123" in pages.html(page)


def test_the_same_run_on_both_sides_is_told(app: Open) -> None:
    page = app("compare", base=sha(REGRESSION_AT), head=sha(REGRESSION_AT))
    assert "Both sides are the same run" in pages.html(page)


def test_the_permanent_link_names_runs(app: Open) -> None:
    page = app("compare", **SIDES)
    link = pages.permanent(page)
    again = app("compare", **pages.parameters(link))
    assert pages.table(again).equals(pages.table(page))
