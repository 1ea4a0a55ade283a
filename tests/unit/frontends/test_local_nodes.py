"""Which nodes `pilotage up` makes of its options."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotage.frontends.local import load_nodes
from pilotage.localcluster.nodes import NodeTemplateError

POOLS = "zones: [a, b]\npools:\n- {name: big, count: 4, resources: {cpu: 16}}\n- {name: small}\n"
NODE = (
    "kind: Node\nmetadata: {name: gpu, labels: {kubernetes.io/arch: arm64}}\nstatus: {capacity: {cpu: 8}}\n"
)


def names(count: int | None, template: Path | None = None) -> list[str]:
    return [node["metadata"]["name"] for node in load_nodes(count, template)]


def test_counts(tmp_path: Path) -> None:
    pools, node = tmp_path / "pools.yaml", tmp_path / "node.yaml"
    pools.write_text(POOLS)
    node.write_text(NODE)
    assert names(None) == ["node-0", "node-1", "node-2"]
    assert names(0) == []
    assert names(1) == ["node-0"]
    assert names(None, pools) == ["big-0", "big-1", "big-2", "big-3", "small-0"]
    assert names(2, pools) == ["big-0", "big-1"]
    assert names(6, pools)[-1] == "big-0-1"
    assert names(None, node) == ["gpu-0", "gpu-1", "gpu-2"]
    assert names(0, pools) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "expected one document"),
        ("3\n", "expected one document"),
        (f"{NODE}---\n{NODE}", "expected one document"),
        ("a: [\n", r"not valid YAML: line 2"),
        ("pools: 3\n", "pools: expected a list"),
        ("kind: Pod\n", "kind: expected Node"),
    ],
)
def test_faults_name_the_file(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "template.yaml"
    file.write_text(text)
    with pytest.raises(NodeTemplateError, match=f"template.yaml: {complaint}"):
        load_nodes(None, file)
