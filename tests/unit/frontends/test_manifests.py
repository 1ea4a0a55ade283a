"""Manifests: files, folders, standard input, Lists, several documents; every fault names its place."""

from __future__ import annotations

import io
from pathlib import Path

import click
import pytest

from pilotage.frontends.cli.manifests import read_manifests

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\n"


def names(*paths: str) -> list[str]:
    return [tree["metadata"]["name"] for _, tree in read_manifests(paths)]


def test_several_documents_lists_and_json(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    items = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "c"}}'
    file.write_text(
        f"{POD % 'a'}---\n---\n# nothing\n---\n{POD % 'b'}---\n"
        f'{{"apiVersion": "v1", "kind": "List", "items": [{items}]}}\n'
    )
    assert names(str(file)) == ["a", "b", "c"]


def test_a_folder_in_the_order_of_its_names(tmp_path: Path) -> None:
    for name, text in (("b.yml", POD % "b"), ("a.yaml", POD % "a"), ("c.json", "{"), ("d.txt", "x: [")):
        (tmp_path / name).write_text(text)
    with pytest.raises(click.ClickException, match=r"c\.json: not valid YAML: line 1"):
        names(str(tmp_path))
    (tmp_path / "c.json").unlink()
    assert names(str(tmp_path)) == ["a", "b"]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(POD % "x"))
    assert [(origin, tree["metadata"]["name"]) for origin, tree in read_manifests(("-",))] == [
        ("standard input", "x")
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no objects found"),
        ("# nothing\n", "no objects found"),
        ("a: [\n", r"not valid YAML: line \d+, column \d+"),
        ("a: 1\na: 2\n", "key 'a' stands twice"),
        ("? [a]\n: b\n", "not valid YAML"),
        ("3\n", "an object was expected, found 3"),
        ("- a\n", "an object was expected"),
        ("kind: Pod\n", "apiVersion: missing"),
        ("apiVersion: v1\n", "kind: missing"),
        ("apiVersion: 1\nkind: Pod\n", r"apiVersion: must be a text, found 1 \(write \"1\"\)"),
        ("apiVersion: v1\nkind: Pod\n", "metadata: missing in Pod"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {}\n", r"metadata\.name: missing in Pod"),
        (POD % 5, r"metadata\.name: must be a text, found 5"),
        (POD % "no", r"metadata\.name: must be a text, found False"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: 1}\n", r"metadata\.namespace"),
        ("!!python/object/apply:os.getcwd []\n", "not valid YAML"),
    ],
)
def test_what_is_wrong_is_one_line_with_the_file(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(click.ClickException, match=complaint) as caught:
        read_manifests((str(file),))
    assert "bad.yaml" in caught.value.message
    assert "\n" not in caught.value.message


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "folder").mkdir()
    for path, complaint in (
        ("nowhere.yaml", "No such file"),
        ("binary.yaml", "is no text"),
        ("folder", r"no \.yaml"),
    ):
        with pytest.raises(click.ClickException, match=complaint):
            read_manifests((str(tmp_path / path),))


def test_texts_that_yaml_would_turn_into_something_else(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: 2026-01-01, generateName: x}\n"
        "data: {time: 12:30, int: 012, big: 0x1F, float: 1.5, yes: true, date: 2026-01-01T00:00:00Z}\n"
    )
    [(_, tree)] = read_manifests((str(file),))
    assert tree["metadata"]["name"] == "2026-01-01"
    assert tree["data"] == {
        "time": "12:30",
        "int": 10,
        "big": 31,
        "float": 1.5,
        True: True,
        "date": "2026-01-01T00:00:00Z",
    }


def test_large_files_are_read_by_the_same_rules(tmp_path: Path) -> None:
    """They go through another parser."""
    one = (
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n"
        f"  annotations: {{day: 2026-01-01, mode: 0755, note: {'x' * 30_000}}}\n---\n"
    )
    file = tmp_path / "large.yaml"
    file.write_text(one * 10)
    found = [tree for _, tree in read_manifests((str(file),))]
    assert len(found) == 10
    assert found[-1]["metadata"]["annotations"] == {"day": "2026-01-01", "mode": 0o755, "note": "x" * 30_000}
    file.write_text(f"{one * 10}kind: Pod\nkind: Pod\n")
    with pytest.raises(click.ClickException, match=r"large.yaml: not valid YAML: line 62, .* stands twice"):
        read_manifests((str(file),))
