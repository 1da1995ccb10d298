"""The application: specs, the service that runs them, and its faces."""

__version__ = "0.1.0"
