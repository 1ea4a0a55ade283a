"""What the server serves: versions, API groups, resources; aggregated or one document per group version."""

from __future__ import annotations

from pilotage.api.kinds import KINDS, Kind, Subresource
from pilotage.api.wire import Request, Response
from pilotage.localcluster.rest import openapi
from pilotage.localcluster.rest.errors import method_not_allowed, unknown_path
from pilotage.localcluster.rest.negotiation import media_ranges
from pilotage.localcluster.store import Tree, encode_tree

GIT_VERSION = "v1.37.0"
_VERSION: Tree = {
    "major": "1",
    "minor": "37",
    "gitVersion": GIT_VERSION,
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "pilotage",
    "platform": "linux/amd64",
}
_AGGREGATED = "apidiscovery.k8s.io"
_CIDRS = [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}]


def answer(request: Request) -> Response:
    """Everything that is no resource path. Raises RestError 404 or 405."""
    if request.method not in ("GET", "HEAD"):
        raise unknown_path() if request.path not in ("/version", "/api", "/apis") else method_not_allowed()
    path = request.path.rstrip("/") or "/"
    if path in ("/healthz", "/livez", "/readyz"):
        return Response(200, b"ok", content_type="text/plain; charset=utf-8")
    if path.startswith("/openapi/"):
        return openapi.answer(request)
    tree = _document(path, request.accept)
    return tree if isinstance(tree, Response) else Response(200, encode_tree(tree))


def _document(path: str, accept: str) -> Tree | Response:
    if path == "/version":
        return _VERSION
    if path == "/":
        return {
            "paths": [
                "/api",
                "/api/v1",
                "/apis",
                *_group_paths(),
                "/healthz",
                "/livez",
                "/readyz",
                "/version",
            ]
        }
    if path in ("/api", "/apis"):
        is_core = path == "/api"
        version = _aggregated_version(accept)
        if version:
            return _aggregated(is_core, version)
        return _api_versions() if is_core else _group_list()
    parts = path.strip("/").split("/")
    if parts[0] == "apis" and len(parts) == 2 and parts[1] in _groups():
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(parts[1])}
    kinds = [kind for kind in KINDS if kind.root == path]
    if not kinds:
        raise unknown_path()
    return _resource_list(kinds)


def _groups() -> dict[str, list[str]]:
    """Versions by group, core left out, in the table's order."""
    groups: dict[str, list[str]] = {}
    for kind in KINDS:
        versions = groups.setdefault(kind.group, [])
        if kind.version not in versions:
            versions.append(kind.version)
    groups.pop("", None)
    return groups


def _group_paths() -> list[str]:
    return [
        path
        for group, versions in _groups().items()
        for path in (f"/apis/{group}", *(f"/apis/{group}/{v}" for v in versions))
    ]


def _api_versions() -> Tree:
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": _CIDRS}


def _group_list() -> Tree:
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name) for name in _groups()]}


def _group(name: str) -> Tree:
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in _groups()[name]]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resource_list(kinds: list[Kind]) -> Tree:
    resources = []
    for kind in kinds:
        resources.append(_resource(kind))
        resources += [_subresource(kind, sub) for sub in kind.subresources]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": kinds[0].api_version,
        "resources": resources,
    }


def _resource(kind: Kind) -> Tree:
    resource: Tree = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        resource["shortNames"] = list(kind.short_names)
    if kind.categories:
        resource["categories"] = list(kind.categories)
    return resource


def _subresource(kind: Kind, sub: Subresource) -> Tree:
    resource: Tree = {
        "name": f"{kind.plural}/{sub.name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": sub.kind or kind.kind,
        "verbs": list(sub.verbs),
    }
    if sub.version:
        resource |= {"group": sub.group, "version": sub.version}
    return resource


# aggregated


def _aggregated_version(accept: str) -> str:
    """The version of aggregated discovery that the client asks for before plain JSON, "" for none."""
    for media, parameters in media_ranges(accept):
        wanted = dict(parameters)
        if media != "application/json":
            continue
        if wanted.get("g") == _AGGREGATED and wanted.get("as") == "APIGroupDiscoveryList":
            if wanted.get("v") in ("v2", "v2beta1"):
                return wanted["v"]
        elif "as" not in wanted:
            return ""
    return ""


def _aggregated(is_core: bool, version: str) -> Response:
    names = [""] if is_core else list(_groups())
    tree = {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"{_AGGREGATED}/{version}",
        "metadata": {},
        "items": [_discovery_group(name) for name in names],
    }
    content_type = f"application/json;g={_AGGREGATED};v={version};as=APIGroupDiscoveryList"
    return Response(200, encode_tree(tree), {"etag": _etag(is_core, version)}, content_type)


def _etag(is_core: bool, version: str) -> str:
    return f'"{GIT_VERSION}-{len(KINDS)}-{version}-{"core" if is_core else "groups"}"'


def _discovery_group(name: str) -> Tree:
    versions = ["v1"] if not name else _groups()[name]
    return {
        "metadata": {"name": name, "creationTimestamp": None},
        "versions": [
            {
                "version": version,
                "resources": [
                    _discovery_resource(kind)
                    for kind in KINDS
                    if kind.group == name and kind.version == version
                ],
                "freshness": "Current",
            }
            for version in versions
        ],
    }


def _discovery_resource(kind: Kind) -> Tree:
    resource: Tree = {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        resource["shortNames"] = list(kind.short_names)
    if kind.categories:
        resource["categories"] = list(kind.categories)
    if kind.subresources:
        resource["subresources"] = [_discovery_subresource(kind, sub) for sub in kind.subresources]
    return resource


def _discovery_subresource(kind: Kind, sub: Subresource) -> Tree:
    response = {
        "group": sub.group if sub.kind else kind.group,
        "version": sub.version or kind.version,
        "kind": sub.kind or kind.kind,
    }
    return {"subresource": sub.name, "responseKind": response, "verbs": list(sub.verbs)}
