"""The example plugin: installed with pip, found by its entry point, changing a placement where configured.

And packages that cannot be used: broken ones, and two plugins of one name (G7).
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from pilotage.framework.registry import Registry
from pilotage.runtime.config import ConfigError, load_settings
from pilotage.runtime.plugins_loading import PluginLoadError, build_registry

EXAMPLE = Path(__file__).parents[2] / "examples" / "ten_line_plugin"
CONFIG = EXAMPLE / "scheduler.yaml"

PLACE = """
import sys
from pilotage.api.meta import ObjectMeta
from pilotage.api.nodes import Node, NodeStatus
from pilotage.api.pods import Container, Pod, PodSpec, ResourceRequirements
from pilotage.framework.calls import BindPod
from pilotage.runtime.config import default_settings, load_settings
from pilotage.runtime.plugins_loading import build_registry
from pilotage.scheduling.engine import Engine
from pilotage.scheduling.messages import Submit, Upserted

def meta(name, **labels):
    return ObjectMeta(name=name, uid=name, namespace=labels.pop("namespace", ""), labels=labels or None,
                      resource_version="1")

def spec(cpu, node=""):
    container = Container(name="c", resources=ResourceRequirements(requests={"cpu": cpu}))
    return PodSpec(containers=[container], node_name=node)

registry = build_registry()
settings = load_settings(sys.argv[1], registry) if len(sys.argv) > 1 else default_settings(registry)
engine = Engine(settings, registry, 0)
status = NodeStatus(allocatable={"cpu": "8", "memory": "8Gi", "pods": "10"})
cheap = {"kubernetes.io/hostname": "cheap", "example.com/hourly-price": "0.1"}
for name, labels in (("cheap", cheap), ("dear", {"kubernetes.io/hostname": "dear"})):
    engine.handle(Upserted("nodes", Node(metadata=meta(name, **labels), status=status)), 1.0)
# The cheap node is in use: by default the other one is the better place.
busy = Pod(metadata=meta("busy", namespace="default"), spec=spec("4", "cheap"))
engine.handle(Upserted("pods", busy), 1.0)
engine.handle(Upserted("pods", Pod(metadata=meta("p", namespace="default"), spec=spec("1"))), 1.0)
effects = engine.schedule(2.0, 1)
print(*[e.call.node for e in effects if isinstance(e, Submit) and isinstance(e.call, BindPod)])
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example package, installed by pip without any network."""
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    command += ["--no-deps", "--no-build-isolation", "--target", str(target), str(EXAMPLE)]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    return target


def place(site: Path | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(site) if site is not None else ""}
    return subprocess.run(
        [sys.executable, "-c", PLACE, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
    )


@pytest.mark.slow
def test_example_changes_a_placement_where_it_is_configured(installed: Path) -> None:
    with_plugin, without = place(installed, str(CONFIG)), place(installed)
    assert with_plugin.stderr == without.stderr == ""
    assert with_plugin.stdout.strip() == "cheap"
    assert without.stdout.strip() == "dear"


def test_configuration_without_the_package_says_what_is_missing() -> None:
    with pytest.raises(
        ConfigError, match=r'plugins\.score\.enabled\[0\]\.name: "CheapestNode": unknown plugin'
    ):
        load_settings(CONFIG, build_registry([]))


def test_the_plugin_has_about_ten_lines() -> None:
    code = (EXAMPLE / "cheapest_node.py").read_text().splitlines()
    assert len([line for line in code if line.strip()]) <= 10


def load(*entries: tuple[str, str]) -> Registry:
    return build_registry([EntryPoint(name, value, "pilotage.plugins") for name, value in entries])


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (
            "A",
            "no_such_module:A",
            "cannot be loaded from no_such_module:A: ModuleNotFoundError: No module named",
        ),
        ("A", "json:no_such_name", "cannot be loaded from json:no_such_name: AttributeError"),
        ("A", "json:__name__", "json:__name__ is neither a class nor a factory"),
        (
            "NodeName",
            "json:JSONDecoder",
            'plugin "NodeName" of an unknown package has the name of a plugin of pilotage',
        ),
    ],
)
def test_packages_that_cannot_be_used(name: str, value: str, reason: str) -> None:
    with pytest.raises(PluginLoadError, match=reason):
        load((name, value))


def test_two_packages_with_one_name() -> None:
    with pytest.raises(PluginLoadError, match="rename one of them"):
        load(("A", "json:JSONDecoder"), ("A", "json:JSONEncoder"))


def test_broken_package_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    info = tmp_path / "acme_plugins-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-plugins\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[pilotage.plugins]\nAcme = broken:Acme\n")
    found = place(tmp_path)
    assert found.returncode != 0
    assert 'plugin "Acme" of package acme-plugins 1.2 cannot be loaded from broken:Acme' in found.stderr
    assert "ZeroDivisionError: division by zero" in found.stderr
