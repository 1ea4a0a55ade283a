"""`pilotage bench storm` as a command: options, what does not go together, exit codes, JSON."""

from __future__ import annotations

import json

import pytest

from pilotage.frontends.cli.failures import run

SMALL = ("bench", "storm", "--virtual", "--nodes", "1", "--bad", "3", "--good", "2", "--delay", "0.5")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--create-nodes",), "--create-nodes needs --kubeconfig"),
        (("--context", "x"), "--context needs --kubeconfig"),
        (("--kubeconfig", "f", "--virtual"), "--virtual and --kubeconfig do not go together"),
        (("--kubeconfig", "f", "--nodes", "3"), "--nodes on a cluster needs --create-nodes"),
        (("--scheduler-name", "x"), "--scheduler-name needs --kubeconfig"),
        (("--kubeconfig", "f", "--scheduler-name", "x", "--no-gate"), "--scheduler-name takes none of --qps"),
        (("--reject", "1.5"), "Invalid value for '--reject'"),
        (("--good", "0"), "Invalid value for '--good'"),
        (("--preset", "a2"), "Invalid value for '--preset'"),
    ],
)
def test_wrong_usage(options: tuple[str, ...], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "storm", *options]) == 2
    assert message in capfd.readouterr().err


def test_an_unknown_gate_and_a_missing_kubeconfig(capfd: pytest.CaptureFixture[str]) -> None:
    assert run([*SMALL, "--feature-gates", "SchedulerAsyncApiCalls=true"]) == 1
    assert "did you mean SchedulerAsyncAPICalls?" in capfd.readouterr().err
    assert run(["bench", "storm", "--kubeconfig", "nowhere.yaml"]) == 1
    assert "nowhere.yaml" in capfd.readouterr().err


@pytest.mark.slow
def test_json_has_the_scenario_the_figures_and_the_verdicts(capfd: pytest.CaptureFixture[str]) -> None:
    assert run([*SMALL, "--no-gate", "--qps", "20", "-o", "json"]) == 0
    captured = capfd.readouterr()
    report = json.loads(captured.out)
    assert (report["storm"]["bad"], report["storm"]["qps"], report["storm"]["burst"]) == (3, 20.0, 100)
    assert report["storm"]["gates"] == {"SchedulerAsyncAPICalls": False}
    assert report["figures"]["good_bound"] == 2
    assert report["baseline"] is None
    assert {verdict["aim"]["figure"] for verdict in report["verdicts"]} >= {"binds_lost"}
    assert "Conditions" in captured.err
    assert "3/3" in captured.err


@pytest.mark.slow
def test_a_missed_aim_is_exit_status_1(capfd: pytest.CaptureFixture[str]) -> None:
    assert run([*SMALL, "--latency", "3"]) == 1
    assert "missed  creation to binding p99" in capfd.readouterr().out


@pytest.mark.slow
def test_the_last_word_on_a_gate_counts(capfd: pytest.CaptureFixture[str]) -> None:
    assert run([*SMALL, "--feature-gates", "SchedulerAsyncAPICalls=false", "--gate"]) == 0
    assert "asynchronous API calls on; virtual time" in capfd.readouterr().out
