"""The command line, `pilotage`.

This module is imported first and so imports next to nothing: whatever happens later, Ctrl-C during the
imports included, ends in one line and an exit code.
"""

from __future__ import annotations

import os
import sys

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


def main() -> None:
    """Entry point of the program: never a traceback, unless `PILOTAGE_DEBUG` is set."""
    try:
        from pilotage.frontends.cli.failures import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)  # noqa: T201  # click may be half imported
        code = EXIT_INTERRUPTED
    if code == EXIT_INTERRUPTED:
        _leave_at_once(code)
    sys.exit(code)


def _leave_at_once(code: int) -> None:
    """A second Ctrl-C must not find the interpreter in its goodbyes."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = EXIT_INTERRUPTED
    os._exit(code)
