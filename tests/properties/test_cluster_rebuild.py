"""After any sequence of facts and own decisions every array equals a rebuild from the objects."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pilotage.state.cluster import ClusterState
from pilotage.state.overlay import NodeOverlay
from statekit import node, pod

NODE_NAMES = st.sampled_from(["n1", "n2", "n3", "n4"])
POD_NAMES = st.sampled_from(["a", "b", "c", "d", "e", "f"])
UIDS = st.sampled_from(["1", "2"])
VERSIONS = st.integers(1, 30).map(str)
ALLOCATABLE = st.sampled_from(
    [
        {},
        {"cpu": "oops"},
        {"cpu": 4, "memory": "8Gi", "pods": 10},
        {"cpu": "1500m", "pods": 3, "example.com/gpu": 2},
        {"ephemeral-storage": "1Ti", "memory": str(2**63), "pods": 1},
    ]
)
LABELS = st.dictionaries(st.sampled_from(["zone", "disk"]), st.sampled_from(["a", "b", ""]))
TAINTS = st.lists(
    st.fixed_dictionaries({"key": st.sampled_from(["x", "y"]), "effect": st.just("NoSchedule")}), max_size=2
)
IMAGES = st.dictionaries(st.sampled_from(["i:1", "i:2"]), st.integers(0, 10**9))
REQUESTS = st.sampled_from(
    [{}, {"cpu": "100m"}, {"cpu": 2, "memory": "1Gi"}, {"example.com/fpga": 1}, {"memory": "what"}]
)
PORTS = st.lists(
    st.fixed_dictionaries(
        {
            "hostPort": st.sampled_from([80, 443]),
            "hostIP": st.sampled_from(["", "10.0.0.1"]),
            "protocol": st.sampled_from(["TCP", "UDP"]),
        }
    ),
    max_size=2,
)


def container(requests: dict[str, Any], ports: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": "c", "image": "i", "resources": {"requests": requests}, "ports": ports}


class ClusterMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.state = ClusterState()
        self.state.nodes.label_column("zone")

    @rule(
        name=NODE_NAMES,
        uid=UIDS,
        version=VERSIONS,
        allocatable=ALLOCATABLE,
        labels=LABELS,
        taints=TAINTS,
        images=IMAGES,
        unschedulable=st.booleans(),
    )
    def upsert_node(self, name: str, **kwargs: Any) -> None:
        self.state.upsert_node(node(name, **kwargs))

    @rule(name=NODE_NAMES, uid=UIDS)
    def upsert_unreadable_node(self, name: str, uid: str) -> None:
        self.state.upsert_unreadable_node(name, uid, "broken")

    @rule(name=NODE_NAMES)
    def delete_node(self, name: str) -> None:
        self.state.delete_node(name)

    @rule(key=st.sampled_from(["zone", "disk"]))
    def ask_for_a_label(self, key: str) -> None:
        self.state.nodes.label_column(key)

    @rule(
        name=POD_NAMES,
        uid=UIDS,
        version=VERSIONS,
        on=st.one_of(st.just(""), NODE_NAMES),
        requests=REQUESTS,
        ports=PORTS,
        phase=st.sampled_from(["Running", "Running", "Succeeded"]),
        labels=LABELS,
    )
    def upsert_pod(
        self,
        name: str,
        uid: str,
        version: str,
        on: str,
        requests: dict[str, Any],
        ports: list[dict[str, Any]],
        phase: str,
        labels: dict[str, str],
    ) -> None:
        containers = [container(requests, ports)]
        self.state.upsert_pod(
            pod(
                name,
                on=on,
                uid=f"{name}-{uid}",
                version=version,
                containers=containers,
                labels=labels,
                status={"phase": phase},
            )
        )

    @rule(name=POD_NAMES, uid=UIDS)
    def delete_pod(self, name: str, uid: str) -> None:
        self.state.delete_pod(f"{name}-{uid}")

    @rule(data=st.data(), on=NODE_NAMES)
    def assume(self, data: st.DataObject, on: str) -> None:
        free = [info for info in self.state.pods() if not self.state.node_of(info.uid)]
        if free:
            info = data.draw(st.sampled_from(sorted(free, key=lambda i: i.uid)))
            self.state.assume(info, on)

    @rule(name=POD_NAMES, uid=UIDS)
    def forget(self, name: str, uid: str) -> None:
        self.state.forget(f"{name}-{uid}")

    @rule(data=st.data())
    def what_if(self, data: st.DataObject) -> None:
        """An overlay shows the change and leaves no trace."""
        rows = self.state.nodes.live_rows.tolist()
        if not rows:
            return
        row = data.draw(st.sampled_from(rows))
        overlay = NodeOverlay(self.state.nodes)
        for info in overlay.pods(row):
            overlay.remove_pod(row, info.uid)
        assert not overlay.requested[row].any()
        assert overlay.pod_count[row] == 0

    @invariant()
    def equals_a_rebuild(self) -> None:
        self.state.check_invariants()
        self.state.terms.check_invariants()


ClusterMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestClusterRebuild = ClusterMachine.TestCase
