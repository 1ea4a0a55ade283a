"""The laws of the cluster state as code: every array against a rebuild from nodes and pods."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from pilotage.state.nodes import NodeTable
from pilotage.state.podinfo import PodInfo


def check_cluster(
    nodes: NodeTable,
    pods: Mapping[str, PodInfo],
    node_of: Mapping[str, str],
    assumed: Collection[str],
    orphans: Mapping[str, Mapping[str, PodInfo]],
) -> None:
    """Raises AssertionError where a law is broken."""
    check_table(nodes)
    counted = {info.uid: nodes.name(row) for row in nodes.live_rows for info in nodes.pods(int(row))}
    for name, waiting in orphans.items():
        assert waiting, f"empty list of waiting pods for node {name}"
        assert nodes.row(name) is None, f"pods wait for node {name}, which is known"
        counted.update(dict.fromkeys(waiting, name))
    assert counted == dict(node_of), "pods counted and pods placed differ"
    assert set(assumed) <= node_of.keys(), "an assumed pod is counted nowhere"
    for uid, info in pods.items():
        expected = info.node_name or (node_of.get(uid, "") if uid in assumed else "")
        assert node_of.get(uid, "") == expected, f"{info.key} is counted on {node_of.get(uid)!r}"


def check_table(nodes: NodeTable) -> None:
    """Compares the table with a new one built from its nodes and pods."""
    rebuilt = NodeTable()
    for name in nodes.names():
        row = nodes.row(name)
        assert row is not None
        node = nodes.node(row)
        assert node.metadata.name == name, f"row {row} holds {node.metadata.name}, not {name}"
        _compare_row(nodes, row, rebuilt, _copy_row(nodes, row, rebuilt))
    _check_dead_rows(nodes)
    assert nodes.n_nodes == len(nodes.live_rows) == rebuilt.n_nodes


def _copy_row(nodes: NodeTable, row: int, target: NodeTable) -> int:
    copy = target.upsert(nodes.node(row), nodes.defect(row))
    for info in nodes.pods(row):
        target.add_pod(copy, info)
    return copy


def _compare_row(nodes: NodeTable, row: int, rebuilt: NodeTable, copy: int) -> None:
    name = nodes.name(row)
    for resource in nodes.resources:
        column, other = nodes.column(resource), rebuilt.column(resource)
        for array, expected in (
            (nodes.allocatable, rebuilt.allocatable),
            (nodes.requested, rebuilt.requested),
        ):
            value = 0 if other is None else expected[copy, other]
            assert array[row, column] == value, f"{name}: {resource} {array[row, column]}, rebuilt {value}"
    assert (nodes.nonzero_requested[row] == rebuilt.nonzero_requested[copy]).all(), f"{name}: non-zero sums"
    for attribute in ("alive", "pod_count", "allowed_pods", "unschedulable", "defective"):
        value, expected = getattr(nodes, attribute)[row], getattr(rebuilt, attribute)[copy]
        assert value == expected, f"{name}: {attribute} {value}, rebuilt {expected}"
    assert nodes.taints_of(nodes.taint_set[row]) == rebuilt.taints_of(rebuilt.taint_set[copy])
    _compare_labels(nodes, row)
    assert nodes.ports_on(row) == rebuilt.ports_on(copy), f"{name}: host ports"
    assert nodes.images_on(row) == rebuilt.images_on(copy), f"{name}: images"


def _compare_labels(nodes: NodeTable, row: int) -> None:
    labels = nodes.node(row).metadata.labels or {}
    for key in nodes.label_keys():
        code = int(nodes.label_column(key)[row])
        value = None if code < 0 else nodes.label_value(key, code)
        assert value == labels.get(key), f"{nodes.name(row)}: label {key} is {value!r}"


def _check_dead_rows(nodes: NodeTable) -> None:
    dead = np.flatnonzero(~nodes.alive)
    for array in (nodes.allocatable, nodes.requested, nodes.nonzero_requested):
        assert not array[dead].any(), "a dead row holds amounts"
    assert not nodes.pod_count[dead].any(), "a dead row counts pods"
    for row in dead:
        assert not nodes.ports_on(int(row)), "a dead row holds host ports"
        assert not nodes.images_on(int(row)), "a dead row holds images"
    assert len(dead) + nodes.n_nodes == nodes.n_rows
