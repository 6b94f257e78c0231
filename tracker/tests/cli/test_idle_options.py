"""Options that another one leaves without effect are wrong use, in one line; settings may stay."""

from pathlib import Path

import pytest

from tracker.tests.cli.conftest import Command

STORE = "--store sqlite:///other.db"
IDLE = {
    f"ab HEAD~1 {STORE}": "--store has no effect: without --record nothing goes into a store",
    "ci --base main": "--base has no effect: without --ab",
    "ci --lock-timeout 1m": "--lock-timeout has no effect: without --lock",
    f"db copy runs.db copy.db {STORE}": "--store has no effect: FROM and TO are the stores",
    "evaluate --series 20": "--series has no effect: a store's own series are replayed",
    "evaluate --synthetic --gpu X": "--gpu has no effect: --synthetic reads no store",
    "evaluate --synthetic --limit 3": "--limit has no effect: --synthetic reads no store",
    f"evaluate --synthetic {STORE}": "--store has no effect: --synthetic reads no store",
    "init --hook-only --labels gpu": "--labels has no effect: --hook-only writes no workflow",
    "init --hook-only --branch dev": "--branch has no effect: --hook-only writes no workflow",
    "init --hook-only --source x@y": "--source has no effect: --hook-only writes no workflow",
    "list --cases --branch main": "--branch has no effect: --cases shows all cases",
    "list --cases --limit 3": "--limit has no effect: --cases shows all cases",
    "notify --feed f.xml --dry-run": "--dry-run has no effect: --feed sends nothing",
    "notify --feed f.xml --as slack": "--as has no effect: --feed sends nothing",
    **{
        f"ci --from records {option}": f"{option.split()[0]} has no effect: --from measures"
        for option in (
            *("-k relu", "--quick", "--ab", "--base main", "--record", "--gpu", "--repeats 2"),
            *("--lock gpu.lock", "--lock-timeout 1m", STORE),
        )
    },
}


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("words", IDLE)
def test_an_option_without_effect_is_wrong_use(bandwatch: Command, words: str) -> None:
    answer = bandwatch(*words.split())
    assert answer.code == 2
    assert answer.out == ""
    (line,) = answer.err.splitlines()
    assert line.startswith(f"bandwatch: {IDLE[words]}")
    assert not Path("f.xml").exists()


@pytest.mark.usefixtures("filled")
def test_what_an_export_says_itself_is_asked_of_nobody(bandwatch: Command) -> None:
    assert bandwatch("export", "--output", "all.jsonl").code == 0
    told = "has no effect: all.jsonl is of `bandwatch export`"
    for option in ("--run-id=x", "--from=nvbench", "--gpu=X", "--commit=HEAD"):
        answer = bandwatch("import", "all.jsonl", option)
        assert (answer.code, answer.out) == (2, "")
        assert f"bandwatch: {option.partition('=')[0]} {told}" in answer.err
    assert bandwatch("import", "all.jsonl", "--from=auto").code == 0
    # Beside other files these are hints, for where a file does not say.
    assert bandwatch("import", "all.jsonl", "run.json", "--gpu=X").code == 0


@pytest.mark.usefixtures("filled")
def test_what_stands_in_the_settings_is_left_alone(
    bandwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANDWATCH_STORE", "sqlite:///runs.db")
    for words in ("list --cases", "db copy runs.db copy.db", "notify --feed f.xml"):
        assert bandwatch(*words.split()).code == 0, words


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["check", "--store", ""], "no address given"),
        (["init", "--branch", ""], "'' is no usable branch name"),
    ],
)
def test_an_empty_value_is_not_taken_for_none(
    bandwatch: Command, words: list[str], told: str
) -> None:
    """A variable that is not set leaves one behind."""
    answer = bandwatch(*words)
    assert (answer.code, answer.out) == (2, "")
    assert told in answer.err
