"""What the server was started with, and the one open store that all its sessions read."""

import os
import sys
from functools import lru_cache

import streamlit as st

from tracker.config import load_config
from tracker.errors import StoreError
from tracker.store import Store
from tracker.store.address import file_of, parse_address
from tracker.thresholds import Thresholds

ALLOW_TRIAGE = "--allow-triage"
STORE_VARIABLE = "BANDWATCH_STORE"
DEFAULT_STORE = "sqlite:///.bandwatch/bandwatch.db"


def store_address() -> str:
    """Return the address of the store to show."""
    return os.environ.get(STORE_VARIABLE) or DEFAULT_STORE


def triage_allowed() -> bool:
    """Return whether the server was started with `--allow-triage`."""
    return ALLOW_TRIAGE in sys.argv[1:]


@st.cache_resource(max_entries=4, show_spinner=False)
def open_store(address: str, *, read_only: bool) -> Store:
    """Return the store, opened once for the whole server. Raises StoreError, which is not kept."""
    return Store.open(address, read_only=read_only)


def is_missing(address: str) -> bool:
    """Return whether the address is of a file that is not there."""
    try:
        path = file_of(parse_address(address))
    except StoreError:
        return False
    return path is not None and not path.exists()


@lru_cache(maxsize=1)
def thresholds() -> Thresholds:
    """Return what counts as a change in the project that the server was started in.

    Read once: the server is restarted after the settings change. Raises ConfigError.
    """
    return load_config().thresholds
