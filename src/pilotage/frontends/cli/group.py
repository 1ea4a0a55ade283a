"""The commands by name. Each is imported when it is called, so that `--help` stays quick."""

from __future__ import annotations

import importlib

import rich_click as click

COMMANDS = {
    "up": "pilotage.frontends.cli.up:up",
    "run": "pilotage.frontends.cli.run:run",
    "demo": "pilotage.frontends.cli.demo:demo",
    "get": "pilotage.frontends.cli.get:get",
    "apply": "pilotage.frontends.cli.apply:apply",
    "delete": "pilotage.frontends.cli.delete:delete",
    "explain": "pilotage.frontends.cli.explain:explain",
    "calls": "pilotage.frontends.cli.calls:calls",
    "diff": "pilotage.frontends.cli.diff:diff",
    "replay": "pilotage.frontends.replay.command:replay",
    "compare": "pilotage.frontends.cli.compare:compare",
    "bench": "pilotage.frontends.cli.bench:bench",
    "version": "pilotage.frontends.cli.version:version",
}


class LazyGroup(click.RichGroup):
    """Group whose commands are loaded by name from `COMMANDS`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        target = COMMANDS.get(cmd_name)
        if target is None:
            return None
        module, _, attribute = target.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def pilotage() -> None:
    """A complete Kubernetes scheduler in Python, with a whole cluster in one command.

    Start with `pilotage demo`, then `pilotage up --nodes 5`.
    """
