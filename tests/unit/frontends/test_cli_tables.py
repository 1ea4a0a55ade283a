"""Tables of a server as text; YAML, JSON and names without what nobody reads."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from pilotage.api.kinds import by_resource
from pilotage.frontends.cli.tables import TablePrinter, print_json, print_names, print_yaml

PODS, NODES = by_resource("pods"), by_resource("nodes")
DEPLOYMENTS = by_resource("deployments.apps")
assert PODS is not None
assert NODES is not None
assert DEPLOYMENTS is not None


def table(*rows: tuple[str, Any], columns: bool = True) -> dict[str, Any]:
    definitions = [{"name": "Name", "priority": 0}, {"name": "Node", "priority": 1}, {"name": "Age"}]
    return {
        "columnDefinitions": definitions if columns else None,
        "rows": [
            {"cells": [name, node, "5s"], "object": {"metadata": {"name": name, "namespace": "shop"}}}
            for name, node in rows
        ],
    }


def printer(**options: bool) -> TablePrinter:
    return TablePrinter(**{"wide": False, "with_namespace": False, "with_kind": False, **options})


def test_plain_and_wide(capsys: pytest.CaptureFixture[str]) -> None:
    printer().show(PODS, [table(("web", "n1"), ("database", None))])
    assert capsys.readouterr().out == "NAME       AGE\nweb        5s\ndatabase   5s\n"
    printer(wide=True).show(PODS, [table(("web", None)), table(("db", 7))])
    assert capsys.readouterr().out == "NAME   NODE   AGE\nweb           5s\ndb     7      5s\n"


def test_namespaces_only_where_there_are_some(capsys: pytest.CaptureFixture[str]) -> None:
    printer(with_namespace=True).show(PODS, [table(("web", "n1"))])
    assert capsys.readouterr().out == "NAMESPACE   NAME   AGE\nshop        web    5s\n"
    printer(with_namespace=True).show(NODES, [table(("n1", ""))])
    assert capsys.readouterr().out == "NAME   AGE\nn1     5s\n"


def test_several_kinds_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    several = printer(with_kind=True)
    several.show(PODS, [table()])
    several.show(PODS, [table(("web", "n1"))])
    several.show(DEPLOYMENTS, [table(("web", ""))])
    assert capsys.readouterr().out == (
        "NAME      AGE\npod/web   5s\n\nNAME                  AGE\ndeployment.apps/web   5s\n"
    )
    assert several.rows == 2


def test_rows_of_a_watch_keep_the_columns(capsys: pytest.CaptureFixture[str]) -> None:
    watching = printer()
    watching.show(PODS, [table()])
    assert capsys.readouterr().out == ""
    watching.more(PODS, table(("web", "n1")))
    watching.more(PODS, table(("a", "n1"), columns=False))
    watching.more(PODS, table(("database", "n1"), columns=False))
    watching.more(PODS, table(("a", "n1"), columns=False))
    assert capsys.readouterr().out == ("NAME   AGE\nweb    5s\na      5s\ndatabase   5s\na          5s\n")


def item(name: str) -> tuple[Any, dict[str, Any]]:
    metadata = {"name": name, "managedFields": [{"manager": "x"}], "labels": {"é": "1"}}
    return PODS, {"kind": "Pod", "metadata": metadata, "apiVersion": "v1"}


def test_documents(capsys: pytest.CaptureFixture[str]) -> None:
    print_yaml([item("a")], True)
    text = capsys.readouterr().out
    assert text.startswith("apiVersion: v1\nkind: Pod\nmetadata:\n")
    assert yaml.safe_load(text)["metadata"] == {"name": "a", "labels": {"é": "1"}}
    print_yaml([(PODS, {"metadata": {}, "message": "a reason " * 30 + "end"})], True)
    assert "a reason end\n" in capsys.readouterr().out
    print_json([item("a"), item("b")], False)
    listed = json.loads(capsys.readouterr().out)
    assert (listed["kind"], [tree["metadata"]["name"] for tree in listed["items"]]) == ("List", ["a", "b"])
    assert "managedFields" not in listed["items"][0]["metadata"]
    print_names([item("a"), (DEPLOYMENTS, item("b")[1])], False)
    assert capsys.readouterr().out == "pod/a\ndeployment.apps/b\n"
