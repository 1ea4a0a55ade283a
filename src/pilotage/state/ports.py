"""Host ports in use, by (protocol, port), row and address.

Law: a count is kept per holder, so that adding and removing pods in any order leaves no residue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pilotage.state.view import HostPort

EVERY_ADDRESS = "0.0.0.0"


def collides(wanted_ip: str, used_ips: Iterable[str]) -> bool:
    """Whether an address is taken, 0.0.0.0 being every one. Protocol and port are equal."""
    if wanted_ip == EVERY_ADDRESS:
        return any(True for _ in used_ips)
    return any(ip in (wanted_ip, EVERY_ADDRESS) for ip in used_ips)


def ports_collide(wanted: HostPort, used: HostPort) -> bool:
    is_same = wanted.protocol == used.protocol and wanted.port == used.port
    return is_same and collides(wanted.ip, (used.ip,))


class PortIndex:
    """(protocol, port) -> row -> address -> number of holders."""

    __slots__ = ("_used",)

    def __init__(self) -> None:
        self._used: dict[tuple[str, int], dict[int, Counter[str]]] = {}

    def add(self, row: int, ports: Iterable[HostPort]) -> None:
        for ip, protocol, port in ports:
            rows = self._used.setdefault((protocol, port), {})
            rows.setdefault(row, Counter())[ip] += 1

    def remove(self, row: int, ports: Iterable[HostPort]) -> None:
        for ip, protocol, port in ports:
            rows = self._used[(protocol, port)]
            holders = rows[row]
            holders[ip] -= 1
            if not holders[ip]:
                del holders[ip]
            if not holders:
                del rows[row]
            if not rows:
                del self._used[(protocol, port)]

    def conflicts(self, wanted: HostPort) -> list[int]:
        rows = self._used.get((wanted.protocol, wanted.port))
        if not rows:
            return []
        return [row for row, holders in rows.items() if collides(wanted.ip, holders)]

    def on_row(self, row: int) -> dict[HostPort, int]:
        return {
            HostPort(ip, protocol, port): count
            for (protocol, port), rows in self._used.items()
            for ip, count in rows.get(row, {}).items()
        }
