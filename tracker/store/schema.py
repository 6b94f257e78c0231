"""The tables of a store, one schema for SQLite and PostgreSQL.

Ids are given by the writer, which holds the store's write lock: no sequence, no gap between
engines. Times that a record gave are kept as their text, with an epoch in seconds beside them for
ordering. `body` and `detail` texts are canonical JSON; tracker.store.codec packs the byte columns.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    ColumnElement,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    UniqueConstraint,
)

from tracker.store.declared import Declared, column, optional

# SQLite stores a row under its key only when the type is INTEGER.
Id = BigInteger().with_variant(Integer, "sqlite")
NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(metaclass=Declared):
    """What all tables share: the names of their constraints."""

    metadata = MetaData(naming_convention=NAMES)


def _key() -> ColumnElement[int]:
    return column(Id, primary_key=True, autoincrement=False)


def _to(target: str, *, index: bool = False) -> ColumnElement[int]:
    return column(Id, ForeignKey(target), index=index)


class Meta(Base):
    """One row: what identifies the store, and the counter that every write bumps."""

    __tablename__ = "meta"
    __table_args__ = (CheckConstraint("id = 1", name="one_row"),)
    id: ColumnElement[int] = _key()
    store_id: ColumnElement[str] = column(String(32))
    created_at: ColumnElement[str] = column(String(40))
    revision: ColumnElement[int] = column(BigInteger)


class GpuModelRow(Base):
    """A GPU model, or a CPU's name for the backend cpu."""

    __tablename__ = "gpu_models"
    __table_args__ = (UniqueConstraint("backend", "name"),)
    id: ColumnElement[int] = _key()
    backend: ColumnElement[str] = column(String(8))
    name: ColumnElement[str] = column(String(200))


class DeviceRow(Base):
    """A physical device by its UUID under its model; `name` is what its first run called it."""

    __tablename__ = "devices"
    __table_args__ = (UniqueConstraint("gpu_model_id", "uuid"),)
    id: ColumnElement[int] = _key()
    gpu_model_id: ColumnElement[int] = _to("gpu_models.id")
    uuid: ColumnElement[str] = column(String(200))
    name: ColumnElement[str] = column(String(200))


class EnvironmentRow(Base):
    """An environment as recorded; those with one `fingerprint` are comparable."""

    __tablename__ = "environments"
    id: ColumnElement[int] = _key()
    digest: ColumnElement[str] = column(String(64), unique=True)
    fingerprint: ColumnElement[str] = column(String(16), index=True)
    gpu_model_id: ColumnElement[int] = _to("gpu_models.id")
    body: ColumnElement[str] = column(Text)


class CommitRow(Base):
    """A commit as all records together know it; `known` is false for one only named as a parent."""

    __tablename__ = "commits"
    id: ColumnElement[int] = _key()
    sha: ColumnElement[str] = column(String(64), unique=True)
    known: ColumnElement[bool] = column(Boolean)
    author: ColumnElement[str | None] = optional(Text)
    author_time: ColumnElement[str | None] = optional(String(40))
    commit_time: ColumnElement[str | None] = optional(String(40))
    committed: ColumnElement[float | None] = optional(Double)
    subject: ColumnElement[str | None] = optional(Text)


class CommitParentRow(Base):
    """One edge of the commit graph; position 0 is the first parent."""

    __tablename__ = "commit_parents"
    commit_id: ColumnElement[int] = column(Id, ForeignKey("commits.id"), primary_key=True)
    position: ColumnElement[int] = column(Integer, primary_key=True)
    parent_id: ColumnElement[int] = _to("commits.id", index=True)


class CaseRow(Base):
    """A case by its fingerprint, with its named values; `shape` and `parameters` are JSON."""

    __tablename__ = "cases"
    id: ColumnElement[int] = _key()
    fingerprint: ColumnElement[str] = column(String(16), unique=True)
    kernel: ColumnElement[str] = column(String(200))
    implementation: ColumnElement[str] = column(String(200))
    dtype: ColumnElement[str] = column(String(200))
    shape: ColumnElement[str] = column(Text)
    alignment: ColumnElement[str] = column(String(200))
    cache: ColumnElement[str] = column(String(200))
    parameters: ColumnElement[str] = column(Text)
    version: ColumnElement[int] = column(Id)
    label: ColumnElement[str] = column(Text)


class RunRow(Base):
    """A run. `digest` is of the record's whole content; `detail` holds what no column does."""

    __tablename__ = "runs"
    __table_args__ = (Index(None, "gpu_model_id", "started"),)
    id: ColumnElement[int] = _key()
    run_id: ColumnElement[str] = column(String(64), unique=True)
    digest: ColumnElement[str] = column(String(64))
    gpu_model_id: ColumnElement[int] = _to("gpu_models.id")
    device_id: ColumnElement[int] = _to("devices.id")
    environment_id: ColumnElement[int] = _to("environments.id")
    commit_id: ColumnElement[int | None] = optional(Id, ForeignKey("commits.id"), index=True)
    branch: ColumnElement[str | None] = optional(Text)
    dirty: ColumnElement[bool] = column(Boolean)
    complete: ColumnElement[bool] = column(Boolean)
    demo: ColumnElement[bool] = column(Boolean)
    started_at: ColumnElement[str] = column(String(40))
    started: ColumnElement[float] = column(Double, index=True)
    finished_at: ColumnElement[str | None] = optional(String(40))
    recorded_at: ColumnElement[str] = column(String(40))
    revision: ColumnElement[int] = column(BigInteger)
    results: ColumnElement[int] = column(Integer)
    statuses: ColumnElement[str] = column(Text)
    thinned_at: ColumnElement[str | None] = optional(String(40))
    detail: ColumnElement[str] = column(Text)


class FactsRow(Base):
    """What results say again and again (test, source, timer, reasons), once by content."""

    __tablename__ = "facts"
    id: ColumnElement[int] = _key()
    digest: ColumnElement[str] = column(String(32), unique=True)
    code_fingerprint: ColumnElement[str | None] = optional(Text)
    body: ColumnElement[str] = column(Text)


class ResultRow(Base):
    """A result's numbers that queries read; seconds, bytes, bytes per second.

    `shared` says that another process used the device before, during or after.
    """

    __tablename__ = "results"
    __table_args__ = (
        UniqueConstraint("run_id", "case_id"),
        Index(None, "case_id", "run_id"),
    )
    id: ColumnElement[int] = _key()
    run_id: ColumnElement[int] = _to("runs.id")
    case_id: ColumnElement[int] = _to("cases.id")
    facts_id: ColumnElement[int] = _to("facts.id")
    status: ColumnElement[str] = column(String(16))
    count: ColumnElement[int | None] = optional(Integer)
    median_s: ColumnElement[float | None] = optional(Double)
    mean_s: ColumnElement[float | None] = optional(Double)
    min_s: ColumnElement[float | None] = optional(Double)
    max_s: ColumnElement[float | None] = optional(Double)
    q1_s: ColumnElement[float | None] = optional(Double)
    q3_s: ColumnElement[float | None] = optional(Double)
    stddev_s: ColumnElement[float | None] = optional(Double)
    bytes_moved: ColumnElement[int | None] = optional(BigInteger)
    copy_bytes_per_s: ColumnElement[float | None] = optional(Double)
    median_cycles: ColumnElement[float | None] = optional(Double)
    shared: ColumnElement[bool] = column(Boolean)


class SampleRow(Base):
    """A result's measurements (null once thinned) and its other readings, both packed."""

    __tablename__ = "samples"
    result_id: ColumnElement[int] = column(
        Id, ForeignKey("results.id"), primary_key=True, autoincrement=False
    )
    measurements: ColumnElement[bytes | None] = optional(LargeBinary)
    detail: ColumnElement[bytes] = column(LargeBinary)


class SeriesRow(Base):
    """A case on a GPU model in comparable environments: how much of it there is, and until when."""

    __tablename__ = "series"
    __table_args__ = (UniqueConstraint("case_id", "gpu_model_id", "fingerprint"),)
    id: ColumnElement[int] = _key()
    case_id: ColumnElement[int] = _to("cases.id")
    gpu_model_id: ColumnElement[int] = _to("gpu_models.id", index=True)
    fingerprint: ColumnElement[str] = column(String(16))
    results: ColumnElement[int] = column(Integer)
    first_started: ColumnElement[float] = column(Double)
    last_started: ColumnElement[float] = column(Double)


class TriageRow(Base):
    """One entry of the append-only log of what people said about a change point.

    The newest entry of a (case, GPU model, first commit of the change) is its state. Times are
    ISO 8601 in UTC.
    """

    __tablename__ = "triage"
    __table_args__ = (
        CheckConstraint(
            "state in ('new', 'acknowledged', 'accepted', 'reopened')", name="known_state"
        ),
        Index(None, "case_fingerprint", "gpu_model", "commit_sha"),
    )
    id: ColumnElement[int] = _key()
    case_fingerprint: ColumnElement[str] = column(String(16))
    gpu_model: ColumnElement[str] = column(String(200))
    commit_sha: ColumnElement[str] = column(String(64))
    previous_sha: ColumnElement[str | None] = optional(String(64))
    state: ColumnElement[str] = column(String(16))
    effect: ColumnElement[float | None] = optional(Double)
    author: ColumnElement[str] = column(Text)
    note: ColumnElement[str] = column(Text)
    at: ColumnElement[str] = column(String(40))
    expires_at: ColumnElement[str | None] = optional(String(40))


class WaiverRow(Base):
    """One entry of the append-only log of waivers: cases that may not fail the gate for a while.

    `pattern` matches labels of cases as a shell pattern; a null GPU model means every one.
    """

    __tablename__ = "waivers"
    __table_args__ = (CheckConstraint("action in ('granted', 'revoked')", name="known_action"),)
    id: ColumnElement[int] = _key()
    pattern: ColumnElement[str] = column(Text)
    gpu_model: ColumnElement[str | None] = optional(String(200))
    action: ColumnElement[str] = column(String(16))
    author: ColumnElement[str] = column(Text)
    note: ColumnElement[str] = column(Text)
    at: ColumnElement[str] = column(String(40))
    expires_at: ColumnElement[str | None] = optional(String(40))
