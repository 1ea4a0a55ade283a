"""`pilotage get`: objects as tables, names, YAML or JSON, for people without kubectl."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import rich_click as click

from pilotage.api.kinds import Kind
from pilotage.client.api import ApiClient, ApiError, Json
from pilotage.frontends.cli import EXIT_FAILED, EXIT_INTERRUPTED
from pilotage.frontends.cli.connection import call_api, from_server, kubeconfig_options
from pilotage.frontends.cli.failures import say
from pilotage.frontends.cli.naming import find_kinds, namespace_option, selector_option, split_names
from pilotage.frontends.cli.tables import TablePrinter, print_json, print_names, print_yaml
from pilotage.frontends.cli.watching import read_table, table_events, table_requests

FORMS = ("table", "wide", "json", "yaml", "name")


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for. `place` "" means all namespaces."""

    kinds: Sequence[Kind]
    names: tuple[str, ...]
    place: str
    selector: str
    fields: str

    def namespace(self, kind: Kind) -> str:
        return self.place if kind.namespaced else ""


@click.command()
@click.argument("resource", metavar="KINDS")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@namespace_option
@click.option("-A", "--all-namespaces", is_flag=True, help="List the objects of all namespaces.")
@selector_option
@click.option(
    "--field-selector", default="", metavar="FIELDS", help="Field selector, e.g. spec.nodeName=node-0."
)
@click.option(
    "-o", "--output", type=click.Choice(FORMS), default="table", show_default=True, help="Form of the output."
)
@click.option("-w", "--watch", is_flag=True, help="Then show each change, until Ctrl-C.")
@kubeconfig_options
def get(
    resource: str,
    names: tuple[str, ...],
    namespace: str | None,
    all_namespaces: bool,
    selector: str,
    field_selector: str,
    output: str,
    watch: bool,
    kubeconfig: str | None,
    context: str | None,
) -> int:
    """Show objects, like `kubectl get`. KINDS: pods, pods,nodes, deploy, all, ...

    Example: `pilotage get pods -A -o wide`, `pilotage get node node-0 -o yaml`.
    """
    words, wanted = split_names(resource, names)
    kinds = find_kinds(words)
    if wanted and (all_namespaces or selector or field_selector):
        raise click.UsageError("names go together neither with -A nor with selectors")
    if watch and (len(kinds) > 1 or len(wanted) > 1 or output not in ("table", "wide")):
        raise click.UsageError("-w shows one kind, as a table or wide, with one name at most")

    async def work(client: ApiClient, default: str) -> int:
        place = "" if all_namespaces else namespace or default
        wish = Wish(kinds, wanted, place, selector, field_selector)
        if output in ("table", "wide"):
            printer = TablePrinter(
                wide=output == "wide", with_namespace=all_namespaces, with_kind=len(kinds) > 1
            )
            return await _tables(client, wish, printer, watch)
        return await _documents(client, wish, output)

    try:
        return call_api(kubeconfig, context, work)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


async def _tables(client: ApiClient, wish: Wish, printer: TablePrinter, watch: bool) -> int:
    failed, version = 0, ""
    for kind in wish.kinds:
        tables = []
        for request in table_requests(kind, wish.namespace(kind), wish.names, wish.selector, wish.fields):
            try:
                tables.append(await read_table(client, request))
            except ApiError as problem:
                failed += 1
                say(from_server(problem))
        printer.show(kind, tables)
        version = tables[0]["metadata"]["resourceVersion"] if tables else ""
    if watch and not failed:
        kind, fields = wish.kinds[0], wish.fields
        fields = f"metadata.name={wish.names[0]}" if wish.names else fields
        events = table_events(client, kind, wish.namespace(kind), wish.selector, fields, version)
        async for table in events:
            printer.more(kind, table)
    elif not printer.rows and not failed:
        say(f"No resources found{_where(wish)}", prefix="")
    return EXIT_FAILED if failed else 0


def _where(wish: Wish) -> str:
    if wish.place and any(kind.namespaced for kind in wish.kinds):
        return f" in {wish.place} namespace."
    return ""


async def _documents(client: ApiClient, wish: Wish, output: str) -> int:
    items: list[tuple[Kind, Json]] = []
    failed = 0
    for kind in wish.kinds:
        place = wish.namespace(kind)
        for name in wish.names:
            try:
                items.append((kind, await client.get(kind, name, place)))
            except ApiError as problem:
                failed += 1
                say(from_server(problem))
        if not wish.names:
            found = await client.list(kind, place, label_selector=wish.selector, field_selector=wish.fields)
            items += (
                (kind, {"apiVersion": kind.api_version, "kind": kind.kind, **i}) for i in found["items"]
            )
    is_single = len(wish.names) == 1 and len(wish.kinds) == 1
    if items or not failed:
        {"json": print_json, "yaml": print_yaml, "name": print_names}[output](items, is_single)
    return EXIT_FAILED if failed else 0
