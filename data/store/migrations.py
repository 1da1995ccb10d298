"""The schema of the database, as numbered steps; each is done once, in its order, inside one transaction.

Plain steps rather than a migration framework: the schema is small, and both kinds of server take the same statements.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

from data.errors import InputError

STEPS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE runs (name VARCHAR NOT NULL PRIMARY KEY, folder VARCHAR NOT NULL, place INTEGER NOT NULL)",
        "CREATE TABLE shards (run VARCHAR NOT NULL REFERENCES runs (name) ON DELETE CASCADE, first INTEGER NOT NULL,"
        " stop INTEGER NOT NULL, state VARCHAR NOT NULL, place INTEGER NOT NULL, worker VARCHAR, beat INTEGER NOT NULL,"
        " losses INTEGER NOT NULL, progress VARCHAR, message VARCHAR, PRIMARY KEY (run, first))",
        "CREATE INDEX shards_by_turn ON shards (state, place, run, first)",
    ),
    (
        "CREATE TABLE designs (run VARCHAR NOT NULL REFERENCES runs (name) ON DELETE CASCADE, design INTEGER NOT NULL,"
        " total DOUBLE PRECISION NOT NULL, violations INTEGER NOT NULL, PRIMARY KEY (run, design))",
        "CREATE TABLE scores (run VARCHAR NOT NULL, design INTEGER NOT NULL, name VARCHAR NOT NULL,"
        " value DOUBLE PRECISION NOT NULL, PRIMARY KEY (run, design, name),"
        " FOREIGN KEY (run, design) REFERENCES designs (run, design) ON DELETE CASCADE)",
        "CREATE INDEX scores_by_value ON scores (name, value)",
        "CREATE TABLE artifacts (run VARCHAR NOT NULL, design INTEGER NOT NULL, suffix VARCHAR NOT NULL,"
        " sha256 VARCHAR NOT NULL, PRIMARY KEY (run, design, suffix),"
        " FOREIGN KEY (run, design) REFERENCES designs (run, design) ON DELETE CASCADE)",
    ),
    (
        "CREATE TABLE labels (run VARCHAR NOT NULL REFERENCES runs (name) ON DELETE CASCADE, label VARCHAR NOT NULL,"
        " PRIMARY KEY (run, label))",
        "CREATE TABLE presets (name VARCHAR NOT NULL PRIMARY KEY, spec VARCHAR NOT NULL)",
        "CREATE TABLE lineage (run VARCHAR NOT NULL PRIMARY KEY REFERENCES runs (name) ON DELETE CASCADE,"
        " operator VARCHAR NOT NULL, mask VARCHAR NOT NULL, parent VARCHAR)",
        "CREATE INDEX artifacts_by_content ON artifacts (sha256)",
    ),
    ("CREATE INDEX shards_by_worker ON shards (state, worker)",),
)


def migrate(connection: Connection) -> None:
    """Do the steps that a database lacks; raises `InputError` for one of a newer program."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(7365)"))  # one migrates, the others wait
    connection.execute(text("CREATE TABLE IF NOT EXISTS versions (version INTEGER PRIMARY KEY)"))
    done = connection.execute(text("SELECT COALESCE(MAX(version), 0) FROM versions")).scalar_one()
    if done > len(STEPS):
        raise InputError(f"the store is of version {done}, and this program knows {len(STEPS)}; use a newer foreshape")
    for version, statements in enumerate(STEPS[done:], start=done + 1):
        for statement in statements:
            connection.execute(text(statement))
        connection.execute(text("INSERT INTO versions VALUES (:version)"), {"version": version})
