"""The tables of a store, one schema for SQLite and PostgreSQL.

Ids are given by the writer, which holds the store's write lock: no sequence, no gap between
engines. Times that a record gave are kept as their text, with an epoch in seconds beside them for
ordering. `body` and `detail` texts are canonical JSON; tracker.store.codec packs the byte columns.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
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
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

# SQLite stores a row under its key only when the type is INTEGER.
Id = BigInteger().with_variant(Integer, "sqlite")
NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """What all tables share: the names of their constraints."""

    metadata = MetaData(naming_convention=NAMES)


def _key() -> Mapped[int]:
    return mapped_column(Id, primary_key=True, autoincrement=False)


def _to(target: str, *, index: bool = False) -> Mapped[int]:
    return mapped_column(Id, ForeignKey(target), index=index)


class Meta(Base):
    """One row: what identifies the store, and the counter that every write bumps."""

    __tablename__ = "meta"
    __table_args__ = (CheckConstraint("id = 1", name="one_row"),)
    id: Mapped[int] = _key()
    store_id: Mapped[str] = mapped_column(String(32))
    created_at: Mapped[str] = mapped_column(String(40))
    revision: Mapped[int] = mapped_column(BigInteger)


class GpuModelRow(Base):
    """A GPU model, or a CPU's name for the backend cpu."""

    __tablename__ = "gpu_models"
    __table_args__ = (UniqueConstraint("backend", "name"),)
    id: Mapped[int] = _key()
    backend: Mapped[str] = mapped_column(String(8))
    name: Mapped[str] = mapped_column(String(200))


class DeviceRow(Base):
    """A physical device by its UUID under its model; `name` is what its first run called it."""

    __tablename__ = "devices"
    __table_args__ = (UniqueConstraint("gpu_model_id", "uuid"),)
    id: Mapped[int] = _key()
    gpu_model_id: Mapped[int] = _to("gpu_models.id")
    uuid: Mapped[str] = mapped_column(String(200))
    name: Mapped[str] = mapped_column(String(200))


class EnvironmentRow(Base):
    """An environment as recorded; those with one `fingerprint` are comparable."""

    __tablename__ = "environments"
    id: Mapped[int] = _key()
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    fingerprint: Mapped[str] = mapped_column(String(16), index=True)
    gpu_model_id: Mapped[int] = _to("gpu_models.id")
    body: Mapped[str] = mapped_column(Text)


class CommitRow(Base):
    """A commit as all records together know it; `known` is false for one only named as a parent."""

    __tablename__ = "commits"
    id: Mapped[int] = _key()
    sha: Mapped[str] = mapped_column(String(64), unique=True)
    known: Mapped[bool] = mapped_column(Boolean)
    author: Mapped[str | None] = mapped_column(Text)
    author_time: Mapped[str | None] = mapped_column(String(40))
    commit_time: Mapped[str | None] = mapped_column(String(40))
    committed: Mapped[float | None] = mapped_column(Double)
    subject: Mapped[str | None] = mapped_column(Text)


class CommitParentRow(Base):
    """One edge of the commit graph; position 0 is the first parent."""

    __tablename__ = "commit_parents"
    commit_id: Mapped[int] = mapped_column(Id, ForeignKey("commits.id"), primary_key=True)
    position: Mapped[int] = mapped_column(Integer, primary_key=True)
    parent_id: Mapped[int] = _to("commits.id", index=True)


class CaseRow(Base):
    """A case by its fingerprint, with its named values; `shape` and `parameters` are JSON."""

    __tablename__ = "cases"
    id: Mapped[int] = _key()
    fingerprint: Mapped[str] = mapped_column(String(16), unique=True)
    kernel: Mapped[str] = mapped_column(String(200))
    implementation: Mapped[str] = mapped_column(String(200))
    dtype: Mapped[str] = mapped_column(String(200))
    shape: Mapped[str] = mapped_column(Text)
    alignment: Mapped[str] = mapped_column(String(200))
    cache: Mapped[str] = mapped_column(String(200))
    parameters: Mapped[str] = mapped_column(Text)
    version: Mapped[int] = mapped_column(Id)
    label: Mapped[str] = mapped_column(Text)


class RunRow(Base):
    """A run. `digest` is of the record's whole content; `detail` holds what no column does."""

    __tablename__ = "runs"
    __table_args__ = (Index(None, "gpu_model_id", "started"),)
    id: Mapped[int] = _key()
    run_id: Mapped[str] = mapped_column(String(64), unique=True)
    digest: Mapped[str] = mapped_column(String(64))
    gpu_model_id: Mapped[int] = _to("gpu_models.id")
    device_id: Mapped[int] = _to("devices.id")
    environment_id: Mapped[int] = _to("environments.id")
    commit_id: Mapped[int | None] = mapped_column(Id, ForeignKey("commits.id"), index=True)
    branch: Mapped[str | None] = mapped_column(Text)
    dirty: Mapped[bool] = mapped_column(Boolean)
    complete: Mapped[bool] = mapped_column(Boolean)
    demo: Mapped[bool] = mapped_column(Boolean)
    started_at: Mapped[str] = mapped_column(String(40))
    started: Mapped[float] = mapped_column(Double, index=True)
    finished_at: Mapped[str | None] = mapped_column(String(40))
    recorded_at: Mapped[str] = mapped_column(String(40))
    revision: Mapped[int] = mapped_column(BigInteger)
    results: Mapped[int] = mapped_column(Integer)
    statuses: Mapped[str] = mapped_column(Text)
    thinned_at: Mapped[str | None] = mapped_column(String(40))
    detail: Mapped[str] = mapped_column(Text)


class FactsRow(Base):
    """What results say again and again (test, source, timer, reasons), once by content."""

    __tablename__ = "facts"
    id: Mapped[int] = _key()
    digest: Mapped[str] = mapped_column(String(32), unique=True)
    code_fingerprint: Mapped[str | None] = mapped_column(Text)
    body: Mapped[str] = mapped_column(Text)


class ResultRow(Base):
    """A result's numbers that queries read; seconds, bytes, bytes per second.

    `shared` says that another process used the device before, during or after.
    """

    __tablename__ = "results"
    __table_args__ = (
        UniqueConstraint("run_id", "case_id"),
        Index(None, "case_id", "run_id"),
    )
    id: Mapped[int] = _key()
    run_id: Mapped[int] = _to("runs.id")
    case_id: Mapped[int] = _to("cases.id")
    facts_id: Mapped[int] = _to("facts.id")
    status: Mapped[str] = mapped_column(String(16))
    count: Mapped[int | None] = mapped_column(Integer)
    median_s: Mapped[float | None] = mapped_column(Double)
    mean_s: Mapped[float | None] = mapped_column(Double)
    min_s: Mapped[float | None] = mapped_column(Double)
    max_s: Mapped[float | None] = mapped_column(Double)
    q1_s: Mapped[float | None] = mapped_column(Double)
    q3_s: Mapped[float | None] = mapped_column(Double)
    stddev_s: Mapped[float | None] = mapped_column(Double)
    bytes_moved: Mapped[int | None] = mapped_column(BigInteger)
    copy_bytes_per_s: Mapped[float | None] = mapped_column(Double)
    median_cycles: Mapped[float | None] = mapped_column(Double)
    shared: Mapped[bool] = mapped_column(Boolean)


class SampleRow(Base):
    """A result's measurements (null once thinned) and its other readings, both packed."""

    __tablename__ = "samples"
    result_id: Mapped[int] = mapped_column(
        Id, ForeignKey("results.id"), primary_key=True, autoincrement=False
    )
    measurements: Mapped[bytes | None] = mapped_column(LargeBinary)
    detail: Mapped[bytes] = mapped_column(LargeBinary)


class SeriesRow(Base):
    """A case on a GPU model in comparable environments: how much of it there is, and until when."""

    __tablename__ = "series"
    __table_args__ = (UniqueConstraint("case_id", "gpu_model_id", "fingerprint"),)
    id: Mapped[int] = _key()
    case_id: Mapped[int] = _to("cases.id")
    gpu_model_id: Mapped[int] = _to("gpu_models.id", index=True)
    fingerprint: Mapped[str] = mapped_column(String(16))
    results: Mapped[int] = mapped_column(Integer)
    first_started: Mapped[float] = mapped_column(Double)
    last_started: Mapped[float] = mapped_column(Double)


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
    id: Mapped[int] = _key()
    case_fingerprint: Mapped[str] = mapped_column(String(16))
    gpu_model: Mapped[str] = mapped_column(String(200))
    commit_sha: Mapped[str] = mapped_column(String(64))
    previous_sha: Mapped[str | None] = mapped_column(String(64))
    state: Mapped[str] = mapped_column(String(16))
    effect: Mapped[float | None] = mapped_column(Double)
    author: Mapped[str] = mapped_column(Text)
    note: Mapped[str] = mapped_column(Text)
    at: Mapped[str] = mapped_column(String(40))
    expires_at: Mapped[str | None] = mapped_column(String(40))


class WaiverRow(Base):
    """One entry of the append-only log of waivers: cases that may not fail the gate for a while.

    `pattern` matches labels of cases as a shell pattern; a null GPU model means every one.
    """

    __tablename__ = "waivers"
    __table_args__ = (CheckConstraint("action in ('granted', 'revoked')", name="known_action"),)
    id: Mapped[int] = _key()
    pattern: Mapped[str] = mapped_column(Text)
    gpu_model: Mapped[str | None] = mapped_column(String(200))
    action: Mapped[str] = mapped_column(String(16))
    author: Mapped[str] = mapped_column(Text)
    note: Mapped[str] = mapped_column(Text)
    at: Mapped[str] = mapped_column(String(40))
    expires_at: Mapped[str | None] = mapped_column(String(40))
