"""NodePorts: which host port is taken, and by whom."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pilotage.api.pods import Container, ContainerPort
from pilotage.framework.status import Status
from pilotage.frontends.explain.look import Look
from pilotage.frontends.explain.model import Detail
from pilotage.frontends.explain.plugins.base import PluginExplanation
from pilotage.frontends.explain.scenario import Change, change_pod, with_spec
from pilotage.state.podinfo import PodInfo
from pilotage.state.ports import ports_collide
from pilotage.state.view import HostPort, Rows

NAME = "NodePorts"
_EVERY_ADDRESS = "0.0.0.0"


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
        spec = info.pod.spec
        containers = [self._changed(c, spec.host_network) for c in spec.containers]
        sidecars = [self._changed(c, spec.host_network) for c in spec.init_containers or ()]
        return with_spec(info, containers=containers, init_containers=sidecars or None)

    def _changed(self, container: Container, host_network: bool) -> Container:
        kept = [port for port in container.ports or () if _host_port(port, host_network) not in self._ports]
        return msgspec.structs.replace(container, ports=kept or None)


def _host_port(port: ContainerPort, host_network: bool) -> HostPort:
    """The same reading as the scheduler's: on the host's network every container port is a host port."""
    number = port.host_port or (port.container_port if host_network else 0)
    return HostPort(port.host_ip or _EVERY_ADDRESS, port.protocol or "TCP", number)


def _taken(look: Look, row: int) -> Iterable[tuple[HostPort, PodInfo]]:
    for wanted in look.pod.host_ports:
        for other in look.place(row).view.pods(row):
            if any(ports_collide(wanted, port) for port in other.host_ports):
                yield wanted, other
                break


def _text(port: HostPort) -> str:
    address = "" if port.ip == "0.0.0.0" else f"{port.ip}:"
    return f"{address}{port.port}/{port.protocol}"
