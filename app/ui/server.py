"""Starts Streamlit on `main.py`, for this machine alone; `python -m` of this is Streamlit with a head start."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from app.ui import catalogue
from data.errors import InputError

ADDRESS = "127.0.0.1"
OPTIONS = {
    "server.headless": "true",
    "server.fileWatcherType": "none",
    "browser.gatherUsageStats": "false",
    "global.disableWidgetStateDuplicationWarning": "true",
    "client.toolbarMode": "minimal",
    "theme.light.primaryColor": "#2f6f5e",
    "theme.dark.primaryColor": "#5fb59c",
    "theme.baseFontSize": "15",
}


def serve(port: int) -> int:
    """Serve the UI until it is interrupted; returns Streamlit's exit code. Raises `InputError` for a port in use."""
    check_free(port)
    print(f"foreshape is at http://localhost:{port} (ctrl-C ends it; what is being made goes on)", file=sys.stderr)
    return subprocess.run(command(port), stdout=subprocess.DEVNULL, check=False).returncode


def command(port: int) -> list[str]:
    """The words that start Streamlit."""
    options = OPTIONS | {"server.address": ADDRESS, "server.port": str(port)}
    flags = [f"--{key}={value}" for key, value in options.items()]
    return [sys.executable, "-P", "-m", "app.ui.server", "run", str(Path(__file__).with_name("main.py")), *flags]


def check_free(port: int) -> None:
    """Raise `InputError` unless a server can be started on a port."""
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((ADDRESS, port))
    except (OSError, OverflowError) as error:
        raise InputError(f"port {port} cannot be used ({error}); give another with --port, such as 8502") from error


def main() -> None:
    """Streamlit's own command line, in a process that lists what there is to choose from before anybody asks."""
    from streamlit.web import cli  # loads Streamlit

    catalogue.begin()
    cli.main()


if __name__ == "__main__":
    main()
