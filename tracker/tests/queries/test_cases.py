"""Cases and series as people look for them: by filters, by label, by words."""

from dataclasses import replace

import pytest

from tracker import queries
from tracker.errors import NotFoundError
from tracker.store import Store
from tracker.tests.factory import make_case, make_result
from tracker.tests.queries.test_queries import A100, VECTOR, a_run


def test_filters_offer_what_exists_narrowed_by_those_before(store: Store) -> None:
    store.record(a_run(1))
    store.record(a_run(2, environment=A100, results=(make_result(make_case("add")),)))
    every = queries.filter_counts(store)
    assert every["gpu_model"] == {"NVIDIA A100": 1, "NVIDIA H200": 2}
    assert every["kernel"] == {"add": 1, "relu": 2}
    narrowed = queries.filter_counts(store, gpu_model="NVIDIA H200", kernel="relu")
    assert narrowed["gpu_model"] == {"NVIDIA A100": 1, "NVIDIA H200": 2}
    assert narrowed["kernel"] == {"relu": 2}
    assert narrowed["implementation"] == {"cuda_vector": 1, "torch": 1}
    listed = queries.series_list(store, kernel="relu")
    assert [(s.case.implementation, s.results) for s in listed] == [
        ("cuda_vector", 1),
        ("torch", 1),
    ]
    with pytest.raises(ValueError, match="no filter is called colour"):
        queries.series_list(store, colour="red")


def test_a_series_that_is_no_longer_measured_says_since_when(store: Store) -> None:
    store.record(a_run(1))
    store.record(a_run(2, results=a_run(2).results[:1]))
    ends = {s.case.implementation: s.last_started for s in queries.series_list(store)}
    newest, oldest = queries.runs(store)
    assert ends == {"cuda_vector": newest.started, "torch": oldest.started}
    store.record(a_run(1, minute=0))
    assert {s.case.implementation: s.last_started for s in queries.series_list(store)} == ends


def test_a_case_is_found_by_fingerprint_label_and_words(store: Store) -> None:
    store.record(a_run(1))
    for text in (
        VECTOR,
        VECTOR[:6],
        "relu/cuda_vector float32 [67108864] cold",
        "cuda_vector relu",
    ):
        assert queries.find_case(store, text) == (VECTOR, make_case())
    with pytest.raises(NotFoundError, match="2 cases fit: relu/cuda_vector"):
        queries.find_case(store, "relu")
    with pytest.raises(NotFoundError, match="none of 2 cases"):
        queries.find_case(store, "softmax")


def test_of_many_cases_that_fit_five_are_named_and_the_rest_counted(store: Store) -> None:
    named = [replace(make_case(), shape=(size,)) for size in range(1, 8)]
    store.record(a_run(1, results=tuple(map(make_result, named))))
    with pytest.raises(
        NotFoundError, match=r"7 cases fit: .*\[5\] cold; and 2 more; give more words"
    ):
        queries.find_case(store, "relu")


def test_whole_words_of_a_case_go_before_parts_of_words(store: Store) -> None:
    named = [make_case(), replace(make_case(), kernel="scale_relu")]
    store.record(a_run(1, results=tuple(map(make_result, named))))
    for text in ("relu/cuda_vector", "cuda_vector relu", "relu/cuda_vector float32 67108864"):
        assert queries.find_case(store, text)[1] == named[0]
    assert queries.find_case(store, "scale_relu")[1] == named[1]
    with pytest.raises(NotFoundError, match="2 cases fit"):
        queries.find_case(store, "elu/cuda_vec")


def test_cases_of_one_label_are_told_apart_by_their_fingerprints(store: Store) -> None:
    old, new = make_case(), make_case(version=2)
    store.record(a_run(1, results=(make_result(old), make_result(new))))
    with pytest.raises(NotFoundError, match="give more words or a fingerprint") as caught:
        queries.find_case(store, old.label)
    for case in (old, new):
        assert f"({case.fingerprint})" in str(caught.value)
        assert queries.find_case(store, case.fingerprint) == (case.fingerprint, case)
