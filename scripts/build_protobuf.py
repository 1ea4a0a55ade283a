"""Write the protobuf numbers of the served kinds from the struct tags of Kubernetes' Go types.

Needs a Go toolchain, for its module downloads only:
    .venv/bin/python scripts/build_protobuf.py v0.37.0
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pilotage.api.kinds import KINDS

TARGET = Path(__file__).parent.parent / "src/pilotage/localcluster/rest/protobuf.json"
MODULES = ("k8s.io/api", "k8s.io/apimachinery")
META = "k8s.io/apimachinery/pkg/apis/meta/v1"
EXTRA = {
    ("policy/v1", "Eviction"): "k8s.io/api/policy/v1.Eviction",
    ("autoscaling/v1", "Scale"): "k8s.io/api/autoscaling/v1.Scale",
    ("", "DeleteOptions"): f"{META}.DeleteOptions",
}
SCALARS = {"string": "str", "bool": "bool", "[]byte": "bytes", "float64": "float"}
SPECIAL = {
    f"{META}.Time": "Time",
    f"{META}.MicroTime": "MicroTime",
    f"{META}.FieldsV1": "RawJson",
    "k8s.io/apimachinery/pkg/api/resource.Quantity": "Quantity",
    "k8s.io/apimachinery/pkg/util/intstr.IntOrString": "IntOrString",
    "k8s.io/apimachinery/pkg/runtime.RawExtension": "RawJson",
}
FIELD = re.compile(r'^\t(?:(\w+)\s+)?(\S+)\s+`json:"([^"]*)"(?:\s+\w+:"[^"]*")*?\s+protobuf:"([^"]*)"', re.M)
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
ALIAS = re.compile(r"^type (\w+) ([^\s{]+)(?:\s*//.*)?$", re.M)
IMPORT = re.compile(r'^\t(?:(\w+) )?"(k8s\.io/[^"]+)"', re.M)


def download(version: str) -> dict[str, Path]:
    roots = {}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "go.mod").write_text("module x\ngo 1.24\n")
        for module in MODULES:
            command = ["go", "mod", "download", "-json", f"{module}@{version}"]
            answer = subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout
            roots[module] = Path(json.loads(answer)["Dir"])
    return roots


class Package:
    """The types of one Go package."""

    def __init__(self, roots: dict[str, Path], path: str) -> None:
        module = next(name for name in roots if path.startswith(f"{name}/"))
        folder = roots[module] / path.removeprefix(f"{module}/")
        files = [f for f in folder.glob("*.go") if not f.name.startswith(("zz_", "generated"))]
        text = "\n".join(f.read_text() for f in sorted(files) if not f.name.endswith("_test.go"))
        self.structs = dict(STRUCT.findall(text))
        self.aliases = dict(ALIAS.findall(text))
        self.imports = {alias or target.rsplit("/", 1)[-1]: target for alias, target in IMPORT.findall(text)}


class Types:
    def __init__(self, roots: dict[str, Path]) -> None:
        self._roots = roots
        self._packages: dict[str, Package] = {}
        self.done: dict[str, dict[str, str]] = {}

    def package(self, path: str) -> Package:
        if path not in self._packages:
            self._packages[path] = Package(self._roots, path)
        return self._packages[path]

    def add(self, name: str) -> None:
        """Describe a struct and all that it refers to."""
        if name in self.done:
            return
        path, _, short = name.rpartition(".")
        self.done[name] = {}
        body = self.package(path).structs.get(short)
        if body is None:  # a named list of strings, wrapped
            self.done[name] = {"1": ":[]str"}
            return
        self.done[name] = dict(self._fields(path, body))

    def _fields(self, path: str, body: str) -> Iterator[tuple[str, str]]:
        for _, go_type, json_tag, protobuf_tag in FIELD.findall(body):
            parts = protobuf_tag.split(",")
            if not parts[0] or len(parts) < 2:
                continue
            json_name, *flags = json_tag.split(",")
            spec = self._spec(path, go_type, parts[0])
            is_dropped = "omitempty" in flags or "omitzero" in flags
            yield parts[1], f"{json_name}:{spec}" + ("?" if is_dropped else "")

    def _spec(self, path: str, go_type: str, wire: str) -> str:
        if go_type.startswith("*"):
            return "*" + self._spec(path, go_type[1:], wire)
        if go_type in SCALARS:
            return SCALARS[go_type]
        if go_type.startswith("[]"):
            return "[]" + self._spec(path, go_type[2:], wire)
        if match := re.fullmatch(r"map\[[^\]]+\](.+)", go_type):
            return "{}" + self._spec(path, match[1], wire)
        if re.fullmatch(r"u?int(8|16|32|64)?", go_type):
            return "int"
        return self._named(path, go_type, wire)

    def _named(self, path: str, go_type: str, wire: str) -> str:
        prefix, _, short = go_type.rpartition(".")
        target = self.package(path).imports[prefix] if prefix else path
        full = f"{target}.{short}"
        if full in SPECIAL:
            return SPECIAL[full]
        package = self.package(target)
        alias = package.aliases.get(short)
        if alias is not None and not alias.startswith("[]"):
            return self._spec(target, alias, wire)
        self.add(full)
        return full


def main() -> None:
    types = Types(download(sys.argv[1]))
    kinds = {}
    for kind in KINDS:
        group = kind.group.removesuffix(".k8s.io").removesuffix(".authorization") or "core"
        name = f"k8s.io/api/{group}/{kind.version}.{kind.kind}"
        kinds[f"{kind.api_version} {kind.kind}"] = name
    kinds |= {f"{version} {kind}": name for (version, kind), name in EXTRA.items()}
    for name in kinds.values():
        types.add(name)
    short = {name: name.removeprefix("k8s.io/api/").replace(META, "meta/v1") for name in types.done}
    text = json.dumps({"kinds": kinds, "types": types.done}, indent=0, separators=(",", ":"))
    for name in sorted(short, key=len, reverse=True):
        text = text.replace(name, short[name])
    TARGET.write_text(text + "\n")
    print(f"{len(types.done)} types, {len(text)} bytes")


if __name__ == "__main__":
    main()
