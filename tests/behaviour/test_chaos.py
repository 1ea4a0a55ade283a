"""Random work under random faults, reproducible from a seed: afterwards everything is as it should be."""

from __future__ import annotations

import random

import pytest

from pilotage.api.quantity import milli_value
from pilotage.client.errors import ApiError
from pilotage.testing.faults import Gone
from pilotage.testing.harness import Harness

BIND = "/binding$"
STATUS = r"/pods/[^/]+/status$"
CLIENTS = ("scheduler", "services")


class Chaos:
    """One run: `steps` random moves, then the faults end and the cluster settles."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.h = Harness(seed=seed)
        self.pods = 0
        self.nodes = 0
        self.moves = (
            (self.add_pods, 6),
            (self.delete_pod, 3),
            (self.add_node, 2),
            (self.delete_node, 1),
            (self.cordon, 1),
            (self.scale, 2),
            (self.break_something, 6),
            (self.restart, 1),
        )

    def run(self, steps: int) -> Harness:
        self.h.start()
        for _ in range(3):
            self.add_node()
        self.h.create(self.h.deployment("web", 3, self.h.pod("x", cpu=1)))
        for _ in range(steps):
            [move] = self.rng.choices([m for m, _ in self.moves], [w for _, w in self.moves])
            try:
                move()
            except ApiError as error:
                if error.status not in (404, 409):
                    raise
            self.h.run_for(self.rng.choice([0.0, 0.1, 0.7, 3.0]))
        self.h.faults.clear()
        for node in self.h.objects("nodes"):
            self.h.cordon(node["metadata"]["name"], False)
        self.h.run_for(120)
        return self.h

    def add_pods(self) -> None:
        for _ in range(self.rng.randint(1, 4)):
            self.pods += 1
            cpu = self.rng.choice(["100m", "500m", "1", "2", "20"])
            self.h.create(self.h.pod(f"p{self.pods}", cpu=cpu, priority=self.rng.choice([None, 10])))

    def delete_pod(self) -> None:
        names = sorted(self.h.pod_states("default"))
        if names:
            grace = self.rng.choice([None, 0, 5])
            self.h.delete("pods", self.rng.choice(names), grace=grace)

    def add_node(self) -> None:
        self.nodes += 1
        self.h.create(self.h.node(f"n{self.nodes}", cpu=self.rng.choice([2, 4, 8])))

    def delete_node(self) -> None:
        names = [node["metadata"]["name"] for node in self.h.objects("nodes")]
        if len(names) > 2:
            self.h.delete("nodes", self.rng.choice(names))

    def cordon(self) -> None:
        names = [node["metadata"]["name"] for node in self.h.objects("nodes")]
        self.h.cordon(self.rng.choice(names), self.rng.random() < 0.5)

    def scale(self) -> None:
        self.h.scale("web", self.rng.randint(0, 6))

    def restart(self) -> None:
        self.h.restart_scheduler(graceful=self.rng.random() < 0.5)

    # Not here: a bind that lands after its scheduler was killed or gave it up. Nobody could know of it in
    # time, so it may overfill a node (a real kubelet would refuse the pod).
    def break_something(self) -> None:
        f, rng = self.h.faults, self.rng
        client = rng.choice(CLIENTS)
        times = rng.randint(1, 4)
        rng.choice(
            [
                lambda: f.answer(rng.choice([500, 503]), client=client, times=times),
                lambda: f.answer(503, client=client, path=BIND, times=times),
                lambda: f.too_many_requests(rng.randint(1, 3), client=client, times=times),
                lambda: f.latency(rng.random(), rng.random(), client=client, times=10 * times),
                lambda: f.lose_answer(client=client, path=BIND, times=times),
                lambda: f.lose_answer(client=client, method="POST", times=1),
                lambda: f.lose_answer(after_write=False, client=client, times=times),
                lambda: f.answer(409, client=client, path=STATUS, times=times),
                lambda: f.hold(client=client, path=BIND, times=times),
                lambda: f.unreachable_for(rng.choice([1, 5, 15]), client=client),
                lambda: f.drop_watches(client=client),
                lambda: f.delay_watches(rng.random() * 3, client=client, times=times),
                lambda: f.cut_watch_after(rng.randint(1, 5), client=client, times=times),
                lambda: (self.h.server.compact(), f.drop_watches(client=client)),
                lambda: (f.gone(rng.choice([Gone.STATUS, Gone.EVENT])), f.drop_watches(client=client)),
            ]
        )()


def check_settled(h: Harness) -> None:
    """What fits is running; what waits could not be placed anywhere."""
    h.check_converged()
    calls = h.scheduler.calls.statistics(h.clock.time())
    assert (calls.pending.total(), calls.in_flight.total()) == (0, 0)
    statistics = h.engine.statistics()
    assert (statistics.in_flight, statistics.assumed_pods, statistics.binding) == (0, 0, 0)
    states = h.pod_states("default")
    for name, state in states.items():
        if state.node:
            assert state.phase == "Running", (name, state)
            assert state.scheduled == "True", (name, state)
        else:
            assert state.reason == "Unschedulable", (name, state)
            assert "Insufficient cpu" in state.message, (name, state)
    deployment = h.get("deployments", "web")
    mine = [name for name in states if name.startswith("web-")]
    assert len(mine) == deployment["spec"]["replicas"]
    for name, state in states.items():
        if not state.node:
            assert not _fits_somewhere(h, name), (name, h.story(name))


def _fits_somewhere(h: Harness, name: str) -> bool:
    def asked(pod: dict[str, object]) -> int:
        return sum(
            milli_value(container.get("resources", {}).get("requests", {}).get("cpu", 0))
            for container in pod["spec"]["containers"]  # type: ignore[index]
        )

    free = {n["metadata"]["name"]: milli_value(n["status"]["allocatable"]["cpu"]) for n in h.objects("nodes")}
    for pod in h.objects("pods"):
        if pod["spec"].get("nodeName") in free:
            free[pod["spec"]["nodeName"]] -= asked(pod)
    return max(free.values()) >= asked(h.get("pods", name))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_after_any_trouble_everything_settles(seed: int) -> None:
    chaos = Chaos(seed)
    try:
        check_settled(chaos.run(steps=60))
    finally:
        chaos.h.close()
