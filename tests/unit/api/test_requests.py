"""What a pod asks for and occupies; field cases C1, C2, C7, C11, E11."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.api.pods import Pod
from pilotage.api.quantity import MAX_VALUE, QuantityError
from pilotage.api.requests import (
    measure,
    nonzero_requests,
    nonzero_usage,
    pod_requests,
    pod_usage,
)

MIB = 1024 * 1024
DEFAULT = (100, 200 * MIB)


def container(name: str = "c", **requests: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": requests}}


def sidecar(name: str, **requests: Any) -> dict[str, Any]:
    return {**container(name, **requests), "restartPolicy": "Always"}


def pod(*containers: dict[str, Any], status: Any = None, **spec: Any) -> Pod:
    tree = {"spec": {"containers": list(containers), **spec}, "status": status or {}}
    return msgspec.convert(tree, Pod)


def running(name: str = "c", allocated: Any = None, actual: Any = None) -> dict[str, Any]:
    one: dict[str, Any] = {"name": name}
    if allocated is not None:
        one["allocatedResources"] = allocated
    if actual is not None:
        one["resources"] = {"requests": actual}
    return one


INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
DEFERRED = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}


def test_sums_containers_exactly_and_rounds_once() -> None:
    asked = pod_requests(
        pod(container("a", cpu="0.5m", memory="0.5"), container("b", cpu="0.5m", memory="0.5"))
    )
    assert asked == {"cpu": 1, "memory": 1}


@pytest.mark.parametrize(
    ("cpu", "milli"),
    [("0.1", 100), ("100m", 100), ("1e3", 1_000_000), ("1n", 1), (2, 2000), ("128974848000m", 128974848000)],
)
def test_cpu_rounds_up_to_milli(cpu: Any, milli: int) -> None:
    assert pod_requests(pod(container(cpu=cpu))) == {"cpu": milli}


def test_memory_and_scalars_round_up_to_units() -> None:
    asked = pod_requests(pod(container(memory="1.5", **{"example.com/gpu": "2", "hugepages-2Mi": "4Mi"})))
    assert asked == {"memory": 2, "example.com/gpu": 2, "hugepages-2Mi": 4 * MIB}


def test_nothing_asked_is_absent() -> None:
    assert pod_requests(pod(container())) == {}
    assert pod_requests(pod()) == {}


def test_e11_zero_of_a_resource_is_not_asked() -> None:
    assert pod_requests(pod(container(cpu="100m", **{"example.com/dev": 0}))) == {"cpu": 100}
    assert pod_requests(pod(container(cpu=0, memory="64Mi"))) == {"memory": 64 * MIB}


def test_c7_sidecars_are_a_running_sum() -> None:
    def asked(second: str) -> int:
        inits = [
            container("i1", cpu=1),
            sidecar("s1", cpu=1),
            container("i2", cpu=second),
            sidecar("s2", cpu="0.5"),
        ]
        return pod_requests(pod(container(cpu=2), initContainers=inits, overhead={"cpu": "0.25"}))["cpu"]

    assert asked("4") == 5250
    assert asked("2") == 3750


def test_sidecar_start_counts_with_the_sidecars_before_it() -> None:
    inits = [sidecar("s1", cpu=1), sidecar("s2", cpu=3)]
    assert pod_requests(pod(container(cpu=1), initContainers=inits)) == {"cpu": 5000}
    assert pod_requests(pod(initContainers=inits)) == {"cpu": 4000}


def test_init_peak_is_per_resource() -> None:
    inits = [container("i", cpu=4), container("j", memory="1Gi")]
    asked = pod_requests(pod(container(cpu=1, memory="10Mi"), initContainers=inits))
    assert asked == {"cpu": 4000, "memory": 1024 * MIB}


def test_c11_pod_level_replaces_the_sum_of_its_resources() -> None:
    one = pod(
        container("c1", cpu=1, **{"example.com/gpu": "1"}),
        container("c2"),
        resources={"requests": {"cpu": "3", "example.com/gpu": "7", "ephemeral-storage": "1Gi"}},
        overhead={"cpu": "0.2"},
    )
    assert pod_requests(one) == {"cpu": 3200, "example.com/gpu": 1}
    assert pod_usage(one) == pod_requests(one)
    assert pod_requests(one, pod_level=False) == {"cpu": 1200, "example.com/gpu": 1}


def test_pod_level_may_set_hugepages() -> None:
    one = pod(container(**{"hugepages-2Mi": "2Mi"}), resources={"requests": {"hugepages-2Mi": "8Mi"}})
    assert pod_requests(one) == {"hugepages-2Mi": 8 * MIB}


def test_c11_pod_level_resize_counts_the_larger() -> None:
    one = pod(
        container(cpu=1),
        resources={"requests": {"cpu": "1"}},
        overhead={"cpu": "0.2"},
        status={"allocatedResources": {"cpu": "3"}, "resources": {"requests": {"cpu": "2"}}},
    )
    assert pod_usage(one) == {"cpu": 3200}
    assert pod_requests(one) == {"cpu": 1200}


def test_c1_actual_above_spec_still_counts() -> None:
    shrinking = pod(
        container(cpu=1), status={"containerStatuses": [running(allocated={"cpu": 1}, actual={"cpu": 3})]}
    )
    assert pod_usage(shrinking) == {"cpu": 3000}
    assert pod_requests(shrinking) == {"cpu": 1000}
    shrunk = pod(
        container(cpu=1), status={"containerStatuses": [running(allocated={"cpu": 1}, actual={"cpu": 1})]}
    )
    assert pod_usage(shrunk) == {"cpu": 1000}


def test_c2_allocated_counts_and_resources_are_judged_separately() -> None:
    one = pod(
        container(cpu=1, memory="4Gi"),
        status={
            "containerStatuses": [
                running(allocated={"cpu": 3, "memory": "1Gi"}, actual={"cpu": 2, "memory": "2Gi"})
            ]
        },
    )
    assert pod_usage(one) == {"cpu": 3000, "memory": 4096 * MIB}


def test_maximum_is_over_whole_pod_sums() -> None:
    """1.37: a grows while b shrinks; per container it would be 4 + 4."""
    one = pod(
        container("a", cpu=4),
        container("b", cpu=1),
        status={
            "containerStatuses": [
                running("a", allocated={"cpu": 1}, actual={"cpu": 1}),
                running("b", allocated={"cpu": 4}, actual={"cpu": 4}),
            ]
        },
    )
    assert pod_usage(one) == {"cpu": 5000}


def test_missing_data_falls_back_from_actual_to_allocated_to_spec() -> None:
    one = pod(
        container("a", cpu=1),
        container("b", cpu=1),
        status={"containerStatuses": [running("a", allocated={"cpu": 2})]},
    )
    assert pod_usage(one) == {"cpu": 3000}


def test_infeasible_resize_leaves_the_spec_out() -> None:
    statuses = [running(allocated={"cpu": 1}, actual={"cpu": 2})]
    too_big = pod(container(cpu=64), status={"containerStatuses": statuses, "conditions": [INFEASIBLE]})
    assert pod_usage(too_big) == {"cpu": 2000}
    deferred = pod(container(cpu=64), status={"containerStatuses": statuses, "conditions": [DEFERRED]})
    assert pod_usage(deferred) == {"cpu": 64000}
    over = {**INFEASIBLE, "status": "False"}
    settled = pod(container(cpu=64), status={"containerStatuses": statuses, "conditions": [over]})
    assert pod_usage(settled) == {"cpu": 64000}


def test_infeasible_without_container_data_counts_the_spec() -> None:
    one = pod(container("a", cpu=3), status={"containerStatuses": [running("a")], "conditions": [INFEASIBLE]})
    assert pod_usage(one) == {"cpu": 3000}


def test_sidecar_resize_uses_its_init_status() -> None:
    one = pod(
        container(cpu=1),
        initContainers=[sidecar("s", cpu=1)],
        status={"initContainerStatuses": [running("s", allocated={"cpu": 2}, actual={"cpu": 2})]},
    )
    assert pod_usage(one) == {"cpu": 3000}


def test_nonzero_defaults_are_per_container_and_explicit_zero_stays() -> None:
    assert nonzero_requests(pod(container("a"), container("b", cpu="1"))) == (1100, 400 * MIB)
    assert nonzero_requests(pod(container(cpu=0, memory=0))) == (0, 0)
    assert nonzero_requests(pod(container(), overhead={"cpu": "1"})) == (1100, 200 * MIB)


def test_nonzero_defaults_reach_init_containers_and_sidecars() -> None:
    assert nonzero_requests(pod(container(cpu="10m"), initContainers=[container("i")])) == DEFAULT
    assert nonzero_requests(pod(container(), initContainers=[sidecar("s")])) == (200, 400 * MIB)


def test_nonzero_of_an_incoming_pod_ignores_pod_level() -> None:
    one = pod(container(), resources={"requests": {"cpu": "2"}})
    assert nonzero_requests(one) == DEFAULT


def test_nonzero_of_a_pod_on_a_node_uses_pod_level_and_fills_only_what_nobody_names() -> None:
    assert nonzero_usage(pod(container(), resources={"requests": {"cpu": "2"}})) == (2000, 200 * MIB)
    assert nonzero_usage(
        pod(container("a", memory="1Mi"), container("b"), resources={"requests": {"cpu": "2"}})
    ) == (
        2000,
        MIB,
    )
    assert nonzero_usage(pod(container(cpu="0"), resources={"requests": {"memory": "1Mi"}})) == (0, MIB)


def test_pod_level_status_means_nothing_without_pod_level_spec() -> None:
    one = pod(container(cpu=1), resources={}, status={"resources": {"requests": {"cpu": 9}}})
    assert pod_usage(one) == {"cpu": 1000}
    assert nonzero_usage(one) == (1000, 200 * MIB)


def test_measure_is_all_of_them() -> None:
    plain = pod(container(cpu=1), container("d"))
    resized = pod(container(cpu=1), status={"containerStatuses": [running(actual={"cpu": 3})]})
    levelled = pod(container(), resources={"requests": {"cpu": "2"}})
    full = pod(container(cpu=1, memory=5), initContainers=[container("i", cpu=2, memory=0)], resources={})
    for one in (plain, resized, levelled, full):
        amounts = measure(one)
        assert amounts.requests == pod_requests(one)
        assert amounts.usage == pod_usage(one)
        assert amounts.nonzero == nonzero_requests(one)
        assert amounts.nonzero_usage == nonzero_usage(one)


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (pod(container("a"), container(cpu="1 Gi")), "spec.containers[1].resources.requests.cpu"),
        (
            pod(container(), initContainers=[container(cpu="x")]),
            "spec.initContainers[0].resources.requests.cpu",
        ),
        (pod(container(), resources={"requests": {"cpu": "x"}}), "spec.resources.requests.cpu"),
        (pod(container(), overhead={"memory": "x"}), "spec.overhead.memory"),
    ],
)
def test_bad_quantity_names_field_and_value(bad: Pod, field: str) -> None:
    for function in (pod_requests, pod_usage, nonzero_usage, measure):
        with pytest.raises(QuantityError) as caught:
            function(bad)
        assert caught.value.field == field
        assert field in str(caught.value)


def test_bad_quantity_in_status_is_the_usage_of_a_pod_on_a_node() -> None:
    one = pod(container(cpu=1), status={"containerStatuses": [running(actual={"cpu": "x"})]})
    assert pod_requests(one) == {"cpu": 1000}
    with pytest.raises(QuantityError) as caught:
        pod_usage(one)
    assert caught.value.field == "status.containerStatuses[0].resources.requests.cpu"


def test_negative_requests_are_refused() -> None:
    with pytest.raises(QuantityError) as caught:
        pod_requests(pod(container(cpu="-1")))
    assert caught.value.field == "spec.containers[0].resources.requests.cpu"
    assert caught.value.value == "-1"


def test_sums_stay_inside_64_bits() -> None:
    assert pod_requests(pod(container("a", memory="9E"), container("b", memory="9E"))) == {
        "memory": MAX_VALUE
    }
