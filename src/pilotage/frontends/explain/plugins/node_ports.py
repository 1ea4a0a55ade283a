"""NodePorts: which host port is taken, and by whom."""

from __future__ import annotations

from collections.abc import Iterable

from pilotage.framework.status import Status
from pilotage.frontends.explain.look import Look
from pilotage.frontends.explain.model import Detail
from pilotage.frontends.explain.plugins.base import PluginExplanation
from pilotage.frontends.explain.scenario import Change, amended, change_pod
from pilotage.state.podinfo import PodInfo
from pilotage.state.ports import ports_collide
from pilotage.state.view import HostPort, Rows

NAME = "NodePorts"


class NodePorts(PluginExplanation):
    def detail(self, look: Look, row: int, status: Status) -> Detail:
        taken = list(_taken(look, row))
        texts = [f"host port {_text(port)} is taken by {holder.key}" for port, holder in taken]
        groups = dict.fromkeys(f"host port {_text(port)} is taken" for port, _ in taken)
        numbers = {"ports": [{"port": p.port, "protocol": p.protocol, "pod": h.key} for p, h in taken]}
        return Detail("; ".join(texts), "; ".join(groups), numbers)

    def changes(self, look: Look, rows: Rows) -> Iterable[Change]:
        ports = look.pod.host_ports
        for port in ports:
            yield Change(f"but for host port {_text(port)}", NAME, change_pod(_Without((port,))), len(rows))
        if len(ports) > 1:
            yield Change("without host ports", NAME, change_pod(_Without(ports)), len(rows))


class _Without:
    def __init__(self, ports: tuple[HostPort, ...]) -> None:
        self._ports = ports

    def __call__(self, info: PodInfo) -> PodInfo:
        return amended(info, {"host_ports": tuple(p for p in info.host_ports if p not in self._ports)})


def _taken(look: Look, row: int) -> Iterable[tuple[HostPort, PodInfo]]:
    for wanted in look.pod.host_ports:
        for other in look.place(row).view.pods(row):
            if any(ports_collide(wanted, port) for port in other.host_ports):
                yield wanted, other
                break


def _text(port: HostPort) -> str:
    address = "" if port.ip == "0.0.0.0" else f"{port.ip}:"
    return f"{address}{port.port}/{port.protocol}"
