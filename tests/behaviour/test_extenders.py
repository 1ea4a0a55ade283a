"""HTTP extenders, played in process: what they say counts; when they fail, only their own pods pay."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotage.api.wire import Request
from pilotage.testing.extenders import Extender
from pilotage.testing.harness import Harness

Tree = dict[str, Any]
GPU = "example.com/gpu"


def names(args: Tree) -> list[str]:
    if args["NodeNames"] is not None:
        return list(args["NodeNames"])
    return [node["metadata"]["name"] for node in args["Nodes"]["items"]]


def all_pass(args: Tree) -> Tree:
    return {"Nodes": args["Nodes"], "NodeNames": args["NodeNames"]}


def only(*passed: str, **reasons: str) -> Any:
    """A filter that lets these nodes pass, by name."""

    def answer(args: Tree) -> Tree:
        left = [name for name in names(args) if name in passed]
        return {
            "NodeNames": left,
            "FailedNodes": {name: reasons[name] for name in names(args) if name in reasons},
        }

    return answer


def configured(url: str = "http://ext", **fields: Any) -> Tree:
    return {"urlPrefix": url, "filterVerb": "filter", "nodeCacheCapable": True, **fields}


def world(
    extender: Extender | dict[str, Extender], *settings: Tree, seed: int = 1, **options: Any
) -> Harness:
    played = extender if isinstance(extender, dict) else {"http://ext": extender}
    configuration = {"extenders": list(settings) or [configured()]}
    h = Harness(seed=seed, settings=configuration, extenders=played, **options)
    h.may_overcommit = True  # nodes have no GPUs that anybody but the extender knows of
    return h


def gpu_pod(h: Harness, name: str, **options: Any) -> Tree:
    tree = h.pod(name, cpu=0.1, **options)
    tree["spec"]["containers"][0]["resources"].setdefault("limits", {})[GPU] = "1"
    tree["spec"]["containers"][0]["resources"]["requests"][GPU] = "1"
    return tree


MANAGED = {"managedResources": [{"name": GPU, "ignoredByScheduler": True}]}


def condition(h: Harness, name: str) -> str:
    for one in h.get("pods", name)["status"].get("conditions", ()):
        if one["type"] == "PodScheduled":
            return f"{one['reason']}: {one['message']}"
    return ""


def test_a_filter_narrows_the_nodes() -> None:
    extender = Extender(filter=only("n2"))
    with world(extender) as h:
        h.create(h.node("n1", cpu=4), h.node("n2", cpu=4), h.pod("a", cpu=1))
        h.run_until_running("a")
        assert h.pod_state("a").node == "n2"
        (args,) = extender.asked("filter")
        assert sorted(args["NodeNames"]) == ["n1", "n2"]
        assert args["Nodes"] is None
        assert args["Pod"]["metadata"]["name"] == "a"


def test_whole_objects_go_to_an_extender_without_a_node_cache() -> None:
    extender = Extender(filter=all_pass)
    with world(extender, configured(nodeCacheCapable=False)) as h:
        node = h.node("n1", cpu=4)
        node["status"]["nodeInfo"] = {"kernelVersion": "6.1"}
        pod = h.pod("a", cpu=1)
        pod["spec"]["containers"][0]["env"] = [{"name": "MODE", "value": "fast"}]
        h.create(node, pod)
        h.run_until_running("a")
    (args,) = extender.asked("filter")
    assert args["NodeNames"] is None
    assert args["Nodes"]["items"][0]["status"]["nodeInfo"]["kernelVersion"] == "6.1"
    assert args["Pod"]["spec"]["containers"][0]["env"] == [{"name": "MODE", "value": "fast"}]


def test_rejections_are_told_as_those_of_plugins_and_any_event_tries_again() -> None:
    extender = Extender(filter=only("n3", n1="too hot", n2="too hot"))
    with world(extender) as h:
        h.create(h.node("n1", cpu=4), h.node("n2", cpu=4), h.node("small", cpu=0.5), h.pod("a", cpu=1))
        h.run_until(lambda: "too hot" in condition(h, "a"))
        assert condition(h, "a").startswith(
            "Unschedulable: 0/3 nodes are available: 1 Insufficient cpu, 2 too hot. "
        )
        assert "Extender" in h.engine.waits_on(h.get("pods", "a")["metadata"]["uid"])
        h.create(h.node("n3", cpu=4))
        h.run_until_running("a")
        assert h.pod_state("a").node == "n3"


def test_scores_are_added_by_weight() -> None:
    scores = {"n1": 3, "n2": 7, "n3": 5}

    def prioritize(args: Tree) -> list[Tree]:
        return [{"Host": name, "Score": scores[name]} for name in names(args)]

    extender = Extender(prioritize=prioritize)
    with world(extender, configured(filterVerb="", prioritizeVerb="prioritize", weight=1000)) as h:
        h.create(*(h.node(name, cpu=4) for name in scores), h.pod("a", cpu=1))
        h.run_until_running("a")
        assert h.pod_state("a").node == "n2"


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>502</html>",
        b"",
        b'[{"host": "n1", "score": NaN}]',
        [{"Host": "n1", "Score": 10**30}],
        [{"Host": "n1", "Score": 1.5}],
        [{"Host": 7, "Score": 1}],
        {"Host": "n1"},
        [{"Host": "nowhere", "Score": 10}],
        [],
        503,
        None,
    ],
)
def test_nonsense_scores_change_nothing(answer: Any) -> None:
    extender = Extender(prioritize=lambda _: answer)
    with world(extender, configured(filterVerb="", prioritizeVerb="prioritize", weight=1)) as h:
        h.create(h.node("n1", cpu=4), h.node("n2", cpu=4), h.pod("a", cpu=1))
        h.run_until_running("a", timeout=5)
        assert len(h.attempts("a")) == 1


RUBBISH = [
    (b"<html>502 Bad Gateway</html>", "no JSON"),
    (b"\xff\xfe", "no JSON"),
    ([], "not an object"),
    ({"NodeNames": "n1"}, "not a list"),
    ({"NodeNames": [1]}, "not a text"),
    ({"NodeNames": ["n1", "mars"]}, '"mars", which it was not asked about'),
    ({"NodeNames": ["n1"], "FailedNodes": ["n2"]}, "not an object"),
    ({"Error": "out of order"}, "out of order"),
    (500, "HTTP status 500"),
    (404, "HTTP status 404"),
    (None, "connection refused"),
]


@pytest.mark.parametrize(("answer", "text"), RUBBISH)
@pytest.mark.parametrize("ignorable", [False, True])
def test_a_filter_that_fails_fails_its_pods_unless_it_is_ignorable(
    answer: Any, text: str, ignorable: bool
) -> None:
    extender = Extender(filter=lambda _: answer)
    with world(extender, configured(ignorable=ignorable, **MANAGED)) as h:
        h.create(h.node("n1", cpu=4), h.node("n2", cpu=4), gpu_pod(h, "a"), h.pod("b", cpu=1))
        h.run_until_running("b", timeout=5)
        if ignorable:
            h.run_until_running("a", timeout=5)
            return
        h.run_for(2)
        assert h.pod_state("a").node == ""
        assert condition(h, "a").startswith('SchedulerError: extender "http://ext" at filter: ')
        assert text in condition(h, "a")


def test_a_dead_extender_that_comes_back_gets_its_pods_placed() -> None:
    dead = {"is": True}
    extender = Extender(filter=lambda args: None if dead["is"] else all_pass(args))
    with world(extender, configured(**MANAGED)) as h:
        h.create(h.node("n1", cpu=4), gpu_pod(h, "a"))
        h.run_for(60)
        assert h.pod_state("a").node == ""
        tries = len(extender.asked("filter"))
        assert 5 <= tries <= 12  # with growing pauses
        dead["is"] = False
        assert h.run_until_running("a", timeout=30) <= 12


def test_a_slow_extender_delays_its_own_pods_only() -> None:
    extender = Extender(filter=all_pass, delay=10)
    with world(extender, configured(httpTimeout="30s", **MANAGED)) as h:
        h.create(*(h.node(f"n{i}", cpu=64, pods=110) for i in range(3)), gpu_pod(h, "slow"))
        h.run_for(0.5)
        h.create(*(h.pod(f"p{i}", cpu=0.1) for i in range(100)))
        took = h.run_until_bound(*(f"p{i}" for i in range(100)), timeout=5)
        assert took < 5
        assert h.pod_state("slow").node == ""
        h.run_until_running("slow", timeout=15)
        assert len(h.attempts("slow")) == 1


def test_a_timeout_is_told_with_its_length() -> None:
    extender = Extender(filter=all_pass, delay=10)
    with world(extender, configured(httpTimeout="2s")) as h:
        h.create(h.node("n1", cpu=4), h.pod("a", cpu=1))
        h.run_for(3)
        assert 'extender "http://ext" at filter: no answer within 2 s' in condition(h, "a")


def test_many_pods_ask_a_few_at_a_time_and_timeouts_count_from_sending() -> None:
    extender = Extender(filter=all_pass, delay=3)
    with world(extender, configured(httpTimeout="5s")) as h:
        h.create(h.node("n1", cpu=64, pods=110), *(h.pod(f"p{i}", cpu=0.1) for i in range(60)))
        h.run_until_bound(*(f"p{i}" for i in range(60)), timeout=30)
        assert extender.most_under_way == 16
        assert all(len(h.attempts(f"p{i}")) == 1 for i in range(60))


def test_room_taken_while_an_extender_thinks_is_not_given_twice() -> None:
    extender = Extender(filter=all_pass, delay=4)
    with world(extender, configured(**MANAGED)) as h:
        h.create(h.node("n1", cpu=1, pods=2), gpu_pod(h, "thinker"))
        h.run_for(1)
        h.create(h.pod("a", cpu=0.1), h.pod("b", cpu=0.1))
        h.run_until_running("a", "b", timeout=3)
        h.run_for(20)
        assert h.pod_state("thinker").node == ""
        assert "Too many pods" in condition(h, "thinker")


def test_a_pod_that_goes_while_an_extender_thinks_is_forgotten() -> None:
    extender = Extender(filter=all_pass, delay=4)
    with world(extender) as h:
        h.create(h.node("n1", cpu=1), h.pod("a", cpu=0.5))
        h.run_for(1)
        h.delete("pods", "a")
        h.run_for(10)
        assert h.engine.statistics().asks == 0
        assert h.bindings("a") == []


def test_questions_about_pods_that_are_gone_are_not_sent() -> None:
    extender = Extender(filter=all_pass, delay=4)
    with world(extender) as h:
        h.create(h.node("n1", cpu=64, pods=110), *(h.pod(f"p{i}", cpu=0.1) for i in range(40)))
        h.run_for(1)
        for i in reversed(range(39)):  # those that wait for their turn first
            h.delete("pods", f"p{i}", grace=0)
        h.run_until_running("p39", timeout=6)
        assert extender.under_way == 0
        assert len(extender.asked("filter")) == 17


def test_two_runs_with_extenders_are_one_and_the_same() -> None:
    def life() -> str:
        extender = Extender(filter=all_pass, prioritize=lambda args: [], delay=0.3)
        with world(extender, configured(prioritizeVerb="prioritize", weight=1)) as h:
            h.create(*(h.node(f"n{i}", cpu=4) for i in range(3)), *(h.pod(f"p{i}", cpu=1) for i in range(14)))
            h.run_for(20)
            return h.log_text()

    assert life() == life()


def test_ignorable_extenders_are_asked_last_and_each_sees_what_was_left() -> None:
    first, second = Extender(filter=only("n1", "n2")), Extender(filter=only("n2", "n3"))
    settings = [
        configured("http://second", ignorable=True),
        configured("http://first"),
    ]
    with world({"http://first": first, "http://second": second}, *settings) as h:
        h.create(*(h.node(name, cpu=4) for name in ("n1", "n2", "n3")), h.pod("a", cpu=1))
        h.run_until_running("a")
        assert h.pod_state("a").node == "n2"
    assert sorted(second.asked("filter")[0]["NodeNames"]) == ["n1", "n2"]


# -- preempt


def full(h: Harness, *nodes: str) -> None:
    """Each node holds two pods of low priority that fill it."""
    h.create(*(h.node(name, cpu=2) for name in nodes))
    low = [h.pod(f"{name}-{i}", cpu=1, priority=i, nodeName=name) for name in nodes for i in range(2)]
    h.create(*low)
    h.settle()


def victims_of(h: Harness, *names: str) -> list[str]:
    states = h.pod_states("default")
    return sorted(name for name in names if name not in states or states[name].is_terminating)


def uids(h: Harness, *names: str) -> list[Tree]:
    return [{"UID": h.get("pods", name)["metadata"]["uid"]} for name in names]


PREEMPT = {"filterVerb": "", "preemptVerb": "preempt"}


def test_the_preempt_verb_narrows_the_nodes_and_names_the_victims() -> None:
    answers: list[Tree] = []
    extender = Extender(preempt=lambda _: answers[0])
    with world(extender, configured(**PREEMPT)) as h:
        full(h, "n1", "n2")
        named = {"n2": {"Pods": uids(h, "n2-1"), "NumPDBViolations": 0}}
        answers.append({"NodeNameToMetaVictims": named})
        h.create(h.pod("vip", cpu=1, priority=1000))
        h.run_until_running("vip", timeout=90)
        assert h.pod_state("vip").node == "n2"
        assert victims_of(h, "n1-0", "n1-1", "n2-0", "n2-1") == ["n2-1"]
    args = extender.asked("preempt")[0]
    assert args["NodeNameToVictims"] is None
    assert set(args["NodeNameToMetaVictims"]) == {"n1", "n2"}
    assert args["NodeNameToMetaVictims"]["n1"]["NumPDBViolations"] == 0


def test_whole_victims_go_to_an_extender_without_a_cache() -> None:
    def agree(args: Tree) -> Tree:
        metas = {
            node: {"pods": [{"uid": pod["metadata"]["uid"]} for pod in victims["Pods"]]}
            for node, victims in args["NodeNameToVictims"].items()
        }
        return {"nodeNameToMetaVictims": metas}

    extender = Extender(preempt=agree)
    with world(extender, configured(**PREEMPT, nodeCacheCapable=False)) as h:
        full(h, "n1")
        h.create(h.pod("vip", cpu=1, priority=1000))
        h.run_until_running("vip", timeout=90)
        assert victims_of(h, "n1-0", "n1-1") == ["n1-0"]
    (pod,) = extender.asked("preempt")[0]["NodeNameToVictims"]["n1"]["Pods"]
    assert pod["spec"]["containers"][0]["image"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"NodeNameToMetaVictims": {}}, "preemption: no candidate node for preemption"),
        ({}, "preemption: no candidate node for preemption"),
        ({"NodeNameToMetaVictims": {"n1": {"Pods": []}}}, "names no victim on node"),
        ({"NodeNameToMetaVictims": {"n1": None}}, "names no victim on node"),
        ({"NodeNameToMetaVictims": {"mars": {"Pods": [{"UID": "x"}]}}}, "was not offered"),
        ({"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "x"}]}}}, "is not on node"),
        ({"NodeNameToMetaVictims": ["n1"]}, "not an object"),
        ({"NodeNameToMetaVictims": {"n1": {"Pods": "x"}}}, "not a list"),
        (b"<html></html>", "no JSON"),
        (500, "HTTP status 500"),
        (None, "connection refused"),
    ],
)
@pytest.mark.parametrize("ignorable", [False, True])
def test_preempt_verbs_that_veto_or_fail(answer: Any, text: str, ignorable: bool) -> None:
    extender = Extender(preempt=lambda _: answer)
    with world(extender, configured(**PREEMPT, ignorable=ignorable)) as h:
        full(h, "n1")
        h.create(h.pod("vip", cpu=1, priority=1000))
        is_failure = "no candidate" not in text and "names no victim" not in text
        if ignorable and is_failure:
            h.run_until_running("vip", timeout=90)
            return
        h.run_for(5)
        assert victims_of(h, "n1-0", "n1-1") == []
        expected = text if not ignorable else "no candidate node for preemption"
        assert expected in condition(h, "vip")
        assert condition(h, "vip").startswith("Unschedulable: 0/1 nodes are available: 1 Insufficient cpu. ")


def test_victims_that_go_while_the_extender_thinks() -> None:
    def agree(args: Tree) -> Tree:
        return {"NodeNameToMetaVictims": args["NodeNameToMetaVictims"]}

    extender = Extender(preempt=agree, delay=3)
    with world(extender, configured(**PREEMPT)) as h:
        full(h, "n1")
        h.create(h.pod("vip", cpu=1, priority=1000))
        h.run_for(1)
        h.delete("pods", "n1-0", grace=0)
        h.run_until_running("vip", timeout=60)
        assert victims_of(h, "n1-1") == []


def test_a_slow_preempt_verb_holds_up_nobody_else() -> None:
    extender = Extender(preempt=lambda args: {}, delay=10)
    with world(extender, configured(**PREEMPT, httpTimeout="30s")) as h:
        full(h, "n1")
        h.create(h.pod("vip", cpu=1, priority=1000))
        h.run_for(0.5)
        h.create(h.node("n2", cpu=0.9), *(h.pod(f"p{i}", cpu=0.01) for i in range(50)))
        h.run_until_bound(*(f"p{i}" for i in range(50)), timeout=5)


def test_an_extender_that_rejects_what_fits_is_not_asked_in_a_hot_loop() -> None:
    """Preemption finds a node where nobody has to go: that is no reason to try again at once."""
    extender = Extender(filter=only(n1="not today"))
    with world(extender) as h:
        h.create(h.node("n1", cpu=4), h.pod("low", cpu=1, nodeName="n1"))
        h.create(h.pod("vip", cpu=1, priority=1000))
        h.run_for(60)
        assert len(extender.asked("filter")) < 10


# -- bind


BIND = {"filterVerb": "", "bindVerb": "bind"}


async def bind(h: Harness, args: Tree) -> None:
    """As a real extender does it: with its own client."""
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": args["PodName"], "uid": args["PodUID"]},
    }
    body |= {"target": {"kind": "Node", "name": args["Node"]}}
    where = (args["PodNamespace"], args["PodName"])
    path = "/api/v1/namespaces/{}/pods/{}/binding".format(*where)
    request = Request("POST", path, body=msgspec.json.encode(body))
    answer = await h.server.transport(h.faults, "extender").request(request)
    assert answer.status == 201, answer


def binder(*, binds: bool = True, answer: Any = {}, delay: float = 0.0) -> tuple[Extender, list[Harness]]:  # noqa: B006  # read only
    worlds: list[Harness] = []

    async def verb(args: Tree) -> Any:
        if binds:
            await bind(worlds[0], args)
        return answer

    return Extender(bind=verb, delay=delay), worlds


def own_binds(h: Harness, name: str) -> int:
    return len([record for record in h.bindings(name) if record.client == "scheduler"])


def test_an_extender_binds_in_place_of_the_bind_plugins() -> None:
    extender, worlds = binder()
    with world(extender, configured(**BIND)) as h:
        worlds.append(h)
        h.create(h.node("n1", cpu=4), h.pod("a", cpu=1))
        h.run_until_running("a")
        h.settle()
        uid = h.get("pods", "a")["metadata"]["uid"]
        assert extender.asked("bind") == [
            {"PodName": "a", "PodNamespace": "default", "PodUID": uid, "Node": "n1"}
        ]
        assert own_binds(h, "a") == 0
        assert [event["reason"] for event in h.events("a")] == ["Scheduled"]
        h.check_converged()


@pytest.mark.parametrize("answer", [None, 500, {"Error": "lost my database"}, b"<html></html>"])
def test_a_bind_that_reports_failure_is_looked_at(answer: Any) -> None:
    extender, worlds = binder(answer=answer)
    with world(extender, configured(**BIND)) as h:
        worlds.append(h)
        h.create(h.node("n1", cpu=4), h.pod("a", cpu=1))
        h.run_until_running("a")
        h.settle()
        assert [attempt.result for _, attempt in h.attempts("a")] == ["scheduled"]
        h.check_converged()


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, "connection refused"),
        ({"error": "no licence"}, "no licence"),
        ({}, "reported success, but the pod is not bound"),
    ],
)
def test_a_pod_that_the_extender_did_not_bind_gives_its_room_back(answer: Any, text: str) -> None:
    extender, worlds = binder(binds=False, answer=answer)
    with world(extender, configured(**BIND, **MANAGED)) as h:
        worlds.append(h)
        h.create(h.node("n1", cpu=4, pods=1), gpu_pod(h, "a"))
        h.run_until(lambda: text in condition(h, "a"), timeout=30)
        h.delete("pods", "a", grace=0)
        h.create(h.pod("b", cpu=1))
        h.run_until_running("b")


def test_an_ignorable_binder_that_fails_leaves_the_bind_to_the_plugins() -> None:
    extender, worlds = binder(binds=False, answer=500)
    with world(extender, configured(**BIND, ignorable=True)) as h:
        worlds.append(h)
        h.create(h.node("n1", cpu=4), h.pod("a", cpu=1))
        h.run_until_running("a")
        assert own_binds(h, "a") == 1


def test_pods_that_are_no_business_of_the_binder_are_bound_as_usual() -> None:
    extender, worlds = binder()
    with world(extender, configured(**BIND, **MANAGED)) as h:
        worlds.append(h)
        h.create(h.node("n1", cpu=4), h.pod("a", cpu=1), gpu_pod(h, "b"))
        h.run_until_running("a", "b")
        assert (own_binds(h, "a"), own_binds(h, "b")) == (1, 0)


def test_a_slow_binder_holds_up_its_own_pods_only() -> None:
    extender, worlds = binder(delay=10)
    with world(extender, configured(**BIND, **MANAGED, httpTimeout="30s")) as h:
        worlds.append(h)
        h.create(h.node("n1", cpu=64, pods=200), gpu_pod(h, "slow"))
        h.run_for(0.5)
        h.create(*(h.pod(f"p{i}", cpu=0.1) for i in range(100)))
        h.run_until_bound(*(f"p{i}" for i in range(100)), timeout=5)
        assert h.pod_state("slow").node == ""
        h.run_until_running("slow", timeout=15)


def test_a_pod_that_goes_while_it_is_bound_outside() -> None:
    extender, worlds = binder(binds=False, delay=5)
    with world(extender, configured(**BIND)) as h:
        worlds.append(h)
        h.create(h.node("n1", cpu=1, pods=1), h.pod("a", cpu=1))
        h.run_for(1)
        h.delete("pods", "a", grace=0)
        h.run_for(10)
        h.check_converged()
        assert h.engine.statistics().binding == 0


def test_a_victim_that_is_being_bound_outside_is_evicted_once_it_is_bound() -> None:
    extender, worlds = binder(delay=4)
    with world(extender, configured(**BIND, **MANAGED)) as h:
        worlds.append(h)
        h.create(h.node("n1", cpu=1), gpu_pod(h, "low"))
        h.run_for(1)
        h.create(h.pod("vip", cpu=1, priority=1000))
        h.run_until_running("vip", timeout=90)
        assert victims_of(h, "low") == ["low"]
        h.check_converged()
