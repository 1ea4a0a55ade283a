"""Configuration files that kube-scheduler accepts or refuses, each with what comes of it beside it (S2).

`configs/valid/NAME.yaml`: NAME.expected.yaml has `settings`, what the effective configuration says otherwise
than that of an empty file (a dash for what is not there), and `warnings`. `configs/invalid/NAME.yaml`:
NAME.expected.yaml lists the problems as (field, value, reason).

`python -m tests.unit.runtime.test_config_files` writes the results anew, after a change that is meant: read
the difference.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotage.plugins import default_registry
from pilotage.runtime.config import default_config, load_config
from pilotage.runtime.config_errors import ConfigError
from pilotage.runtime.config_write import effective_tree

FOLDER = Path(__file__).parent / "configs"
GONE = "-"


def files(folder: str) -> list[Path]:
    found = sorted((FOLDER / folder).iterdir())
    return [path for path in found if not path.name.endswith(".expected.yaml")]


def beside(path: Path) -> Path:
    return path.with_name(f"{path.stem}.expected.yaml")


def differences(new: Any, old: Any) -> Any:
    """The parts of `new` that are not as in `old`; named items are compared by their names."""
    new, old = _by_name(new), _by_name(old)
    if not (isinstance(new, dict) and isinstance(old, dict)):
        return new
    changed = {
        name: differences(value, old[name]) if name in old else value
        for name, value in new.items()
        if name not in old or old[name] != value
    }
    return {**changed, **{name: GONE for name in old if name not in new}}


def _by_name(tree: Any) -> Any:
    """Args and profiles by name. The order of plugins is what counts, so those lists stay lists."""
    for key, inner in (("schedulerName", None), ("name", "args")):
        if (
            isinstance(tree, list)
            and tree
            and all(key in item and (not inner or inner in item) for item in tree)
        ):
            return {item[key]: item[inner] if inner else item for item in tree}
    return tree


def outcome(path: Path) -> Any:
    """What comes of a valid file."""
    loaded = load_config(path, default_registry())
    standard = effective_tree(default_config(default_registry()))
    tree = effective_tree(loaded)
    first = standard["profiles"][0]
    profiles = {
        one["schedulerName"]: differences(one, {**first, "schedulerName": one["schedulerName"]})
        for one in tree.pop("profiles")
    }
    standard.pop("profiles")
    return {
        "settings": {**differences(tree, standard), "profiles": profiles},
        "warnings": list(loaded.warnings),
    }


def problems(path: Path) -> list[list[Any]]:
    with pytest.raises(ConfigError) as caught:
        load_config(path, default_registry())
    assert caught.value.source == str(path)
    # The names of all known plugins follow there: they are not this file's business.
    reasons = [one.reason.partition("; known ones are: ")[0] for one in caught.value.problems]
    return [
        [one.field, one.value, reason] for one, reason in zip(caught.value.problems, reasons, strict=True)
    ]


@pytest.mark.parametrize("path", files("valid"), ids=lambda path: path.stem)
def test_accepted(path: Path) -> None:
    assert outcome(path) == yaml.safe_load(beside(path).read_text())


@pytest.mark.parametrize("path", files("valid"), ids=lambda path: path.stem)
def test_what_is_written_is_read_back_the_same(path: Path) -> None:
    loaded = load_config(path, default_registry())
    again = load_config(effective_tree(loaded), default_registry())
    assert effective_tree(again) == effective_tree(loaded)


@pytest.mark.parametrize("path", files("invalid"), ids=lambda path: path.stem)
def test_refused(path: Path) -> None:
    assert problems(path) == yaml.safe_load(beside(path).read_text())


def test_there_are_enough() -> None:
    assert len(files("valid")) >= 40
    assert len(files("invalid")) >= 40


def write() -> None:
    for path in files("valid"):
        beside(path).write_text(yaml.safe_dump(outcome(path), sort_keys=False, width=110))
    for path in files("invalid"):
        beside(path).write_text(yaml.safe_dump(problems(path), default_flow_style=None, width=110))


if __name__ == "__main__":
    write()
