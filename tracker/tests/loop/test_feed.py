"""The Atom feed of change points: valid, whole, and one for each store."""

import re
import xml.etree.ElementTree as ET
from datetime import datetime
from pathlib import Path

import pytest

from tracker.loop.changes import changes
from tracker.loop.feed import NEWEST, to_atom
from tracker.store import Store
from tracker.tests.loop.conftest import Command
from tracker.tests.loop.test_notify import SLOW, STEADY, project, record, store

ATOM = "{http://www.w3.org/2005/Atom}"
__all__ = ["project", "store"]


def test_the_feed_has_every_change_with_a_lasting_id(project: Path, bandwatch: Command) -> None:
    space = {"a": "http://www.w3.org/2005/Atom"}
    ids = []
    for _ in range(2):
        answer = bandwatch("notify", "--feed", "changes.xml")
        assert answer.code == 0
        feed = ET.parse(project / "changes.xml").getroot()
        for name in ("title", "id", "updated"):
            assert feed.find(f"a:{name}", space) is not None
        entries = feed.findall("a:entry", space)
        ids.append([entry.findtext("a:id", None, space) for entry in entries])
        assert "slower" in str(entries[0].findtext("a:title", None, space))
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == len(ids[0]) == 1


def test_feeds_of_several_stores_branches_and_models_are_several(
    project: Path, bandwatch: Command
) -> None:
    (project / "other.db").write_bytes((project / "runs.db").read_bytes())
    found = set()
    for arguments in ((), ("--gpu", "NVIDIA H200"), ("--store", "sqlite:///other.db")):
        assert bandwatch("notify", "--feed", "feed.xml", *arguments).code == 0
        root = ET.parse(project / "feed.xml").getroot()
        found.add(root.findtext("{http://www.w3.org/2005/Atom}id"))
    assert len(found) == 3
    assert all(str(name).startswith("urn:uuid:") for name in found)
    assert not list(project.glob("*.partial"))


def test_a_feed_of_more_than_it_holds_says_so(
    project: Path, bandwatch: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (change,) = (bandwatch("notify", "--feed", "feed.xml").out).splitlines()
    assert change == "1 change point in feed.xml"
    with Store.open("sqlite:///runs.db", read_only=True) as opened:
        (one,) = changes(opened, "main")
    monkeypatch.setattr("tracker.cli.notify.changes", lambda *_: [one] * (NEWEST + 3))
    told = f"the newest {NEWEST} of {NEWEST + 3} change points in feed.xml"
    assert told in bandwatch("notify", "--feed", "feed.xml").out
    feed = ET.parse(project / "feed.xml").getroot()
    assert len(feed.findall(f"{ATOM}entry")) == NEWEST


def test_the_feed_is_what_rfc_4287_asks_for(store: Store) -> None:
    record(store, [*STEADY, *SLOW])
    hostile = "]]>&<x>\u202e\x00" + "@all"
    text = to_atom(changes(store, "main"), hostile, hostile, "https://x.example/?a=1&b='\"")
    feed = ET.fromstring(text)
    one = {"id", "title", "updated"}
    for element in (feed, *feed.iter(f"{ATOM}entry")):
        names = [child.tag.removeprefix(ATOM) for child in element]
        assert all(names.count(name) == 1 for name in one)
        assert set(names) <= one | {"author", "link", "content", "entry"}
        moment = datetime.fromisoformat(str(element.findtext(f"{ATOM}updated")))
        assert moment.tzinfo is not None
        assert re.fullmatch(r"urn:[a-z0-9-]+:[A-Za-z0-9:-]+", str(element.findtext(f"{ATOM}id")))
    assert feed.find(f"{ATOM}author/{ATOM}name") is not None
    assert [link.get("href") for link in feed.iter(f"{ATOM}link")] == [
        "https://x.example/?a=1&b='\""
    ] * 2
