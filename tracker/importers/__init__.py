"""Other tools' result files as runs, and exported stores back into a store."""

from tracker.importers.files import FORMATS, Imported, dated_as_held, read_files
from tracker.importers.restore import Restored, bring_in, is_export, restore
from tracker.importers.source import Hints

__all__ = [
    "FORMATS",
    "Hints",
    "Imported",
    "Restored",
    "bring_in",
    "dated_as_held",
    "is_export",
    "read_files",
    "restore",
]
