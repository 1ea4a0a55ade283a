"""The load of each Service as a condition in its status: many thousand wishes, few requests.

An operator that watches Services and hears of their load far more often than anybody should write it. Each
measurement is one wish; the call queue merges them, so that each Service has one request in flight at most
and its newest load always lands. Conditions of others are kept.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from pilotage.api.kinds import Kind, Subresource
from pilotage.api.meta import KubeObject, View
from pilotage.api.wire import Request, Response
from pilotage.calls.answers import status_of
from pilotage.calls.base import BaseCallType
from pilotage.calls.paths import object_path
from pilotage.calls.pod_status_patch import timestamp
from pilotage.calls.types import RetryPolicy, Sent
from pilotage.calls.verdicts import Rebase, Skip, Verdict
from pilotage.client.known import Change, ChangeType
from pilotage.client.reflector import Reflector
from pilotage.framework.calls import Call, CallResult, ObjectKey, Outcome
from pilotage.runtime.calling import Calls

LOAD = "example.com/Load"
LIMIT = 80


class ServiceStatus(View, frozen=True):
    conditions: list[dict[str, Any]] = []


class Service(KubeObject, frozen=True):
    """As much of a Service as the operator reads."""

    status: ServiceStatus = ServiceStatus()


SERVICES = Kind("", "v1", "services", "Service", subresources=(Subresource("status"),), view=Service)


@dataclass(frozen=True, slots=True)
class ShowLoad(Call):
    """The wish: the Service `key` shows this load, in percent."""

    percent: int

    @property
    def call_type(self) -> str:
        return "service_load"


class ServiceLoad(BaseCallType[ShowLoad]):
    """PATCH services/status, computed on the newest object; of several wishes the newest is written."""

    name = "service_load"
    retry = RetryPolicy(tries=10, first_delay=0.1, max_delay=5.0, max_age=120.0)

    def is_no_op(self, call: ShowLoad, base: KubeObject) -> bool:
        shown = condition(base)
        return shown is not None and shown.get("message") == message(call)

    def apply(self, call: ShowLoad, base: KubeObject) -> KubeObject:
        if not isinstance(base, Service) or self.is_no_op(call, base):
            return base
        status = ServiceStatus(conditions=conditions(call, base, None))
        return msgspec.structs.replace(base, status=status)

    def reads_first(self, call: ShowLoad) -> bool:
        return True

    def read(self, call: ShowLoad) -> Request:
        return Request("GET", object_path(call.key))

    def requests(self, call: ShowLoad, base: KubeObject | None, now: float) -> Sequence[Request]:
        assert isinstance(base, Service), "read first"
        # The list is written whole, so the version must still be the one that it was computed on.
        body = {
            "metadata": {"uid": call.key.uid, "resourceVersion": base.metadata.resource_version},
            "status": {"conditions": conditions(call, base, now)},
        }
        path, kind = object_path(call.key, "status"), "application/merge-patch+json"
        return (Request("PATCH", path, body=msgspec.json.encode(body), content_type=kind),)

    def decode(self, body: bytes) -> Service | None:
        try:
            return msgspec.json.decode(body, type=Service)
        except msgspec.DecodeError:
            return None

    def on_conflict(self, sent: Sent[ShowLoad], response: Response) -> Verdict:
        """Somebody changed the Service meanwhile: compute it again on what is there now."""
        return Rebase(status_of(response).message, None, 409, "Conflict")

    def on_error(self, sent: Sent[ShowLoad], response: Response) -> Verdict:
        if response.status == 404:
            return Skip("the Service is gone", 404, "NotFound")
        return super().on_error(sent, response)


def message(call: ShowLoad) -> str:
    return f"load is {call.percent} %"


def condition(base: KubeObject) -> dict[str, Any] | None:
    found = base.status.conditions if isinstance(base, Service) else []
    return next((one for one in found if one["type"] == LOAD), None)


def conditions(call: ShowLoad, base: Service, now: float | None) -> list[dict[str, Any]]:
    """All conditions of the Service with ours among them; its time moves only with its status."""
    old = condition(base) or {}
    status = "True" if call.percent > LIMIT else "False"
    time = old.get("lastTransitionTime")
    if old.get("status") != status or time is None:
        time = timestamp(now or 0.0)
    ours = {
        "type": LOAD,
        "status": status,
        "reason": "Overloaded" if status == "True" else "AsExpected",
        "message": message(call),
        "lastTransitionTime": time,
    }
    return [one for one in base.status.conditions if one["type"] != LOAD] + [ours]


class Operator:
    """Watches Services and shows their load. `services`: by UID, as they will be once all is written."""

    def __init__(
        self, calls: Calls, label_selector: str = "", on_problem: Callable[[str], None] = print
    ) -> None:
        self.services: dict[str, KubeObject] = {}
        self._calls = calls
        self.reflector = Reflector(
            calls.transport,
            SERVICES,
            self._changed,
            label_selector=label_selector,
            on_problem=on_problem,
        )

    def measured(self, uid: str, percent: int) -> asyncio.Future[Outcome]:
        meta = self.services[uid].metadata
        key = ObjectKey("services", meta.namespace, meta.name, uid)
        return self._calls.submit(ShowLoad(key, percent))

    def _changed(self, change: Change) -> None:
        uid = change.identity.uid
        if change.type is ChangeType.UPSERTED:
            self.services[uid] = self._calls.saw("services", change.object)
        elif change.type is ChangeType.DELETED:
            self.services.pop(uid, None)
            self._calls.gone(uid)


async def measure(operator: Operator, rate: int, seconds: float, rng: random.Random) -> int:
    """`rate` measurements a second, of Services chosen at random. Returns how many there were."""
    loop = asyncio.get_running_loop()
    started, made = loop.time(), 0
    while (passed := loop.time() - started) < seconds:
        uids = list(operator.services)
        for _ in range(int(passed * rate) - made if uids else 0):
            operator.measured(rng.choice(uids), rng.randrange(101))
            made += 1
        await asyncio.sleep(0.01)
    return made


async def main(rate: int, seconds: float, qps: float, selector: str, kubeconfig: str | None) -> None:
    types = [ServiceLoad()]
    async with Calls.from_kubeconfig(types, kubeconfig, qps=qps, burst=int(2 * qps)) as calls:
        operator = Operator(calls, selector)
        watching = asyncio.create_task(operator.reflector.run())
        try:
            await operator.reflector.synced.wait()
            made = await measure(operator, rate, seconds, random.Random(0))
            await calls.wait_idle()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        now = calls.statistics()
        sent, written = now.requests["service_load"], now.ended["service_load", CallResult.DONE]
        text = f"{made} wishes for {len(operator.services)} Services, {made / seconds:.0f} a second:"
        text += f" {sent} requests, {written} of them writes, {made / max(1, sent):.0f} wishes per request"
        print(text)  # noqa: T201


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Writes a made-up load into the status of Services.")
    parser.add_argument("--rate", type=int, default=5000, help="measurements a second")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--qps", type=float, default=50.0, help="requests a second")
    parser.add_argument("--selector", default="", help="labels of the Services")
    parser.add_argument("--kubeconfig", default=None)
    given = parser.parse_args()
    asyncio.run(main(given.rate, given.seconds, given.qps, given.selector, given.kubeconfig))
