"""The `pilotage` program in processes of its own, with a home and state folder that are the test's."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path

# A shell without job control starts background jobs with Ctrl-C ignored, and children inherit that; not ours.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

PROGRAM = Path(sys.executable).parent / "pilotage"
LIMIT_SECONDS = 60.0


def environment(home: Path) -> dict[str, str]:
    """No kubeconfig, no state, nothing of whoever runs the tests."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": str(home), "XDG_STATE_HOME": str(home / "state")}


def pilotage(
    home: Path, *arguments: str | Path, stdin: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs one command to its end."""
    return subprocess.run(
        [PROGRAM, *map(str, arguments)],
        input=stdin,
        env={**environment(home), **variables},
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )


class Running:
    """A command that goes on until it is stopped; in a process group of its own, as a shell starts it."""

    def __init__(self, home: Path, *arguments: str | Path) -> None:
        self.process = subprocess.Popen(
            [PROGRAM, *map(str, arguments)],
            env=environment(home),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        self.printed = ""

    def wait_for(self, text: str) -> str:
        """Everything printed until that text is on stdout. Fails at the end of the output or of the time."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + LIMIT_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while text not in self.printed:
                assert selector.select(deadline - time.monotonic()), f"no {text!r} in {self.printed!r}"
                chunk = os.read(self.process.stdout.fileno(), 65536).decode()
                if not chunk:
                    raise AssertionError(f"ended: {self.printed!r} {self.process.communicate()[1]!r}")
                self.printed += chunk
        return self.printed

    def interrupt(self) -> None:
        """Ctrl-C: the whole foreground group gets it."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> tuple[int, str]:
        """(exit code, stderr), once it has ended."""
        _, err = self.process.communicate(timeout=LIMIT_SECONDS)
        return self.process.returncode, err

    def children(self) -> list[int]:
        """Process ids of its direct children."""
        listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True)
        pairs = [line.split() for line in listed.stdout.splitlines()]
        return [int(pid) for pid, parent in pairs if int(parent) == self.process.pid]

    def kill(self) -> None:
        """For the end of a test that failed."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
