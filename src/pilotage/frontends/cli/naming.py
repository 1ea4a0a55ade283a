"""From the words that people use to kinds, and from manifests to where their objects live."""

from __future__ import annotations

import rich_click as click

from pilotage.api.kinds import KINDS, Kind, by_kind, find
from pilotage.client.api import Json

namespace_option = click.option(
    "-n", "--namespace", default=None, metavar="NAME", help="Default: the context's namespace."
)
selector_option = click.option(
    "-l", "--selector", default="", metavar="LABELS", help="Label selector, e.g. app=web,tier!=db."
)


def full_name(kind: Kind) -> str:
    """`pod`, `deployment.apps`"""
    return f"{kind.singular}.{kind.group}" if kind.group else kind.singular


def find_kind(word: str) -> Kind:
    """The kind that a plural, singular, short or kind name means; `deployments.apps` names the group too."""
    kind = find(word)
    if kind is None or not kind.is_stored:
        raise click.ClickException(f'the server doesn\'t have a resource type "{word}"')
    return kind


def find_kinds(words: str) -> list[Kind]:
    """The same for `pods,nodes` and for a category such as `all`; each kind once."""
    found: dict[Kind, None] = {}
    for word in words.split(","):
        members = [kind for kind in KINDS if word in kind.categories and kind.is_stored]
        found |= dict.fromkeys(members or [find_kind(word)])
    return list(found)


def split_names(resource: str, names: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """(words, names) of `pod web db` and of `pod/web pod/db`. Raises UsageError for a mixture."""
    word, slash, name = resource.partition("/")
    if not slash:
        return resource, names
    pairs = [part.partition("/") for part in names]
    if not name or any(pair[0] != word or not pair[2] for pair in pairs):
        raise click.UsageError("give KIND NAME..., or KIND/NAME... all of one kind")
    return word, (name, *(pair[2] for pair in pairs))


def kind_of(document: Json) -> Kind:
    """The kind of a manifest's object."""
    kind = by_kind(document["apiVersion"], document["kind"])
    if kind is None or not kind.is_stored:
        raise click.ClickException(
            f'no matches for kind "{document["kind"]}" in version "{document["apiVersion"]}"'
        )
    return kind


def namespace_of(kind: Kind, document: Json, default: str) -> str:
    """Where a manifest's object lives; "" for kinds without namespaces."""
    return str(document["metadata"].get("namespace") or default) if kind.namespaced else ""
