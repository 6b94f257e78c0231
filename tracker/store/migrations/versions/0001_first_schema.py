"""The first schema: runs, results, commits, environments, and what people say of changes."""

import uuid
from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
APPEND_ONLY = ("triage", "waivers")


def upgrade() -> None:
    """Make every table, those that others refer to first."""
    _cases()
    _commits()
    _facts()
    _gpu_models()
    _meta()
    _triage()
    _waivers()
    _commit_parents()
    _devices()
    _environments()
    _series()
    _runs()
    _results()
    _samples()
    _append_only(op.get_bind().dialect.name)
    op.execute(
        sa.table("meta", *map(sa.column, ("id", "store_id", "created_at", "revision")))
        .insert()
        .values(
            id=1,
            store_id=uuid.uuid4().hex,
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            revision=0,
        )
    )


def _cases() -> None:
    op.create_table(
        "cases",
        sa.Column("id", ID, autoincrement=False, nullable=False),
        sa.Column("fingerprint", sa.String(length=16), nullable=False),
        sa.Column("kernel", sa.String(length=200), nullable=False),
        sa.Column("implementation", sa.String(length=200), nullable=False),
        sa.Column("dtype", sa.String(length=200), nullable=False),
        sa.Column("shape", sa.Text(), nullable=False),
        sa.Column("alignment", sa.String(length=200), nullable=False),
        sa.Column("cache", sa.String(length=200), nullable=False),
        sa.Column("parameters", sa.Text(), nullable=False),
        sa.Column("version", ID, nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cases")),
        sa.UniqueConstraint("fingerprint", name=op.f("uq_cases_fingerprint")),
    )


def _commits() -> None:
    op.create_table(
        "commits",
        sa.Column("id", ID, autoincrement=False, nullable=False),
        sa.Column("sha", sa.String(length=64), nullable=False),
        sa.Column("known", sa.Boolean(), nullable=False),
        sa.Column("author", sa.Text(), nullable=True),
        sa.Column("author_time", sa.String(length=40), nullable=True),
        sa.Column("commit_time", sa.String(length=40), nullable=True),
        sa.Column("committed", sa.Double(), nullable=True),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_commits")),
        sa.UniqueConstraint("sha", name=op.f("uq_commits_sha")),
    )


def _facts() -> None:
    op.create_table(
        "facts",
        sa.Column("id", ID, autoincrement=False, nullable=False),
        sa.Column("digest", sa.String(length=32), nullable=False),
        sa.Column("code_fingerprint", sa.Text(), nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_facts")),
        sa.UniqueConstraint("digest", name=op.f("uq_facts_digest")),
    )


def _gpu_models() -> None:
    op.create_table(
        "gpu_models",
        sa.Column("id", ID, autoincrement=False, nullable=False),
        sa.Column("backend", sa.String(length=8), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gpu_models")),
        sa.UniqueConstraint("backend", "name", name=op.f("uq_gpu_models_backend_name")),
    )


def _meta() -> None:
    op.create_table(
        "meta",
        sa.Column("id", ID, autoincrement=False, nullable=False),
        sa.Column("store_id", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.String(length=40), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_meta_one_row")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_meta")),
    )


def _triage() -> None:
    op.create_table(
        "triage",
        sa.Column("id", ID, autoincrement=False, nullable=False),
        sa.Column("case_fingerprint", sa.String(length=16), nullable=False),
        sa.Column("gpu_model", sa.String(length=200), nullable=False),
        sa.Column("commit_sha", sa.String(length=64), nullable=False),
        sa.Column("previous_sha", sa.String(length=64), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("effect", sa.Double(), nullable=True),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("at", sa.String(length=40), nullable=False),
        sa.Column("expires_at", sa.String(length=40), nullable=True),
        sa.CheckConstraint(
            "state in ('new', 'acknowledged', 'accepted', 'reopened')",
            name=op.f("ck_triage_known_state"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_triage")),
    )
    with op.batch_alter_table("triage", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_triage_case_fingerprint_gpu_model_commit_sha"),
            ["case_fingerprint", "gpu_model", "commit_sha"],
            unique=False,
        )


def _waivers() -> None:
    op.create_table(
        "waivers",
        sa.Column("id", ID, autoincrement=False, nullable=False),
        sa.Column("pattern", sa.Text(), nullable=False),
        sa.Column("gpu_model", sa.String(length=200), nullable=True),
        sa.Column("action", sa.String(length=16), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("at", sa.String(length=40), nullable=False),
        sa.Column("expires_at", sa.String(length=40), nullable=True),
        sa.CheckConstraint(
            "action in ('granted', 'revoked')", name=op.f("ck_waivers_known_action")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_waivers")),
    )


def _commit_parents() -> None:
    op.create_table(
        "commit_parents",
        sa.Column("commit_id", ID, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("parent_id", ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["commit_id"], ["commits.id"], name=op.f("fk_commit_parents_commit_id")
        ),
        sa.ForeignKeyConstraint(
            ["parent_id"], ["commits.id"], name=op.f("fk_commit_parents_parent_id")
        ),
        sa.PrimaryKeyConstraint("commit_id", "position", name=op.f("pk_commit_parents")),
    )
    with op.batch_alter_table("commit_parents", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_commit_parents_parent_id"), ["parent_id"], unique=False
        )


def _devices() -> None:
    op.create_table(
        "devices",
        sa.Column("id", ID, autoincrement=False, nullable=False),
        sa.Column("gpu_model_id", ID, nullable=False),
        sa.Column("uuid", sa.String(length=200), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.ForeignKeyConstraint(
            ["gpu_model_id"], ["gpu_models.id"], name=op.f("fk_devices_gpu_model_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_devices")),
        sa.UniqueConstraint("gpu_model_id", "uuid", name=op.f("uq_devices_gpu_model_id_uuid")),
    )


def _environments() -> None:
    op.create_table(
        "environments",
        sa.Column("id", ID, autoincrement=False, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("fingerprint", sa.String(length=16), nullable=False),
        sa.Column("gpu_model_id", ID, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["gpu_model_id"], ["gpu_models.id"], name=op.f("fk_environments_gpu_model_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_environments")),
        sa.UniqueConstraint("digest", name=op.f("uq_environments_digest")),
    )
    with op.batch_alter_table("environments", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_environments_fingerprint"), ["fingerprint"], unique=False
        )


def _series() -> None:
    op.create_table(
        "series",
        sa.Column("id", ID, autoincrement=False, nullable=False),
        sa.Column("case_id", ID, nullable=False),
        sa.Column("gpu_model_id", ID, nullable=False),
        sa.Column("fingerprint", sa.String(length=16), nullable=False),
        sa.Column("results", sa.Integer(), nullable=False),
        sa.Column("first_started", sa.Double(), nullable=False),
        sa.Column("last_started", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["case_id"], ["cases.id"], name=op.f("fk_series_case_id")),
        sa.ForeignKeyConstraint(
            ["gpu_model_id"], ["gpu_models.id"], name=op.f("fk_series_gpu_model_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_series")),
        sa.UniqueConstraint(
            "case_id",
            "gpu_model_id",
            "fingerprint",
            name=op.f("uq_series_case_id_gpu_model_id_fingerprint"),
        ),
    )
    with op.batch_alter_table("series", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_series_gpu_model_id"), ["gpu_model_id"], unique=False)


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", ID, autoincrement=False, nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("gpu_model_id", ID, nullable=False),
        sa.Column("device_id", ID, nullable=False),
        sa.Column("environment_id", ID, nullable=False),
        sa.Column("commit_id", ID, nullable=True),
        sa.Column("branch", sa.Text(), nullable=True),
        sa.Column("dirty", sa.Boolean(), nullable=False),
        sa.Column("complete", sa.Boolean(), nullable=False),
        sa.Column("demo", sa.Boolean(), nullable=False),
        sa.Column("started_at", sa.String(length=40), nullable=False),
        sa.Column("started", sa.Double(), nullable=False),
        sa.Column("finished_at", sa.String(length=40), nullable=True),
        sa.Column("recorded_at", sa.String(length=40), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("results", sa.Integer(), nullable=False),
        sa.Column("statuses", sa.Text(), nullable=False),
        sa.Column("thinned_at", sa.String(length=40), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["commit_id"], ["commits.id"], name=op.f("fk_runs_commit_id")),
        sa.ForeignKeyConstraint(["device_id"], ["devices.id"], name=op.f("fk_runs_device_id")),
        sa.ForeignKeyConstraint(
            ["environment_id"], ["environments.id"], name=op.f("fk_runs_environment_id")
        ),
        sa.ForeignKeyConstraint(
            ["gpu_model_id"], ["gpu_models.id"], name=op.f("fk_runs_gpu_model_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.UniqueConstraint("run_id", name=op.f("uq_runs_run_id")),
    )
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_runs_commit_id"), ["commit_id"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_runs_gpu_model_id_started"), ["gpu_model_id", "started"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_runs_started"), ["started"], unique=False)


def _results() -> None:
    op.create_table(
        "results",
        sa.Column("id", ID, autoincrement=False, nullable=False),
        sa.Column("run_id", ID, nullable=False),
        sa.Column("case_id", ID, nullable=False),
        sa.Column("facts_id", ID, nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("count", sa.Integer(), nullable=True),
        sa.Column("median_s", sa.Double(), nullable=True),
        sa.Column("mean_s", sa.Double(), nullable=True),
        sa.Column("min_s", sa.Double(), nullable=True),
        sa.Column("max_s", sa.Double(), nullable=True),
        sa.Column("q1_s", sa.Double(), nullable=True),
        sa.Column("q3_s", sa.Double(), nullable=True),
        sa.Column("stddev_s", sa.Double(), nullable=True),
        sa.Column("bytes_moved", sa.BigInteger(), nullable=True),
        sa.Column("copy_bytes_per_s", sa.Double(), nullable=True),
        sa.Column("median_cycles", sa.Double(), nullable=True),
        sa.Column("shared", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["case_id"], ["cases.id"], name=op.f("fk_results_case_id")),
        sa.ForeignKeyConstraint(["facts_id"], ["facts.id"], name=op.f("fk_results_facts_id")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_results_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_results")),
        sa.UniqueConstraint("run_id", "case_id", name=op.f("uq_results_run_id_case_id")),
    )
    with op.batch_alter_table("results", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_results_case_id_run_id"), ["case_id", "run_id"], unique=False
        )


def _samples() -> None:
    op.create_table(
        "samples",
        sa.Column("result_id", ID, autoincrement=False, nullable=False),
        sa.Column("measurements", sa.LargeBinary(), nullable=True),
        sa.Column("detail", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["result_id"], ["results.id"], name=op.f("fk_samples_result_id")),
        sa.PrimaryKeyConstraint("result_id", name=op.f("pk_samples")),
    )


def _append_only(dialect: str) -> None:
    """Let the database itself refuse to change or delete what people wrote."""
    if dialect == "postgresql":
        op.execute(
            "CREATE FUNCTION bandwatch_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ "
            "BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$"
        )
    for table in APPEND_ONLY:
        for event in ("UPDATE", "DELETE"):
            name = f"{table}_no_{event.lower()}"
            body = (
                "FOR EACH ROW EXECUTE FUNCTION bandwatch_append_only()"
                if dialect == "postgresql"
                else f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            )
            op.execute(f"CREATE TRIGGER {name} BEFORE {event} ON {table} {body}")
