"""For all tests: what a command sets up for the whole process ends with the test that ran it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """Commands replace the root logger's handlers and set levels; pytest's own handlers come and go."""
    loggers = [logging.getLogger(name) for name in ("", "pilotage")]
    levels, handlers = [logger.level for logger in loggers], set(loggers[0].handlers)
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
    for handler in tuple(loggers[0].handlers):
        if type(handler) is logging.StreamHandler and handler not in handlers:
            loggers[0].removeHandler(handler)
