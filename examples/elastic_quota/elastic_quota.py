"""How much CPU the pods of a namespace use, in the status of its ElasticQuota: a plugin with a call type.

The plugin wishes the newest amount whenever a pod gets a node or gives it back. The call type makes few
writes of many wishes, none of which waits in anybody's way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from pilotage.api.meta import KubeObject, View
from pilotage.api.wire import Request, Response
from pilotage.calls.answers import status_of
from pilotage.calls.base import BaseCallType
from pilotage.calls.types import Lane, RetryPolicy, Sent
from pilotage.calls.verdicts import Rebase, Skip, Verdict
from pilotage.framework.calls import Call, ObjectKey
from pilotage.framework.plugin import Plugin

RESOURCE = "elasticquotas.scheduling.example.com"
ROOT = "/apis/scheduling.example.com/v1alpha1"


@dataclass(frozen=True, slots=True)
class RecordUsage(Call):
    """The wish: `key`'s status says that so many milli-CPU are in use."""

    milli_cpu: int

    @property
    def call_type(self) -> str:
        return "elastic_quota_status"


class Usage(View, frozen=True):
    cpu: str = ""


class QuotaStatus(View, frozen=True):
    used: Usage = Usage()


class ElasticQuota(KubeObject, frozen=True):
    """As much of the object as the call type reads."""

    status: QuotaStatus = QuotaStatus()


class ElasticQuotaStatus(BaseCallType[RecordUsage]):
    """PATCH elasticquotas/status on the newest object; of several wishes the newest is written."""

    name = "elastic_quota_status"
    retry = RetryPolicy(tries=10, first_delay=0.2, max_delay=10.0, max_age=120.0)

    def lane(self, call: RecordUsage) -> Lane:
        return Lane.STATUS  # a figure for people: no bind waits for it

    def merge(self, old: RecordUsage, new: RecordUsage) -> RecordUsage:
        return new

    def after(self, call: RecordUsage, sent: RecordUsage) -> RecordUsage:
        return call

    def is_no_op(self, call: RecordUsage, base: KubeObject) -> bool:
        return isinstance(base, ElasticQuota) and base.status.used.cpu == amount(call)

    def reads_first(self, call: RecordUsage) -> bool:
        return True

    def read(self, call: RecordUsage) -> Request:
        return Request("GET", path(call.key))

    def requests(self, call: RecordUsage, base: KubeObject | None, now: float) -> Sequence[Request]:
        assert base is not None, "read first"
        body: dict[str, Any] = {
            "metadata": {"resourceVersion": base.metadata.resource_version},
            "status": {"used": {"cpu": amount(call)}},
        }
        where = f"{path(call.key)}/status"
        kind = "application/merge-patch+json"
        return (Request("PATCH", where, body=msgspec.json.encode(body), content_type=kind),)

    def decode(self, body: bytes) -> ElasticQuota | None:
        try:
            return msgspec.json.decode(body, type=ElasticQuota)
        except msgspec.DecodeError:
            return None

    def on_conflict(self, sent: Sent[RecordUsage], response: Response) -> Verdict:
        """Somebody changed the object meanwhile: look at it again, then write on top of it."""
        return Rebase(status_of(response).message, None, 409, "Conflict")

    def on_error(self, sent: Sent[RecordUsage], response: Response) -> Verdict:
        if response.status == 404:
            return Skip("the quota is gone", 404, "NotFound")
        return super().on_error(sent, response)


class ElasticQuotaUsage(Plugin):
    """Reserve plugin. Its args: `quota`, the name of the ElasticQuota in each namespace."""

    def reserve(self, cycle, pod, node_name):
        self.tell(pod.namespace, pod.uid, pod.requests.get("cpu", 0))

    def unreserve(self, cycle, pod, node_name):
        self.tell(pod.namespace, pod.uid, 0)

    def tell(self, namespace: str, uid: str, milli_cpu: int) -> None:
        """`milli_cpu`: what this pod uses now, whatever the cluster says of it by then."""
        cluster = self.handle.cluster
        placed = [one for one in cluster.pods() if one.namespace == namespace and one.uid != uid]
        used = sum(one.requests.get("cpu", 0) for one in placed if cluster.node_of(one.uid))
        quota = (self.args or {}).get("quota", "default")
        self.handle.submit(RecordUsage(ObjectKey(RESOURCE, namespace, quota, ""), used + milli_cpu))


def amount(call: RecordUsage) -> str:
    return f"{call.milli_cpu}m"


def path(key: ObjectKey) -> str:
    return f"{ROOT}/namespaces/{key.namespace}/elasticquotas/{key.name}"
