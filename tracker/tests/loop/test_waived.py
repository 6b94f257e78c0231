"""Waivers travel with a session: ci lets the same cases pass as a check on the store."""

import json
from pathlib import Path

import pytest

from tracker.store import Store
from tracker.store.people import Waiver, WaiverAction, add_waiver
from tracker.tests.loop import fake
from tracker.tests.loop.conftest import Command
from tracker.tests.loop.fake import FakeMeasure

WAIVER = Waiver("relu/*", "Ada", "driver bug", "2099-01-31T23:59:59+00:00")
REVOKED = Waiver("relu/*", "Ada", "fixed", None, action=WaiverAction.REVOKED)


@pytest.mark.parametrize(("entries", "code"), [((WAIVER,), 0), ((WAIVER, REVOKED), 1)])
def test_a_waived_case_passes_ci_and_is_told(
    history: Path,
    no_processes: FakeMeasure,
    bandwatch: Command,
    monkeypatch: pytest.MonkeyPatch,
    entries: tuple[Waiver, ...],
    code: int,
) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setattr("tracker.cli.ci._unfit", lambda *, gpu: None)
    assert no_processes.calls == []
    for name in ("main~4", "main~3"):
        fake.git(history, "switch", "--quiet", "--detach", name)
        assert bandwatch("ci").code == 0
    with Store.open(f"sqlite:///{history / '.bandwatch/bandwatch.db'}") as store:
        for entry in entries:
            add_waiver(store, entry)
    fake.git(history, "switch", "--quiet", "--detach", "main~2")
    assert bandwatch("ci").code == code
    rows = json.loads((history / ".bandwatch/ci/report.json").read_text())["tables"]["verdicts"]
    (relu,) = (row for row in rows if row["kernel"] == "relu")
    assert relu["outcome"] == "regression"
    told = "waived by Ada until 2099-01-31: driver bug"
    assert (told in relu["remarks"]) is (code == 0)
