"""HTTP extenders of a configuration: their rules, and frozen settings for whoever asks them.

kube-scheduler does not ask for a urlPrefix nor for any verb; what makes an extender useless is a warning.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence

from pilotage.api.label_matcher import key_problem
from pilotage.framework.settings import ExtenderSettings, ExtenderTls, ManagedResource
from pilotage.runtime.config_errors import Problem
from pilotage.runtime.config_model import ExtenderFile, ExtenderTLS
from pilotage.runtime.durations import parse_duration
from pilotage.state.resources import is_extended

DEFAULT_TIMEOUT = 5.0


def read_extenders(
    files: Sequence[ExtenderFile] | None, problems: list[Problem], warnings: list[str]
) -> tuple[ExtenderSettings, ...]:
    """The settings; what is wrong with them is added to `problems`, what is useless to `warnings`."""
    found = tuple(
        _read(file, f"extenders[{index}]", problems, warnings) for index, file in enumerate(files or ())
    )
    problems += _resource_problems(files or ())
    binders = [f"extenders[{index}]" for index, one in enumerate(found) if one.bind_verb]
    if len(binders) > 1:
        problems.append(Problem("extenders", ", ".join(binders), "only one may have a bindVerb"))
    return found


def _read(file: ExtenderFile, path: str, problems: list[Problem], warnings: list[str]) -> ExtenderSettings:
    if file.prioritize_verb and (file.weight or 0) <= 0:
        problems.append(
            Problem(f"{path}.weight", file.weight or 0, "must be more than 0 with prioritizeVerb")
        )
    if not file.url_prefix:
        warnings.append(f"{path}.urlPrefix: is empty: the extender cannot be reached")
    return ExtenderSettings(
        url_prefix=file.url_prefix or "",
        filter_verb=file.filter_verb or "",
        preempt_verb=file.preempt_verb or "",
        prioritize_verb=file.prioritize_verb or "",
        bind_verb=file.bind_verb or "",
        weight=file.weight or 0,
        enable_https=bool(file.enable_https),
        tls=_tls(file.tls_config, f"{path}.tlsConfig", problems) if file.tls_config else None,
        http_timeout=_timeout(file.http_timeout, f"{path}.httpTimeout", problems),
        node_cache_capable=bool(file.node_cache_capable),
        managed_resources=tuple(
            ManagedResource(one.name or "", bool(one.ignored_by_scheduler))
            for one in file.managed_resources or ()
        ),
        ignorable=bool(file.ignorable),
    )


def _timeout(text: str | None, path: str, problems: list[Problem]) -> float:
    """0 and absent mean the default."""
    if text is None:
        return DEFAULT_TIMEOUT
    try:
        return parse_duration(text) or DEFAULT_TIMEOUT
    except ValueError as error:
        problems.append(Problem(path, text, str(error)))
        return DEFAULT_TIMEOUT


def _tls(file: ExtenderTLS, path: str, problems: list[Problem]) -> ExtenderTls:
    found = ExtenderTls(
        insecure=bool(file.insecure),
        server_name=file.server_name or "",
        cert_file=file.cert_file or "",
        key_file=file.key_file or "",
        ca_file=file.ca_file or "",
        cert_data=_bytes(file.cert_data, f"{path}.certData", problems),
        key_data=_bytes(file.key_data, f"{path}.keyData", problems),
        ca_data=_bytes(file.ca_data, f"{path}.caData", problems),
    )
    problems += _tls_problems(found, path)
    return found


def _tls_problems(tls: ExtenderTls, path: str) -> Iterator[Problem]:
    """What no TLS client can be made from."""
    has_certificate = bool(tls.cert_data or tls.cert_file)
    has_key = bool(tls.key_data or tls.key_file)
    if tls.insecure and (tls.ca_data or tls.ca_file):
        yield Problem(f"{path}.insecure", True, "must not be set together with caData or caFile")
    if has_certificate != has_key:
        yield Problem(path, None, "certificate and key must be given together")


def _bytes(text: str | None, path: str, problems: list[Problem]) -> bytes:
    """`[]byte` fields of the API are base64 text."""
    try:
        return base64.b64decode("".join((text or "").split()), validate=True)
    except (binascii.Error, ValueError):
        problems.append(Problem(path, None, "is not base64 text"))
        return b""


def _resource_problems(files: Sequence[ExtenderFile]) -> Iterator[Problem]:
    """Extended resources only, each managed by one extender."""
    seen: set[str] = set()
    for index, file in enumerate(files):
        for place, resource in enumerate(file.managed_resources or ()):
            name = resource.name or ""
            field = f"extenders[{index}].managedResources[{place}].name"
            if problem := key_problem(name):
                yield Problem(field, name, problem)
            elif not is_extended(name) or name.startswith("requests."):
                yield Problem(field, name, "must be an extended resource such as example.com/gpu")
            if name in seen:
                yield Problem(field, name, "is managed by another entry already")
            seen.add(name)
