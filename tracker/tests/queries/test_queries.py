"""The read layer gives what was recorded, in the order and by the names that people use."""

from dataclasses import replace

import numpy as np
import pytest

from tracker import queries
from tracker.errors import NotFoundError
from tracker.model import Checkout, Run, Status, Warn
from tracker.queries.order import in_order
from tracker.store import Store
from tracker.tests.factory import DEVICE, H200, make_case, make_commit, make_result, make_run, sha

VECTOR = make_case().fingerprint
OTHER_DRIVER = replace(H200, driver="570.1")
A100 = replace(H200, gpu_model="NVIDIA A100")


def a_run(number: int, minute: int | None = None, **more: object) -> Run:
    return make_run(
        f"run-{number:08}" if minute is None else f"run-{number:04}-{minute:04}",
        number,
        minute=number if minute is None else minute,
        **more,
    )


def test_an_empty_store_is_an_overview_of_nothing(store: Store) -> None:
    found = queries.overview(store)
    assert (found.runs, found.results, found.cases, found.series, found.commits, found.models) == (
        0,
        0,
        0,
        0,
        0,
        (),
    )
    with pytest.raises(NotFoundError, match="no run id and no commit"):
        queries.find_run(store, "latest")


def test_the_overview_counts_what_is_there(store: Store) -> None:
    store.record(a_run(1))
    store.record(a_run(2))
    store.record(a_run(3, environment=A100, device=replace(DEVICE, uuid="GPU-a")))
    found = queries.overview(store)
    assert (
        found.revision,
        found.runs,
        found.results,
        found.cases,
        found.series,
        found.commits,
    ) == (3, 3, 6, 2, 4, 3)
    assert [(m.name, m.runs, m.newest_run_id) for m in found.models] == [
        ("NVIDIA A100", 1, "run-00000003"),
        ("NVIDIA H200", 2, "run-00000002"),
    ]
    assert found.models[0].devices == ("GPU-a",)


def test_runs_are_found_by_id_beginning_commit_and_latest(store: Store) -> None:
    for number in (1, 2):
        store.record(a_run(number))
    store.record(a_run(1, minute=9))
    assert queries.find_run(store, "latest").run_id == "run-0001-0009"
    assert queries.find_run(store, "run-00000002").run_id == "run-00000002"
    assert queries.find_run(store, "run-0001").run_id == "run-0001-0009"
    assert queries.find_run(store, sha(1)).run_id == "run-0001-0009"
    assert queries.find_run(store, sha(2)).run_id == "run-00000002"
    with pytest.raises(NotFoundError, match="several run ids"):
        queries.find_run(store, "run-")
    with pytest.raises(NotFoundError, match="several commits"):
        queries.find_run(store, "0000")
    for wrong in ("", "%", "run_00000002", "RUN-00000002", "é", "ffff"):
        with pytest.raises(NotFoundError):
            queries.find_run(store, wrong)


def test_a_run_comes_back_whole(store: Store) -> None:
    store.record(a_run(1))
    assert queries.load_run(store, "run-00000001") == a_run(1)
    info = queries.find_run(store, "latest")
    assert (info.environment, info.device, info.checkout) == (H200, DEVICE, a_run(1).checkout)
    assert (info.results, dict(info.statuses), info.complete) == (2, {"ok": 2}, True)
    assert queries.results(store, info) == a_run(1).results
    assert queries.results(store, info, cases=[VECTOR]) == a_run(1).results[:1]
    light = queries.results(store, info, measurements=False)
    assert [r.measurements_s for r in light] == [(), ()]
    assert [r.summary for r in light] == [r.summary for r in a_run(1).results]


def test_runs_are_listed_newest_first_and_filtered(store: Store) -> None:
    for number in range(1, 6):
        store.record(a_run(number, dirty=number == 3))
    listed = [run.sha for run in queries.runs(store)]
    assert listed == [sha(n) for n in (5, 4, 3, 2, 1)]
    assert [run.sha for run in queries.runs(store, dirty=False, limit=2, offset=1)] == [
        sha(4),
        sha(2),
    ]
    assert [run.sha for run in queries.runs(store, sha=sha(2))] == [sha(2)]
    assert queries.runs(store, gpu_model="NVIDIA A100") == ()
    assert queries.count_runs(store) == 5
    assert queries.count_runs(store, gpu_model="NVIDIA H200", branch="main") == 5
    assert queries.count_runs(store, gpu_model="NVIDIA A100") == 0
    assert queries.count_runs(store, branch="topic") == 0
    assert (
        len(
            queries.runs(
                store, gpu_model="NVIDIA H200", branch="main", environment_key=H200.fingerprint
            )
        )
        == 5
    )
    assert queries.branches(store) == ("main",)


def test_a_series_is_in_commit_order_with_backfills_in_place(store: Store) -> None:
    for number in (1, 4, 2):
        store.record(a_run(number))
    # Commit 3 is measured last of all, a day after the others.
    store.record(a_run(3, minute=900))
    series = queries.series(store, VECTOR, "NVIDIA H200")
    assert series.sha.tolist() == [sha(n) for n in (1, 2, 3, 4)]
    assert len(series) == 4
    assert series.median_s.tolist() == [1.3e-4] * 4
    assert series.bandwidth[0] == 2 * 4 * (1 << 26) / 1.3e-4
    assert series.status.tolist() == ["ok"] * 4


def test_parents_decide_before_wrong_clocks(store: Store) -> None:
    # Commit 2's clock is a day behind that of its parent 1.
    late = make_commit(1, minute=3000)
    early = make_commit(2, parents=[1], minute=5)
    store.record(make_run("run-00000002", 2, checkout=Checkout(early)))
    store.record(make_run("run-00000001", 1, checkout=Checkout(late)))
    assert queries.series(store, VECTOR, "NVIDIA H200").sha.tolist() == [sha(1), sha(2)]


def test_runs_of_one_commit_follow_by_start(store: Store) -> None:
    store.record(a_run(1, minute=30))
    store.record(a_run(1, minute=10))
    assert queries.series(store, VECTOR, "NVIDIA H200").run_id.tolist() == [
        "run-0001-0010",
        "run-0001-0030",
    ]


def test_a_series_leaves_dirty_trees_out_and_filters(store: Store) -> None:
    store.record(a_run(1))
    store.record(a_run(2, dirty=True))
    store.record(a_run(3, environment=OTHER_DRIVER))
    find = queries.series
    assert find(store, VECTOR, "NVIDIA H200").sha.tolist() == [sha(1), sha(3)]
    assert find(store, VECTOR, "NVIDIA H200", dirty=True).dirty.tolist() == [False, True, False]
    both = find(store, VECTOR, "NVIDIA H200")
    assert [both.environment_keys[i] for i in both.environment] == [
        H200.fingerprint,
        OTHER_DRIVER.fingerprint,
    ]
    assert find(
        store, VECTOR, "NVIDIA H200", environment_key=OTHER_DRIVER.fingerprint
    ).sha.tolist() == [sha(3)]
    newest = find(store, VECTOR, "NVIDIA H200", last=1)
    assert newest.sha.tolist() == [sha(3)]
    assert (newest.older, newest.changed) == (1, 1)
    assert (both.older, both.changed) == (0, 1)
    every = find(store, VECTOR, "NVIDIA H200", dirty=True, last=2)
    assert (every.older, every.changed) == (1, 0)
    assert len(find(store, VECTOR, "NVIDIA H200", branch="none")) == 0
    with pytest.raises(NotFoundError, match="holds none"):
        find(store, "0" * 16, "NVIDIA H200")
    with pytest.raises(NotFoundError, match="no such GPU model"):
        find(store, VECTOR, "NVIDIA H100")


def test_runs_outside_a_checkout_fall_among_the_others_by_start(store: Store) -> None:
    store.record(a_run(1, minute=10))
    store.record(a_run(2, minute=20))
    store.record(make_run("run-homeless", None, minute=15))
    series = queries.series(store, VECTOR, "NVIDIA H200")
    assert series.sha.tolist() == [sha(1), "", sha(2)]
    store.record(make_run("run-homeless-0", None, minute=1))
    assert queries.series(store, VECTOR, "NVIDIA H200").sha.tolist() == ["", sha(1), "", sha(2)]


def test_measurements_come_by_the_series_result_ids(store: Store) -> None:
    store.record(a_run(1))
    series = queries.series(store, VECTOR, "NVIDIA H200")
    (sample,) = queries.measurements(store, series.result.tolist())
    assert tuple(sample.tolist()) == make_result().measurements_s


def test_a_result_without_a_time_is_a_row_of_a_series(store: Store) -> None:
    from tracker.model import Correctness

    wrong = make_result(
        status=Status.INCORRECT,
        measurements_s=(),
        summary=None,
        correctness=Correctness(True, False),
    )
    store.record(a_run(1, results=(wrong,)))
    series = queries.series(store, VECTOR, "NVIDIA H200")
    assert series.status.tolist() == ["incorrect"]
    assert np.isnan(series.median_s).all()
    table = queries.result_table(store, queries.runs(store))
    assert table.count.tolist() == [0]
    assert np.isnan(table.median_s).all()


def test_the_result_table_of_some_cases_holds_no_others(store: Store) -> None:
    store.record(make_run())
    wanted = make_case(implementation="torch")
    table = queries.result_table(store, queries.runs(store), cases=[wanted.fingerprint])
    assert table.cases == (wanted,)
    assert table.count.tolist() == [3]
    assert queries.result_table(store, queries.runs(store), cases=[]).run.size == 0


def test_the_result_table_holds_several_runs(store: Store) -> None:
    store.record(a_run(1))
    store.record(a_run(2, results=a_run(2).results[:1]))
    newest, oldest = queries.runs(store)
    table = queries.result_table(store, (newest, oldest))
    assert table.run.tolist() == [0, 1, 1]
    assert [table.case_keys[i] for i in table.case] == [
        VECTOR,
        VECTOR,
        a_run(1).results[1].case.fingerprint,
    ]
    assert table.median_s.tolist() == [1.3e-4, 1.3e-4, 2.05e-4]
    assert queries.result_table(store, ()).median_s.size == 0


def test_the_results_of_two_runs_are_those_of_each(store: Store) -> None:
    store.record(a_run(1))
    store.record(a_run(2, results=a_run(2).results[:1]))
    head, base = queries.runs(store)
    found = queries.both_results(store, base, head)
    assert found == (queries.results(store, base), queries.results(store, head))
    assert [len(side) for side in found] == [2, 1]
    assert found[0] == a_run(1).results


def test_a_case_from_the_store_has_the_key_that_it_works_out_itself(store: Store) -> None:
    store.record(a_run(1))
    for result in queries.results(store, queries.runs(store)[0]):
        assert result.case.fingerprint == replace(result.case).fingerprint


def test_summaries_of_two_runs_lie_side_by_side(store: Store) -> None:
    other = make_case(implementation="torch")
    store.record(a_run(1))
    slower = make_result(sample=[2.5e-4])
    without = make_result(other, status=Status.ERROR, measurements_s=(), summary=None)
    alone = make_result(make_case(implementation="triton"))
    store.record(a_run(2, results=(without, slower, alone)))
    head, base = queries.runs(store)
    found = queries.side_by_side(store, base, head)
    assert found.labels == (other.label, make_case().label)
    assert found.case_keys == (other.fingerprint, VECTOR)
    assert found.base["median_s"] == (2.05e-4, 1.3e-4)
    assert found.head["median_s"] == (None, pytest.approx(2.5e-4))
    assert found.head["count"] == (None, 1)
    assert tuple(found.base) == tuple(found.head) == queries.SIDE
    store.record(a_run(3, results=(alone,)))
    assert queries.side_by_side(store, base, queries.runs(store)[0]).labels == ()


def test_histories_come_by_case_in_the_order_of_the_runs(store: Store) -> None:
    for number in (1, 2, 3):
        store.record(a_run(number))
    newest_first = queries.runs(store)
    found = queries.histories(store, newest_first, cases=[VECTOR])
    assert list(found) == [VECTOR]
    assert [run.sha for run, _ in found[VECTOR]] == [sha(3), sha(2), sha(1)]
    light = found[VECTOR][0][1]
    whole = make_result()
    assert (light.measurements_s, light.summary, light.median_cycles) == (
        whole.measurements_s,
        whole.summary,
        whole.median_cycles,
    )
    assert light.copy_fraction == whole.copy_fraction


def test_candidates_are_ancestors_nearest_first_then_this_commit(store: Store) -> None:
    for number in (1, 2, 3):
        store.record(a_run(number))
    store.record(a_run(1, minute=50))
    store.record(a_run(3, minute=60))
    store.record(a_run(3, minute=70))
    head = queries.find_run(store, "run-0003-0060")
    found = [run.run_id for run in queries.candidates(store, head)]
    assert found == ["run-00000002", "run-0001-0050", "run-00000001", "run-00000003"]
    assert [r.run_id for r in queries.candidates(store, head, ancestors=[sha(1)])] == [
        "run-0001-0050",
        "run-00000001",
        "run-00000003",
    ]
    assert [r.run_id for r in queries.candidates(store, head, ancestors=[])] == ["run-00000003"]
    assert [r.run_id for r in queries.candidates(store, head, limit=1)] == ["run-00000002"]


def test_candidates_are_clean_comparable_and_no_demo(store: Store) -> None:
    store.record(a_run(1, dirty=True))
    store.record(a_run(1, minute=11, environment=OTHER_DRIVER))
    store.record(a_run(1, minute=12, environment=A100))
    store.record(a_run(1, minute=13, demo=True))
    store.record(a_run(2))
    head = queries.find_run(store, sha(2))
    assert queries.candidates(store, head) == ()
    assert [r.run_id for r in queries.candidates(store, head, any_environment=True)] == [
        "run-0001-0011"
    ]


def test_outside_a_checkout_earlier_runs_outside_are_candidates(store: Store) -> None:
    for minute in (1, 2, 3):
        store.record(make_run(f"run-none-{minute}", None, minute=minute))
    head = queries.find_run(store, "run-none-2")
    assert [r.run_id for r in queries.candidates(store, head)] == ["run-none-1"]


def test_ancestors_follow_merges_and_learned_commits(store: Store) -> None:
    store.record(make_run("run-00000005", 5, parents=(3, 4)))
    assert queries.ancestors(store, sha(5)) == (sha(4), sha(3)) or queries.ancestors(
        store, sha(5)
    ) == (sha(3), sha(4))
    store.learn_commits([make_commit(3, [1]), make_commit(4, [2]), make_commit(2, [1])])
    assert queries.ancestors(store, sha(5)) == (sha(4), sha(3), sha(2), sha(1))
    assert queries.ancestors(store, sha(5), limit=2) == (sha(4), sha(3))
    assert queries.ancestors(store, sha(9)) == ()
    assert queries.commits(store, [sha(4), sha(9)]) == {sha(4): make_commit(4, [2])}


def test_orphans_are_measured_commits_that_no_branch_reaches(store: Store) -> None:
    store.record(a_run(1))
    store.record(a_run(2))
    assert queries.orphans(store, {sha(1)}) == (sha(2),)


def test_order_puts_parents_first_and_survives_cycles() -> None:
    times = {1: 5.0, 2: 1.0, 3: 2.0, 4: None}
    assert in_order(times, {2: (1,), 3: (9,)}) == [4, 3, 1, 2]
    assert in_order({1: 2.0, 2: 1.0, 3: 0.0}, {1: (2,), 2: (1,)}) == [3, 2, 1]


def _in_order_slowly(times: dict[int, float], parents: dict[int, tuple[int, ...]]) -> list[int]:
    left, order = dict(times), list[int]()
    while left:
        ready = [n for n in left if not set(parents.get(n, ())) & left.keys()]
        order.append(min(ready, key=lambda n: (left[n], n)))
        del left[order[-1]]
    return order


def test_the_short_way_to_the_order_gives_the_same() -> None:
    rng = np.random.default_rng(5)
    for disorder in (0.0, 0.3, 3.0):
        for _ in range(30):
            count = int(rng.integers(1, 12))
            times = {n: n + float(rng.normal(0, 1)) * disorder for n in range(count)}
            parents = {
                n: tuple(int(p) for p in {*rng.integers(0, n, 2).tolist()})
                for n in range(1, count)
                if rng.random() < 0.8
            }
            assert in_order(times, parents) == _in_order_slowly(times, parents)


def test_floors_come_in_the_order_asked_from_the_readings_of_each_result(store: Store) -> None:
    near = Warn("near_floor", "mostly launch")
    for number, (floor_s, warnings) in enumerate(
        [(2.4e-6, ()), (None, (near,)), (2.6e-6, (Warn("clock", "moved"), near))], start=1
    ):
        peaks = replace(make_result().peaks, floor_s=floor_s)
        only = make_result(peaks=peaks, warnings=warnings)
        store.record(a_run(number, results=(only,)))
    ids = queries.series(store, VECTOR, "NVIDIA H200").result.tolist()
    found = queries.floors(store, [ids[2], ids[0], ids[1], ids[2], 999])
    assert found.floor_s.tolist() == pytest.approx(
        [2.6e-6, 2.4e-6, np.nan, 2.6e-6, np.nan], nan_ok=True
    )
    assert found.launch_bound.tolist() == [True, False, True, True, False]
    nothing = queries.floors(store, [])
    assert (nothing.floor_s.size, nothing.launch_bound.size) == (0, 0)
