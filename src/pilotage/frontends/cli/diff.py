"""`pilotage diff A.yaml B.yaml`: what two scheduler configurations decide differently on one cluster."""

from __future__ import annotations

import time

import msgspec
import rich_click as click

from pilotage.framework.profile import ProfileError
from pilotage.framework.registry import Registry
from pilotage.framework.settings import Settings
from pilotage.frontends.cli.snapshots import read_snapshot, settings_of, snapshot_options
from pilotage.frontends.diff.compare import Comparison, compare, is_scheduled_by, pending_pods
from pilotage.frontends.diff.report import document, lines
from pilotage.frontends.explain.text import show
from pilotage.frontends.snapshot.loading import load
from pilotage.frontends.snapshot.objects import Snapshot, SnapshotError
from pilotage.runtime.plugins_loading import PluginLoadError, build_registry
from pilotage.state.podinfo import PodInfo

EXIT_DIFFERENT = 1


class _TroubleError(click.ClickException):
    exit_code = 2


@click.command()
@click.argument("first", metavar="A.yaml")
@click.argument("second", metavar="B.yaml")
@snapshot_options
@click.option(
    "--all-pods",
    is_flag=True,
    help="Place every pod anew on the emptied cluster, oldest first.  [default: pending pods only]",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people or for machines (docs/reference/explain.md).",
)
def diff(
    first: str,
    second: str,
    dump: str | None,
    kubeconfig: str | None,
    context: str | None,
    all_pods: bool,
    output: str,
) -> int:
    """Show what two KubeSchedulerConfigurations decide differently on the same cluster. Nothing is written.

    Every pending pod is decided under both, as if it were the next one: compared are the nodes that can take
    it, the scores of each plugin, the node it goes to, the message and the preemption. With `--all-pods`
    every pod is placed anew, one after another, and later ones meet earlier ones where each side put them.

    Exit codes, as `diff` has them: 0 no difference, 1 something differs, 2 trouble.

    Example: `pilotage diff old.yaml new.yaml --dump cluster.json --all-pods`.
    """
    try:
        registry = build_registry()
        settings = (settings_of(first, registry), settings_of(second, registry))
        snapshot, _ = read_snapshot(dump, kubeconfig, context)
        found = _compared(snapshot, settings, registry, all_pods=all_pods)
    except click.UsageError:
        raise
    except click.ClickException as problem:
        raise _TroubleError(problem.format_message()) from None
    except (PluginLoadError, ProfileError, SnapshotError) as problem:
        raise _TroubleError(str(problem)) from None
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(document(found, (first, second))), indent=2))
    else:
        show(lines(found, (first, second), in_sequence=all_pods))
    return EXIT_DIFFERENT if found.differences else 0


def _compared(
    snapshot: Snapshot, settings: tuple[Settings, Settings], registry: Registry, *, all_pods: bool
) -> Comparison:
    names = {profile.scheduler_name for one in settings for profile in one.profiles}
    lifted = {
        pod.metadata.uid for pod in snapshot.pods() if all_pods and is_scheduled_by(names, PodInfo(pod))
    }
    now = time.time()
    engines = (
        load(snapshot, settings[0], registry, now, lifted),
        load(snapshot, settings[1], registry, now, lifted),
    )
    return compare(engines, pending_pods(engines), in_sequence=all_pods)
