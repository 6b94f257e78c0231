"""The record: the versioned JSON in which runs and results travel."""

from tracker.record.assemble import assemble, merge, new_run_id
from tracker.record.dump import digest, dump_envelope, dump_run
from tracker.record.parse import Envelope, load_run, parse_envelope, parse_run
from tracker.record.strict import MAX_BYTES, parse_json, read_limited
from tracker.record.validate import SCHEMA_VERSION, schema
from tracker.record.write import write_run

__all__ = [
    "MAX_BYTES",
    "SCHEMA_VERSION",
    "Envelope",
    "assemble",
    "digest",
    "dump_envelope",
    "dump_run",
    "load_run",
    "merge",
    "new_run_id",
    "parse_envelope",
    "parse_json",
    "parse_run",
    "read_limited",
    "schema",
    "write_run",
]
