"""A Postgres server for tests: in a folder of its own, gone with it."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def binaries() -> Path | None:
    """Where initdb and pg_ctl are, None where no server is installed."""
    found = shutil.which("pg_ctl")
    places = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists()), None)


@contextmanager
def server() -> Iterator[str]:
    """The URL of a server that runs meanwhile; skips the test where none is installed."""
    place = binaries()
    if place is None:
        pytest.skip("no Postgres server is installed here; .ci/run installs one")
    with tempfile.TemporaryDirectory(prefix="foreshape-postgres-") as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        user = _unprivileged()
        if user:
            shutil.chown(folder, user)
        data, log = f"{folder}/data", f"{folder}/log"
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c fsync=off -k {folder}"
        _run(user, place / "initdb", "-D", data, "-U", "foreshape", "-A", "trust", "-E", "UTF8")
        _run(user, place / "pg_ctl", "-D", data, "-l", log, "-w", "-o", options, "start")
        try:
            yield f"postgresql://foreshape@127.0.0.1:{port}/postgres"
        finally:
            _run(user, place / "pg_ctl", "-D", data, "-m", "immediate", "stop")


def _unprivileged() -> str | None:
    """Whose process the server is, as it refuses to be root's."""
    if os.geteuid() != 0:
        return None
    return next(name for name in ("postgres", "nobody") if name in {entry.pw_name for entry in pwd.getpwall()})


def _run(user: str | None, *words: str | Path) -> None:
    subprocess.run(
        words, check=True, user=user, cwd="/", stdout=subprocess.DEVNULL, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
    )
