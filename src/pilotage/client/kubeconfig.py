"""Kubeconfig files: found, merged and checked before anything connects.

Why: the library that carries authentication out reports a malformed file as a KeyError or an assertion
deep inside; a user needs one line that names the file, the field and the value.

Laws: merging is kubectl's (files in the order of the list, the first that names a thing wins; missing
files of the environment's list are skipped, an explicitly given one must exist); relative paths are
relative to the file that holds them; secrets never appear in a message.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

Json = dict[str, Any]

_SECTIONS = {"clusters": "cluster", "contexts": "context", "users": "user"}
_SECRET_FIELDS = frozenset({"token", "password", "client-key-data"})
_STRINGS: Mapping[str, tuple[str, ...]] = {
    "clusters": (
        "server",
        "certificate-authority",
        "certificate-authority-data",
        "tls-server-name",
        "proxy-url",
    ),
    "contexts": ("cluster", "user", "namespace"),
    "users": (
        "client-certificate",
        "client-certificate-data",
        "client-key",
        "client-key-data",
        "token",
        "tokenFile",
        "username",
        "password",
    ),
}
_PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_BASE64 = ("certificate-authority-data", "client-certificate-data", "client-key-data")


class CredentialsError(Exception):
    """Credentials cannot be had. One line: file, field, value, what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The chosen context, complete: `document` holds exactly its cluster, user and context."""

    document: Json
    context: str
    namespace: str
    cluster: Json
    user: Json
    origin: str  # the file of the user section, for messages


@dataclass(frozen=True, slots=True)
class _Entry:
    """One named entry: where it stands, so that a complaint can say so."""

    path: str
    where: str
    body: Json

    def fail(self, name: str, value: object, why: str) -> CredentialsError:
        shown = "(hidden)" if name.rpartition(".")[2] in _SECRET_FIELDS else _show(value)
        return CredentialsError(f"kubeconfig {self.path}: {self.where}.{name}: {shown}: {why}")


@dataclass(slots=True)
class _Merged:
    """Entries by section and name (the first one of a name), and who chose the current context."""

    entries: dict[str, dict[str, _Entry]] = field(default_factory=lambda: {s: {} for s in _SECTIONS})
    current: str = ""
    current_path: str = ""


def find_files(explicit: str | None, environment: Mapping[str, str], home: Path) -> list[Path]:
    """The files to read, in order; empty when there is none. Raises for an explicit one that is missing."""
    if explicit:
        path = Path(explicit).expanduser()
        if not path.is_file():
            raise CredentialsError(f"kubeconfig {path}: no such file")
        return [path]
    listed = [Path(p).expanduser() for p in environment.get("KUBECONFIG", "").split(os.pathsep) if p]
    candidates = listed or [home / ".kube" / "config"]
    found = [path for path in candidates if path.is_file()]
    if listed and not found:
        raise CredentialsError(f"KUBECONFIG: {_show(environment['KUBECONFIG'])}: none of these files exists")
    return found


def load_kubeconfig(files: list[Path], context: str | None) -> Kubeconfig:
    """Reads, merges and checks; only what the chosen context uses has to be right."""
    merged = _Merged()
    for path in files:
        _merge(merged, path, _read(path))
    names = ", ".join(str(path) for path in files)
    chosen = _choose(merged, context, names)
    cluster = _referenced(merged, chosen, "clusters", "cluster", names)
    user = _referenced(merged, chosen, "users", "user", names, optional=True)
    _check_cluster(cluster)
    _check_user(user)
    return _complete(chosen, cluster, user)


def _read(path: Path) -> Json:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as problem:
        raise CredentialsError(f"kubeconfig {path}: {_yaml_problem(problem)}") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise CredentialsError(f"kubeconfig {path}: cannot be read: {_one_line(problem)}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise CredentialsError(f"kubeconfig {path}: {_show(document)}: must be a mapping with kind Config")
    return document


def _yaml_problem(problem: yaml.YAMLError) -> str:
    mark = getattr(problem, "problem_mark", None)
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"{where}not valid YAML: {getattr(problem, 'problem', None) or _one_line(problem)}"


def _merge(merged: _Merged, path: Path, document: Json) -> None:
    current = document.get("current-context")
    if current is not None and not isinstance(current, str):
        raise CredentialsError(f"kubeconfig {path}: current-context: {_show(current)}: must be a string")
    if current and not merged.current:
        merged.current, merged.current_path = current, str(path)
    for section, key in _SECTIONS.items():
        listed = document.get(section) or []
        if not isinstance(listed, list):
            raise CredentialsError(f"kubeconfig {path}: {section}: {_show(listed)}: must be a list")
        for index, item in enumerate(listed):
            name, entry = _entry(path, section, key, index, item)
            merged.entries[section].setdefault(name, entry)


def _entry(path: Path, section: str, key: str, index: int, item: object) -> tuple[str, _Entry]:
    where = f"{section}[{index}]"
    if not isinstance(item, dict):
        raise CredentialsError(f"kubeconfig {path}: {where}: {_kind(item)}: must be a mapping")
    name = item.get("name")
    if not isinstance(name, str) or not name:
        raise CredentialsError(f"kubeconfig {path}: {where}.name: {_show(name)}: must be a non-empty string")
    body = item.get(key) or {}
    if not isinstance(body, dict):
        raise CredentialsError(f"kubeconfig {path}: {where}.{key}: {_kind(body)}: must be a mapping")
    return name, _Entry(str(path), f"{where}.{key}", body)


def _choose(merged: _Merged, context: str | None, names: str) -> _Entry:
    wanted = context or merged.current
    if not wanted:
        raise CredentialsError(f"kubeconfig {names}: current-context: not set, and no context was asked for")
    entry = merged.entries["contexts"].get(wanted)
    if entry is None:
        field_name = "context" if context else f"kubeconfig {merged.current_path}: current-context"
        known = ", ".join(sorted(merged.entries["contexts"])) or "none"
        raise CredentialsError(
            f"{field_name}: {_show(wanted)}: no such context in {names} (there are: {known})"
        )
    _check_strings(entry, "contexts")
    return _Entry(entry.path, entry.where, {**entry.body, "name": wanted})


def _referenced(
    merged: _Merged, context: _Entry, section: str, key: str, names: str, *, optional: bool = False
) -> _Entry:
    wanted = context.body.get(key) or ""
    if not wanted and optional:
        return _Entry(context.path, context.where, {"name": "anonymous"})
    if not wanted:
        raise context.fail(key, None, "must name a cluster")
    entry = merged.entries[section].get(wanted)
    if entry is None:
        known = ", ".join(sorted(merged.entries[section])) or "none"
        raise context.fail(key, wanted, f"no such {key} in {names} (there are: {known})")
    return _Entry(entry.path, entry.where, {**entry.body, "name": wanted})


def _check_cluster(cluster: _Entry) -> None:
    _check_strings(cluster, "clusters")
    server = cluster.body.get("server")
    if not server or not _is_http_url(server):
        raise cluster.fail("server", server, "must be a URL like https://host:port")
    proxy = cluster.body.get("proxy-url")
    if proxy and urlsplit(proxy).scheme not in ("http", "https"):
        raise cluster.fail("proxy-url", proxy, "must be an http or https URL")
    insecure = cluster.body.get("insecure-skip-tls-verify")
    if insecure is not None and not isinstance(insecure, bool):
        raise cluster.fail("insecure-skip-tls-verify", insecure, "must be true or false")


def _check_user(user: _Entry) -> None:
    _check_strings(user, "users")
    certificate = any(user.body.get(k) for k in ("client-certificate", "client-certificate-data"))
    key = any(user.body.get(k) for k in ("client-key", "client-key-data"))
    if certificate != key:
        missing = "client-key" if certificate else "client-certificate"
        raise user.fail(missing, None, "a client certificate and its key belong together")
    plugin = user.body.get("exec")
    if plugin is not None:
        _check_exec(user, plugin)


def _check_exec(user: _Entry, plugin: object) -> None:
    if not isinstance(plugin, dict):
        raise user.fail("exec", plugin, "must be a mapping")
    for name in ("command", "apiVersion"):
        if not isinstance(plugin.get(name), str) or not plugin[name]:
            raise user.fail(f"exec.{name}", plugin.get(name), "must be a non-empty string")
    arguments = plugin.get("args") or []
    if not isinstance(arguments, list) or not all(isinstance(a, str) for a in arguments):
        raise user.fail("exec.args", arguments, "must be a list of strings")
    variables = plugin.get("env") or []
    if not isinstance(variables, list) or not all(_is_variable(v) for v in variables):
        raise user.fail("exec.env", "(hidden)", "must be a list of {name, value} strings")


def _is_variable(item: object) -> bool:
    return isinstance(item, dict) and all(isinstance(item.get(k), str) for k in ("name", "value"))


def _check_strings(entry: _Entry, section: str) -> None:
    for name in _STRINGS[section]:
        value = entry.body.get(name)
        if value is not None and not isinstance(value, str):
            raise entry.fail(name, value, "must be a string")
        if value and name in _BASE64:
            _check_base64(entry, name, value)
        if value and name in _PATHS and not Path(_absolute(entry.path, value)).is_file():
            raise entry.fail(name, value, f"no such file (looked for {_absolute(entry.path, value)})")


def _check_base64(entry: _Entry, name: str, value: str) -> None:
    try:
        base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        raise entry.fail(name, value, "must be base64") from None


def _complete(context: _Entry, cluster: _Entry, user: _Entry) -> Kubeconfig:
    cluster_body, user_body = _resolved(cluster), _resolved(user)
    context_name = str(context.body["name"])
    names = {"cluster": str(cluster.body["name"]), "user": str(user.body["name"])}
    document: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context_name,
        "contexts": [{"name": context_name, "context": names}],
        "clusters": [{"name": names["cluster"], "cluster": cluster_body}],
        "users": [{"name": names["user"], "user": user_body}],
    }
    namespace = str(context.body.get("namespace") or "default")
    return Kubeconfig(
        document, context_name, namespace, cluster_body, user_body, f"{user.path}: {user.where}"
    )


def _resolved(entry: _Entry) -> Json:
    """The body without empty values, paths made absolute, base64 without white space."""
    body = {k: v for k, v in entry.body.items() if v not in (None, "") and k != "name"}
    for name in _PATHS:
        if name in body:
            body[name] = _absolute(entry.path, body[name])
    for name in _BASE64:
        if name in body:
            body[name] = "".join(body[name].split())
    plugin = body.get("exec")
    if plugin and os.sep in plugin["command"]:
        body["exec"] = {**plugin, "command": _absolute(entry.path, plugin["command"])}
    return body


def _absolute(config_path: str, value: str) -> str:
    return os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(config_path)), value))


def _is_http_url(value: str) -> bool:
    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _show(value: object) -> str:
    text = repr(value) if isinstance(value, str) else str(value).replace("\n", " ")
    text = "not set" if value is None else text
    return text if len(text) <= 80 else f"{text[:77]}..."


def _kind(value: object) -> str:
    return f"a {type(value).__name__}"


def _one_line(problem: BaseException) -> str:
    return " ".join(str(problem).split()) or type(problem).__name__
