"""`pilotage delete`: objects by name, by label or by manifest."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import rich_click as click

from pilotage.api.kinds import Kind
from pilotage.client.api import ApiClient, ApiError
from pilotage.frontends.cli import EXIT_FAILED
from pilotage.frontends.cli.apply import filename_option
from pilotage.frontends.cli.connection import call_api, from_server, kubeconfig_options
from pilotage.frontends.cli.failures import say
from pilotage.frontends.cli.manifests import read_manifests
from pilotage.frontends.cli.naming import (
    find_kinds,
    full_name,
    kind_of,
    namespace_of,
    namespace_option,
    selector_option,
    split_names,
)

_NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class Selection:
    """What to delete: objects of manifests, names, or all objects of kinds that a selector matches."""

    filenames: tuple[str, ...]
    words: str
    names: tuple[str, ...]
    selector: str
    is_all: bool

    def check(self) -> None:
        """Raises UsageError unless exactly one way of naming was used."""
        ways = (bool(self.filenames), bool(self.names), bool(self.selector or self.is_all))
        if sum(ways) != 1 or bool(self.words) == bool(self.filenames):
            raise click.UsageError(
                "name what to delete: `delete KIND NAME...`, `delete KIND -l LABELS`, `delete KIND --all` or"
                " `delete -f FILE`"
            )


@click.command()
@click.argument("resource", required=False, metavar="[KIND]")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@filename_option
@namespace_option
@selector_option
@click.option("--all", "is_all", is_flag=True, help="All objects of the kind in the namespace.")
@click.option("--grace-period", type=int, default=None, metavar="SECONDS", help="0 deletes at once.")
@click.option("--ignore-not-found", is_flag=True, help="An object that is gone already is no error.")
@kubeconfig_options
def delete(
    resource: str | None,
    names: tuple[str, ...],
    filenames: tuple[str, ...],
    namespace: str | None,
    selector: str,
    is_all: bool,
    grace_period: int | None,
    ignore_not_found: bool,
    kubeconfig: str | None,
    context: str | None,
) -> int:
    """Delete objects.

    Example: `pilotage delete pod web`, `pilotage delete pods -l app=web`, `pilotage delete -f web.yaml`.
    """
    words, wanted = split_names(resource or "", names)
    selection = Selection(filenames, words, wanted, selector, is_all)
    selection.check()

    async def work(client: ApiClient, default: str) -> int:
        failed = 0
        async for kind, name, place in _targets(client, selection, namespace or default):
            try:
                await client.delete(kind, name, place, grace_seconds=grace_period, propagation="Background")
                click.echo(f'{full_name(kind)} "{name}" deleted')
            except ApiError as problem:
                if not (ignore_not_found and problem.status == _NOT_FOUND):
                    failed += 1
                    say(from_server(problem))
        return EXIT_FAILED if failed else 0

    return call_api(kubeconfig, context, work)


async def _targets(
    client: ApiClient, selection: Selection, default: str
) -> AsyncIterator[tuple[Kind, str, str]]:
    """(kind, name, namespace) of each object."""
    if selection.filenames:
        for _, document in read_manifests(selection.filenames):
            kind = kind_of(document)
            if name := document["metadata"].get("name"):
                yield kind, name, namespace_of(kind, document, default)
        return
    for kind in find_kinds(selection.words):
        place = default if kind.namespaced else ""
        names: list[str] = list(selection.names)
        if not names:
            found = await client.list(kind, place, label_selector=selection.selector)
            names = [item["metadata"]["name"] for item in found["items"]]
        for name in names:
            yield kind, name, place
