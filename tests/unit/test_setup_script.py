"""`scripts/setup.sh` with a python that is missing, too old, without venv, or right: one line each."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "setup.sh"
VERSION_CHECK, VENV_CHECK = "*version_info*", "*ensurepip*"


def set_up(folder: Path, python: str | None, name: str = "python3") -> subprocess.CompletedProcess[str]:
    """Runs the script where `name` is a shell script with that body, or does not exist."""
    programs = folder / "bin"
    programs.mkdir()
    if python is not None:
        (programs / name).write_text(f"#!/bin/sh\n{python}\n")
        (programs / name).chmod(0o755)
    return subprocess.run(
        ["/bin/sh", SCRIPT, str(folder / "venv")],
        env={"PATH": f"{programs}:/bin", "PYTHON": name},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("python", "complaint"),
    [
        (None, "pilotage: 'python-for-test' not found: install Python 3.11 or newer, or run 'make PYTHON="),
        (
            f'case "$*" in {VERSION_CHECK}) exit 1;; -V) echo Python 3.9.1;; esac',
            "pilotage: Python 3.9.1 is too old: install Python 3.11 or newer, or run 'make PYTHON=",
        ),
        (
            f'case "$*" in {VENV_CHECK}) exit 1;; esac',
            "pilotage: python-for-test has no venv module: on Debian or Ubuntu run 'apt-get install",
        ),
    ],
    ids=["missing", "old", "no venv"],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, python: str | None, complaint: str) -> None:
    done = set_up(tmp_path, python, "python-for-test")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(complaint)
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "venv").exists()


def test_the_locked_packages_go_into_the_environment(tmp_path: Path) -> None:
    pip = '#!/bin/sh\\necho "$@" >> "$(dirname "$0")/asked"\\n'
    make = f'mkdir -p "$3/bin"; printf \'{pip}\' > "$3/bin/pip"; chmod +x "$3/bin/pip"'
    done = set_up(tmp_path, f'PATH=/usr/bin:/bin; case "$*" in "-m venv"*) {make};; esac')
    assert (done.returncode, done.stderr) == (0, "")
    locked, own = (tmp_path / "venv" / "bin" / "asked").read_text().splitlines()
    assert "--require-hashes -r requirements.lock" in locked
    assert own.endswith("--no-deps --no-build-isolation -e .")


def test_a_failed_install_fails(tmp_path: Path) -> None:
    make = 'mkdir -p "$3/bin"; printf "#!/bin/sh\\nexit 3\\n" > "$3/bin/pip"; chmod +x "$3/bin/pip"'
    done = set_up(tmp_path, f'PATH=/usr/bin:/bin; case "$*" in "-m venv"*) {make};; esac')
    assert done.returncode == 3


def test_the_lock_file_names_no_place() -> None:
    """Versions and hashes alone: no index, no folder of some machine."""
    lines = (SCRIPT.parents[1] / "requirements.lock").read_text().splitlines()
    options = [line for line in lines if line.startswith("-")]
    assert options == []
    assert not [line for line in lines if "://" in line]
