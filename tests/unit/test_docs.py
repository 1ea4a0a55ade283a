"""What the documents say is tried: Python is run, YAML is read, commands and links exist."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
import rich_click as click
import yaml

from pilotage.frontends.cli.group import pilotage
from pilotage.frontends.cli.reference import reference
from pilotage.frontends.local import load_nodes
from pilotage.plugins import default_registry
from pilotage.runtime.config import load_config

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name
)
def test_python_runs(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for code in blocks(page, "python"):
        module = ModuleType(page.stem)
        monkeypatch.setitem(sys.modules, page.stem, module)  # dataclasses look it up
        compiled = compile(code, str(page), "exec", dont_inherit=True)
        exec(compiled, module.__dict__)  # noqa: S102  # our own documents


def test_node_templates_are_accepted(tmp_path: Path) -> None:
    templates = blocks(DOCS / "reference" / "node-template.md", "yaml")
    assert len(templates) == 2
    counts = []
    for text in templates:
        file = tmp_path / "template.yaml"
        file.write_text(text)
        counts.append(len(load_nodes(None, file)))
    assert counts == [3, 8]


def test_configurations_are_accepted() -> None:
    registry = default_registry()
    registry.register("Quiet", registry_stand_in())
    guides = (DOCS / "guides" / "plugins.md", DOCS / "guides" / "extenders.md")
    pages = (DOCS / "reference" / "configuration.md", *guides)
    for text in (text for page in pages for text in blocks(page, "yaml")):
        assert load_config(yaml.safe_load(text), registry).warnings == ()


def registry_stand_in() -> type:
    """The plugin of the guide."""
    names: dict[str, type] = {}
    exec(blocks(DOCS / "guides" / "plugins.md", "python")[0], names)  # noqa: S102  # our own document
    return names["Quiet"]


def test_the_command_reference_is_current() -> None:
    """Write it again: `.venv/bin/python -m pilotage.frontends.cli.reference > docs/reference/cli.md`"""
    assert (DOCS / "reference" / "cli.md").read_text() == reference()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_options_exist(page: Path) -> None:
    for command, rest in re.findall(r"(?:^|[`/ ])pilotage ([a-z]+)([^`\n#|]*)", "\n".join(_code(page))):
        found = pilotage.commands.get(command) or pilotage.get_command(None, command)
        assert found is not None, command
        if isinstance(found, click.Group):
            found = found.commands.get(rest.split()[0], found) if rest.split() else found
        options = (one for parameter in found.params for one in (*parameter.opts, *parameter.secondary_opts))
        known = {*options, "--help"}
        for option in re.findall(r"(?<![\w-])--[a-z-]+", rest):
            assert option in known, f"pilotage {command} {option}"


def _code(page: Path) -> list[str]:
    """Code blocks and what stands between backticks."""
    text = page.read_text()
    whole = re.findall(r"^```\w*\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [*whole, *(f"`{inline}`" for inline in re.findall(r"`([^`\n]+)`", text))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_files_exist(page: Path) -> None:
    text = page.read_text()
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / link).exists(), link
    for path in re.findall(r"`((?:docs|examples|scripts|tests)/[\w./-]+)`", text):
        assert (ROOT / path).exists(), path
