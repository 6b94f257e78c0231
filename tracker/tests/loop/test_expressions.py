from typing import Any

import pytest

from tracker.tests.loop.expressions import Functions, evaluate, interpolate

CONTEXTS: dict[str, Any] = {
    "github": {
        "event_name": "pull_request",
        "event": {"pull_request": {"number": 7, "labels": [{"name": "bench"}, {"name": "docs"}]}},
        "ref": "refs/pull/7/merge",
    },
    "vars": {},
}
FUNCTIONS: Functions = {"contains": lambda where, what: what in where, "always": lambda: True}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("github.event_name == 'push'", False),
        ("github.event_name != 'push' && 'yes' || 'no'", "yes"),
        ("github.event.pull_request.number || github.ref", 7),
        ("github.event.issue.number || github.ref", "refs/pull/7/merge"),
        ("contains(github.event.pull_request.labels.*.name, 'bench')", True),
        ("contains(github.event.pull_request.labels.*.name, 'gpu')", False),
        ("!(github.ref == 'refs/heads/main') && always()", True),
        ("vars.GPU_CLOCKS == 'lock'", False),
        ("github.event_name == 'PULL_REQUEST'", True),
        ("'it''s'", "it's"),
        ("false || null || 'last'", "last"),
        ("true && ''", ""),
        ("vars.GPU_CLOCKS != ''", False),  # null and the empty text are both 0
        ("github.event.pull_request.number == '7'", True),
    ],
)
def test_expressions_have_github_s_meaning(text: str, value: object) -> None:
    assert evaluate(text, CONTEXTS, FUNCTIONS) == value


def test_text_around_an_expression_is_kept() -> None:
    assert interpolate("a-${{ github.event_name }}-${{ vars.X }}", CONTEXTS, FUNCTIONS) == (
        "a-pull_request-"
    )


@pytest.mark.parametrize("text", ["github.ref ==", "nothing.here", "(true", "a ; b"])
def test_what_is_not_understood_is_an_error(text: str) -> None:
    with pytest.raises((ValueError, IndexError)):
        evaluate(text, CONTEXTS, FUNCTIONS)
