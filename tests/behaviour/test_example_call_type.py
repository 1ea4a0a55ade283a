"""examples/elastic_quota: a call type on a custom resource, under the whole scheduler (A2, A16)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from pilotage.api.wire import Request, Response
from pilotage.plugins import default_registry
from pilotage.testing.faultkinds import Fault, Hold, Send, failure
from pilotage.testing.harness import Harness

EXAMPLE = Path(__file__).parents[2] / "examples" / "elastic_quota"
PATH = "/apis/scheduling.example.com/"
Tree = dict[str, Any]


class CustomResources(Fault):
    """The part of an API server that serves one ElasticQuota: GET, and PATCH of its status with a lock."""

    def __init__(self) -> None:
        self.quota: Tree = yaml.safe_load((EXAMPLE / "quota.yaml").read_text())
        self.quota["metadata"] |= {"uid": "q", "resourceVersion": "1"}
        self.written: list[str] = []

    async def request(self, request: Request, send: Send) -> Response:
        del send
        if request.method == "PATCH":
            body = msgspec.json.decode(request.body)
            if body["metadata"]["resourceVersion"] != self.quota["metadata"]["resourceVersion"]:
                return Response(409, failure(409, "Conflict", "the object has been modified"))
            self.change({"status": body["status"]})
            self.written.append(body["status"]["used"]["cpu"])
        return Response(200, msgspec.json.encode(self.quota))

    def change(self, parts: Tree) -> None:
        self.quota |= parts
        version = int(self.quota["metadata"]["resourceVersion"]) + 1
        self.quota["metadata"] = self.quota["metadata"] | {"resourceVersion": str(version)}


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(EXAMPLE)
    import elastic_quota

    yield elastic_quota
    sys.modules.pop("elastic_quota", None)


def cluster(example: Any, quota: CustomResources | Fault, slow: str | None = None) -> Harness:
    """`slow`: the method whose requests take half a second."""
    registry = default_registry()
    registry.register("ElasticQuotaUsage", example.ElasticQuotaUsage)
    h = Harness(
        seed=1,
        settings=yaml.safe_load((EXAMPLE / "scheduler.yaml").read_text()),
        registry=registry,
        call_types=[example.ElasticQuotaStatus()],
    )
    h.start()
    if slow is not None:
        h.faults.latency(before=0.5, path=PATH, method=slow)
    h.faults.add(quota, path=PATH)
    h.create(h.node("n1", cpu=64), h.node("n2", cpu=64))
    return h


def requests(h: Harness, verb: str) -> int:
    return len(h.requests(client="scheduler", verb=verb, path=PATH))


def test_many_wishes_are_few_writes_and_the_newest_amount_is_written(example: Any) -> None:
    quota = CustomResources()
    with cluster(example, quota, slow="PATCH") as h:
        h.create(*(h.pod(f"p{i:02}", cpu="100m") for i in range(60)))
        h.run_for(10)
        assert quota.quota["status"]["used"]["cpu"] == "6000m"
        assert quota.written[-1] == "6000m"
        assert len(quota.written) <= 3, "60 wishes"
        assert requests(h, "get") == 1, "what a write returned is known"
        ended = h.scheduler.calls.statistics().ended
        assert sum(n for (name, _), n in ended.items() if name == "elastic_quota_status") == 60


def test_a_change_of_somebody_else_is_kept(example: Any) -> None:
    quota = CustomResources()
    with cluster(example, quota, slow="PATCH") as h:
        h.create(h.pod("a", cpu=1))
        h.run_for(0.2)
        quota.change({"spec": {"max": {"cpu": "40"}}})
        h.run_for(5)
        assert quota.quota["status"]["used"]["cpu"] == "1000m"
        assert quota.quota["spec"]["max"]["cpu"] == "40"
        conflicts = [one for one in h.requests(client="scheduler", path=PATH) if one.status == 409]
        assert len(conflicts) == 1


def test_an_unchanged_amount_is_not_written(example: Any) -> None:
    quota = CustomResources()
    quota.change({"status": {"used": {"cpu": "1000m"}}})
    with cluster(example, quota) as h:
        h.create(h.pod("a", cpu=1))
        h.run_for(5)
        assert quota.written == []
        assert requests(h, "get") == 1


def test_a_pod_that_gives_its_place_back_is_not_counted(example: Any) -> None:
    quota = CustomResources()
    with cluster(example, quota) as h:
        h.faults.answer(500, path="/pods/b/binding$")
        h.create(h.pod("a", cpu=1))
        h.run_for(2)
        h.create(h.pod("b", cpu=2))
        h.run_for(0.5)
        assert quota.quota["status"]["used"]["cpu"] == "1000m"


def test_no_bind_waits_for_it(example: Any) -> None:
    with cluster(example, Hold()) as h:
        created = h.now
        h.create(*(h.pod(f"p{i}", cpu=1) for i in range(20)))
        h.run_until(lambda: len(h.requests(client="scheduler", path="/binding$")) == 20, timeout=5)
        assert h.now - created < 1


def test_a_quota_that_is_not_there_ends_the_wish_and_nothing_else(example: Any) -> None:
    with cluster(example, Fault()) as h:  # the embedded server knows no such resource
        h.create(h.pod("a", cpu=1))
        h.run_until_running("a")
        assert h.scheduler.calls.is_idle


def test_a_wish_of_a_type_that_nobody_registered_is_told(example: Any) -> None:
    registry = default_registry()
    registry.register("ElasticQuotaUsage", example.ElasticQuotaUsage)
    settings = yaml.safe_load((EXAMPLE / "scheduler.yaml").read_text())
    with Harness(seed=1, settings=settings, registry=registry) as h:
        h.create(h.node("n1", cpu=4), h.pod("a", cpu=1))
        h.run_until_running("a")
        (told,) = [text for text in h.recorder.notes if "default/team" in text]
        assert "failed: unknown call type 'elastic_quota_status'" in told
