"""Which kubeconfig a command takes, and what it says when nobody answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.client.errors import ApiError
from pilotage.client.transport import TransportError
from pilotage.frontends.cli.connection import choose_kubeconfig, from_server, last_kubeconfig, unreachable


@pytest.fixture
def last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The kubeconfig of the last `up`, not written yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    path = last_kubeconfig()
    assert path == tmp_path / "pilotage" / "kubeconfig"
    path.parent.mkdir()
    return path


def test_the_option_wins_then_the_environment_then_the_last_up(
    last: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert choose_kubeconfig(None) is None
    last.write_text("x")
    assert choose_kubeconfig(None) == str(last)
    assert choose_kubeconfig("mine") == "mine"
    monkeypatch.setenv("KUBECONFIG", "theirs")
    assert choose_kubeconfig(None) is None
    assert choose_kubeconfig("mine") == "mine"


def test_the_state_folder_without_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/someone")
    assert last_kubeconfig() == Path("/home/someone/.local/state/pilotage/kubeconfig")


def failure(cause: BaseException | None) -> TransportError:
    problem = TransportError("GET /x: broken", sent=False)
    problem.__cause__ = cause
    return problem


def test_nobody_answers(last: Path) -> None:
    url = "https://127.0.0.1:1"
    refused = failure(ConnectionRefusedError(111, "refused"))
    assert unreachable(url, refused, str(last)) == (
        "the cluster of the last 'pilotage up' has ended: start one with 'pilotage up'"
    )
    assert unreachable(url, refused, "mine").startswith(f"nothing listens at {url}: is the cluster")
    assert unreachable(url, failure(OSError(113, "x")), None) == f"no answer from {url}: No route to host"
    assert unreachable(url, failure(None), None) == f"no answer from {url}: GET /x: broken"
    assert unreachable(url, failure(TimeoutError()), None) == f"no answer from {url}: GET /x: broken"


def test_refusals_in_kubectls_words() -> None:
    assert from_server(ApiError(404, "NotFound", 'pods "a" not found')) == (
        'Error from server (NotFound): pods "a" not found'
    )
    assert from_server(ApiError(502, "", "bad gateway")) == "Error from server: bad gateway"
