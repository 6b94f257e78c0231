"""What users of other trackers suffered, and the test that shows that it cannot happen here.

Rows of the survey that concern a store (PB pytest-benchmark, GA github-action-benchmark, AS asv,
CB Conbench, BE Bencher, NY Nyrkiö, LN LLVM LNT):

| complaint | test |
|---|---|
| 1 PB#96: 1.8 GB files of parameter values | test_data_in_parameters_never_reaches_the_store |
| 1 PB#96: the same, in an imported file | importers/test_formats.py::test_large_parameter_values_become_digests |
| 2 PB: after run 9999 saving fails, 9999 stays the latest | test_the_newest_run_is_told_by_time_not_by_its_name |
| 2 the same: another kind of run is taken for the newest | cli/test_newest.py::test_an_export_of_one_run_is_that_of_the_suite |
| 3 PB#276: a first run ends in a usage error | test_a_first_run_into_no_store_at_all_is_no_error |
| 4 PB#273: stored runs cannot fail a build | cli/test_commands.py::test_check_judges_the_newest_run_and_fails_on_a_regression |
| 5 PB#260: shards cannot be merged | importers/test_formats.py::test_shards_of_one_run_are_merged_by_the_id_that_is_given |
| 5 PB#260: conflicts between shards go unseen | importers/test_formats.py::test_shards_in_conflict_are_refused |
| 6 PB#127, BE#609: seconds only | test_bandwidth_is_kept_with_bytes_and_time |
| 7 PB, vllm-omni#6976: a bare NaN in the file | test_nothing_that_is_no_number_gets_in |
| 7 GA: one NaN makes a whole file unreadable later | exporters/test_formats.py::test_strict_json_never_holds_nan |
| 8 GA#267: judged against its own last push, any machine | test_a_pull_request_never_meets_its_own_pushes |
| 9 GA#272, #328: pushes at once collide | store/test_processes.py::test_sixteen_writers_at_once_lose_and_duplicate_nothing |
| 9 GA#358, aztec#24806: history grows to gigabytes | test_a_result_stays_small |
| 9 opa#8834: no retention | store/test_keeping.py::test_pruning_keeps_summaries_and_the_newest_runs |
| 10 metamask#45451: a size limit froze the baseline unseen | test_verdict.py::test_a_stale_baseline_cannot_vouch_for_no_change_but_shows_a_loss |
| 10 the same: a store that cannot be written passes | test_a_store_that_cannot_be_written_is_an_error_each_time |
| 9 GA: concurrent pushes lose data: kills in the middle | store/test_processes.py::test_killed_writers_leave_whole_runs_only |
| 9 the same: damage is found and told | cli/test_damage.py::test_bytes_damaged_at_random_are_no_internal_error |
| 9 the same: and where it is in what queries use | store/test_keeping.py::test_each_kind_of_damage_is_found |
| 12 AS#630: dies on a commit that left the repository | test_a_commit_that_left_the_repository_keeps_its_results |
| 16 pybroker#287, CB#1191: nothing measured passes | test_verdict.py::test_an_empty_run_is_undecided |
| 16 the same: an import of nothing passes | importers/test_faults.py::test_a_file_without_a_result_is_no_success |
| 17 CB#1191, #1260: no results are no regressions | test_verdict.py::test_an_empty_run_is_undecided |
| 17 the same: an empty selection exports nothing, quietly | exporters/test_round_trip.py::test_a_gpu_model_without_runs_is_no_empty_export |
| 19 CB#978, #1470: queries slow down as results pile up | test_no_query_reads_all_results |
| 19 CB#1614: 503 on the landing page at scale | store/test_growth.py::test_ten_times_the_results_cost_no_more |
| 20 react_on_rails#3829: alerts of an orphaned threshold | test_config.py::test_an_override_that_fits_nothing_is_told_only_after_a_complete_run |
| 22 slang#1718: base and test merge disagree | test_a_test_merge_keeps_its_tree_head_base_and_merge_base |
| 24 atlas#569, TileOPs#1588: hardware state unknown | test_the_state_of_the_device_is_kept_with_each_result |
| 24 Rapid-MLX#1527: another process used the GPU | test_gate.py::test_a_result_of_a_shared_device_is_never_a_baseline |
| 25 vllm-omni#3328: baselines survive a CUDA change | test_another_cuda_is_another_series |
| LN#140: the same binary is called slower | test_verdict.py::test_the_same_machine_code_is_named_and_points_to_the_environment |
| foundry#15720: missing nightly results are accepted | test_gate.py::test_a_case_that_a_complete_run_lacks_has_vanished |
| PH: a race makes two alerts of one | store/test_processes.py::test_people_who_decide_at_once_are_all_kept_in_one_order |
| OT: numbers come back as text, small ones as zero | exporters/test_round_trip.py::test_any_sample_and_any_text_survive_each_form |
| CB: the hash has the number of GPUs, not their model | test_two_gpu_models_never_share_a_series |
| LN#75: orders know nothing of git | queries/test_queries.py::test_parents_decide_before_wrong_clocks |
| BE: backdated results stand at the end | queries/test_queries.py::test_a_series_is_in_commit_order_with_backfills_in_place |
| BE, GA: two benchmarks of one name replace each other | exporters/test_formats.py::test_cases_with_one_label_are_all_there |
| NY: two results cannot share a timestamp | test_two_runs_may_begin_at_one_moment |
| AS: a changed benchmark goes on in the old series | test_another_version_of_a_benchmark_is_another_series |
| BE 0.6.1: a retried submission doubles results | store/test_store.py::test_the_same_run_twice_changes_nothing |
| SP: posting again overwrites | store/test_store.py::test_one_run_id_with_other_content_is_a_conflict |
| speed#3: dirty trees become history | queries/test_queries.py::test_a_series_leaves_dirty_trees_out_and_filters |
"""

import ast
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from tracker import queries
from tracker.errors import RecordError, StoreError
from tracker.model import Checkout, DeviceState, Run
from tracker.occasion import newest
from tracker.record import dump_run, parse_run
from tracker.store import Store
from tracker.store.generate import Generator, Plan, fill
from tracker.store.upgrading import store_info
from tracker.tests.factory import H200, make_case, make_commit, make_result, make_run, sha

TESTS = Path(__file__).parents[1]
VECTOR = make_case().fingerprint


def mapped(text: str | None) -> list[tuple[str, str]]:
    """The rows of a table in a docstring: what, and the test that shows it."""
    lines = (line for line in (text or "").splitlines() if "test_" in line)
    return [(row[0], row[1]) for row in (line.strip("| ").split(" | ") for line in lines)]


def exists(test: str) -> bool:
    """Whether there is a test of that name; one without a file is of this module."""
    file, _, name = test.rpartition("::")
    tree = ast.parse((TESTS / file if file else Path(__file__)).read_text("utf-8"))
    return name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("complaint", "test"), mapped(__doc__))
def test_each_complaint_has_a_test_that_exists(complaint: str, test: str) -> None:
    assert exists(test), complaint


def test_a_test_that_does_not_exist_is_noticed() -> None:
    assert not exists("test_gate.py::test_that_nobody_wrote")


def test_data_in_parameters_never_reaches_the_store() -> None:
    for value in ("x" * 201, [0.5] * 1000):
        document = dump_run(make_run())
        document["results"][0]["case"]["parameters"] = {"data": value}
        with pytest.raises(RecordError, match="parameters"):
            parse_run(document)


def test_the_newest_run_is_told_by_time_not_by_its_name(store: Store) -> None:
    for number, name in enumerate(("9998", "9999", "10000", "10001"), start=1):
        store.record(make_run(f"run-{name}", number))
    assert queries.find_run(store, "latest").run_id == "run-10001"
    assert [run.run_id for run in queries.runs(store)][:2] == ["run-10001", "run-10000"]


def test_a_first_run_into_no_store_at_all_is_no_error(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "new" / "store.db")) as store:
        assert queries.overview(store).runs == 0
        assert store.record(make_run()).inserted
        assert queries.candidates(store, queries.find_run(store, "latest")) == ()


def test_bandwidth_is_kept_with_bytes_and_time(store: Store) -> None:
    store.record(make_run())
    series = queries.series(store, VECTOR, "NVIDIA H200")
    assert series.bandwidth[0] == pytest.approx(2 * 4 * 2**26 / 1.3e-4)
    assert series.copy_fraction[0] == pytest.approx(2 * 4 * 2**26 / 1.3e-4 / 4.21e12)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_nothing_that_is_no_number_gets_in(store: Store, bad: float) -> None:
    whole = make_result()
    state = replace(whole.during or DeviceState(), power_w=bad)
    for result in (
        replace(whole, measurements_s=(1e-4, bad)),
        replace(whole, during=state),
        replace(whole, counters={"dram__bytes_read.sum": bad}),
        make_result(make_case(parameters={"alpha": bad})),
    ):
        with pytest.raises((RecordError, ValueError)):
            store.record(make_run(results=(result,)))
    text = json.dumps(dump_run(make_run())).replace("257400.5", "NaN")
    with pytest.raises(RecordError, match="NaN is not JSON"):
        parse_run(text.encode())
    assert queries.overview(store).runs == 0


def test_a_pull_request_never_meets_its_own_pushes(store: Store) -> None:
    store.record(make_run("run-on-main-01", 1))
    slow = Checkout(make_commit(2, [1]), "feature")
    store.record(make_run("run-first-push", 2, checkout=slow))
    other = replace(H200, gpu_model="NVIDIA A100")
    store.record(make_run("run-other-gpu1", 1, minute=2, environment=other))
    merge = make_commit(3, [1, 2])
    head = make_run("run-second-push", 3, checkout=Checkout(merge, "feature", head=sha(2)))
    store.record(head)
    info = queries.find_run(store, "run-second-push")
    # What git says lies below the base: the pull request's own commits do not.
    found = queries.candidates(store, info, ancestors=[sha(1)])
    assert [run.run_id for run in found] == ["run-on-main-01"]


def _size(address: str) -> int:
    with Store.open(address) as store:
        if store.path is None:
            # What a server does by itself every minute.
            with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as c:
                c.exec_driver_sql("VACUUM")
    return store_info(address).size_bytes


def test_a_result_stays_small(address: str) -> None:
    plan = Plan(runs=80, cases=100, models=1)
    generator = Generator(plan)
    with Store.open(address) as store:
        fill(store, generator.runs(0, 20))
        # From here on every case, index and table has its first rows.
        before = _size(address)
        fill(store, generator.runs(20, 80))
    assert (_size(address) - before) / (60 * plan.cases) < 600


def test_a_store_that_cannot_be_written_is_an_error_each_time(address: str) -> None:
    Store.open(address).close()
    with Store.open(address, read_only=True) as store:
        for _ in range(2):
            with pytest.raises(StoreError, match="cannot record run"):
                store.record(make_run())


def test_a_commit_that_left_the_repository_keeps_its_results(store: Store) -> None:
    for number in (1, 2, 3):
        store.record(make_run(f"run-{number:08}", number))
    # The second commit was squashed away: git lists it no more.
    assert queries.orphans(store, {sha(1), sha(3)}) == (sha(2),)
    assert len(queries.series(store, VECTOR, "NVIDIA H200")) == 3
    assert queries.find_run(store, sha(2)).run_id == "run-00000002"


@contextmanager
def statements(store: Store) -> Iterator[list[tuple[str, Any]]]:
    found: list[tuple[str, Any]] = []

    def note(*arguments: Any) -> None:
        found.append((arguments[2], arguments[3]))

    event.listen(store.engine, "before_cursor_execute", note)
    yield found
    event.remove(store.engine, "before_cursor_execute", note)


def test_no_query_reads_all_results(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "a.db")) as store:
        fill(store, Generator(Plan(runs=40, cases=20, measurements=6)).runs())
        run = queries.find_run(store, "latest")
        info = queries.series_list(store)[0]
        with statements(store) as found:
            queries.overview(store)
            newest(store)
            queries.filter_counts(store)
            queries.series(store, info.case_key, info.gpu_model)
            earlier = queries.candidates(store, run)
            queries.result_table(store, earlier[:5])
            queries.histories(store, earlier[:5])
            queries.results(store, run)
            store.record(make_run())
        with store.reading() as connection:
            for statement, parameters in found:
                if not statement.lstrip().startswith(("SELECT", "UPDATE")):
                    continue
                plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
                steps = " / ".join(str(row[3]) for row in plan)
                assert "SCAN results" not in steps, (statement, steps)
                assert "SCAN samples" not in steps, (statement, steps)


def test_a_test_merge_keeps_its_tree_head_base_and_merge_base(store: Store) -> None:
    checkout = Checkout(
        make_commit(9, [7, 8]),
        "feature",
        tree="a" * 40,
        head=sha(8),
        base=sha(7),
        merge_base=sha(5),
        shallow=True,
        notes=("shallow clone",),
    )
    store.record(make_run(checkout=checkout))
    assert queries.find_run(store, "latest").checkout == checkout


def test_the_state_of_the_device_is_kept_with_each_result(store: Store) -> None:
    run = make_run()
    store.record(run)
    (result, _) = queries.results(store, queries.find_run(store, "latest"))
    assert (result.before, result.during, result.after) == (
        run.results[0].before,
        run.results[0].during,
        run.results[0].after,
    )
    assert result.during is not None
    assert result.during.throttle_reasons == ("sw power cap",)


def _in(store: Store, run_id: str, number: int, **change: Any) -> Run:
    run = make_run(run_id, number, environment=replace(H200, **change))
    store.record(run)
    return run


@pytest.mark.parametrize(
    "change",
    [
        {"cuda": "13.1"},
        {"driver": "590.10"},
        {"libraries": {"torch": "2.12.0", "triton": "3.6.0"}},
        {"ecc": False},
        {"mig": True},
        {"clock_policy": "locked 1500 MHz"},
        {"power_limit_w": 500.0},
    ],
)
def test_another_cuda_is_another_series(store: Store, change: dict[str, Any]) -> None:
    _in(store, "run-before-001", 1)
    _in(store, "run-after-0001", 2, **change)
    head = queries.find_run(store, "run-after-0001")
    assert queries.candidates(store, head) == ()
    assert [run.run_id for run in queries.candidates(store, head, any_environment=True)] == [
        "run-before-001"
    ]
    assert len(queries.series_list(store, implementation="cuda_vector")) == 2


def test_two_gpu_models_never_share_a_series(store: Store) -> None:
    _in(store, "run-on-h200-01", 1)
    _in(store, "run-on-a100-01", 2, gpu_model="NVIDIA A100")
    for model in ("NVIDIA H200", "NVIDIA A100"):
        assert len(queries.series(store, VECTOR, model)) == 1


def test_two_runs_may_begin_at_one_moment(store: Store) -> None:
    store.record(make_run("run-00000001", 1, minute=5))
    store.record(make_run("run-00000002", 1, minute=5))
    assert len(queries.series(store, VECTOR, "NVIDIA H200")) == 2


def test_another_version_of_a_benchmark_is_another_series(store: Store) -> None:
    store.record(make_run("run-00000001", 1))
    changed = make_result(replace(make_case(), version=2), bytes_moved=4)
    store.record(make_run("run-00000002", 2, results=(changed,)))
    assert len(queries.series(store, VECTOR, "NVIDIA H200")) == 1
    assert len(queries.series(store, changed.case.fingerprint, "NVIDIA H200")) == 1
