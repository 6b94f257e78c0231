"""What a page says when it has no, old or partial data: what is the case, and what to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import streamlit as st

from dashboard import copying
from dashboard.palette import Palette
from dashboard.text import in_html
from tracker.units import counted


class Tone(StrEnum):
    """How much a notice matters."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to tell: a fixed headline, a detail that may hold text from the store, commands."""

    headline: str
    detail: str = ""
    commands: tuple[str, ...] = ()
    tone: Tone = Tone.INFO


def no_store(name: str) -> Notice:
    """Return what to say when there is no store at the address."""
    return Notice(
        "There is no store yet",
        f"Nothing is at {name}. Measure this checkout, or load recorded runs of a real GPU to look "
        "around; then reload this page.",
        ("make bench", "bandwatch demo"),
    )


def empty_store(name: str) -> Notice:
    """Return what to say of a store without a run."""
    return Notice(
        "The store holds no run yet",
        f"{name} is there and empty. Measure this checkout, or load recorded runs of a real GPU.",
        ("make bench", "bandwatch demo"),
    )


def store_trouble(message: str) -> Notice:
    """Return what to say of a store that cannot be read: away, damaged, newer than this code."""
    return Notice("The store cannot be read", message, ("bandwatch db check",), tone=Tone.ERROR)


def drifts(case: str, effect: str) -> Notice:
    """Return what to say of a series that moves slowly instead of in steps."""
    return Notice(
        "A steady drift, no step",
        f"The bandwidth of {case} moves little by little, {effect} over the series in its newest "
        "environment. No single commit did it: look for what grows with time.",
        tone=Tone.WARNING,
    )


def nothing_for(loosen: tuple[str, ...]) -> Notice:
    """Return what to say when no run passes the filters, and which ones to loosen."""
    hint = " or ".join(loosen) if loosen else "the filters"
    return Notice("No run passes these filters", f"Loosen {hint}.")


def too_few_runs() -> Notice:
    """Return what to say where one run is all there is."""
    return Notice(
        "One run only",
        "A comparison needs two. The next run of a descendant commit will be judged against it.",
        ("make bench",),
    )


def only_undecided(count: int) -> Notice:
    """Return what to say when nothing could be decided."""
    cases = counted(count, "case")
    return Notice(
        "Nothing could be decided",
        f"All {cases} of this run are undecided; each says what would decide it.",
        tone=Tone.WARNING,
    )


def unfinished_run() -> Notice:
    """Return what to say of a run without an end: still measuring, or aborted."""
    return Notice(
        "This run has no end",
        "It is in progress or was aborted: cases that it did not reach are missing, not slow.",
        tone=Tone.WARNING,
    )


def only_uncommitted() -> Notice:
    """Return what to say where every run was made with uncommitted changes."""
    return Notice(
        "No run of a commit yet",
        "All runs here were made with uncommitted changes, which belong to no commit. Commit and "
        "measure again; the page of runs lists what there is.",
    )


def none_of_the_suite() -> Notice:
    """Return what to say where every run was for something else, such as a study."""
    return Notice(
        "No run of the suite yet",
        "All runs here were made for something else: a study, a case measured again or in turns, a "
        "commit measured later. The page of runs lists them and says for what each was.",
        ("make bench",),
    )


def no_results() -> Notice:
    """Return what to say of a run that measured nothing."""
    return Notice(
        "This run has no results",
        "It was recorded without a single case. The page of runs shows its notes and its command.",
        tone=Tone.WARNING,
    )


def partial_run() -> Notice:
    """Return what to say of a run that measured only a selection."""
    return Notice(
        "A part of the suite",
        "This run measured a selection of the cases; the others are not counted as vanished.",
    )


def no_longer_measured(case: str, since: str) -> Notice:
    """Return what to say of a series that ends before the newest run."""
    return Notice(
        "No longer measured",
        f"{case} has not been measured since {since}.",
        tone=Tone.WARNING,
    )


def other_environment(differs: Sequence[str]) -> Notice:
    """Return what to say of two runs in environments that are not comparable."""
    return Notice(
        "These runs are not comparable",
        f"Their environments differ in {'; '.join(differs)}. Nothing below is a verdict on code: "
        "measure the base again in the environment of the head.",
        tone=Tone.WARNING,
    )


def other_board() -> Notice:
    """Return what to say of two runs on two boards of one model."""
    return Notice(
        "Two boards of one model",
        "Boards differ by about a percent in time, so these runs are judged by the fraction of "
        "their own copy bandwidth.",
    )


def same_run() -> Notice:
    """Return what to say when both sides are one run."""
    return Notice("Both sides are the same run", "Choose another base.", tone=Tone.WARNING)


def no_roofline() -> Notice:
    """Return what to say where nothing can be placed under a roof."""
    return Notice(
        "Nothing to place",
        "A roofline needs a bandwidth roof (a measured copy or a theoretical peak) and cases with "
        "a time, bytes and FLOP; this run has none for these filters.",
    )


def not_found(what: str, value: str) -> Notice:
    """Return what to say of a link to something that the store does not hold."""
    return Notice(
        "The link leads to something that is not in this store",
        f"No {what} is called {value!r}. It may be in another store, or was removed from this one.",
        tone=Tone.WARNING,
    )


def show(notice: Notice, colours: Palette) -> None:
    """Draw a notice; its detail and commands are shown as plain text."""
    edge = {
        Tone.INFO: colours.improvement,
        Tone.WARNING: colours.regression,
        Tone.ERROR: colours.regression,
    }[notice.tone]
    detail = f"<div>{in_html(notice.detail, 600)}</div>" if notice.detail else ""
    role = "alert" if notice.tone is Tone.ERROR else "status"
    st.html(
        f'<div role="{role}" style="border-left:3px solid {edge};padding:.15rem 0 .15rem .8rem">'
        f"<b>{in_html(notice.headline)}</b>{detail}</div>"
    )
    for command in notice.commands:
        copying.code(command)


def show_all(messages: list[str], colours: Palette) -> None:
    """Draw one notice for everything in the address that could not be honoured."""
    if messages:
        told = " ".join(messages)
        show(Notice("Part of the link could not be followed", told, tone=Tone.WARNING), colours)
