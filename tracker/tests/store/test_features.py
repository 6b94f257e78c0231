"""Features of the best trackers that concern a store, and the test that shows each of them here.

Rows of the survey's merged list (docs/results/store-scale.md has the figures):

| feature | test |
|---|---|
| 1 one stable fingerprint as identity | record/test_parse.py::test_the_order_of_parameters_is_no_part_of_a_case |
| 1 values that are equal are one case | record/test_parse.py::test_values_that_are_equal_are_one_case |
| 2 parameters as named values, never data | store/test_complaints.py::test_data_in_parameters_never_reaches_the_store |
| 3 the GPU model in the key | store/test_complaints.py::test_two_gpu_models_never_share_a_series |
| 4 driver, CUDA, ECC, MIG, clocks, power in the key | store/test_complaints.py::test_another_cuda_is_another_series |
| 4 clocks, temperature, power, throttling per result | store/test_complaints.py::test_the_state_of_the_device_is_kept_with_each_result |
| 5 comparisons across GPU states are flagged | test_gate.py::test_two_runs_of_different_environments_are_undecided |
| 5 no baseline from another state | test_gate.py::test_another_environment_is_no_baseline_and_that_is_told |
| 6 a GPU that another process used | test_gate.py::test_a_result_of_a_shared_device_is_never_a_baseline |
| 7 commit graph with parents | queries/test_queries.py::test_parents_decide_before_wrong_clocks |
| 7 merge base | test_git.py::test_ancestry_of_a_merge |
| 8 dirty trees are no history | queries/test_queries.py::test_a_series_leaves_dirty_trees_out_and_filters |
| 8 and are comparable locally | test_gate.py::test_uncommitted_changes_are_judged_against_the_commit_below |
| 9 rebased and deleted commits keep results | store/test_complaints.py::test_a_commit_that_left_the_repository_keeps_its_results |
| 9 and are shown as such | cli/test_orphans.py::test_lists_show_which_commits_left |
| 10 shallow clones work and say so | test_git.py::test_a_shallow_clone_is_noted_and_keeps_the_true_parents |
| 10 what they lack comes from the store | test_gate.py::test_a_shallow_clone_s_line_is_completed_from_the_store |
| 11 test merge, head and base told apart | store/test_complaints.py::test_a_test_merge_keeps_its_tree_head_base_and_merge_base |
| 12 idempotent submission | store/test_store.py::test_the_same_run_twice_changes_nothing |
| 12 by many at once | store/test_processes.py::test_sixteen_writers_at_once_lose_and_duplicate_nothing |
| 13 raw samples, to the last bit | store/test_codec.py::test_any_positive_floats_survive |
| 14 units in every name | exporters/test_formats.py::test_csv_names_units_and_keeps_full_precision |
| 14 the direction is known | test_verdict.py::test_a_gain_is_an_improvement_and_the_mirror_image_of_a_loss |
| 15 bandwidth and share of the peak | store/test_complaints.py::test_bandwidth_is_kept_with_bytes_and_time |
| 16 over the peak is a fault | test_verdict.py::test_results_over_peak_are_undecided_with_and_without_the_status |
| 17 failed results are kept | queries/test_queries.py::test_a_result_without_a_time_is_a_row_of_a_series |
| 18 a vanished benchmark | test_gate.py::test_a_case_that_a_complete_run_lacks_has_vanished |
| 19 insufficient data is a verdict | test_verdict.py::test_too_few_measurements_are_undecided_however_large_the_effect |
| 20 another version ends the series | store/test_complaints.py::test_another_version_of_a_benchmark_is_another_series |
| 42 exit codes tell apart what happened | cli/test_commands.py::test_every_format_has_the_same_exit_code |
| 43 the stored run meets the same gate | cli/test_commands.py::test_check_judges_the_newest_run_and_fails_on_a_regression |
| 43 the newest run is one of the suite | cli/test_newest.py::test_compare_takes_the_run_of_the_suite_on_both_sides |
| 44 a report that can be put in place | loop/test_ci.py::test_all_files_say_the_same |
| 45 the merge base is the baseline | test_gate.py::test_a_pull_request_is_judged_against_its_base_not_its_own_push |
| 46 a first run is no error | test_gate.py::test_the_first_run_has_no_baseline_and_that_is_no_error |
| 47 bisection | loop/test_bisect.py::test_the_commit_that_lost_3_percent_is_named |
| 48 backfills take their place | queries/test_queries.py::test_a_series_is_in_commit_order_with_backfills_in_place |
| 49 one schema on both engines | store/test_keeping.py::test_the_migrations_make_the_schema_of_the_models |
| 49 a copy between them | store/test_keeping.py::test_a_copy_is_the_same_store |
| 49 whatever the server is set to | store/test_settings.py::test_no_setting_of_a_server_changes_what_comes_back |
| 50 parallel jobs' files are merged | importers/test_formats.py::test_shards_of_one_run_are_merged_by_the_id_that_is_given |
| 51 samples thinned, summaries kept | store/test_keeping.py::test_pruning_keeps_summaries_and_the_newest_runs |
| 52 a stale baseline is told | test_verdict.py::test_a_stale_baseline_cannot_vouch_for_no_change_but_shows_a_loss |
| 56 strict JSON, versioned | store/test_trouble.py::test_bad_input_leaves_every_byte_of_the_store |
| 56 in what goes out, too | exporters/test_formats.py::test_strict_json_never_holds_nan |
| 57 thresholds live in the repository | test_config.py::test_thresholds_change_the_policy_and_overrides_only_the_cases_they_name |
| 57 and one that fits nothing is told | test_config.py::test_an_override_that_fits_nothing_is_told_only_after_a_complete_run |
"""

import pytest

from tracker.tests.store.test_complaints import exists, mapped

ROWS = {*range(1, 21), *range(42, 53), 56, 57}


@pytest.mark.parametrize(("feature", "test"), mapped(__doc__))
def test_each_feature_has_a_test_that_exists(feature: str, test: str) -> None:
    assert exists(test), feature


def test_no_row_of_the_list_is_left_out() -> None:
    assert {int(feature.split()[0]) for feature, _ in mapped(__doc__)} == ROWS
