"""Call types of packages and of `--pilotage-config`: found, put in the place of others, refused."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from pilotage.calls.base import BaseCallType
from pilotage.calls.pod_status_patch import PodStatusPatch
from pilotage.runtime.call_types_loading import (
    GROUP,
    CallTypeLoadError,
    CallTypeSource,
    added_types,
    call_types,
)
from pilotage.runtime.config_errors import ConfigError
from pilotage.runtime.flags import Flags, resolve
from pilotage.runtime.pilotage_config import load_pilotage_config

HEAD = {"apiVersion": "pilotage.dev/v1alpha1", "kind": "PilotageConfiguration"}
MODULE = """
from pilotage.calls.base import BaseCallType
from pilotage.calls.pod_status_patch import PodStatusPatch

class Mine(BaseCallType):
    name = "mine"
    def requests(self, call, base, now):
        return ()

class Quieter(PodStatusPatch):
    pass

class Bare:
    name = "bare"

class Nameless(BaseCallType):
    pass

class Raising(BaseCallType):
    def __init__(self):
        raise RuntimeError("no luck")

made = Mine()

def factory():
    return Mine()
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"types_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def source(module: str, attribute: str, replaces: str = "") -> CallTypeSource:
    return CallTypeSource(module, attribute, replaces, "callTypes[0].path")


def refused(*sources: CallTypeSource) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        added_types([], sources)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("attribute", ["Mine", "made", "factory"])
def test_a_class_an_instance_or_a_factory_will_do(module: str, attribute: str) -> None:
    (added,) = added_types([], [source(module, attribute)])
    found = call_types("host", [added]).find("mine")
    assert isinstance(found, BaseCallType)


def test_one_takes_the_place_of_another_where_the_file_says_so(module: str) -> None:
    added = added_types([], [source(module, "Quieter", "pod_status_patch")])
    found = call_types("host", added).find("pod_status_patch")
    assert type(found).__name__ == "Quieter"
    assert isinstance(found, PodStatusPatch)
    (told,) = refused(source(module, "Quieter"))
    assert "'pod_status_patch' is already implemented by PodStatusPatch" in told


@pytest.mark.parametrize(
    ("attribute", "replaces", "text"),
    [
        ("Missing", "", "cannot be loaded: AttributeError"),
        ("Bare", "", "call type 'bare' (Bare) lacks prepare, slot, lane"),
        ("Nameless", "", "Nameless: a call type needs a non-empty name"),
        ("Raising", "", "cannot be loaded: RuntimeError: no luck"),
        ("Mine", "pod_binding", "calls itself 'mine': what replaces another bears its name"),
        ("Mine", "mine", "no call type 'mine' to replace"),
    ],
)
def test_what_is_no_call_type_is_refused(module: str, attribute: str, replaces: str, text: str) -> None:
    (told,) = refused(source(module, attribute, replaces))
    assert text in told
    assert told.startswith("callTypes[0].")


def test_all_faults_are_told_at_once_and_a_name_is_given_once(module: str) -> None:
    told = refused(source("no_such_module", "X"), source(module, "Mine"), source(module, "made"))
    assert len(told) == 2
    assert "ModuleNotFoundError" in told[0]
    assert "'mine' is already implemented by Mine" in told[1]


def point(module: str, name: str, attribute: str) -> EntryPoint:
    return EntryPoint(name, f"{module}:{attribute}", GROUP)


def test_packages_offer_them_by_entry_points(module: str) -> None:
    (added,) = added_types([point(module, "mine", "Mine")])
    assert added.implementation.name == "mine"


@pytest.mark.parametrize(
    ("name", "attribute", "text"),
    [
        ("other", "Mine", "calls itself 'mine'"),
        ("pod_status_patch", "Quieter", "use replace()"),
        ("x", "Missing", "cannot be loaded from"),
    ],
)
def test_bad_packages_are_named(module: str, name: str, attribute: str, text: str) -> None:
    with pytest.raises(CallTypeLoadError, match=f'call type "{name}" of unknown package') as caught:
        added_types([point(module, name, attribute)])
    assert text in str(caught.value)


def test_the_file_names_them(tmp_path: Path, module: str) -> None:
    path = tmp_path / "pilotage.yaml"
    path.write_text(
        "apiVersion: pilotage.dev/v1alpha1\nkind: PilotageConfiguration\n"
        f"callTypes: [{{path: '{module}:Mine'}}]\n"
    )
    found = resolve(Flags(pilotage_config=str(path)))
    assert [one.implementation.name for one in found.pilotage.calls.types] == ["mine"]
    path.write_text(path.read_text().replace(":Mine", ":Nime"))
    with pytest.raises(ConfigError) as caught:
        resolve(Flags(pilotage_config=str(path)))
    assert caught.value.source == str(path)


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ({"path": "a.b"}, "callTypes[0].path"),
        ({"path": ""}, "callTypes[0].path"),
        ({"path": "a:B", "replaces": ""}, "callTypes[0].replaces"),
        ({"path": "a:B", "replace": "x"}, "callTypes[0].replace"),
    ],
)
def test_the_files_shape_is_checked(entry: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_pilotage_config({**HEAD, "callTypes": [entry]})
    assert any(field in str(problem) for problem in caught.value.problems)
