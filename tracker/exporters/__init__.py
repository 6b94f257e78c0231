"""A store's content for other tools, and whole as JSON lines."""

from tracker.exporters.formats import FORMATS, Scope, export

__all__ = ["FORMATS", "Scope", "export"]
