"""KubeSchedulerConfiguration: read as it is, expanded as kube-scheduler does, refused with reasons."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from pilotage.framework.plugin import Plugin
from pilotage.framework.registry import Registry
from pilotage.framework.settings import ExtenderTls, PluginRef
from pilotage.plugins import default_registry
from pilotage.runtime.config import ConfigError, default_settings, load_config, load_settings

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def config(**fields: Any) -> dict[str, Any]:
    return {**HEAD, **fields}


def profile(plugins: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return config(profiles=[{"plugins": plugins or {}, **fields}])


def enabled(*names: str, disabled: tuple[str, ...] = ()) -> dict[str, Any]:
    entries = [
        {"name": n.split(":")[0], "weight": int(n.split(":")[1])} if ":" in n else {"name": n} for n in names
    ]
    return {"enabled": entries, "disabled": [{"name": name} for name in disabled]}


def refused(tree: dict[str, Any], registry: Registry | None = None) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        load_settings(tree, registry)
    return {problem.field: problem.reason for problem in caught.value.problems}


def names(tree: dict[str, Any], point: str, registry: Registry | None = None) -> list[str]:
    return [ref.name for ref in load_settings(tree, registry).profiles[0].points[point]]


def test_defaults() -> None:
    settings = default_settings()
    (only,) = settings.profiles
    assert only.scheduler_name == "default-scheduler"
    assert only.points["queueSort"] == (PluginRef("PrioritySort", 0),)
    assert [(r.name, r.weight) for r in only.points["score"]] == [
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
        ("NodeResourcesFit", 1),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("NodeResourcesBalancedAllocation", 1),
        ("ImageLocality", 1),
    ]
    assert only.args["InterPodAffinity"].hard_pod_affinity_weight == 1
    assert (settings.pod_initial_backoff, settings.pod_max_backoff) == (1.0, 10.0)
    assert (settings.qps, settings.burst, settings.percentage_of_nodes_to_score) == (50.0, 100, 0)


def test_plain_values() -> None:
    loaded = load_config(
        config(
            parallelism=4,
            percentageOfNodesToScore=30,
            podInitialBackoffSeconds=2,
            podMaxBackoffSeconds=20,
            clientConnection={"kubeconfig": "/k", "qps": 12.5, "burst": 7},
            leaderElection={"leaderElect": False, "leaseDuration": "1m30s"},
            profiles=[{"percentageOfNodesToScore": 70}],
        )
    )
    settings = loaded.settings
    assert (settings.pod_initial_backoff, settings.pod_max_backoff) == (2.0, 20.0)
    assert (settings.qps, settings.burst, loaded.client.kubeconfig) == (12.5, 7, "/k")
    assert settings.percentage_of_nodes_to_score == 30
    assert settings.profiles[0].percentage_of_nodes_to_score == 70
    assert (loaded.leader_election.leader_elect, loaded.leader_election.lease_duration) == (False, 90.0)


def test_yaml_file(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- schedulerName: my-scheduler\n"
        "  pluginConfig:\n  - name: NodeResourcesFit\n    args:\n"
        "      apiVersion: kubescheduler.config.k8s.io/v1\n      kind: NodeResourcesFitArgs\n"
        "      scoringStrategy: {type: MostAllocated}\n"
    )
    (only,) = load_settings(path).profiles
    assert only.scheduler_name == "my-scheduler"
    assert only.args["NodeResourcesFit"].scoring_strategy.type == "MostAllocated"
    assert load_settings(str(path)).profiles[0].scheduler_name == "my-scheduler"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [", "is not valid YAML: line 1, column 5"),
        ("kind: x\nkind: y\n", '"kind" stands twice'),
        ("- 1\n", "must be a mapping, found list"),
        ("a: 1\n---\nb: 1\n", "must be one document, found 2"),
        ("", "must be a mapping, found NoneType"),
    ],
)
def test_files_that_are_no_configuration(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=f"(?s)scheduler.yaml: 1 problem.*{reason}"):
        load_settings(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.yaml.*\n.*cannot be read: No such file"):
        load_settings(tmp_path / "nothing.yaml")


def test_other_kinds_are_told_so() -> None:
    assert refused({"apiVersion": "v1", "kind": "Pod", "spec": {}}) == {
        "apiVersion": "must be kubescheduler.config.k8s.io/v1",
        "kind": "must be KubeSchedulerConfiguration",
    }


def test_unknown_fields_are_named_by_path_all_at_once() -> None:
    tree = config(paralelism=1, profiles=[{"plugins": {"Score": {}}, "pluginConfig": [{"nam": "x"}]}])
    assert refused(tree) == {
        "paralelism": "unknown field",
        "profiles[0].plugins.Score": "unknown field, did you mean score?",
        "profiles[0].pluginConfig[0].nam": "unknown field",
    }


def test_wrong_type_is_named_by_path_and_value() -> None:
    with pytest.raises(
        ConfigError, match=r"profiles\[0\].schedulerName: 7: expected `str \| null`, got `int`"
    ):
        load_settings(config(profiles=[{"schedulerName": 7}]))


def test_all_broken_rules_are_reported_together() -> None:
    tree = config(
        parallelism=0,
        percentageOfNodesToScore=101,
        podInitialBackoffSeconds=0,
        podMaxBackoffSeconds=-1,
        clientConnection={"burst": -1},
        leaderElection={
            "leaseDuration": "5s",
            "renewDeadline": "2s",
            "retryPeriod": "x",
            "resourceLock": "endpoints",
        },
        profiles=[{"percentageOfNodesToScore": -1}],
    )
    assert set(refused(tree)) == {
        "parallelism",
        "percentageOfNodesToScore",
        "podInitialBackoffSeconds",
        "podMaxBackoffSeconds",
        "clientConnection.burst",
        "leaderElection.retryPeriod",
        "leaderElection.renewDeadline",
        "leaderElection.resourceLock",
        "profiles[0].percentageOfNodesToScore",
    }


def test_initial_backoff_alone_above_the_default_maximum_is_refused() -> None:
    assert "podMaxBackoffSeconds" in refused(config(podInitialBackoffSeconds=11))


def test_multi_point_replaces_in_place_drops_and_appends() -> None:
    extra = default_registry()
    extra.register("Extra", type("Extra", (Plugin,), {"score": lambda *_: 0, "filter": lambda *_: None}))
    plugins = {"multiPoint": enabled("Extra:7", "NodeAffinity:9", disabled=("ImageLocality",))}
    score = load_settings(profile(plugins), extra).profiles[0].points["score"]
    assert [(ref.name, ref.weight) for ref in score] == [
        ("TaintToleration", 3),
        ("NodeAffinity", 9),
        ("NodeResourcesFit", 1),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("NodeResourcesBalancedAllocation", 1),
        ("Extra", 7),
    ]
    assert names(profile(plugins), "filter", extra)[-1] == "Extra"


def test_default_that_is_disabled_and_enabled_goes_to_the_end() -> None:
    plugins = {"multiPoint": enabled("TaintToleration:5", disabled=("TaintToleration",))}
    assert load_settings(profile(plugins)).profiles[0].points["score"][-1] == PluginRef("TaintToleration", 5)


def test_order_at_a_point() -> None:
    extra = default_registry()
    extra.register("OnlyHere", type("OnlyHere", (Plugin,), {"score": lambda *_: 0}))
    plugins = {
        "score": enabled("OnlyHere", "ImageLocality:4", "NodeAffinity", disabled=("PodTopologySpread",))
    }
    score = load_settings(profile(plugins), extra).profiles[0].points["score"]
    assert [ref.name for ref in score] == [
        "ImageLocality",
        "NodeAffinity",
        "TaintToleration",
        "NodeResourcesFit",
        "InterPodAffinity",
        "NodeResourcesBalancedAllocation",
        "OnlyHere",
    ]
    assert score[0].weight == 4
    assert score[1].weight == 0  # counts as 1, not as the weight of multiPoint


def test_star_disables_all_defaults_of_a_point() -> None:
    plugins = {"score": enabled("NodeResourcesFit:1", disabled=("*",))}
    assert names(profile(plugins), "score") == ["NodeResourcesFit"]
    assert len(names(profile(plugins), "filter")) > 3


def test_star_at_multi_point_leaves_what_is_listed_and_the_guard() -> None:
    plugins = {"multiPoint": enabled("PrioritySort", "DefaultBinder", "NodeName", disabled=("*",))}
    assert names(profile(plugins), "filter") == ["NodeName"]
    assert names(profile(plugins), "score") == []
    assert names(profile(plugins), "preFilter") == ["NotBuiltYet"]


def test_queue_sort_and_bind_are_needed() -> None:
    assert refused(profile({"multiPoint": enabled(disabled=("*",))})) == {
        "profiles[0].plugins.queueSort": "exactly one plugin must be enabled, found 0",
        "profiles[0].plugins.bind": "at least one plugin must be enabled",
    }


def test_broken_plugin_lists() -> None:
    plugins = {
        "score": enabled("Nope", "NodePorts", "ImageLocality", "ImageLocality", "TaintToleration:-1"),
        "preScore": enabled("TaintToleration"),
    }
    where = "profiles[0].plugins.score"
    found = refused(profile(plugins))
    assert set(found) == {f"{where}.enabled[{i}].name" for i in range(2)} | {
        f"{where}.enabled[3].name",
        f"{where}.enabled[4].weight",
    }
    assert found[f"{where}.enabled[0].name"].startswith("unknown plugin; known ones are: DefaultBinder, ")
    assert found[f"{where}.enabled[1].name"] == "does not implement score"
    assert found[f"{where}.enabled[3].name"] == "enabled twice at score"


def test_plugins_not_built_yet_are_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    tree = profile(
        {"permit": enabled("GangScheduling"), "filter": enabled(disabled=("VolumeZone", "Nope"))},
        pluginConfig=[{"name": "GangScheduling", "args": {"some": 3}}],
    )
    with caplog.at_level(logging.WARNING):
        assert load_settings(tree).profiles[0].points["permit"] == ()
    assert len(caplog.messages) == 3
    assert 'plugin "GangScheduling" is not built yet and is left out' in caplog.text
    assert 'plugin "GangScheduling" is not built yet; its args are not used' in caplog.text
    assert 'no plugin is named "Nope"' in caplog.text


def test_several_profiles() -> None:
    settings = load_settings(config(profiles=[{"schedulerName": "a"}, {"schedulerName": "b"}]))
    assert [p.scheduler_name for p in settings.profiles] == ["a", "b"]
    assert refused(config(profiles=[{}, {"schedulerName": "b"}, {"schedulerName": "b"}])) == {
        "profiles[0].schedulerName": "each of several profiles needs a name",
        "profiles[2].schedulerName": "is the name of another profile",
    }


def test_all_profiles_sort_the_queue_alike() -> None:
    extra = default_registry()
    extra.register("Other", type("Other", (Plugin,), {"sort_key": lambda *_: 0}))
    other = {"queueSort": enabled("Other", disabled=("*",))}
    tree = config(profiles=[{"schedulerName": "a"}, {"schedulerName": "b", "plugins": other}])
    assert refused(tree, extra) == {
        "profiles[1].plugins.queueSort": "must be the same in all profiles (PrioritySort in the first)"
    }


ARGS = "profiles[0].pluginConfig[0].args"


@pytest.mark.parametrize(
    ("name", "args", "field"),
    [
        ("InterPodAffinity", {"hardPodAffinityWeight": 101}, "hardPodAffinityWeight"),
        ("InterPodAffinity", {"hardPodAfinityWeight": 1}, "hardPodAfinityWeight"),
        ("InterPodAffinity", {"hardPodAffinityWeight": "1"}, "hardPodAffinityWeight"),
        ("InterPodAffinity", {"kind": "NodeAffinityArgs"}, "kind"),
        ("InterPodAffinity", {"apiVersion": "v1"}, "apiVersion"),
        ("VolumeBinding", {"bindTimeoutSeconds": -1}, "bindTimeoutSeconds"),
        ("DynamicResources", {"filterTimeout": "-1s"}, "filterTimeout"),
        ("DefaultPreemption", {"minCandidateNodesPercentage": 101}, "minCandidateNodesPercentage"),
        ("DefaultPreemption", {"minCandidateNodesAbsolute": -1}, "minCandidateNodesAbsolute"),
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            "minCandidateNodesPercentage",
        ),
        ("NodeResourcesFit", {"scoringStrategy": {"type": "Best"}}, "scoringStrategy.type"),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"resources": [{"name": "cpu", "weight": 101}]}},
            "scoringStrategy.resources[0].weight",
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
            "scoringStrategy.requestedToCapacityRatio.shape",
        ),
        ("NodeResourcesFit", {"ignoredResources": ["a b"]}, "ignoredResources[0]"),
        ("NodeResourcesFit", {"ignoredResourceGroups": ["a.b/c"]}, "ignoredResourceGroups[0]"),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu", "weight": 2}]},
            "resources[0].weight",
        ),
        ("PodTopologySpread", {"defaultingType": "Some"}, "defaultingType"),
        (
            "PodTopologySpread",
            {
                "defaultingType": "List",
                "defaultConstraints": [
                    {"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway"}
                ],
            },
            "defaultConstraints[0].maxSkew",
        ),
        (
            "NodeAffinity",
            {
                "addedAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpresions": []}]
                    }
                }
            },
            "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpresions",
        ),
    ],
)
def test_broken_args(name: str, args: dict[str, Any], field: str) -> None:
    assert set(refused(profile(pluginConfig=[{"name": name, "args": args}]))) == {f"{ARGS}.{field}"}


def test_args_are_given_once() -> None:
    entries = [{"name": "NodeAffinity"}, {"name": "NodeAffinity"}]
    assert refused(profile(pluginConfig=entries)) == {"profiles[0].pluginConfig[1].name": "has args twice"}


def test_args_that_nobody_reads_are_told() -> None:
    """kube-scheduler takes them for those of a plugin that is not enabled."""
    loaded = load_config(profile(pluginConfig=[{"name": "Nope"}, {"name": "NodeName", "args": {"some": 1}}]))
    assert loaded.warnings == (
        'profiles[0].pluginConfig[0]: plugin "Nope" is not known; its args are not used',
        'profiles[0].pluginConfig[1]: plugin "NodeName" takes no args; its args are not used',
    )


def test_args_of_foreign_plugins_are_handed_over_as_they_are() -> None:
    extra = default_registry()
    extra.register("Extra", type("Extra", (Plugin,), {"filter": lambda *_: None}))
    tree = profile({"filter": enabled("Extra")}, pluginConfig=[{"name": "Extra", "args": {"any": [1]}}])
    assert load_settings(tree, extra).profiles[0].args["Extra"] == {"any": [1]}


def test_extenders() -> None:
    managed = [{"name": "example.com/fpga", "ignoredByScheduler": True}, {"name": "example.com/gpu"}]
    settings = load_settings(
        config(
            extenders=[
                {"urlPrefix": "http://x", "filterVerb": "f", "managedResources": managed},
                {
                    "urlPrefix": "https://y",
                    "enableHTTPS": True,
                    "httpTimeout": "300ms",
                    "tlsConfig": {"caData": "UEVN", "serverName": "y"},
                },
            ]
        )
    )
    first, second = settings.extenders
    assert (first.filter_verb, first.http_timeout, first.ignorable) == ("f", 5.0, False)
    assert [one.name for one in first.managed_resources] == ["example.com/fpga", "example.com/gpu"]
    assert (second.http_timeout, second.tls) == (0.3, ExtenderTls(server_name="y", ca_data=b"PEM"))
    assert settings.profiles[0].args["NodeResourcesFit"].ignored_resources == ("example.com/fpga",)


def test_gates_change_rules_and_points() -> None:
    shape = {"shape": [{"utilization": 0, "score": 0}]}
    tree = profile(pluginConfig=[{"name": "VolumeBinding", "args": shape}])
    assert refused(tree) == {f"{ARGS}.shape": "needs the feature gate StorageCapacityScoring"}
    settings = load_settings(tree, gates={"StorageCapacityScoring": True})
    assert settings.gates["StorageCapacityScoring"] is True
    assert default_settings().gates["StorageCapacityScoring"] is False


def test_yaml_of_kube_scheduler_with_every_field_is_accepted() -> None:
    tree = config(
        parallelism=16,
        enableProfiling=True,
        enableContentionProfiling=True,
        delayCacheUntilActive=False,
        percentageOfNodesToScore=0,
        podInitialBackoffSeconds=1,
        podMaxBackoffSeconds=10,
        clientConnection={
            "kubeconfig": "",
            "acceptContentTypes": "",
            "contentType": "application/vnd.kubernetes.protobuf",
            "qps": 50,
            "burst": 100,
        },
        leaderElection={
            "leaderElect": True,
            "leaseDuration": "15s",
            "renewDeadline": "10s",
            "retryPeriod": "2s",
            "resourceLock": "leases",
            "resourceName": "kube-scheduler",
            "resourceNamespace": "kube-system",
        },
        extenders=[],
        profiles=[
            {
                "schedulerName": "default-scheduler",
                "plugins": {
                    "multiPoint": enabled(
                        *(f"{ref}" for ref in default_registry().names() if ref != "NotBuiltYet")
                    ),
                    "placementGenerate": {},
                },
                "pluginConfig": [
                    {"name": "DefaultPreemption", "args": {"minCandidateNodesPercentage": 10}},
                    {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 600}},
                    {"name": "NodeAffinity", "args": {"kind": "NodeAffinityArgs"}},
                ],
            }
        ],
    )
    assert load_config(tree).settings.profiles[0].scheduler_name == "default-scheduler"
