"""Runs many differential cases, and goes on where it stopped: `--seed-from N --cases N --state FILE`.

Prints each difference, and at the end how many cases, how many differed and the time it took. Exit status 1
when any differed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from reference.differential import run_case

SAVE_EVERY = 25


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed-from", type=int, default=1)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--state", type=Path, required=True)
    options = parser.parse_args()
    state = _load(options.state, options.seed_from)
    began = time.monotonic() - state["seconds"]
    end = options.seed_from + options.cases
    while state["next"] < end:
        if found := run_case(state["next"]):
            state["differing"].append(state["next"])
            _say(*found)
        state["next"] += 1
        if state["next"] % SAVE_EVERY == 0 or state["next"] == end:
            state["seconds"] = round(time.monotonic() - began, 1)
            _save(options.state, state)
    differing, seconds = len(state["differing"]), state["seconds"]
    _say(f"seeds {options.seed_from}..{end - 1}: {differing} of {options.cases} differ, {seconds:.0f} s")
    return 1 if state["differing"] else 0


def _load(path: Path, seed_from: int) -> dict[str, Any]:
    if path.exists():
        state: dict[str, Any] = json.loads(path.read_text())
        return state
    return {"next": seed_from, "differing": [], "seconds": 0.0}


def _save(path: Path, state: dict[str, Any]) -> None:
    draft = path.with_name(f"{path.name}.new")
    draft.write_text(json.dumps(state))
    draft.replace(path)


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
