"""`pilotage version`."""

from __future__ import annotations

import platform

import msgspec
import rich_click as click

from pilotage import __version__

KUBERNETES = "1.37"


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people or for machines.",
)
def version(output: str) -> None:
    """Print the version. Example: `pilotage version -o json`."""
    facts = {"pilotage": __version__, "kubernetes": KUBERNETES, "python": platform.python_version()}
    if output == "json":
        click.echo(msgspec.json.encode(facts))
        return
    click.echo(f"pilotage {__version__} (behaves like kube-scheduler {KUBERNETES}; Python {facts['python']})")
