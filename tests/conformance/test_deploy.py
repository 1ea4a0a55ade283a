"""What `deploy/` ships: rights, safety, flags that exist, a configuration that loads, and the chart."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import pilotage
from pilotage.frontends.cli.run import run
from pilotage.plugins import default_registry
from pilotage.runtime.config import load_settings
from pilotage.testing.harness import Harness

ROOT = Path(__file__).parents[2]
DEPLOY, CHART = ROOT / "deploy", ROOT / "deploy" / "helm" / "pilotage"
Tree = dict[str, Any]
Key = tuple[str, str]


def objects(text: str) -> dict[Key, Tree]:
    return {(tree["kind"], tree["metadata"]["name"]): tree for tree in yaml.safe_load_all(text) if tree}


def shipped() -> dict[Key, Tree]:
    return objects("\n---\n".join((DEPLOY / name).read_text() for name in ("rbac.yaml", "pilotage.yaml")))


def pod_spec(tree: Tree) -> Tree:
    spec: Tree = tree["spec"]["template"]["spec"]
    return spec


def helm() -> str:
    """The binary from the control plane's folder or PATH."""
    folders = [os.environ.get("KUBEBUILDER_ASSETS", ""), *map(str, sorted(ROOT.glob(".controlplane/*")))]
    places = [str(Path(folder) / "helm") for folder in folders if folder] + [shutil.which("helm") or ""]
    found = next((place for place in places if place and os.access(place, os.X_OK)), None)
    if found is None:
        pytest.skip("no helm: run `make controlplane`, or put one on PATH")
    return found


def rendered(*values: str) -> dict[Key, Tree]:
    command = [helm(), "template", "pilotage", str(CHART), "-n", "kube-system", "--kube-version", "1.37.0"]
    for value in values:
        command += ["--set", value]
    return objects(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_the_deployment_is_locked_down() -> None:
    spec = pod_spec(shipped()["Deployment", "pilotage"])
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"startupProbe", "livenessProbe", "readinessProbe"} <= set(container)
    assert container["image"].endswith(f":{pilotage.__version__}")


def test_two_replicas_elect_a_leader_whose_lease_the_role_allows() -> None:
    found = shipped()
    assert found["Deployment", "pilotage"]["spec"]["replicas"] == 2
    config = yaml.safe_load(found["ConfigMap", "pilotage"]["data"]["scheduler.yaml"])
    election = config["leaderElection"]
    assert election["leaderElect"] is True
    role = found["Role", "pilotage-leader-election"]
    assert role["metadata"]["namespace"] == election["resourceNamespace"]
    assert any(election["resourceName"] in rule.get("resourceNames", ()) for rule in role["rules"])


def test_its_configuration_loads_and_its_flags_exist() -> None:
    found = shipped()
    config = yaml.safe_load(found["ConfigMap", "pilotage"]["data"]["scheduler.yaml"])
    settings = load_settings(config, default_registry())
    assert [profile.scheduler_name for profile in settings.profiles] == ["pilotage"]
    (container,) = pod_spec(found["Deployment", "pilotage"])["containers"]
    known = {option for parameter in run.params for option in parameter.opts}
    assert {arg.partition("=")[0] for arg in container["args"]} <= known


def test_every_object_is_one_that_an_api_server_takes() -> None:
    kinds = {
        "ConfigMap": "configmaps",
        "Deployment": "deployments.apps",
        "PodDisruptionBudget": "poddisruptionbudgets.policy",
        "Service": "services",
        "NetworkPolicy": "networkpolicies.networking.k8s.io",
        "ServiceAccount": "serviceaccounts",
        "ClusterRole": "clusterroles.rbac.authorization.k8s.io",
        "ClusterRoleBinding": "clusterrolebindings.rbac.authorization.k8s.io",
        "Role": "roles.rbac.authorization.k8s.io",
        "RoleBinding": "rolebindings.rbac.authorization.k8s.io",
    }
    with Harness(seed=1, scheduler=False, services=None) as h:
        for (kind, name), tree in shipped().items():
            h.create(tree)
            assert h.get(kinds[kind], name, tree["metadata"].get("namespace", ""))["kind"] == kind


def test_the_chart_with_its_defaults_is_the_plain_manifests() -> None:
    made, plain = rendered(), shipped()
    assert set(made) == set(plain)
    del made["Deployment", "pilotage"]["spec"]["template"]["metadata"]["annotations"]
    # The chart allows the lease it uses; the plain role also that of kube-scheduler, for taking its place.
    for found in (made, plain):
        found["Role", "pilotage-leader-election"]["rules"][1]["resourceNames"] = []
    for key in plain:
        assert made[key] == plain[key], key


def test_the_chart_takes_the_place_of_kube_scheduler() -> None:
    made = rendered("schedulerName=default-scheduler", "leaseName=kube-scheduler")
    config = yaml.safe_load(made["ConfigMap", "pilotage"]["data"]["scheduler.yaml"])
    assert config["profiles"] == [{"schedulerName": "default-scheduler"}]
    assert config["leaderElection"]["resourceName"] == "kube-scheduler"
    role = made["Role", "pilotage-leader-election"]
    assert role["rules"][1]["resourceNames"] == ["kube-scheduler"]


def test_values_reach_the_objects() -> None:
    made = rendered(
        "metrics.serviceMonitor.enabled=true",
        "nodeSelector.disk=ssd",
        "tolerations[0].operator=Exists",
        "extraArgs={--v=4}",
        "image.tag=1.2.3",
    )
    monitor, plain = made["ServiceMonitor", "pilotage"], (DEPLOY / "servicemonitor.yaml").read_text()
    assert monitor == yaml.safe_load(plain)
    spec = pod_spec(made["Deployment", "pilotage"])
    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["containers"][0]["args"][-1] == "--v=4"
    assert spec["containers"][0]["image"] == "pilotage:1.2.3"


def test_what_is_switched_off_is_not_there() -> None:
    made = rendered("metrics.enabled=false", "networkPolicy.enabled=false", "podDisruptionBudget=null")
    kinds = {kind for kind, _ in made}
    assert not kinds & {"Service", "NetworkPolicy", "PodDisruptionBudget", "ServiceMonitor"}
    args = pod_spec(made["Deployment", "pilotage"])["containers"][0]["args"]
    assert "--health-host=127.0.0.1" in args


@pytest.mark.parametrize("value", ["replicas=0", "leaseName=", "metrics.enabled=perhaps", "replica=3"])
def test_values_that_make_no_sense_are_refused(value: str) -> None:
    command = [helm(), "template", "x", str(CHART), "--kube-version", "1.37.0", "--set", value]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert value.partition("=")[0].partition(".")[0] in done.stderr


def test_the_charts_version_is_the_packages() -> None:
    chart: Mapping[str, Any] = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == pilotage.__version__
