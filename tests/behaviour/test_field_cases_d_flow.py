"""Field cases D1 D2 D4 D5 on the whole system: nothing stays in flight, and no wake-up is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pilotage.framework.events import Action, ClusterEvent, EventRegistration, Hint, Resource
from pilotage.framework.plugin import Plugin
from pilotage.framework.registry import Registry
from pilotage.framework.status import SUCCESS, Status, error, unschedulable
from pilotage.plugins import default_registry
from pilotage.testing.extenders import Extender
from pilotage.testing.harness import Harness

GATE = {"name": "example.com/x"}
EXISTS = {"key": "team", "operator": "Exists"}
FINALIZER = {"finalizers": ["example.com/keep"]}


def with_plugin(name: str, make: Callable[..., Any]) -> dict[str, Any]:
    """Options of a harness whose profile has this plugin too."""
    registry: Registry = default_registry()
    registry.register(name, make)
    plugins = {"multiPoint": {"enabled": [{"name": name}]}}
    profiles = [{"schedulerName": "default-scheduler", "plugins": plugins}]
    return {"registry": registry, "settings": {"profiles": profiles}}


def results(h: Harness, name: str) -> list[str]:
    return [attempt.result for _, attempt in h.attempts(name)]


def times(h: Harness, name: str) -> list[float]:
    return [time for time, _ in h.attempts(name)]


def assert_quiet(h: Harness) -> None:
    """Nothing in flight, and no event kept for anybody."""
    found = h.engine.statistics()
    assert (found.in_flight, dict(found.in_flight_events)) == (0, {})


def keep_busy(h: Harness, rounds: int) -> None:
    """Node updates while other pods come and go."""
    for number in range(rounds):
        h.label("nodes", "n1", turn=str(number))
        if number % 20 == 0:
            h.create(h.pod(f"busy{number}", cpu="10m", grace=0))
            h.run_until_bound(f"busy{number}")
            h.delete("pods", f"busy{number}", grace=0)
            assert_quiet(h)
    h.run_for(2)
    assert_quiet(h)


# -- D1 ------------------------------------------------------------------------------------------


def test_d1_a_pod_skipped_because_it_is_being_deleted_keeps_no_events() -> None:
    with Harness(seed=1) as h:
        h.create(h.node("n1", cpu=4))
        h.run_for(1)
        held = h.faults.hold_watches(path="/pods", client="scheduler")
        pod = h.pod("gone", cpu=1)
        pod["metadata"] |= FINALIZER
        h.create(pod)
        h.delete("pods", "gone", grace=0)
        assert h.get("pods", "gone")["metadata"]["deletionTimestamp"]
        held.release()
        h.run_for(1)
        assert_quiet(h)
        keep_busy(h, 300)
        assert not h.bindings("gone")
        h.patch("pods", "gone", {"metadata": {"finalizers": None}})
        h.run_for(1)
        assert not h.pod_state("gone").exists


def test_d1_a_pod_deleted_while_assumed_keeps_no_events() -> None:
    with Harness(seed=2) as h:
        h.create(h.node("n1", cpu=4))
        hold = h.faults.hold(path="/gone/binding$", times=1)
        h.create(h.pod("gone", cpu=1))
        h.run_until(lambda: hold.waiting, timeout=5)
        h.delete("pods", "gone", grace=0)
        h.run_for(1)
        assert_quiet(h)
        hold.release()
        keep_busy(h, 100)


def test_d1_pods_of_other_schedulers_are_never_in_flight() -> None:
    with Harness(seed=3) as h:
        h.create(h.node("n1", cpu=4))
        h.create(*(h.pod(f"other{i}", schedulerName="somebody-else") for i in range(5)))
        h.run_for(1)
        assert_quiet(h)
        assert h.engine.statistics().foreign_pods == 5
        keep_busy(h, 40)


class Breaks:
    """Raises in one extension point, for pods that are named after it."""

    def _check(self, pod: Any, point: str) -> None:
        if pod.name == point:
            raise RuntimeError(f"{point} broke")

    def pre_filter(self, cycle: object, pod: Any, view: object) -> Status:
        self._check(pod, "prefilter")
        return SUCCESS

    def filter(self, cycle: object, pod: Any, node: object) -> Status:
        self._check(pod, "filter")
        return SUCCESS

    def score(self, cycle: object, pod: Any, node: object) -> int:
        self._check(pod, "score")
        return 0

    def reserve(self, cycle: object, pod: Any, node: str) -> Status:
        self._check(pod, "reserve")
        return SUCCESS

    def unreserve(self, cycle: object, pod: Any, node: str) -> None: ...

    async def pre_bind(self, cycle: object, pod: Any, node: str) -> Status:
        self._check(pod, "prebind")
        return SUCCESS


POINTS = ("prefilter", "filter", "score", "reserve", "prebind")


@pytest.mark.parametrize("point", POINTS)
def test_d1_an_exception_in_the_cycle_keeps_no_events(point: str) -> None:
    with Harness(seed=4, **with_plugin("Breaks", lambda args, handle: Breaks())) as h:
        h.create(h.node("n1", cpu=4), h.node("n2", cpu=4), h.pod(point, cpu=1))
        h.run_for(1)
        assert results(h, point) == ["error"]
        assert_quiet(h)
        keep_busy(h, 60)


# -- D2 ------------------------------------------------------------------------------------------


class FailsOnce:
    """Reserve fails at the first try: it raises, or answers an error."""

    def __init__(self, how: str) -> None:
        self.how = how

    def reserve(self, cycle: object, pod: object, node: str) -> Status:
        how, self.how = self.how, ""
        if how == "raises":
            raise RuntimeError("409 from somewhere")
        return error("409 from somewhere") if how else SUCCESS

    def unreserve(self, cycle: object, pod: object, node: str) -> None: ...


@pytest.mark.parametrize("how", ["raises", "answers"])
def test_d2_an_error_is_retried_without_an_event_though_a_plugin_rejected_before(how: str) -> None:
    with Harness(seed=5, **with_plugin("FailsOnce", lambda args, handle: FailsOnce(how))) as h:
        h.create(h.node("n1"), h.pod("a", node_selector={"disk": "ssd"}))
        h.run_for(5)
        h.label("nodes", "n1", disk="ssd")
        h.run_until(lambda: len(h.attempts("a")) == 2, timeout=3)
        figures = h.engine.statistics()
        assert (figures.backoff, figures.unschedulable) == (1, 0)
        h.run_until_bound("a", timeout=5)
        assert results(h, "a") == ["unschedulable", "error", "scheduled"]
        _, second, third = times(h, "a")
        assert 1 <= third - second <= 2
        assert "409 from somewhere" in "\n".join(entry.text for entry in h.story("a"))


# -- D4 ------------------------------------------------------------------------------------------


def soon(h: Harness, name: str, since: float, count: int) -> None:
    """The attempt with this number begins within 100 ms, with nothing else going on."""
    h.run_until(lambda: len(h.attempts(name)) >= count, timeout=5)
    assert times(h, name)[count - 1] - since <= 0.1


def test_d4_an_attempt_that_missed_an_event_is_repeated_at_once() -> None:
    answers = iter([{"NodeNames": []}, {"NodeNames": ["n1"]}])
    extender = Extender(delay=0.5, filter=lambda args: next(answers))
    settings = {"extenders": [{"urlPrefix": "http://ext", "filterVerb": "filter", "nodeCacheCapable": True}]}
    with Harness(seed=6, settings=settings, extenders={"http://ext": extender}) as h:
        h.create(h.node("n1"), h.pod("a"))
        h.run_for(0.2)
        assert extender.under_way == 1
        h.create(h.node("n2"))
        h.run_until(lambda: len(h.attempts("a")) == 1, timeout=1)
        failed = h.now
        h.run_until(lambda: len(extender.asked("filter")) == 2, timeout=5)
        assert h.now - failed <= 0.1
        h.run_until_bound("a", timeout=1)


def wake_by_toleration(h: Harness) -> None:
    h.patch("pods", "a", {"spec": {"tolerations": [*h.get("pods", "a")["spec"]["tolerations"], EXISTS]}})


def wake_by_taint(h: Harness) -> None:
    h.patch("nodes", "n1", {"spec": {"taints": None}})


def wake_by_new_node(h: Harness) -> None:
    h.create(h.node("n2"))


@pytest.mark.parametrize(
    "wake", [wake_by_toleration, wake_by_taint, wake_by_new_node], ids=lambda wake: wake.__name__
)
def test_d4_every_path_into_the_active_queue_wakes_the_lonely_scheduler(
    wake: Callable[[Harness], None],
) -> None:
    taint = {"key": "team", "value": "x", "effect": "NoSchedule"}
    with Harness(seed=7) as h:
        h.create(h.node("n1", taints=[taint]), h.pod("a"))
        h.run_for(100)
        start, tries = h.now, len(h.attempts("a"))
        wake(h)
        soon(h, "a", start, tries + 1)
        h.run_until_bound("a", timeout=1)


def test_d4_the_end_of_a_backoff_and_of_a_gate_wake_the_lonely_scheduler() -> None:
    with Harness(seed=8) as h:
        h.faults.answer(503, path="/a/binding$", times=1)
        h.create(h.node("n1"), h.pod("b", schedulingGates=[GATE]), h.pod("a"))
        h.run_until_bound("a", timeout=3)
        start = h.now
        h.patch("pods", "b", {"spec": {"schedulingGates": [{"$patch": "delete", **GATE}]}})
        soon(h, "b", start, 1)


# -- D5 ------------------------------------------------------------------------------------------


class NeedsService(Plugin):
    """Holds back pods labelled `needs` until a service of that name exists; counts what it is asked."""

    def __init__(self, asked: Counter[str], handle: Any) -> None:
        super().__init__(None, handle)
        self._asked = asked

    def pre_enqueue(self, pod: Any) -> Status:
        self._asked["gate"] += 1
        name = (pod.pod.metadata.labels or {}).get("needs")
        known = self.handle.cluster.objects.get("services", name, pod.namespace) if name else True
        return SUCCESS if known else unschedulable(f"no service {name}")

    def events_to_register(self) -> Sequence[EventRegistration]:
        return (EventRegistration(ClusterEvent(Resource.SERVICE, Action.ADD), self._hint),)

    def _hint(self, pod: Any, old: object, new: Any) -> Hint:
        self._asked["hint"] += 1
        wanted = (pod.pod.metadata.labels or {}).get("needs")
        return Hint.QUEUE if new.metadata.name == wanted else Hint.SKIP


def service(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"clusterIP": "None"},
    }


def test_d5_gated_pods_cost_nothing_and_a_plugin_gate_opens_on_its_own_event() -> None:
    asked: Counter[str] = Counter()
    options = with_plugin("NeedsService", lambda args, handle: NeedsService(asked, handle))
    with Harness(seed=9, **options) as h:
        h.create(h.node("n1", pods=500), h.pod("held", labels={"needs": "db"}))
        h.create(*(h.pod(f"gated{i}", schedulingGates=[GATE]) for i in range(300)))
        h.create(*(h.pod(f"other{i}", grace=0) for i in range(60)))
        h.run_until_running(*(f"other{i}" for i in range(60)))
        before = Counter(asked)
        for number in range(60):
            h.delete("pods", f"other{number}", grace=0)
        h.run_for(1)
        assert asked == before, "no hint and no gate is asked about what nobody registered"
        h.create(service("cache"))
        h.run_for(1)
        assert asked - before == Counter(hint=1), "only the pod that this plugin gates is asked about"
        start = h.now
        h.create(service("db"))
        assert h.run_until_bound("held", timeout=1) <= 0.1
        assert times(h, "held")[0] - start <= 0.1
        assert h.engine.statistics().gated == 300
        h.run_for(700)
        assert h.engine.statistics().gated == 300
        assert not any(h.attempts(f"gated{i}") for i in range(300))
        h.patch("pods", "gated7", {"spec": {"schedulingGates": [{"$patch": "delete", **GATE}]}})
        h.run_until_bound("gated7", timeout=1)
