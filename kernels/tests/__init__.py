"""What shows that the kernels are right, by the faults that others published.

| fault | test |
|---|---|
| NaN lost in a vector body or tail | test_values: nan_stays_where_it_is |
| sign of zero differs between body and tail | test_values: minus_zero_becomes_zero_in_head_body_and_tail |
| infinities, extremes and subnormals in ReLU | test_values: relu_of_extremes |
| a subnormal product flushed | test_values: a_subnormal_product_is_not_flushed; test_gate: flushing |
| sums of subnormal halves | test_values: sums_of_subnormals_are_exact |
| half overflow and ties | test_values: half_overflow_and_ties |
| half sums rounded twice | test_values: half_sums_round_as_numpy_does_at_every_exponent |
| inf - inf, NaN + 1, sums of zeros | test_values: ieee_sums_of_zeros_and_infinities |
| input, output or both off a vector | test_elementwise: every_pair_of_offsets; test_shapes |
| a half2 at two bytes | test_values: two_columns_of_a_slice |
| rows that are rarely aligned | test_values: rows_that_are_rarely_aligned |
| lengths about vectors, warps, powers of two | test_elementwise: lengths_...; guards in guarded.py |
| an odd length of half2, a neighbour overwritten | test_elementwise: short_tensors_at_every_offset |
| a tail that steps back computes twice | test_values: doubling_in_place_doubles_once |
| elements never written | guarded.py poisons, with numbers where NaN is right; test_elementwise: lengths_..., every_length_up_to_4099 |
| empty shapes | test_elementwise: empty_tensors_are_computed_to_nothing |
| more blocks than a y grid takes | test_large: one-dimensional grids of up to 2^23 blocks |
| 65,537 images in a batch | test_bn_relu_add, fused test_results: more_images_than_a_grid_has_rows |
| special values beside a table or a matrix | test_bn_relu_add, fused test_results: special_values... |
| indices beyond 2^31 and 2^32 | test_large |
| transposed, sliced, expanded, reversed | test_arguments: layouts_with_strides..., numpy, cupy |
| an output that overlaps an input | test_arguments: an_output_that_overlaps_by_a_part_is_refused |
| in place, add(x, x, out=x), add(x, y, out=y) | test_in_place; test_values: doubling |
| a block stores what another has yet to load | test_in_place; fused: in_place_over_and_over |
| the second GPU while the first is current | test_gpu: a_tensor_on_the_second_gpu_works... |
| work queued on a side stream | test_gpu: a_call_follows_work_on_the_current_stream, cupy_arrays_are_computed_on_cupys_stream |
| a float4 loop past the end, a float4 at an odd address | test_sanitize: ..._is_caught; fused test_faults |
| normalise and colour: channels, widths, std of 0 | kernels/fused_transform/tests |

The comparer itself is tested with planted faults in test_compare; the gate's rules in test_gate.
"""
