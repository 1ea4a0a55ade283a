"""Write the compact schema of the served kinds (names and types) from the official Python client's models.

Run it after an upgrade of the `kubernetes` development dependency:
    .venv/bin/python scripts/build_schema.py
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from kubernetes.client import models

from pilotage.api.kinds import KINDS, Kind

TARGET = Path(__file__).parent.parent / "src/pilotage/localcluster/rest/schema.json"
EXTRA = {"scale": "V1Scale", "eviction": "V1Eviction", "binding": "V1Binding"}
PREFIXES = {
    "events": "CoreV1",
    "events.events.k8s.io": "EventsV1",
    "endpointslices.discovery.k8s.io": "V1",
    "resourceclaims.resource.k8s.io": "ResourceV1",
}


def model_name(kind: Kind) -> str:
    prefix = PREFIXES.get(kind.resource, kind.version.upper())
    names = [name for name in dir(models) if name.lower() == f"{prefix}{kind.kind}".lower()]
    return names[0]


def fields(name: str) -> dict[str, str]:
    """JSON name -> type; a leading `!` marks a required field."""
    model: Any = getattr(models, name)
    result = {}
    declared = zip(model.attribute_map.items(), model.model_fields.values(), strict=True)  # the same order
    for (python_name, json_name), field in declared:
        mark = "!" if field.is_required() else ""
        result[json_name] = mark + model.openapi_types[python_name].replace(" ", "")
    return dict(sorted(result.items()))


def main() -> None:
    roots = {kind.resource: model_name(kind) for kind in KINDS}
    types: dict[str, dict[str, str]] = {}
    todo = [*roots.values(), *EXTRA.values()]
    while todo:
        name = todo.pop()
        if name in types or not hasattr(models, name):
            continue
        types[name] = fields(name)
        todo += [word for text in types[name].values() for word in re.findall(r"\w+", text)]
    text = json.dumps({"kinds": roots, "types": dict(sorted(types.items()))}, indent=0, separators=(",", ":"))
    TARGET.write_text(text + "\n")
    print(f"{len(types)} types, {len(text)} bytes")


if __name__ == "__main__":
    main()
