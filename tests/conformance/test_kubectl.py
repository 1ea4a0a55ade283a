"""A kubectl session against the embedded cluster: the verbs that people use, with what they print.

One cluster for the whole file, tests in the order of a session. Where a scheduler would act the test binds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterkit import Http, Kubectl, eventually, kubectl_program
from pilotage.localcluster.process import ServerProcess

kubectl_program()
pytestmark = [pytest.mark.network, pytest.mark.slow]

NODE = """
apiVersion: v1
kind: Node
metadata:
  name: {name}
  labels: {{zone: {zone}}}
status:
  capacity: {{cpu: "8", memory: 16Gi, pods: "110"}}
"""
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: registry.example/web:1
        env: [{name: MODE, value: a}]
        resources: {requests: {cpu: 100m, memory: 64Mi}}
      - name: side
        image: registry.example/side:1
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess.start() as server:
        yield server


@pytest.fixture(scope="module")
def http(server: ServerProcess) -> Http:
    return Http(server)


@pytest.fixture(scope="module")
def kubectl(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    home = tmp_path_factory.mktemp("home")
    return Kubectl(server.write_kubeconfig(home / "config"), home)


def column(table: str, name: str) -> list[str]:
    """The cells under a header of kubectl's output."""
    lines = table.splitlines()
    start = lines[0].index(name)
    return [line[start:].split("  ")[0].strip() for line in lines[1:]]


def running(kubectl: Kubectl, http: Http, selector: str, count: int, node: str = "n1") -> None:
    def all_run() -> bool:
        http.bind_all(node)
        out = kubectl("get", "pods", "-l", selector, "-o", "jsonpath={.items[*].status.phase}")
        return out.split() == ["Running"] * count

    eventually(all_run, f"{count} pods {selector} run")


def test_version_and_resources(kubectl: Kubectl) -> None:
    version = json.loads(kubectl("version", "-o", "json"))
    assert version["serverVersion"]["gitVersion"].startswith("v1.")
    resources = kubectl("api-resources")
    for name in ("pods", "nodes", "deployments", "poddisruptionbudgets", "leases", "resourceclaims"):
        assert any(line.startswith(f"{name} ") for line in resources.splitlines()), name
    assert "apps/v1" in kubectl("api-versions").splitlines()
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"


def test_create_nodes_and_see_them_get_ready(kubectl: Kubectl) -> None:
    for name, zone in (("n1", "a"), ("n2", "b")):
        assert (
            kubectl("create", "-f", "-", stdin=NODE.format(name=name, zone=zone)) == f"node/{name} created\n"
        )
    assert "condition met" in kubectl("wait", "--for=condition=Ready", "node/n1", "node/n2", "--timeout=20s")
    wide = kubectl("get", "nodes", "-o", "wide")
    assert column(wide, "NAME") == ["n1", "n2"]
    assert column(wide, "STATUS") == ["Ready", "Ready"]
    assert "OS-IMAGE" in wide
    assert column(kubectl("get", "no", "-l", "zone=b"), "NAME") == ["n2"]
    assert "already exists" in kubectl.fails("create", "-f", "-", stdin=NODE.format(name="n1", zone="a"))


def test_namespaces(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "team")
    assert column(kubectl("get", "ns"), "NAME") == [
        "default",
        "kube-node-lease",
        "kube-public",
        "kube-system",
        "team",
    ]
    assert column(kubectl("get", "ns", "team"), "STATUS") == ["Active"]
    assert 'namespaces "nowhere" not found' in kubectl.fails("create", "cm", "x", "-n", "nowhere")


def test_apply_creates_then_is_unchanged(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", stdin=WEB) == "deployment.apps/web created\n"
    assert kubectl("apply", "-f", "-", stdin=WEB) == "deployment.apps/web unchanged\n"


def test_pods_are_pending_then_run(kubectl: Kubectl, http: Http) -> None:
    eventually(lambda: len(kubectl("get", "pods", "-o", "name").split()) == 2, "two pods exist")
    assert set(column(kubectl("get", "pods"), "STATUS")) == {"Pending"}
    running(kubectl, http, "app=web", 2)
    wide = kubectl("get", "pods", "-o", "wide")
    assert set(column(wide, "READY")) == {"2/2"}
    assert set(column(wide, "NODE ")) == {"n1"}
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    eventually(lambda: column(kubectl("get", "deploy"), "READY") == ["2/2"], "the deployment counts its pods")
    assert column(kubectl("get", "rs"), "DESIRED") == ["2"]


def test_output_forms_and_selectors(kubectl: Kubectl) -> None:
    document = json.loads(kubectl("get", "pods", "-o", "json"))
    assert {item["spec"]["nodeName"] for item in document["items"]} == {"n1"}
    assert "nodeName: n1" in kubectl("get", "pods", "-o", "yaml")
    names = kubectl(
        "get", "pods", "-A", "--field-selector=spec.nodeName=n1,status.phase=Running", "-o", "name"
    )
    assert len(names.split()) == 2
    assert "No resources found" in kubectl.run("get", "pods", "-l", "app=other").stderr
    assert "ZONE" in kubectl("get", "nodes", "-L", "zone")
    assert column(kubectl("get", "nodes", "--show-labels"), "NAME") == ["n1", "n2"]
    assert len(kubectl("get", "pods", "--chunk-size=1", "-o", "name").split()) == 2
    assert column(kubectl("get", "pods", "--sort-by=.metadata.name"), "RESTARTS") == ["0", "0"]
    assert "not supported" in kubectl.fails("get", "pods", "--field-selector=spec.nonsense=x")
    assert 'pods "nobody" not found' in kubectl.fails("get", "pod", "nobody")
    assert "the server doesn't have a resource type" in kubectl.fails("get", "nonsense")


def test_describe(kubectl: Kubectl) -> None:
    pod = kubectl("describe", "pods", "-l", "app=web")
    for text in ("Node:             n1", "Status:           Running", "QoS Class:", "Burstable", "main:"):
        assert text in pod, text
    node = kubectl("describe", "node", "n1")
    for text in (
        "Ready            True",
        "Non-terminated Pods:          (2 in total)",
        "cpu                200m",
    ):
        assert text in node, text
    assert "2 desired" in kubectl("describe", "deployment", "web")


def test_apply_changes_keyed_lists_and_drops_what_is_gone(kubectl: Kubectl) -> None:
    changed = WEB.replace("value: a", "value: b")[: WEB.index("      - name: side")]
    assert kubectl("apply", "-f", "-", stdin=changed) == "deployment.apps/web configured\n"
    containers = json.loads(kubectl("get", "deploy", "web", "-o", "json"))["spec"]["template"]["spec"][
        "containers"
    ]
    assert [c["name"] for c in containers] == ["main"]
    assert containers[0]["env"] == [{"name": "MODE", "value": "b"}]
    assert "No resources" not in kubectl("diff", "-f", "-", stdin=changed)
    assert kubectl("apply", "-f", "-", stdin=WEB) == "deployment.apps/web configured\n"


def test_server_side_apply(kubectl: Kubectl) -> None:
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: '1'}\n"
    assert "serverside-applied" in kubectl("apply", "--server-side", "-f", "-", stdin=config)
    other = config.replace("'1'", "'2'")
    arguments = ("apply", "--server-side", "--field-manager=other", "-f", "-")
    assert 'conflict with "kubectl"' in kubectl.fails(*arguments, stdin=other)
    kubectl(*arguments, "--force-conflicts", stdin=other)
    assert kubectl("get", "cm", "c", "-o", "jsonpath={.data.a}") == "2"


def test_unknown_fields_are_refused_by_name(kubectl: Kubectl) -> None:
    wrong = WEB.replace("replicas: 2", "replicsa: 2")
    for verb in ("create", "apply"):
        complaint = kubectl.fails(verb, "-f", "-", stdin=wrong.replace("name: web", "name: wrong", 1))
        assert 'strict decoding error: unknown field "spec.replicsa"' in complaint
    assert (
        'unknown field "spec.replicsa"'
        in kubectl.run(
            "create",
            "--validate=warn",
            "--dry-run=server",
            "-f",
            "-",
            stdin=wrong.replace("name: web", "name: wrong", 1),
        ).stderr
    )
    bad = WEB.replace("cpu: 100m", "cpu: lots").replace("name: web", "name: wrong", 1)
    assert "is invalid" in kubectl.fails("create", "-f", "-", stdin=bad)


def test_label_annotate_patch(kubectl: Kubectl) -> None:
    assert "labeled" in kubectl("label", "deploy", "web", "tier=front")
    assert "annotated" in kubectl("annotate", "deploy", "web", "note=x")
    assert "patched" in kubectl("patch", "deploy", "web", "-p", '{"spec":{"minReadySeconds":1}}')
    assert "patched" in kubectl(
        "patch", "deploy", "web", "--type=merge", "-p", '{"spec":{"minReadySeconds":0}}'
    )
    patch = '[{"op":"remove","path":"/metadata/labels/tier"}]'
    assert "patched" in kubectl("patch", "deploy", "web", "--type=json", "-p", patch)
    meta = json.loads(kubectl("get", "deploy", "web", "-o", "json"))["metadata"]
    assert "tier" not in (meta.get("labels") or {})
    assert meta["annotations"]["note"] == "x"
    assert "unlabeled" in kubectl("label", "node", "n2", "zone-")
    assert "unchanged" not in kubectl("label", "node", "n2", "zone=b")


def test_taint_cordon_drain(kubectl: Kubectl) -> None:
    assert kubectl("taint", "nodes", "n2", "role=db:NoSchedule") == "node/n2 tainted\n"
    assert "role=db:NoSchedule" in kubectl("describe", "node", "n2")
    assert kubectl("taint", "nodes", "n2", "role-") == "node/n2 untainted\n"
    assert "cordoned" in kubectl("cordon", "n2")
    assert column(kubectl("get", "node", "n2"), "STATUS") == ["Ready,SchedulingDisabled"]
    assert "drained" in kubectl("drain", "n2", "--ignore-daemonsets")
    assert "uncordoned" in kubectl("uncordon", "n2")
    assert column(kubectl("get", "node", "n2"), "STATUS") == ["Ready"]


def test_scale(kubectl: Kubectl, http: Http) -> None:
    assert kubectl("scale", "deploy/web", "--replicas=3") == "deployment.apps/web scaled\n"
    eventually(
        lambda: column(kubectl("get", "deploy", "web"), "READY")[0].endswith("/3"), "three replicas wanted"
    )
    running(kubectl, http, "app=web", 3)
    assert "expected" in kubectl.fails("scale", "deploy/web", "--replicas=1", "--current-replicas=7").lower()


def test_resize_in_place(kubectl: Kubectl, http: Http) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
    meta = {"name": "grows", "labels": {"app": "grows"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}}
    kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    running(kubectl, http, "app=grows", 1)
    wish = json.dumps({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "200m"}}}]}})
    assert kubectl("patch", "pod", "grows", "--subresource", "resize", "-p", wish) == "pod/grows patched\n"
    asked = kubectl("get", "pod", "grows", "-o", "jsonpath={.spec.containers[0].resources.requests.cpu}")
    assert asked == "200m"
    less = json.dumps({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": None}}}]}})
    refused = kubectl.fails("patch", "pod", "grows", "--subresource", "resize", "-p", less)
    assert "resource requests cannot be removed" in refused
    kubectl("delete", "pod", "grows", "--now")


def test_watching(kubectl: Kubectl, http: Http) -> None:
    watcher = kubectl.start("get", "pods", "-w", "-l", "app=watched", "--no-headers")
    assert watcher.stdout is not None
    try:
        kubectl("run", "seen", "--image=registry.example/x:1", "-l", "app=watched")
        assert watcher.stdout.readline().split()[:3] == ["seen", "0/1", "Pending"]
        http.bind_all("n1")
        statuses = []
        while "Running" not in statuses:
            statuses.append(watcher.stdout.readline().split()[2])
        kubectl("delete", "pod", "seen", "--grace-period=1")
        while "Terminating" not in statuses:
            statuses.append(watcher.stdout.readline().split()[2])
    finally:
        watcher.terminate()
        watcher.wait(10)
        watcher.stdout.close()


def test_events(kubectl: Kubectl, http: Http) -> None:
    uid = kubectl("get", "deploy", "web", "-o", "jsonpath={.metadata.uid}")
    event = {
        "metadata": {"name": "web.1", "namespace": "default"},
        "regarding": {
            "kind": "Deployment",
            "name": "web",
            "namespace": "default",
            "apiVersion": "apps/v1",
            "uid": uid,
        },
        "reason": "Tested",
        "note": "A note for kubectl",
        "type": "Normal",
        "action": "Test",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "test",
        "reportingInstance": "t-1",
    }
    assert http.call("POST", "/apis/events.k8s.io/v1/namespaces/default/events", event)[0] == 201
    out = kubectl("get", "events", "--field-selector=reason=Tested")
    assert column(out, "OBJECT") == ["deployment/web"]
    assert "A note for kubectl" in out
    assert "A note for kubectl" in kubectl("describe", "deploy", "web")
    assert "A note for kubectl" in kubectl("events", "--for=deployment/web")


def test_generators(kubectl: Kubectl) -> None:
    for arguments in (
        ("create", "deployment", "made", "--image=registry.example/x:1"),
        ("expose", "deployment", "made", "--port=80"),
        ("create", "configmap", "made", "--from-literal=a=b"),
        ("create", "secret", "generic", "made", "--from-literal=a=b"),
        ("create", "pdb", "made", "--selector=app=made", "--min-available=1"),
        ("create", "priorityclass", "made", "--value=1000"),
        ("create", "job", "made", "--image=registry.example/x:1"),
        ("create", "cronjob", "made", "--image=registry.example/x:1", "--schedule=* * * * *"),
        ("create", "quota", "made", "--hard=cpu=1"),
        ("create", "serviceaccount", "made"),
        ("create", "role", "made", "--verb=get", "--resource=pods"),
    ):
        out = kubectl(*arguments)
        assert "created" in out or "exposed" in out, out
    assert column(kubectl("get", "pc", "made"), "VALUE") == ["1000"]
    assert column(kubectl("get", "svc", "made"), "PORT(S)") == ["80/TCP"]
    assert column(kubectl("get", "pdb", "made"), "MIN AVAILABLE") == ["1"]
    assert column(kubectl("get", "secret", "made"), "TYPE") == ["Opaque"]
    assert "made" in kubectl("get", "all")


def test_explain(kubectl: Kubectl) -> None:
    out = kubectl("explain", "pod.spec.tolerations")
    assert "tolerationSeconds" in out
    assert "<integer>" in out
    assert "KIND:       Deployment" in kubectl("explain", "deployment")
    assert "does not exist" in kubectl.fails("explain", "pod.nonsense")


def test_edit_and_replace(kubectl: Kubectl, tmp_path: Path) -> None:
    file = tmp_path / "cm.yaml"
    file.write_text(kubectl("get", "cm", "made", "-o", "yaml").replace("a: b", "a: c"))
    assert "replaced" in kubectl("replace", "-f", str(file))
    assert "Conflict" in kubectl.fails("replace", "-f", str(file))
    assert kubectl("get", "cm", "made", "-o", "jsonpath={.data.a}") == "c"


def test_streams_say_that_they_are_not_there(kubectl: Kubectl) -> None:
    pod = kubectl("get", "pods", "-l", "app=web", "-o", "name").split()[0]
    assert "simulated containers have no logs" in kubectl.fails("logs", pod, "-c", "main")


def test_delete_takes_everything_along(kubectl: Kubectl) -> None:
    assert 'deployment.apps "web" deleted' in kubectl("delete", "deploy", "web")
    eventually(lambda: not kubectl("get", "pods,rs", "-l", "app=web", "-o", "name"), "its pods are gone")
    assert "not found" in kubectl.fails("delete", "deploy", "web")
    kubectl("delete", "deploy", "web", "--ignore-not-found")
    kubectl("create", "cm", "inside", "-n", "team")
    assert 'namespace "team" deleted' in kubectl("delete", "ns", "team")
    assert "not found" in kubectl.fails("get", "ns", "team")
    assert 'node "n2" deleted' in kubectl("delete", "node", "n2")
    assert kubectl("delete", "pods", "--all", "--grace-period=0", "--force") is not None
