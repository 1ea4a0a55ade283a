"""The harness' fixtures, as any project would take them in."""

from pilotage.testing.pytest_plugin import harness, make_harness

__all__ = ["harness", "make_harness"]
