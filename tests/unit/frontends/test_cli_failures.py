"""One line and an exit code for everything that can go wrong with a command."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import click
import pytest

from pilotage.frontends.cli.configuring import config_fault
from pilotage.frontends.cli.failures import exit_code, run
from pilotage.runtime.config_errors import ConfigError, Problem


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """Commands set up the process's logging."""
    root, ours = logging.getLogger(), logging.getLogger("pilotage")
    before = (list(root.handlers), root.level, ours.level)
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])


def failing(problem: BaseException) -> object:
    def command() -> None:
        raise problem

    return command


@pytest.mark.parametrize(
    ("problem", "code", "line"),
    [
        (click.ClickException("no way"), 1, "error: no way"),
        (click.ClickException("Error from server (X): no"), 1, "Error from server (X): no"),
        (click.UsageError("what."), 2, "error: what (see 'pilotage --help')"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (click.Abort(), 130, "interrupted"),
        (
            ZeroDivisionError("by\n0"),
            1,
            "error: this is a bug in pilotage: ZeroDivisionError: by 0 (PILOTAGE_DEBUG=1 shows where)",
        ),
    ],
)
def test_one_line(
    problem: BaseException,
    code: int,
    line: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PILOTAGE_DEBUG", raising=False)
    assert exit_code(failing(problem)) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", line + "\n")


def test_a_bug_shows_where_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PILOTAGE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        exit_code(failing(ZeroDivisionError()))


def test_answers_of_commands() -> None:
    assert [exit_code(lambda answer=answer: answer) for answer in (None, 0, 1, 130, "x")] == [0, 0, 1, 130, 0]


@pytest.mark.parametrize(
    ("args", "code", "line"),
    [
        (["nosuch"], 2, "error: No such command 'nosuch' (see 'pilotage --help')"),
        (["get"], 2, "error: Missing argument 'KINDS' (see 'pilotage get --help')"),
        (["get", "pod", "a", "-l", "x=y"], 2, "names go together neither with -A nor with selectors"),
        (["get", "pods,nodes", "-w"], 2, "-w shows one kind"),
        (["get", "foo"], 1, 'error: the server doesn\'t have a resource type "foo"'),
        (["apply"], 2, "error: name what to apply"),
        (["apply", "-f", "/nowhere.yaml"], 1, "error: /nowhere.yaml: No such file or directory"),
        (["delete"], 2, "error: name what to delete"),
        (["delete", "pods"], 2, "error: name what to delete"),
        (["delete", "pods", "a", "--all"], 2, "error: name what to delete"),
        (["delete", "pods", "-f", "x"], 2, "error: name what to delete"),
        (["up", "--nodes", "-1"], 2, "Invalid value for '--nodes'"),
        (["up", "--node-template", "/nowhere.yaml"], 1, "error: /nowhere.yaml: No such file or directory"),
        (["up", "--config", "/nowhere.yaml"], 1, "error: /nowhere.yaml: cannot be read: No such file"),
        (["run", "--kubeconfig", "/nowhere"], 1, "error: kubeconfig /nowhere: no such file"),
    ],
)
def test_commands_that_cannot_start(
    args: list[str], code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(args) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert line in captured.err
    assert captured.err.count("\n") == 1


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["version"]) == 0
    assert capsys.readouterr().out.startswith("pilotage 0.")


def test_configuration_faults() -> None:
    one, two = Problem("foo", 3, "unknown field"), Problem("bar", None, "unknown field")
    assert config_fault(ConfigError([one], "a.yaml")) == "a.yaml: foo: 3: unknown field"
    assert config_fault(ConfigError([one, two], "a.yaml")) == (
        "a.yaml: 2 problems\n  foo: 3: unknown field\n  bar: unknown field"
    )
