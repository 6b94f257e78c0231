"""Where no run is named, pages show the newest of the suite and say which newer ones they do not."""

from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from dashboard import data
from dashboard.data import Snapshot
from dashboard.order import in_commit_order
from dashboard.session import open_store
from dashboard.tests import pages
from dashboard.tests.conftest import Open, fill
from dashboard.tests.runs import A100, FIRST, H200, Plan, environment, run, sha
from tracker import queries
from tracker.model import Result, Run, Summary
from tracker.occasion import AGAIN, LATER

STUDY = "studies: a part of the suite (ladder)"
PLAN = Plan(commits=9, measurements=8)
LATE = FIRST + timedelta(days=40)


def another(index: int, name: str, note: str, minute: int = 0) -> Run:
    """A run that is newer than all others, of a third of the cases, for something else."""
    rng = np.random.default_rng(99)
    whole = run(rng, index, plan=PLAN, started=LATE + timedelta(minutes=minute))
    return replace(whole, run_id=name, notes=(note,), complete=False, results=whole.results[::3])


@pytest.fixture
def suite() -> list[Run]:
    rng = np.random.default_rng(0)
    return [run(rng, index, plan=PLAN) for index in range(4)]


@pytest.fixture
def studied(tmp_path: Path, suite: list[Run]) -> str:
    """Four runs of the suite, then a study of the last commit and an old commit measured late."""
    others = (another(3, "a-study-of-three", STUDY), another(1, "measured-late", LATER, minute=9))
    return fill(tmp_path / "studied.db", iter((*suite, *others)))


@pytest.mark.parametrize("name", ["overview", "kernels", "roofline", "correctness", "compare"])
def test_a_page_shows_the_run_of_the_suite_and_tells_what_is_newer(
    app: Open, studied: str, suite: list[Run], name: str
) -> None:
    shown = pages.html(app(name, store=studied))
    told = f"{suite[-1].run_id} is the newest run of the suite; 2 newer ones are left out: "
    if name == "overview":
        told = "the newest run of the suite is judged; 2 runs are newer: "
    assert f"{told}measured-late" in shown


def test_a_store_without_other_runs_says_nothing_of_them(
    app: Open, tmp_path: Path, suite: list[Run]
) -> None:
    address = fill(tmp_path / "suite.db", iter(suite))
    for name in ("overview", "compare"):
        assert "newest run of the suite" not in pages.html(app(name, store=address))


def test_the_comparison_is_of_runs_of_the_suite(app: Open, studied: str) -> None:
    page = app("compare", store=studied)
    head, base = page.selectbox(key="head_run"), page.selectbox(key="base_run")
    assert head.placeholder.startswith(sha(3)[:7])
    assert not head.placeholder.endswith("study")
    assert base.placeholder.startswith(sha(2)[:7])
    assert head.options[0].endswith("backfill")
    assert head.options[1].endswith("study")


def test_a_link_by_commit_is_its_run_of_the_suite_and_by_id_the_study(
    app: Open, studied: str
) -> None:
    link = {"gpu": H200, "base": sha(2), "head": sha(3)}
    assert not str(app("compare", store=studied, **link).selectbox(key="head_run").value).endswith(
        "study"
    )
    link["head"] = "a-study-of-three"
    page = app("compare", store=studied, **link)
    assert str(page.selectbox(key="head_run").value).endswith("study")
    assert "newest run of the suite" not in pages.html(page)


def test_the_list_of_runs_says_for_what_each_was(app: Open, studied: str, suite: list[Run]) -> None:
    page = app("runs", store=studied)
    assert [state.split(", ")[0] for state in pages.table(page)["state"][:3]] == [
        "backfill",
        "study",
        "",
    ]
    assert f"Run {suite[-1].run_id}" in pages.html(page)


@pytest.mark.parametrize("name", ["overview", "kernels", "roofline", "correctness"])
def test_a_store_of_studies_alone_says_so(app: Open, tmp_path: Path, name: str) -> None:
    address = fill(tmp_path / "studies.db", iter([another(3, "a-study-of-three", STUDY)]))
    page = app(name, store=address)
    assert not page.exception
    assert "No run of the suite yet" in pages.html(page)


@pytest.mark.parametrize("name", ["series", "compare", "changes", "runs"])
def test_no_page_breaks_where_there_are_studies_alone(app: Open, tmp_path: Path, name: str) -> None:
    both = (another(3, "a-study-of-three", STUDY), another(2, "a-study-of-two", STUDY, minute=1))
    page = app(name, store=fill(tmp_path / "studies.db", iter(both)))
    assert not page.exception


@pytest.fixture
def snapshot(studied: str) -> Iterator[Snapshot]:
    store = open_store(studied, read_only=True)
    yield Snapshot(store, store.revision())
    open_store.clear()


def test_a_commit_measured_later_does_not_end_the_line(snapshot: Snapshot) -> None:
    found = queries.runs(snapshot.store, gpu_model=H200, dirty=False)
    ordered = [one.sha for one in in_commit_order(snapshot.store, found)]
    assert ordered == [sha(0), sha(1), sha(1), sha(2), sha(3), sha(3)]


def test_a_study_on_another_gpu_model_does_not_make_it_the_first(
    app: Open, tmp_path: Path, suite: list[Run]
) -> None:
    study = replace(another(3, "a-study-of-three", STUDY), environment=environment(A100))
    address = fill(tmp_path / "two.db", iter((*suite, study)))
    for name in ("kernels", "compare", "series"):
        page = app(name, store=address)
        assert page.selectbox(key="gpu").value == H200


def test_the_overview_judges_a_run_with_what_measured_its_cases_again(
    app: Open, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    found = [run(rng, index, plan=PLAN) for index in range(6)]
    last = found[-1]
    case = next(r for r in last.results if r.case.shape == (1 << 26,))

    def slowed(result: Result) -> Result:
        summary, factor = result.summary, 1.2
        assert summary is not None
        times = tuple(factor * t for t in result.measurements_s)
        told = {f.name: getattr(summary, f.name) * factor for f in fields(summary)}
        return replace(
            result,
            measurements_s=times,
            summary=Summary(**{**told, "count": summary.count}),
            median_cycles=(result.median_cycles or 0) * factor,
        )

    slow = tuple(slowed(r) if r is case else r for r in last.results)
    address = fill(tmp_path / "again.db", iter((*found[:-1], replace(last, results=slow))))
    assert "1</b> slower" in pages.html(app(store=address))
    again = [
        replace(
            last,
            run_id=f"repeat-no-{n}",
            notes=(AGAIN,),
            complete=False,
            results=(case,),
            started_at=(LATE + timedelta(minutes=n)).isoformat(),
            finished_at=None,
        )
        for n in (1, 2)
    ]
    fill(tmp_path / "again.db", iter(again))
    shown = pages.html(app(store=address))
    assert "0</b> slower" in shown
    assert "judged with 2 runs that measured cases again" in shown


def test_what_is_read_for_a_page_is_the_run_of_the_suite(
    snapshot: Snapshot, suite: list[Run]
) -> None:
    newest = data.newest(snapshot, H200, "main")
    assert newest is not None
    assert newest.run_id == suite[-1].run_id
    assert data.newest(snapshot, H200, "elsewhere") is None


def test_a_trend_is_in_commit_order_too(snapshot: Snapshot, suite: list[Run]) -> None:
    case = suite[0].results[0].case
    key = case.fingerprint
    times = {
        one.run_id: queries.results(snapshot.store, one, cases=[key])[0].bandwidth
        for one in queries.runs(snapshot.store, gpu_model=H200)
    }
    names = [one.run_id for one in suite]
    order = [names[0], names[1], "measured-late", names[2], names[3], "a-study-of-three"]
    (found,) = data.trends(snapshot, H200, "main", (key,), 30).values()
    assert found == pytest.approx([(times[name] or 0.0) / 1e9 for name in order])
