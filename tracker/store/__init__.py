"""The store: runs by GPU model and commit, in SQLite or PostgreSQL, on one schema."""

from tracker.store.store import Outcome, RecordOutcome, Store

__all__ = ["Outcome", "RecordOutcome", "Store"]
