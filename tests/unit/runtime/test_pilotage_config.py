from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotage.calls.lanes import DEFAULT_LIMITS, LaneLimits
from pilotage.calls.types import Lane
from pilotage.runtime.config import load_settings
from pilotage.runtime.config_errors import ConfigError
from pilotage.runtime.flags import Flags, resolve
from pilotage.runtime.pilotage_config import CallTuning, PilotageConfig, load_pilotage_config
from pilotage.runtime.plugins_loading import PluginSource, build_registry

HEAD = {"apiVersion": "pilotage.dev/v1alpha1", "kind": "PilotageConfiguration"}
CONFIG = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}

MODULE = """\
from pilotage.framework.plugin import Plugin

class Warm(Plugin):
    def score(self, cycle, pod, node):
        return 1

class Outer:
    class Cold(Warm):
        pass

class Nothing:
    pass

def factory(args, handle):
    return Warm(args, handle)
"""


def config(**fields: Any) -> PilotageConfig:
    return load_pilotage_config({**HEAD, **fields})


def refused(**fields: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        config(**fields)
    return [str(problem) for problem in caught.value.problems]


def test_defaults() -> None:
    assert config() == PilotageConfig()
    assert CallTuning().lanes == DEFAULT_LIMITS


def test_all_values() -> None:
    found = config(
        calls={
            "workers": 8,
            "lanes": {
                "bind": {"inFlight": 4},
                "status": {"inFlight": 2, "maxWaiting": 500, "maxAge": "1m"},
                "event": {"maxAge": "10s"},
            },
        },
        plugins=[{"path": "a.b:C"}, {"name": "Other", "path": "a.b:C.D"}],
    )
    assert found.calls.workers == 8
    assert found.calls.lanes[Lane.BIND] == LaneLimits(4)
    assert found.calls.lanes[Lane.VOLUME] == DEFAULT_LIMITS[Lane.VOLUME]
    assert found.calls.lanes[Lane.STATUS] == LaneLimits(2, 500, 60.0)
    assert found.calls.lanes[Lane.EVENT] == LaneLimits(4, 5000, 10.0)
    assert found.plugins == (
        PluginSource("C", "a.b", "C", "plugins[0].path"),
        PluginSource("Other", "a.b", "C.D", "plugins[1].path"),
    )


def test_all_faults_at_once() -> None:
    assert refused(
        calls={
            "workers": 1,
            "lanes": {
                "bind": {"inFlight": 0, "maxWaiting": 5, "maxAge": "1s"},
                "event": {"maxWaiting": 0, "maxAge": "x"},
                "status": {"maxAge": "-1s"},
            },
        },
        plugins=[{"path": "a.b"}, {"path": "a:C"}, {"path": "b:C"}, {"name": "x"}],
    ) == [
        "calls.workers: 1: must be 2 or more",
        "calls.lanes.bind.inFlight: 0: must be 1 or more",
        "calls.lanes.bind.maxWaiting: 5: only the lanes status and event may lose calls",
        'calls.lanes.bind.maxAge: "1s": only the lanes status and event may lose calls',
        'calls.lanes.status.maxAge: "-1s": must be more than 0',
        'calls.lanes.event.maxAge: "x": "x" is not a duration such as 15s or 1m30s',
        "calls.lanes.event.maxWaiting: 0: must be 1 or more",
        'plugins[0].path: "a.b": must be module:Class',
        'plugins[2].name: "C": is the name of another plugin',
        'plugins[3].path: "": must be module:Class',
    ]


def test_unknown_fields_and_other_kinds_are_refused() -> None:
    assert refused(call={}, calls={"lanes": {"events": {}}}) == [
        "call: unknown field",
        "calls.lanes.events: unknown field",
    ]
    with pytest.raises(ConfigError, match=r"must be pilotage\.dev/v1alpha1"):
        load_pilotage_config(CONFIG)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = "plugins_of_a_test"
    (tmp_path / f"{name}.py").write_text(MODULE)
    (tmp_path / "needs_more.py").write_text("import there_is_no_such_module\n")
    (tmp_path / "is_broken.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    for loaded in (name, "needs_more", "is_broken"):
        sys.modules.pop(loaded, None)


def source(name: str, module: str, attribute: str) -> PluginSource:
    return PluginSource(name, module, attribute, "plugins[0].path")


def test_a_class_by_path_is_a_plugin_like_others(module: str) -> None:
    registry = build_registry([], [source("Warm", module, "Warm"), source("Cold", module, "Outer.Cold")])
    tree = {**CONFIG, "profiles": [{"plugins": {"score": {"enabled": [{"name": "Cold", "weight": 4}]}}}]}
    score = load_settings(tree, registry).profiles[0].points["score"]
    assert (score[-1].name, score[-1].weight) == ("Cold", 4)
    assert registry.points("Warm") == {"score"}
    assert registry.build("Warm") is not None


@pytest.mark.parametrize(
    ("name", "attribute", "reason"),
    [
        ("nowhere", "C", 'there is no module "nowhere" on sys.path'),
        ("plugins_of_a_test.sub", "C", 'there is no module "plugins_of_a_test.sub" on sys.path'),
        ("needs_more", "C", "its module needs another one: No module named 'there_is_no_such_module'"),
        ("is_broken", "C", "its module cannot be imported: ZeroDivisionError: division by zero"),
        ("plugins_of_a_test", "Hot", 'module "plugins_of_a_test" has no "Hot"'),
        ("plugins_of_a_test", "factory", "is no class but a function"),
        ("plugins_of_a_test", "Nothing", "is no plugin: the class has no method of any extension point"),
    ],
)
def test_what_is_no_plugin_is_told(module: str, name: str, attribute: str, reason: str) -> None:
    del module
    with pytest.raises(ConfigError) as caught:
        build_registry([], [source("P", name, attribute)])
    (problem,) = caught.value.problems
    assert (problem.field, problem.value) == ("plugins[0].path", f"{name}:{attribute}")
    assert reason in problem.reason


def test_names_of_other_plugins_are_taken(module: str) -> None:
    with pytest.raises(ConfigError, match='"NodeName" is the name of a plugin of pilotage already'):
        build_registry([], [source("NodeName", module, "Warm")])


def test_the_command_reads_it(tmp_path: Path, module: str) -> None:
    path = tmp_path / "pilotage.yaml"
    path.write_text(
        "apiVersion: pilotage.dev/v1alpha1\nkind: PilotageConfiguration\n"
        f"calls: {{workers: 5}}\nplugins: [{{path: '{module}:Warm'}}]\n"
    )
    found = resolve(Flags(pilotage_config=str(path)))
    assert found.pilotage.calls.workers == 5
    assert "Warm" in found.registry
    path.write_text(path.read_text().replace(":Warm", ":Wram"))
    with pytest.raises(ConfigError) as caught:
        resolve(Flags(pilotage_config=str(path)))
    assert caught.value.source == str(path)


def test_the_example_and_the_page_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parents[3]
    example = load_pilotage_config(root / "examples" / "pilotage-config.yaml")
    page = (root / "docs" / "reference" / "pilotage-config.md").read_text().split("```yaml\n")[1]
    assert load_pilotage_config(yaml.safe_load(page.split("```")[0])) == example
    monkeypatch.syspath_prepend(root / "examples" / "ten_line_plugin")
    assert "CheapestNode" in build_registry([], example.plugins)
    sys.modules.pop("cheapest_node", None)
