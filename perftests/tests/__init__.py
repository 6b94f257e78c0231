"""What shows that the harness's times can be trusted, by the pitfalls that others published.

| pitfall | what is done, and the test |
|---|---|
| a flush of fixed size | twice the device's own L2; `flush_bytes` is in each record: test_record |
| persisting lines survive a flush | reset before each cold launch; cuda_runners.py |
| graph replays from a warm L2 pass for cold | the mode names the case; test_saboteurs: each_mode |
| the flush falls into the profiled window | test_counters: the_launch_alone_is_profiled |
| events carry launch latency; tiny kernels | held stream; test_timing: less_than_an_empty_launch |
| a rate of one mode read as another's | yardsticks by mode; test_calibrate: another_mode |
| more than the memory's rate | test_timing: more_than_the_memory_gives; saboteurs_gpu: counted_twice |
| the peak from a table or a wrong clock | test_calibrate: known_cards; test_timing: a_large_copy |
| zeros run faster than random data | normal ones in the suite; test_record: draw_its_inputs_again |
| a power cap lowers clocks | test_timing: a_reason_to_slow_down, a_low_clock; test_cooling |
| every sample thrown away | test_timing: late_launches_... are no sample |
| warm-up too short for the clock | test_sampling: a_clock_that_ramps_is_waited_for |
| lazy loading deadlocks behind a blocker | launched before; a hold ends after 20 ms |
| hot runs disturb cold ones | a case has one mode; the phases are apart |
| an estimate of zero | graph nodes from at least 1 us; test_sampling: no_more_launches |
| event resolution; float32 milliseconds | converted once to float64; short spans |
| a fast or slow place, stream, context | many in turn; test_cuda_runners: take_turns |
| a fault at one place or stream alone | test_places: at_one_place; cuda_runners: every_stream |
| the second of A and B wins | turns.py, test_turns; fresh processes in the trust study |
| the host's time of a launch alone | events on the launch stream; test_saboteurs: another_thread |
| events on another stream | test_saboteurs_gpu: an_independent_stream, the_default_stream |
| side streams, lazy results | the same; a look that could not tell: test_order, test_order_gpu |
| patched timers | bound before the tests are collected; test_early: replaces_the_clocks |
| output cached from an earlier call | test_saboteurs: caches its output |
| zeros pass, an unwritten tail | test_saboteurs: does nothing, skips its tail |
| a failed launch is fast | test_saboteurs: fails to launch; saboteurs_gpu: real_launch_error |
| a sticky error blamed on the next test | test_fresh, test_lost: fails_its_own_test_alone |
| allocations in the timed region | test_saboteurs(_gpu): allocations... are refused |
| the caching allocator hides overruns | guard zones; `python -m kernels sanitize-gpu memcheck` |
| a graph keeps its pointers | fresh inputs at the same addresses; test_saboteurs: each_mode |
| the comparer lets one bad element through | test_compare: one_bad_element_anywhere_is_found |
| power is an average, energy comes in steps | test_energy: within_its_error_though_... in_steps |
| a profiler's clocks and flushes | test_counters: the_clocks_are_left_alone |
| a statistic under the wrong name | test_summary: each_statistic_of_a_known_list |
"""
