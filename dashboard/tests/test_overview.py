"""The overview answers the first question without a click."""

from dashboard.tests import pages
from dashboard.tests.conftest import Open
from dashboard.tests.runs import A100, COMMITS, H200, INCORRECT, commit, sha


def test_every_gpu_model_has_its_newest_run_and_counts(app: Open) -> None:
    page = app()
    assert not page.exception
    shown = pages.html(page)
    for text in (H200, A100, "no change", "slower", "geometric mean of 36 shared cases"):
        assert text in shown
    assert f"commit {sha(COMMITS - 1)[:7]}" in shown


def test_the_incorrect_case_comes_first_with_commit_author_and_command(app: Open) -> None:
    page = app()
    row = pages.table(page).iloc[0]
    assert list(row["verdict"]) == ["! incorrect"]
    assert row["case"] == INCORRECT.label
    assert row["since"] == sha(COMMITS - 1)[:7]
    assert row["author"] == commit(COMMITS - 1).author
    (command,) = [text for text in pages.codes(page) if text.startswith("git checkout")]
    assert command.startswith(f"git checkout {sha(COMMITS - 1)}\npytest --benchmark ")


def test_the_detail_shows_the_series_of_the_first_finding(app: Open) -> None:
    _, told, _ = pages.chart(app())
    assert INCORRECT.label in told
    assert told.startswith("Bandwidth over 30 runs")


def test_details_lead_to_series_comparison_run_and_ci(app: Open) -> None:
    page = app()
    links = pages.links(page)
    assert "kernel=relu" in links["Series"]
    assert "base=" in links["Compare with the run before"]
    addresses = [button.proto.url for button in page.get("link_button")]
    assert addresses == [f"https://ci.example.org/runs/{1000 + COMMITS - 1}"]


def test_one_gpu_model_alone(app: Open) -> None:
    shown = pages.html(app(gpu=A100))
    assert A100 in shown
    assert H200 not in shown
    # Nothing was found on it, which is not to say that nothing changed.
    assert "no change was called in the newest runs and in the last 50 commits" in shown
    assert "what is undecided may hide one" in shown


def test_a_branch_without_runs_on_one_model_says_what_to_loosen(app: Open) -> None:
    page = app(branch="speed-up-add")
    assert "Loosen the branch" in pages.html(page)


def test_bad_parameters_are_told(app: Open) -> None:
    shown = pages.html(app(gpu="NVIDIA B900", colour="red"))
    assert "Part of the link could not be followed" in shown
    assert "NVIDIA B900" in shown
    assert "no filter called" in shown


def test_the_permanent_link_names_everything(app: Open) -> None:
    link = pages.permanent(app(gpu=A100))
    assert "gpu=NVIDIA+A100-SXM4-80GB" in link
    assert "branch=main" in link


def test_findings_of_all_models_stand_in_one_table_losses_before_gains(app: Open) -> None:
    table = pages.table(app())
    assert set(table["gpu"]) <= {"H200", "A100-SXM4-80GB"}
    order = [pills[0] for pills in table["verdict"]]
    assert order[:2] == ["! incorrect", "▲ slower"]
    assert order.index("▼ faster") > order.index("▲ slower")


def test_one_model_alone_has_no_column_of_models(app: Open) -> None:
    assert "gpu" not in pages.table(app(gpu=H200)).columns
