"""The view with all nominated pods at once equals the one that takes them one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotage.state.additions import with_nominated
from pilotage.state.overlay import NodeOverlay
from pilotage.state.view import HostPort
from statekit import cluster, node, pod

NODES = ["n0", "n1", "n2", "gone"]
nominated = st.lists(
    st.tuples(st.sampled_from(NODES), st.integers(0, 3), st.integers(0, 2), st.booleans()), max_size=8
)
WANTED = HostPort("0.0.0.0", "TCP", 80)


@given(nominated=nominated, priority=st.integers(0, 3))
def test_all_at_once_or_one_by_one(nominated: list[tuple[str, int, int, bool]], priority: int) -> None:
    state = cluster(*(node(name) for name in NODES[:3]), pod("there", {"cpu": "1"}, on="n0"))
    view = state.nodes
    mine = pod("mine", {"cpu": "1"}, priority=priority)
    one_by_one, beside = NodeOverlay(view), set()
    state.nominations.add(mine, "n0")
    for index, (name, level, cpu, has_port) in enumerate(nominated):
        ports = [{"containerPort": 80, "hostPort": 80}] if has_port else []
        container = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}, "ports": ports}
        info = pod(f"p{index}", containers=[container], priority=level)
        state.nominations.add(info, name)
    for name in state.nominations.nodes():
        row = view.row(name)
        for other in state.nominations.on_node(name):
            if row is not None and other.priority >= priority and other.uid != mine.uid:
                one_by_one.add_pod(row, other)
                beside.add(row)
    both = with_nominated(state.nominations, view, mine)
    assert (both is None) == (not beside)
    if both is None:
        return
    assert set(both.rows.tolist()) == beside
    assert (both.requested == one_by_one.requested).all()
    assert (both.nonzero_requested == one_by_one.nonzero_requested).all()
    assert (both.pod_count == one_by_one.pod_count).all()
    assert ((both.revision == -1) == (one_by_one.revision == -1)).all()
    assert set(both.port_conflicts(WANTED)) == set(one_by_one.port_conflicts(WANTED))
    for row in range(view.n_rows):
        assert [p.uid for p in both.pods(row)] == [p.uid for p in one_by_one.pods(row)]
