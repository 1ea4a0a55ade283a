"""Words for kinds, names in both of kubectl's forms."""

from __future__ import annotations

import click
import pytest

from pilotage.frontends.cli.naming import find_kind, find_kinds, full_name, kind_of, namespace_of, split_names


@pytest.mark.parametrize(
    ("word", "resource"),
    [
        ("pods", "pods"),
        ("pod", "pods"),
        ("po", "pods"),
        ("Pod", "pods"),
        ("deploy", "deployments.apps"),
        ("deployments.apps", "deployments.apps"),
        ("pdb", "poddisruptionbudgets.policy"),
        ("ev", "events"),
        ("pc", "priorityclasses.scheduling.k8s.io"),
    ],
)
def test_a_kind_by_any_of_its_names(word: str, resource: str) -> None:
    assert find_kind(word).resource == resource


@pytest.mark.parametrize("word", ["", "poods", "binding", "selfsubjectaccessreviews"])
def test_no_such_kind(word: str) -> None:
    with pytest.raises(click.ClickException, match=f'resource type "{word}"'):
        find_kind(word)


def test_several_kinds_and_categories() -> None:
    assert [kind.resource for kind in find_kinds("nodes,po,pods")] == ["nodes", "pods"]
    everything = [kind.resource for kind in find_kinds("all")]
    assert {"pods", "services", "deployments.apps", "replicasets.apps"} <= set(everything)
    assert "configmaps" not in everything


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("pods", ()), ("pods", ())),
        (("pod", ("a", "b")), ("pod", ("a", "b"))),
        (("pod/a", ()), ("pod", ("a",))),
        (("pod/a", ("pod/b",)), ("pod", ("a", "b"))),
    ],
)
def test_names(given: tuple[str, tuple[str, ...]], expected: tuple[str, tuple[str, ...]]) -> None:
    assert split_names(*given) == expected


@pytest.mark.parametrize(
    "given", [("pod/", ()), ("pod/a", ("b",)), ("pod/a", ("node/b",)), ("pod/a", ("pod/",))]
)
def test_names_that_do_not_go_together(given: tuple[str, tuple[str, ...]]) -> None:
    with pytest.raises(click.UsageError, match="KIND/NAME"):
        split_names(*given)


def test_where_the_object_of_a_manifest_lives() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "namespace": "x"}}
    assert namespace_of(kind_of(pod), pod, "shop") == "shop"
    assert namespace_of(kind_of(pod), {"metadata": {"namespace": "own"}}, "shop") == "own"
    assert namespace_of(kind_of(node), node, "shop") == ""
    assert full_name(kind_of({"apiVersion": "apps/v1", "kind": "Deployment"})) == "deployment.apps"
    with pytest.raises(click.ClickException, match='kind "Pod" in version "v2"'):
        kind_of({"apiVersion": "v2", "kind": "Pod"})
    with pytest.raises(click.ClickException, match='kind "Binding"'):
        kind_of({"apiVersion": "v1", "kind": "Binding"})
