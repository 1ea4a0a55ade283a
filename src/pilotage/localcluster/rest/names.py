"""Which names the API accepts: DNS labels and subdomains, qualified names, path segments.

Each function gives what is wrong, "" when nothing is.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from pilotage.api.label_matcher import key_problem

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SERVICE: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


@lru_cache(1 << 14)
def label_problem(name: str) -> str:
    if _LABEL.fullmatch(name):
        return ""
    return (
        "a lowercase RFC 1123 label must be 1 to 63 lower case letters, digits or '-', "
        "and start and end with a letter or digit (e.g. 'my-name' or '123-abc')"
    )


@lru_cache(1 << 14)
def subdomain_problem(name: str) -> str:
    if len(name) <= 253 and _SUBDOMAIN.fullmatch(name):
        return ""
    return (
        "a lowercase RFC 1123 subdomain must be 1 to 253 lower case letters, digits, '-' or '.', "
        "and start and end with a letter or digit (e.g. 'example.com')"
    )


def service_problem(name: str) -> str:
    if _SERVICE.fullmatch(name):
        return ""
    return (
        "a DNS-1035 label must be 1 to 63 lower case letters, digits or '-', start with a letter "
        "and end with a letter or digit (e.g. 'my-name' or 'abc-123')"
    )


def path_segment_problem(name: str) -> str:
    if name in (".", "..") or "/" in name or "%" in name:
        return "must not be '.' or '..' and must not contain '/' or '%'"
    return ""


def qualified_problem(name: str) -> str:
    """A label key, a resource or gate name: an optional domain and a slash, then a short name."""
    return key_problem(name)
