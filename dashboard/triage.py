"""The form with which people acknowledge, accept or reopen changes; only with --allow-triage."""

import pandas as pd
import streamlit as st

from dashboard.session import open_store, store_address
from tracker.errors import TrackerError
from tracker.store.people import Triage, TriageState, add_triage

_ACTIONS = {
    "acknowledge": TriageState.ACKNOWLEDGED,
    "accept": TriageState.ACCEPTED,
    "reopen": TriageState.REOPENED,
}


def form(members: pd.DataFrame, gpu: str) -> None:
    """Draw the form; what it says holds for all changes of the group."""
    with st.form("triage", border=True):
        st.markdown("**Triage** of every change above")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            action = st.selectbox("Action", list(_ACTIONS), key="triage-action", width=180)
            author = st.text_input("Who decides", key="triage-author", width=220, max_chars=100)
            note = st.text_input("Why", key="triage-note", max_chars=1000)
            sent = st.form_submit_button("Note it")
    if not sent:
        return
    if not author.strip() or not note.strip():
        st.warning("Give a name and a reason: both stay on record.")
        return
    try:
        _write(members, gpu, _ACTIONS[str(action)], author.strip(), note.strip())
    except TrackerError as error:
        st.error("The store did not take it.")
        st.text(str(error))
        return
    st.rerun()


def _write(members: pd.DataFrame, gpu: str, state: TriageState, author: str, note: str) -> None:
    store = open_store(store_address(), read_only=False)
    for row in members.to_dict("records"):
        add_triage(
            store,
            Triage(
                case_fingerprint=str(row["case_key"]),
                gpu_model=gpu,
                commit_sha=str(row["sha"]),
                state=state,
                author=author,
                note=note,
                previous_sha=str(row["previous_sha"]) or None,
                effect=float(row["effect"]),
            ),
        )
