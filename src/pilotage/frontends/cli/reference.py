"""The command reference (`docs/reference/cli.md`), written from the commands themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import rich_click as click

from pilotage.frontends.cli.group import COMMANDS, pilotage

_HEAD = """\
# Commands

Written from the program: `.venv/bin/python -m pilotage.frontends.cli.reference > docs/reference/cli.md`.

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted, 143 terminated. What went wrong is one line on
standard error; `PILOTAGE_DEBUG=1` adds the traceback of what is a bug in Pilotage.
"""


def reference() -> str:
    """The whole page as Markdown."""
    context = click.Context(pilotage, info_name="pilotage")
    parts = [_HEAD]
    for name in COMMANDS:
        command = pilotage.get_command(context, name)
        assert command is not None
        parts += _parts(command, click.Context(command, context, name))
    return "\n".join(parts)


def _parts(command: click.Command, context: click.Context) -> Iterator[str]:
    """The command's section, and below it those of its subcommands."""
    yield "\n".join(_section(command, context))
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from _parts(below, click.Context(below, context, name))


def _section(command: click.Command, context: click.Context) -> Iterator[str]:
    usage = command.get_usage(context).removeprefix("Usage: ")
    yield f"## {context.command_path}\n"
    yield f"`{' '.join(usage.split())}`\n"
    yield inspect.cleandoc(command.help or "") + "\n"
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    if options:
        yield "| option | meaning |"
        yield "|---|---|"
        yield from (_row(option, context) for option in options)
        yield ""


def _row(option: click.Option, context: click.Context) -> str:
    given = (*sorted(option.opts, key=len, reverse=True), *option.secondary_opts)
    names = ", ".join(f"`{name}`" for name in given)
    value = "" if option.is_flag else f" `{option.make_metavar(context)}`"
    default = f" (default: {option.default})" if option.show_default and option.default is not None else ""
    return f"| {names}{_cell(value)} | {_cell(option.help or '')}{default} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    click.echo(reference(), nl=False)
