"""What the program says and answers when a command does not end well.

Laws: one line on stderr that says what to do, lines never wrapped or boxed (people and scripts search
them); exit codes 0 done, 1 failed, 2 wrong usage, 130 interrupted, 143 terminated; no traceback ever, unless
`PILOTAGE_DEBUG` asks for it.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

import rich_click as click

from pilotage.frontends.cli import EXIT_FAILED, EXIT_INTERRUPTED

DEBUG = "PILOTAGE_DEBUG"
_TERMINATED = 128 + signal.SIGTERM
_FROM_SERVER = "Error from server"


def run(args: Sequence[str]) -> int:
    """Runs one command line; returns the exit code."""
    from pilotage.frontends.cli.group import pilotage

    return exit_code(lambda: pilotage.main(list(args), prog_name="pilotage", standalone_mode=False))


def exit_code(command: Callable[[], object]) -> int:
    """Runs `command` (answer: an exit code, or something else for 0) and says what went wrong."""
    _never_fail_to_print()
    with _unwinding_on_sigterm():
        return _guarded(command)


def _guarded(command: Callable[[], object]) -> int:
    try:
        answer = command()
        sys.stdout.flush()
        return answer if isinstance(answer, int) else 0
    except click.UsageError as problem:
        _say_usage(problem)
        return problem.exit_code
    except click.ClickException as problem:
        say(problem.format_message())
        return problem.exit_code
    except BrokenPipeError:  # the reader has seen enough (`| head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return EXIT_FAILED
    except (KeyboardInterrupt, click.Abort):
        say("interrupted", prefix="")
        return EXIT_INTERRUPTED
    except Exception as problem:  # the last stop: a bug is told in one line too
        return _internal(problem)


def say(message: str, prefix: str = "error: ") -> None:
    """One complaint on stderr; what a server said keeps the words that kubectl's users know."""
    click.echo(message if message.startswith(_FROM_SERVER) else f"{prefix}{message}", err=True)


def _say_usage(problem: click.UsageError) -> None:
    path = problem.ctx.command_path if problem.ctx is not None else "pilotage"
    text = problem.format_message().rstrip(".")
    say(f"{text} (see '{path} --help')")


def _internal(problem: Exception) -> int:
    if os.environ.get(DEBUG):
        raise problem
    text = " ".join(str(problem).split())
    say(f"this is a bug in pilotage: {type(problem).__name__}: {text} ({DEBUG}=1 shows where)")
    return EXIT_FAILED


@contextlib.contextmanager
def _unwinding_on_sigterm() -> Iterator[None]:
    """SIGTERM leaves through the context managers, so that a server child is awaited, not orphaned."""

    def leave(_signal: int, _frame: FrameType | None) -> None:
        sys.exit(_TERMINATED)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _never_fail_to_print() -> None:
    """A terminal that cannot show a character shows another one."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
