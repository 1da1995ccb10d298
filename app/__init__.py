"""The application: specs, the service that runs them, and its faces."""

import sys

__version__ = "0.1.0"
PROGRAM = (sys.executable, "-P", "-m", "app.cli")
"""This program as a command, for processes of its own."""
