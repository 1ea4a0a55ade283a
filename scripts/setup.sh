#!/bin/sh
# Makes the virtual environment with exactly the locked versions. Usage: setup.sh VENV
set -eu
venv="$1"
python="${PYTHON:-python3}"
command -v "$python" >/dev/null 2>&1 || { echo "pilotage: '$python' not found: install Python 3.11 or newer, or run 'make PYTHON=/path/to/python3.11'" >&2; exit 1; }
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "pilotage: $("$python" -V) is too old: install Python 3.11 or newer, or run 'make PYTHON=/path/to/python3.11'" >&2; exit 1; }
"$python" -c 'import venv, ensurepip' 2>/dev/null || { echo "pilotage: $python has no venv module: on Debian or Ubuntu run 'apt-get install python3-venv'" >&2; exit 1; }
"$python" -m venv "$venv"
echo "Installing the locked packages into $venv (once)..."
"$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
