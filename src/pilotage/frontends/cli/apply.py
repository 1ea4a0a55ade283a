"""`pilotage apply`: server-side apply of manifests, each object reported."""

from __future__ import annotations

import msgspec
import rich_click as click

from pilotage.api.kinds import Kind
from pilotage.api.wire import APPLY_PATCH, Request
from pilotage.client.api import ApiClient, ApiError, Json
from pilotage.frontends.cli import EXIT_FAILED
from pilotage.frontends.cli.connection import call_api, from_server, kubeconfig_options
from pilotage.frontends.cli.failures import say
from pilotage.frontends.cli.manifests import read_manifests
from pilotage.frontends.cli.naming import full_name, kind_of, namespace_of, namespace_option

MANAGER = "pilotage-apply"
_NOT_FOUND = 404
filename_option = click.option(
    "-f", "--filename", "filenames", multiple=True, metavar="FILE", help="File, folder or - (repeatable)."
)


@click.command()
@filename_option
@namespace_option
@kubeconfig_options
def apply(
    filenames: tuple[str, ...], namespace: str | None, kubeconfig: str | None, context: str | None
) -> int:
    """Create or change the objects of manifests (server-side apply).

    Each object is reported; a refused one does not stop the others. Example: `pilotage apply -f web.yaml`.
    """
    if not filenames:
        raise click.UsageError("name what to apply: `pilotage apply -f FILE`")
    found = read_manifests(filenames)

    async def work(client: ApiClient, default: str) -> int:
        refused = 0
        for origin, document in found:
            try:
                click.echo(await _apply_one(client, document, namespace or default))
            except ApiError as problem:
                refused += 1
                say(f"{origin}: {from_server(problem)}")
            except click.ClickException as problem:
                refused += 1
                say(f"{origin}: {problem.format_message()}")
        return EXIT_FAILED if refused else 0

    return call_api(kubeconfig, context, work)


async def _apply_one(client: ApiClient, document: Json, default: str) -> str:
    """Applies one object and says what became of it."""
    kind = kind_of(document)
    place = namespace_of(kind, document, default)
    name = document["metadata"].get("name")
    if not name:
        created = await client.create(kind, document, place)
        return f"{full_name(kind)}/{created['metadata']['name']} created"
    before = await _version(client, kind, name, place)
    after = await _patch(client, kind.object_path(place, name), document)
    if before is None:
        return f"{full_name(kind)}/{name} created"
    done = "unchanged" if before == after["metadata"]["resourceVersion"] else "configured"
    return f"{full_name(kind)}/{name} {done}"


async def _patch(client: ApiClient, path: str, document: Json) -> Json:
    """A misspelt field is refused, not dropped."""
    query = {"fieldManager": MANAGER, "force": "true", "fieldValidation": "Strict"}
    answer = await client.raw(Request("PATCH", path, query, msgspec.json.encode(document), APPLY_PATCH))
    applied: Json = msgspec.json.decode(answer.body, type=Json)
    return applied


async def _version(client: ApiClient, kind: Kind, name: str, namespace: str) -> str | None:
    """The object's resourceVersion, None when it does not exist."""
    try:
        found = await client.get(kind, name, namespace)
    except ApiError as problem:
        if problem.status == _NOT_FOUND:
            return None
        raise
    return str(found["metadata"]["resourceVersion"])
