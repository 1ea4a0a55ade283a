"""`pilotage explain pod NAME`: why a pod is pending, or why it is where it is."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from typing import Any

import msgspec
import rich_click as click

from pilotage.api.pods import Pod
from pilotage.framework.profile import ProfileError
from pilotage.framework.registry import Registry
from pilotage.framework.settings import Settings
from pilotage.frontends.cli.naming import find_kind, namespace_option, split_names
from pilotage.frontends.cli.schedulerpage import ask_scheduler
from pilotage.frontends.cli.snapshots import read_snapshot, settings_of, snapshot_options
from pilotage.frontends.explain.analysis import UnknownProfileError
from pilotage.frontends.explain.analysis import explain as explain_pod
from pilotage.frontends.explain.document import document
from pilotage.frontends.explain.model import Explanation
from pilotage.frontends.explain.resize import Resize, explain_resize
from pilotage.frontends.explain.state import pod_state
from pilotage.frontends.explain.text import lines, show
from pilotage.frontends.snapshot.loading import load, unbound
from pilotage.frontends.snapshot.objects import Snapshot, SnapshotError
from pilotage.runtime.plugins_loading import PluginLoadError, build_registry
from pilotage.state.podinfo import PodInfo

EXIT_PENDING = 3


@click.command()
@click.argument("resource", metavar="pod")
@click.argument("names", nargs=-1, metavar="NAME")
@namespace_option
@snapshot_options
@click.option(
    "--config",
    type=click.Path(),
    default=None,
    metavar="FILE",
    help="The KubeSchedulerConfiguration to decide with.  [default: the default profile]",
)
@click.option(
    "--scheduler",
    default=None,
    metavar="URL",
    help="A running Pilotage's health address (http://127.0.0.1:PORT): adds its queue and the pod's story.",
)
@click.option("--node", "nodes", multiple=True, metavar="NAME", help="All about this node (repeatable).")
@click.option("--all", "everything", is_flag=True, help="Every node by itself, not in groups.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people or for machines (docs/reference/explain.md).",
)
def explain(
    resource: str,
    names: tuple[str, ...],
    namespace: str | None,
    dump: str | None,
    kubeconfig: str | None,
    context: str | None,
    config: str | None,
    scheduler: str | None,
    nodes: tuple[str, ...],
    everything: bool,
    output: str,
) -> int:
    """Tell why a pod is pending, or why it is where it is, node by node and plugin by plugin.

    The pod is decided with the real filters and scores on a copy of the cluster; nothing is written. Shown
    are the first filter that rejects each node with the numbers behind it, the scores of nodes that can take
    the pod, and what would have to change. A bound pod is decided anew, as if it were not there;
    of a resize that waits is told what it lacks on its node and who would go for it.

    Exit codes: 0 the pod is bound or can be scheduled, 3 it is pending and no node can take it (or it is
    gated), 1 failed, 2 wrong usage.

    Example: `pilotage explain pod web-1 -n shop`, `pilotage explain pod web-1 --dump cluster.json --node n3`.
    """
    name = _name(resource, names)
    if everything and nodes:
        raise click.UsageError("--all and --node exclude each other")
    snapshot, default = read_snapshot(dump, kubeconfig, context, (namespace, name))
    place = namespace or default
    found, resize = _explained(snapshot, place, name, config, nodes)
    queue = ask_scheduler(scheduler, place, name) if scheduler else None
    _show(found, queue, nodes, resize, everything=everything, output=output)
    return 0 if found.is_bound or found.is_schedulable else EXIT_PENDING


def _name(resource: str, names: tuple[str, ...]) -> str:
    word, wanted = split_names(resource, names)
    if find_kind(word).resource != "pods":
        raise click.UsageError(f'only pods are explained, not "{word}": `pilotage explain pod NAME`')
    if len(wanted) != 1:
        raise click.UsageError("name one pod: `pilotage explain pod NAME`")
    return wanted[0]


def _explained(
    snapshot: Snapshot, namespace: str, name: str, config: str | None, nodes: Collection[str]
) -> tuple[Explanation, Resize | None]:
    pod = _find(snapshot, namespace, name)
    try:
        registry = build_registry()
        settings = settings_of(config, registry)
        engine = load(snapshot, settings, registry, time.time(), {pod.metadata.uid})
        for node in nodes:
            if engine.cluster.nodes.row(node) is None:
                raise click.ClickException(f"there is no node {node}")
        state = pod_state(pod, snapshot.events_about(namespace, name))
        notes = (*snapshot.notes, *_left_out(settings))
        found = explain_pod(engine, PodInfo(_pending(pod)), state, notes, nodes)
        return found, _resize(snapshot, settings, registry, pod)
    except (PluginLoadError, ProfileError, UnknownProfileError) as problem:
        raise click.ClickException(str(problem)) from None


def _resize(snapshot: Snapshot, settings: Settings, registry: Registry, pod: Pod) -> Resize | None:
    """In an engine of its own, where the pod is on its node."""
    if not PodInfo(pod).is_resizing and pod.condition("PodResizePending") is None:
        return None
    return explain_resize(load(snapshot, settings, registry, time.time()), pod, snapshot.events)


def _left_out(settings: Settings) -> Iterator[str]:
    if settings.extenders:
        addresses = ", ".join(extender.url_prefix for extender in settings.extenders)
        yield f"HTTP extenders are not asked, they may reject more nodes or prefer others: {addresses}"


def _pending(pod: Pod) -> Pod:
    return unbound(pod) if pod.spec.node_name else pod


def _find(snapshot: Snapshot, namespace: str, name: str) -> Pod:
    try:
        pod = snapshot.pod(namespace, name)
    except SnapshotError as problem:
        raise click.ClickException(str(problem)) from None
    if pod is None:
        raise click.ClickException(f"there is no unfinished pod {name} in namespace {namespace}")
    if pod.is_terminal:
        raise click.ClickException(f"pod {namespace}/{name} has finished ({pod.status.phase})")
    return pod


def _show(
    found: Explanation,
    queue: dict[str, Any] | None,
    nodes: Collection[str],
    resize: Resize | None,
    *,
    everything: bool,
    output: str,
) -> None:
    if output == "json":
        tree = document(found, queue, nodes or None, resize)
        click.echo(msgspec.json.format(msgspec.json.encode(tree), indent=2))
    else:
        show(lines(found, queue, is_complete=everything, nodes=nodes, resize=resize))
