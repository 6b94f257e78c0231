"""Settings: precedence, relative paths, thresholds with owners, errors in one line, no credentials."""

from dataclasses import fields
from datetime import date
from pathlib import Path

import pytest

from tracker import thresholds
from tracker.config import Config, StoreChoice, find_project, load_config, prepare_folder, redact
from tracker.errors import ConfigError, ExitCode
from tracker.model import Case
from tracker.verdict import Policy

RELU = Case("relu", "cuda_vector", "float32", (64,))
ADD = Case("add", "torch", "float16", (64,))
TODAY = date(2026, 11, 29)


def project(folder: Path, text: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text)
    return folder


def load(folder: Path, flag: str | None = None, **environ: str) -> Config:
    return load_config(flag, start=folder, environ=environ)


def problem(folder: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(project(folder, text))
    assert caught.value.exit_code is ExitCode.USAGE
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_the_flag_comes_before_the_variable_before_the_file_before_the_default(
    tmp_path: Path,
) -> None:
    root = project(tmp_path / "p", '[tool.bandwatch]\nstore = "sqlite:///file.db"\n')
    both = {"BANDWATCH_STORE": "sqlite:///variable.db"}

    assert load(root, "sqlite:///flag.db", **both).store.file == root / "flag.db"
    assert load(root, **both).store.file == root / "variable.db"
    assert load(root).store.file == root / "file.db"
    assert load(project(tmp_path / "q")).store.file == tmp_path / "q/.bandwatch/bandwatch.db"


def test_an_empty_variable_counts_as_not_set(tmp_path: Path) -> None:
    assert load(project(tmp_path), BANDWATCH_STORE="").store.source == "the default"


def test_a_relative_path_in_the_file_counts_from_the_file_and_in_a_flag_from_here(
    tmp_path: Path,
) -> None:
    root = project(tmp_path, '[tool.bandwatch]\nstore = "sqlite:///a/b.db"\n')
    inner = root / "deep/er"
    inner.mkdir(parents=True)

    assert load(inner).store.file == root / "a/b.db"
    assert load(inner, "sqlite:///c.db").store.file == inner / "c.db"


def test_without_a_project_the_default_lies_in_the_working_folder(tmp_path: Path) -> None:
    if find_project(tmp_path):
        pytest.skip("a pyproject.toml lies above the temporary folder")
    assert load(tmp_path).store.file == tmp_path / ".bandwatch/bandwatch.db"


def test_a_server_has_no_file_and_a_path_needs_no_scheme(tmp_path: Path) -> None:
    assert load(tmp_path, "postgresql+psycopg://me@host/db").store.file is None
    assert load(tmp_path, "own.db").store.file == tmp_path / "own.db"


def test_the_store_folder_is_made_with_a_gitignore(tmp_path: Path) -> None:
    store = load(project(tmp_path)).store
    prepare_folder(store)
    prepare_folder(store)

    assert (tmp_path / ".bandwatch/.gitignore").read_text().splitlines()[-1] == "*"


def test_a_folder_that_exists_gets_no_gitignore(tmp_path: Path) -> None:
    prepare_folder(StoreChoice(f"sqlite:///{tmp_path}/own.db", "the flag"))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(ConfigError, match="cannot make the store's folder"):
        prepare_folder(StoreChoice(f"sqlite:///{tmp_path}/taken/x/y.db", "the flag"))


@pytest.mark.parametrize(
    "secret",
    [
        "postgresql+psycopg://me:hunter2@host/db",
        "cannot reach postgresql://me:hun/ter2@host:5432/db?x=1, refused",
        "host=h password=hunter2 dbname=d",
        "PGPASSWORD=hunter2 pytest --benchmark",
        "env GH_TOKEN=hunter2 bandwatch ci",
        "postgresql://h/db?user=me&password=hunter2",
        "pytest --bandwatch-store=postgresql://me:p@ss:hunter2@host/db",
    ],
)
def test_credentials_are_hidden(secret: str) -> None:
    shown = redact(secret)
    assert "hunter2" not in shown
    assert "ter2" not in shown
    assert "***" in shown


def test_a_choice_in_a_traceback_shows_no_password(tmp_path: Path) -> None:
    address = "postgresql://me:hunter2@host/db?password=hunter2"
    assert "hunter2" not in repr(load_config(address, start=tmp_path, environ={}))


def test_what_holds_no_credentials_stays_as_it_is() -> None:
    text = "sqlite:////a/b.db and postgresql://me@host/db at 10:30, mail a@b"
    assert redact(text) == text


def test_a_choice_shows_no_password(tmp_path: Path) -> None:
    choice = load(tmp_path, "postgresql+psycopg://me:hunter2@host/db").store
    assert choice.shown == "postgresql://me:***@host/db"
    assert "hunter2" in choice.url


def test_a_url_that_is_none_is_refused_without_repeating_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="named by BANDWATCH_STORE") as caught:
        load(tmp_path, BANDWATCH_STORE="hunter://a:hunter2@x y:z")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[tool.bandwatch]\nstor = 1\n", "unknown key 'stor'"),
        ("[tool.bandwatch]\nstore = 1\n", "expected a URL"),
        ('[tool.bandwatch]\nsuite = "perftests"\n', "suite: expected a list"),
        ("[tool]\nbandwatch = 1\n", "not a table"),
        ("[tool.bandwatch\n", "cannot read"),
        ("[tool.bandwatch.thresholds]\nminimal_efect = 0.1\n", "did you mean 'minimal_effect'"),
        ("[tool.bandwatch.thresholds]\nzzz = 0.1\n", "known: minimal_effect"),
        ("[tool.bandwatch.thresholds]\nminimal_effect = 1.5\n", "is 1.5, expected a fraction"),
        ("[tool.bandwatch.thresholds]\nminimal_effect = nan\n", "is nan"),
        ("[tool.bandwatch.thresholds]\nminimal_effect = true\n", "is True"),
        ("[tool.bandwatch.thresholds]\nmin_measurements = 2.5\n", "whole number"),
        ("[tool.bandwatch.thresholds]\nmin_measurements = inf\n", "whole number"),
        ("[tool.bandwatch]\nthresholds = 3\n", "expected a table"),
        ("[tool.bandwatch]\noverride = 3\n", "expected a list of tables"),
        ("[[tool.bandwatch.override]]\nowner = 'a'\nreason = 'b'\n", "cases is missing"),
        ("[[tool.bandwatch.override]]\ncases = '*'\nreason = 'b'\n", "owner is missing"),
        ("[[tool.bandwatch.override]]\ncases = '*'\nowner = 'a'\nreason = ' '\n", "reason is ' '"),
        (
            "[[tool.bandwatch.override]]\ncases = '*'\nowner = 'a'\nreason = 'b'\n",
            "changes nothing",
        ),
        (
            "[[tool.bandwatch.override]]\ncases='*'\nowner='a'\nreason='b'\nconfidence=0.9\nuntil='x'\n",
            "expected a date",
        ),
    ],
)
def test_a_bad_setting_is_one_line_that_names_it(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in problem(tmp_path, text)


def test_every_threshold_of_the_policy_can_be_set() -> None:
    assert {field.name for field in fields(Policy)} == set(thresholds._RANGES)


def test_thresholds_change_the_policy_and_overrides_only_the_cases_they_name(
    tmp_path: Path,
) -> None:
    text = """
[tool.bandwatch.thresholds]
minimal_effect = 0.01
stale_after_days = "never"
[[tool.bandwatch.override]]
cases = "relu/*"
owner = "A. Person"
reason = "still being tuned"
minimal_effect = 0.05
[[tool.bandwatch.override]]
cases = "*/cuda_vector float32 [64] cold"
owner = "B. Person"
reason = "small"
confidence = 0.95
"""
    chosen = load(project(tmp_path, text)).thresholds

    relu, why = chosen.for_case(RELU, TODAY)
    add, none = chosen.for_case(ADD, TODAY)
    assert (relu.minimal_effect, relu.confidence, relu.stale_after_days) == (0.05, 0.95, None)
    assert [o.owner for o in why] == ["A. Person", "B. Person"]
    assert "still being tuned" in why[0].told()
    assert (add.minimal_effect, add.confidence, none) == (0.01, Policy().confidence, ())


def test_a_pattern_is_no_regular_expression(tmp_path: Path) -> None:
    text = "[[tool.bandwatch.override]]\ncases='.*'\nowner='a'\nreason='b'\nconfidence=0.9\n"
    assert load(project(tmp_path, text)).thresholds.for_case(RELU, TODAY)[1] == ()


def test_an_override_ends_after_its_last_day_and_says_so(tmp_path: Path) -> None:
    text = (
        "[[tool.bandwatch.override]]\ncases='*'\nowner='a'\nreason='b'\n"
        "confidence=0.9\nuntil=2026-11-29\n"
    )
    chosen = load(project(tmp_path, text)).thresholds
    later = date(2026, 11, 30)

    assert chosen.for_case(RELU, TODAY)[0].confidence == 0.9
    assert chosen.for_case(RELU, later)[0] == Policy()
    assert chosen.complaints((RELU,), TODAY, complete=True) == ()
    assert "ended on 2026-11-29" in chosen.complaints((RELU,), later, complete=True)[0]


def test_an_override_that_fits_nothing_is_told_only_after_a_complete_run(tmp_path: Path) -> None:
    text = "[[tool.bandwatch.override]]\ncases='gone/*'\nowner='a'\nreason='b'\nconfidence=0.9\n"
    chosen = load(project(tmp_path, text)).thresholds

    assert "fits no case" in chosen.complaints((RELU,), TODAY, complete=True)[0]
    assert chosen.complaints((RELU,), TODAY, complete=False) == ()


def test_this_project_s_own_settings_are_valid() -> None:
    root = Path(__file__).parents[2]
    assert load_config(start=root, environ={}).root == root
