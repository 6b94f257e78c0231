"""Other tools' result files as runs, and a store's JSON lines back into a store."""

from tracker.importers.files import FORMATS, Imported, dated_as_held, read_files
from tracker.importers.lines import Restored, is_lines, restore
from tracker.importers.source import Hints

__all__ = [
    "FORMATS",
    "Hints",
    "Imported",
    "Restored",
    "dated_as_held",
    "is_lines",
    "read_files",
    "restore",
]
