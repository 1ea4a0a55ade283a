"""`pilotage get`, `apply` and `delete`, for people without kubectl."""

from __future__ import annotations

import rich_click as click

from pilotage.api.kinds import Kind, by_kind, find
from pilotage.client.api import ApiClient, ApiError, Json, PatchType
from pilotage.frontends.cli.connection import EXIT_FAILED, call_api, kubeconfig_options
from pilotage.frontends.cli.manifests import read_manifests
from pilotage.frontends.cli.tables import print_json, print_names, print_table, print_yaml, request_table

_NOT_FOUND = 404


def find_kind(word: str) -> Kind:
    """The kind that a plural, singular, short or kind name means; `deployments.apps` names the group too."""
    kind = find(word)
    if kind is None or not kind.is_stored:
        raise click.ClickException(f"the server doesn't have a resource type {word!r}")
    return kind


def kind_of(origin: str, document: Json) -> Kind:
    kind = by_kind(document["apiVersion"], document["kind"])
    if kind is None:
        raise click.ClickException(
            f"{origin}: no kind {document['kind']!r} in apiVersion {document['apiVersion']!r} is known here"
        )
    return kind


def namespace_of(kind: Kind, document: Json, namespace: str) -> str:
    return str(document["metadata"].get("namespace") or namespace) if kind.namespaced else ""


namespace_option = click.option("-n", "--namespace", default=None, help="Namespace (default: the context's).")


@click.command()
@click.argument("resource")
@click.argument("names", nargs=-1)
@namespace_option
@click.option("-A", "--all-namespaces", is_flag=True, help="List the objects of all namespaces.")
@click.option("-l", "--selector", default="", help="Label selector, e.g. app=web,tier!=db.")
@click.option("--field-selector", default="", help="Field selector, e.g. spec.nodeName=node-0.")
@click.option("-o", "--output", type=click.Choice(["table", "wide", "json", "yaml", "name"]), default="table")
@kubeconfig_options
def get(
    resource: str,
    names: tuple[str, ...],
    namespace: str | None,
    all_namespaces: bool,
    selector: str,
    field_selector: str,
    output: str,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Show objects, like `kubectl get`.

    Example: `pilotage get pods -A -o wide`, `pilotage get node node-0 -o yaml`.
    """
    word, _, single = resource.partition("/")
    kind = find_kind(word)
    wanted = (single, *names) if single else names

    async def work(client: ApiClient, default: str) -> None:
        place = "" if all_namespaces or not kind.namespaced else namespace or default
        if output in ("table", "wide"):
            tables = await request_table(client, kind, place, wanted, selector, field_selector)
            print_table(tables, wide=output == "wide", with_namespace=all_namespaces and kind.namespaced)
            return
        if wanted:
            items = [await client.get(kind, name, place) for name in wanted]
        else:
            answer = await client.list(kind, place, label_selector=selector, field_selector=field_selector)
            items = answer["items"]
        {"json": print_json, "yaml": print_yaml, "name": print_names}[output](kind, items, len(wanted) == 1)

    call_api(kubeconfig, context, work)


filename_option = click.option(
    "-f", "--filename", "filenames", multiple=True, required=True, help="File, folder or - (repeatable)."
)


@click.command()
@filename_option
@namespace_option
@kubeconfig_options
@click.pass_context
def apply(
    ctx: click.Context,
    filenames: tuple[str, ...],
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Create or change the objects of manifests (server-side apply).

    Each object is reported; a refused one does not stop the others. Example: `pilotage apply -f web.yaml`.
    """
    found = read_manifests(filenames)

    async def work(client: ApiClient, default: str) -> int:
        refused = 0
        for origin, document in found:
            try:
                click.echo(await _apply_one(client, origin, document, namespace or default))
            except (ApiError, click.ClickException) as problem:
                refused += 1
                click.echo(f"error: {origin}: {getattr(problem, 'message', problem)}", err=True)
        return refused

    if call_api(kubeconfig, context, work):
        ctx.exit(EXIT_FAILED)


async def _apply_one(client: ApiClient, origin: str, document: Json, namespace: str) -> str:
    kind = kind_of(origin, document)
    place = namespace_of(kind, document, namespace)
    name = document["metadata"].get("name")
    if not name:
        created = await client.create(kind, document, place)
        return f"{kind.singular}/{created['metadata']['name']} created"
    before = await _version(client, kind, name, place)
    after = await client.patch(
        kind, name, document, place, patch_type=PatchType.APPLY, field_manager="pilotage-apply", force=True
    )
    if before is None:
        return f"{kind.singular}/{name} created"
    same = before == after["metadata"]["resourceVersion"]
    return f"{kind.singular}/{name} {'unchanged' if same else 'configured'}"


async def _version(client: ApiClient, kind: Kind, name: str, namespace: str) -> str | None:
    try:
        found = await client.get(kind, name, namespace)
    except ApiError as problem:
        if problem.status == _NOT_FOUND:
            return None
        raise
    return str(found["metadata"]["resourceVersion"])


@click.command()
@click.argument("resource", required=False)
@click.argument("names", nargs=-1)
@click.option("-f", "--filename", "filenames", multiple=True, help="Delete the objects of these manifests.")
@namespace_option
@click.option("--grace-period", type=int, default=None, help="Seconds; 0 deletes at once.")
@click.option("--ignore-not-found", is_flag=True, help="An object that is gone already is no error.")
@kubeconfig_options
@click.pass_context
def delete(
    ctx: click.Context,
    resource: str | None,
    names: tuple[str, ...],
    filenames: tuple[str, ...],
    namespace: str | None,
    grace_period: int | None,
    ignore_not_found: bool,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Delete objects by name or by manifest. Example: `pilotage delete pod web`."""
    targets = _targets(resource, names, filenames)

    async def work(client: ApiClient, default: str) -> int:
        failed = 0
        for kind, name, own_namespace in targets:
            place = (own_namespace or namespace or default) if kind.namespaced else ""
            try:
                await client.delete(kind, name, place, grace_seconds=grace_period, propagation="Background")
                click.echo(f'{kind.singular} "{name}" deleted')
            except ApiError as problem:
                if not (ignore_not_found and problem.status == _NOT_FOUND):
                    failed += 1
                    click.echo(f"Error from server ({problem.reason}): {problem.message}", err=True)
        return failed

    if call_api(kubeconfig, context, work):
        ctx.exit(EXIT_FAILED)


def _targets(
    resource: str | None, names: tuple[str, ...], filenames: tuple[str, ...]
) -> list[tuple[Kind, str, str]]:
    if filenames:
        return [
            (
                kind_of(origin, document),
                document["metadata"]["name"],
                document["metadata"].get("namespace", ""),
            )
            for origin, document in read_manifests(filenames)
        ]
    word, _, single = (resource or "").partition("/")
    wanted = (single, *names) if single else names
    if not word or not wanted:
        raise click.UsageError("name what to delete: `pilotage delete KIND NAME...` or `-f FILE`")
    kind = find_kind(word)
    return [(kind, name, "") for name in wanted]
