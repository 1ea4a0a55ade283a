"""Two runs with one seed are equal byte for byte, whatever Python's hash seed is."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256

import pytest

from pilotage.testing.faults import Gone
from pilotage.testing.harness import Harness


def scenario(seed: int) -> str:
    """A bit of everything, faults included; the log and every object at the end."""
    with Harness(seed=seed) as h:
        h.create(*(h.node(f"n{i}", cpu=4, zone=f"z{i % 3}") for i in range(6)))
        h.create(h.deployment("web", 8, h.pod("x", cpu="500m", labels={"tier": "front"})))
        h.create(*(h.pod(f"p{i}", cpu=1, priority=i % 3) for i in range(12)))
        h.faults.answer(503, path="/binding$", times=3, skip=2)
        h.faults.lose_answer(path="/binding$", times=1, skip=6)
        h.run_for(2)
        h.faults.gone(Gone.EVENT)
        h.faults.drop_watches()
        h.scale("web", 3)
        h.create(h.pod("big", cpu=16))
        h.run_for(20)
        h.restart_scheduler()
        h.delete("nodes", "n0")
        h.run_for(60)
        objects = [repr(tree) for plural in ("pods", "nodes", "events") for tree in h.objects(plural)]
        attempts = [f"{time:.6f} {attempt}" for time, attempt in h.recorder.attempts]
        return "\n".join([h.log_text(), *objects, *attempts, *h.recorder.notes])


def test_two_runs_are_equal() -> None:
    assert scenario(1) == scenario(1)


def test_another_seed_is_another_run() -> None:
    assert scenario(1) != scenario(2)


@pytest.mark.slow
def test_the_hash_seed_does_not_matter() -> None:
    digests = {_digest(hash_seed) for hash_seed in ("1", "2")}
    assert digests == {sha256(scenario(1).encode()).hexdigest()}


def _digest(hash_seed: str) -> str:
    """The scenario in a fresh interpreter."""
    code = (
        "import runpy, hashlib;"
        f"found = runpy.run_path({__file__!r})['scenario'](1);"
        "print(hashlib.sha256(found.encode()).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
