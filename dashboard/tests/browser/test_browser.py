"""What only a browser shows: addresses written back, downloads, themes, keyboard, narrow pages."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote_plus, urlsplit

import pytest

from dashboard.pages import PAGES
from dashboard.palette import DARK, LIGHT
from dashboard.tests.browser.conftest import Watched
from dashboard.tests.runs import COMMITS, H200, REGRESSED, REGRESSION_AT, sha
from dashboard.tests.test_hostile import HOSTILE

pytestmark = pytest.mark.browser
HOSTILE_GPU = quote_plus(HOSTILE)
Visit = Callable[..., Watched]
SERIES = f"series?gpu={quote_plus(H200)}&kernel=relu&case={quote_plus(REGRESSED.label)}"


def parameters(watched: Watched) -> dict[str, list[str]]:
    return parse_qs(urlsplit(watched.page.url).query)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.title)
def test_a_deep_link_opens_its_page_wide_and_narrow(visit: Visit, page: Any) -> None:
    watched = visit()
    watched.open(page.path)
    assert watched.page.locator("h1").inner_text() == page.title
    for width in (1280, 390):
        watched.resize(width)
        # Charts follow the window a moment later.
        watched.page.wait_for_function(
            "(() => { const m = document.querySelector('[data-testid=stMain]');"
            " return m.scrollWidth <= m.clientWidth; })()"
        )


@pytest.mark.parametrize(("scheme", "colours"), [("light", LIGHT), ("dark", DARK)])
def test_both_themes_use_the_palette(visit: Visit, scheme: str, colours: Any) -> None:
    watched = visit(scheme=scheme)
    watched.open(SERIES)
    shown = watched.page.evaluate(
        "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    )
    channels = tuple(int(colours.background[i : i + 2], 16) for i in (1, 3, 5))
    assert shown == f"rgb({channels[0]}, {channels[1]}, {channels[2]})"


def test_filters_write_the_address_and_the_address_restores_them(visit: Visit) -> None:
    watched = visit()
    watched.open(SERIES)
    watched.page.get_by_text("From zero").click()
    watched.page.get_by_role("radio", name="time").click()
    watched.page.wait_for_url("**metric=time**")
    watched.settle()
    found = parameters(watched)
    assert found["zero"] == ["true"]
    assert found["case"] == [REGRESSED.label]
    again = visit()
    again.page.goto(watched.page.url)
    again.settle()
    assert again.page.get_by_role("radio", name="time").is_checked()


def test_a_bad_link_is_told_and_leaves_the_address(visit: Visit) -> None:
    watched = visit()
    watched.open("series?kernel=softmax&gpu=NVIDIA+B900")
    assert "nothing here is called 'softmax'" in watched.text
    assert "kernel" not in parameters(watched)


def test_a_comparison_by_commit_keeps_its_address_and_takes_another_choice(visit: Visit) -> None:
    watched = visit()
    watched.open(
        f"compare?gpu={quote_plus(H200)}&base={sha(REGRESSION_AT - 1)}&head={sha(REGRESSION_AT)}"
    )
    assert parameters(watched)["head"] == [sha(REGRESSION_AT)]
    assert REGRESSED.label in watched.text
    box = watched.page.get_by_role("combobox", name="Head")
    box.click()
    watched.page.keyboard.type(sha(REGRESSION_AT + 1)[:7])
    watched.page.keyboard.press("Enter")
    watched.page.wait_for_url("**head_run=**")
    watched.page.reload()
    watched.settle()
    assert box.input_value().startswith(sha(REGRESSION_AT + 1)[:7])


def test_downloads_have_units_in_their_headers_and_whole_rows(visit: Visit, tmp_path: Path) -> None:
    watched = visit()
    watched.open(SERIES)
    with watched.page.expect_download() as found:
        watched.page.get_by_role("button", name="CSV", exact=True).click()
    file = tmp_path / "series.csv"
    found.value.save_as(file)
    assert found.value.suggested_filename.startswith("bandwatch_series_relu_")
    lines = file.read_text().splitlines()
    assert {"commit", "median_s", "bandwidth_bytes_per_s"} <= set(lines[0].split(","))
    assert len(lines) == COMMITS + 1


def test_the_record_of_a_run_downloads_as_it_was_recorded(visit: Visit, tmp_path: Path) -> None:
    watched = visit()
    watched.open(f"runs?gpu={quote_plus(H200)}&run={sha(3)}")
    with watched.page.expect_download() as found:
        watched.page.get_by_role("button", name="Record, JSON").click()
    found.value.save_as(tmp_path / "run.json")
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["checkout"]["commit"]["sha"] == sha(3)


def test_the_keyboard_reaches_pages_and_filters(visit: Visit) -> None:
    watched = visit()
    watched.open("")
    link = watched.page.get_by_role("link", name="Kernels")
    link.focus()
    watched.page.keyboard.press("Enter")
    watched.page.wait_for_url("**/kernels**")
    watched.settle()
    box = watched.page.get_by_role("combobox", name="Kernel")
    box.focus()
    watched.page.keyboard.press("ArrowDown")
    watched.page.keyboard.type("relu")
    watched.page.keyboard.press("Enter")
    watched.page.wait_for_url("**kernel=relu**")


def test_a_command_is_copied_by_a_click_and_by_the_keyboard(visit: Visit) -> None:
    watched = visit()
    watched.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    watched.open(SERIES)
    button = watched.page.get_by_role("button", name="Copy", exact=True).first
    for press in (button.click, lambda: button.press("Enter")):
        watched.page.evaluate("navigator.clipboard.writeText('')")
        press()
        watched.page.get_by_role("button", name="Copied").wait_for()
        copied = watched.page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith(f"git checkout {sha(COMMITS - 1)}\npytest --benchmark ")
        watched.page.get_by_role("button", name="Copy", exact=True).first.wait_for()


def test_script_in_the_store_never_runs(visit: Visit) -> None:
    watched = visit()
    for path in (
        f"series?gpu={HOSTILE_GPU}",
        f"compare?gpu={HOSTILE_GPU}",
        f"runs?gpu={HOSTILE_GPU}",
    ):
        watched.open(path)
        assert watched.page.evaluate("window.hacked === undefined")
    watched.open("")
    assert "<script>window.hacked=1</script>" in watched.text


def test_a_click_on_a_point_shows_its_commit(visit: Visit) -> None:
    watched = visit()
    watched.open(SERIES)
    # The medians are the last symbols that are drawn, one a run.
    points = watched.page.locator("[data-testid=stVegaLiteChart] g.mark-symbol").last
    assert points.locator("path").count() == COMMITS
    points.locator("path").nth(7).click()
    heading = watched.page.get_by_role("heading", name=f"Commit {sha(7)[:7]}")
    heading.wait_for(timeout=10_000)


def test_every_chart_has_a_table_below_it_or_a_click_away(visit: Visit) -> None:
    watched = visit()
    # The second visit shows a drawing that was kept.
    for _ in range(2):
        watched.open("")
        grids = watched.page.locator("[data-testid=stDataFrame]")
        assert grids.count() == 1
        watched.page.get_by_role("button", name="Table", exact=True).click()
        grids.nth(1).wait_for()
    for path, buttons in (("kernels", 2), ("compare", 0), ("changes", 1)):
        watched.open(f"{path}?gpu={quote_plus(H200)}")
        found = watched.page.get_by_role("button", name="Table", exact=True)
        assert found.count() >= buttons


def test_a_click_on_a_finding_shows_its_details(visit: Visit) -> None:
    watched = visit()
    watched.open(f"runs?gpu={quote_plus(H200)}&branch=main")
    table = watched.page.locator("[data-testid=stDataFrame]").first.bounding_box()
    assert table is not None
    before = watched.page.locator("h2").first.inner_text()
    # The box of the third row, by the height of a row.
    watched.page.mouse.click(table["x"] + 17, table["y"] + 35 * 3 + 17)
    watched.page.wait_for_function(
        "old => [...document.querySelectorAll('h2')].every(h => h.innerText !== old)", arg=before
    )
    watched.settle()
    assert sha(COMMITS - 3)[:7] in watched.text
