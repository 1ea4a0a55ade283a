"""Watches: what is told, in which words, and how they end."""

from __future__ import annotations

import pytest

from restkit import PODS, STRATEGIC, TABLE, Api

NODES = "/api/v1/nodes"


@pytest.fixture
def api() -> Api:
    return Api()


def test_a_fresh_watch_starts_with_what_is_there(api: Api) -> None:
    api.pod("a")
    watch = api.watch(PODS)
    assert watch.told() == [("ADDED", "a")]
    api.pod("b")
    api.set_status("a", {"phase": "Running"})
    api.call("DELETE", f"{PODS}/b")
    assert watch.told() == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
    assert watch.told() == []


def test_a_watch_from_a_version_tells_only_what_follows(api: Api) -> None:
    api.pod("a")
    version = api.get(PODS).version
    api.pod("b")
    watch = api.watch(PODS, resourceVersion=version)
    assert watch.told() == [("ADDED", "b")]


def test_the_deleted_object_has_the_deletions_version(api: Api) -> None:
    api.pod("a")
    watch = api.watch(PODS, resourceVersion=api.get(PODS).version)
    api.call("DELETE", f"{PODS}/a")
    event = watch.events()[0]
    assert int(event["object"]["metadata"]["resourceVersion"]) == api.store.version


def test_label_selectors_turn_changes_into_added_and_deleted(api: Api) -> None:
    api.pod("a", labels={"app": "x"})
    watch = api.watch(PODS, labelSelector="app=x", resourceVersion=api.get(PODS).version)
    api.patch(f"{PODS}/a", {"metadata": {"labels": {"app": "y"}}})
    api.patch(f"{PODS}/a", {"metadata": {"labels": {"other": "1"}}})
    api.patch(f"{PODS}/a", {"metadata": {"labels": {"app": "x"}}})
    api.patch(f"{PODS}/a", {"metadata": {"labels": {"more": "1"}}})
    events = watch.events()
    assert [event["type"] for event in events] == ["DELETED", "ADDED", "MODIFIED"]
    gone = events[0]["object"]["metadata"]
    assert gone["labels"] == {"app": "x"}  # its last state in sight, under the new version
    assert int(gone["resourceVersion"]) < int(events[1]["object"]["metadata"]["resourceVersion"])


def test_the_schedulers_field_selector(api: Api) -> None:
    selector = "status.phase!=Succeeded,status.phase!=Failed"
    api.pod("a")
    watch = api.watch("/api/v1/pods", fieldSelector=selector)
    assert watch.told() == [("ADDED", "a")]
    api.set_status("a", {"phase": "Succeeded"})
    assert watch.told() == [("DELETED", "a")]
    api.call("DELETE", f"{PODS}/a")
    assert watch.told() == []


def test_selection_by_node_and_by_name(api: Api) -> None:
    api.pod("a")
    by_node = api.watch("/api/v1/pods", fieldSelector="spec.nodeName=n1")
    by_name = api.watch(PODS, fieldSelector="metadata.name=b")
    assert by_node.told() == []
    api.bind("a", "n1")
    api.pod("b")
    assert by_node.told() == [("ADDED", "a")]
    assert by_name.told() == [("ADDED", "b")]
    assert api.watch(f"{PODS}/b").told() == [("ADDED", "b")]


def test_other_namespaces_and_resources_are_not_told(api: Api) -> None:
    watch = api.watch("/api/v1/namespaces/kube-system/pods")
    api.pod("a")
    api.create(NODES, {"metadata": {"name": "n"}})
    assert watch.told() == []


def test_bookmarks_come_every_minute_and_before_the_end(api: Api) -> None:
    watch = api.watch(PODS, allowWatchBookmarks="true", timeoutSeconds="100")
    assert watch.events() == []
    api.create(NODES, {"metadata": {"name": "n"}})
    api.now += 60
    (event,) = watch.events()
    assert event == {
        "type": "BOOKMARK",
        "object": {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": str(api.store.version), "creationTimestamp": None},
        },
    }
    assert watch.events() == []
    api.now += 38.5
    assert [event["type"] for event in watch.events()] == ["BOOKMARK"]
    api.now += 2
    watch.events()
    assert watch.response.is_closed


def test_no_bookmarks_unless_asked_for(api: Api) -> None:
    watch = api.watch(PODS, timeoutSeconds="100")
    api.now += 99
    assert watch.events() == []
    api.now += 1
    assert watch.events() == []
    assert watch.response.is_closed


def test_a_watch_lasts_half_an_hour_to_an_hour_by_default(api: Api) -> None:
    watch = api.watch(PODS)
    assert api.now + 1800 <= watch.response.next_deadline() <= api.now + 3600


def test_send_initial_events_ends_with_an_annotated_bookmark(api: Api) -> None:
    api.pod("a")
    watch = api.watch(
        PODS, sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true"
    )
    events = watch.events()
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    api.pod("b")
    assert watch.told() == [("ADDED", "b")]


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ({"sendInitialEvents": "true"}, 422, "requires setting resourceVersionMatch to NotOlderThan"),
        ({"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}, 422, "allowWatchBookmarks"),
        ({"resourceVersionMatch": "NotOlderThan"}, 422, "resourceVersionMatch is forbidden for watch"),
        ({"resourceVersion": "x"}, 400, "invalid syntax"),
        ({"resourceVersion": "999999"}, 504, "Too large resource version"),
        ({"timeoutSeconds": "soon"}, 400, "invalid syntax"),
        ({"fieldSelector": "spec.nonsense=1"}, 400, "field label not supported: spec.nonsense"),
        ({"labelSelector": "a in"}, 400, "unable to parse"),
    ],
)
def test_refused_watches(api: Api, query: dict[str, str], status: int, message: str) -> None:
    answer = api.get(PODS, watch="true", **query)
    assert answer.status == status
    assert message in answer.message


def test_a_version_that_is_gone_answers_410(api: Api) -> None:
    api.pod("a")
    old = api.get(PODS).version
    api.pod("b")
    api.store.compact()
    answer = api.get(PODS, watch="true", resourceVersion=old)
    assert (answer.status, answer.body["reason"]) == (410, "Expired")
    assert answer.message.startswith(f"too old resource version: {old} (")


def test_a_reader_that_fell_behind_gets_one_error_and_the_end() -> None:
    api = Api(history=5)
    watch = api.watch(NODES)
    for index in range(20):
        api.create(NODES, {"metadata": {"name": f"n{index}"}})
    (event,) = watch.events()
    assert event["type"] == "ERROR"
    assert (event["object"]["kind"], event["object"]["code"]) == ("Status", 410)
    assert watch.response.is_closed


def test_watches_of_one_form_share_their_lines(api: Api) -> None:
    watches = [api.watch(PODS) for _ in range(3)]
    for watch in watches:
        watch.events()
    api.pod("a")
    lines = [watch.response.poll(api.now)[0] for watch in watches]
    assert lines[0] is lines[1] is lines[2]


def test_the_server_names_the_watches_that_have_news(api: Api) -> None:
    pods, nodes = api.watch(PODS), api.watch(NODES)
    pods.events()
    nodes.events()
    api.pod("a")
    assert list(api.server.take_ready()) == [pods.response]
    assert list(api.server.take_ready()) == []
    pods.events()
    api.server.end_watch(pods.response)
    api.pod("b")
    assert list(api.server.take_ready()) == []


def test_tables_carry_their_columns_once(api: Api) -> None:
    api.pod("a")
    watch = api.watch(PODS, accept=TABLE)
    api.set_status("a", {"phase": "Running"})
    first, second = (event["object"] for event in watch.events())
    assert first["columnDefinitions"][0]["name"] == "Name"
    assert second["columnDefinitions"] is None
    assert second["rows"][0]["cells"][:3] == ["a", "0/1", "Running"]
    assert second["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


def test_partial_metadata(api: Api) -> None:
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    watch = api.watch(PODS, accept=accept, allowWatchBookmarks="true")
    api.pod("a")
    event = watch.events()[0]
    assert event["object"]["kind"] == "PartialObjectMetadata"
    assert "spec" not in event["object"]


def test_no_event_for_a_write_without_change(api: Api) -> None:
    api.pod("a")
    watch = api.watch(PODS, resourceVersion=api.get(PODS).version)
    api.patch(f"{PODS}/a", {"metadata": {}}, STRATEGIC)
    api.set_status("a", {"phase": "Pending"})
    assert watch.events() == []
