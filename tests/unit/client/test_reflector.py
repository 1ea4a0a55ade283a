"""The reflector against scripts: what it tells, where it resumes, how it waits. Field cases F1, F4, F5."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from pilotage.api.kinds import by_resource
from pilotage.client.decoding import DictDecoder
from pilotage.client.known import Change, ChangeType
from pilotage.client.reflector import Reflector
from pilotage.client.transport import TransportError
from pilotage.testing import virtualtime
from unit.client.scripted_transport import (
    CUT,
    HANG,
    ScriptedStream,
    ScriptedTransport,
    bookmark,
    error_event,
    event,
    page,
    pod,
    refused,
    status,
)

PODS = by_resource("pods")


class Run:
    """A reflector left to itself for some (virtual) seconds."""

    def __init__(
        self, transport: ScriptedTransport, seconds: float = 60.0, seed: int = 1, **options: Any
    ) -> None:
        self.transport = transport
        self.changes: list[Change] = []
        self.problems: list[str] = []
        virtualtime.run(self._run(seconds, seed, options))

    async def _run(self, seconds: float, seed: int, options: dict[str, Any]) -> None:
        self.reflector = Reflector(
            self.transport,
            PODS,
            self.changes.append,
            seed=seed,
            on_problem=self.problems.append,
            **options,
        )
        task = asyncio.create_task(self.reflector.run())
        await asyncio.sleep(seconds)
        assert not task.done(), task.exception()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert all(stream.closed for stream in self.transport.opened), "an open stream was left behind"

    @property
    def told(self) -> list[str]:
        short = {ChangeType.UPSERTED: "+", ChangeType.DELETED: "-", ChangeType.UNDECODABLE: "?"}
        return [f"{short[c.type]}{c.identity.name}@{c.identity.version}" for c in self.changes]


def test_first_list_then_watch_from_the_lists_own_version() -> None:
    run = Run(ScriptedTransport([page("50", pod("a", "7"))], [ScriptedStream([bookmark("60"), HANG])]))
    assert run.told == ["+a@7"]
    assert run.transport.resumed_at() == ["50"]
    assert "resourceVersion" not in run.transport.queries("list")[0]
    query = run.transport.queries("watch")[0]
    assert query["watch"] == "true"
    assert query["allowWatchBookmarks"] == "true"
    assert 300 <= int(query["timeoutSeconds"]) <= 600
    assert run.reflector.synced.is_set()


def test_selectors_are_sent_with_lists_and_watches() -> None:
    selector = "status.phase!=Succeeded,status.phase!=Failed"
    run = Run(ScriptedTransport([page("5")]), field_selector=selector, label_selector="a=b")
    for what in ("list", "watch"):
        query = run.transport.queries(what)[0]
        assert query["fieldSelector"] == selector
        assert query["labelSelector"] == "a=b"


def test_pages_are_put_together_and_the_first_ones_version_counts() -> None:
    pages = [page("50", pod("a", "1"), token="t1"), page("50", pod("b", "2"), token="t2"), page("50")]
    run = Run(ScriptedTransport(pages))
    assert run.told == ["+a@1", "+b@2"]
    assert [q.get("continue") for q in run.transport.queries("list")] == [None, "t1", "t2"]
    assert all(q["limit"] == "500" for q in run.transport.queries("list"))


def test_events_are_told_in_order_and_the_watch_resumes_after_them() -> None:
    stream = ScriptedStream(
        [
            event("ADDED", pod("b", "51")),
            event("MODIFIED", pod("a", "52")),
            event("DELETED", pod("b", "53")),
            CUT,
        ]
    )
    run = Run(ScriptedTransport([page("50", pod("a", "7"))], [stream]))
    assert run.told == ["+a@7", "+b@51", "+a@52", "-b@53"]
    assert run.transport.resumed_at() == ["50", "53"]
    assert run.reflector.statistics().lists == 1


class TestF1RelistAfterMissedDelete:
    def test_f1_a_delete_that_the_watch_missed_is_told_with_the_last_known_state(self) -> None:
        """The last state that the watch told (bound to n1), not the one of the first list."""
        stream = ScriptedStream(
            [event("MODIFIED", pod("a", "51", nodeName="n1")), error_event(410, "Expired")]
        )
        run = Run(
            ScriptedTransport([page("50", pod("a", "7"), pod("b", "8")), page("90", pod("b", "8"))], [stream])
        )
        assert run.told == ["+a@7", "+b@8", "+a@51", "-a@51"]
        assert run.changes[-1].object.spec.node_name == "n1"
        assert run.transport.resumed_at() == ["50", "90"]

    def test_f1_another_uid_under_a_known_name_is_delete_and_add(self) -> None:
        lists = [page("50", pod("a", "7", uid="old")), page("90", pod("a", "80", uid="new"))]
        run = Run(ScriptedTransport(lists, [ScriptedStream([error_event(410, "Expired")])]))
        assert run.told == ["+a@7", "-a@7", "+a@80"]
        assert [c.identity.uid for c in run.changes] == ["old", "old", "new"]

    def test_f1_another_uid_in_a_watch_event_is_delete_and_add(self) -> None:
        stream = ScriptedStream([event("ADDED", pod("a", "51", uid="new")), HANG])
        run = Run(ScriptedTransport([page("50", pod("a", "7", uid="old"))], [stream]))
        assert run.told == ["+a@7", "-a@7", "+a@51"]

    def test_f1_a_delete_of_the_old_uid_does_not_touch_the_new_one(self) -> None:
        stream = ScriptedStream([event("DELETED", pod("a", "51", uid="old")), HANG])
        run = Run(ScriptedTransport([page("50", pod("a", "7", uid="new"))], [stream]))
        assert run.told == ["+a@7"]

    def test_f1_what_did_not_change_is_not_told_again(self) -> None:
        lists = [page("50", pod("a", "7"), pod("b", "8")), page("90", pod("a", "7"), pod("b", "70"))]
        run = Run(ScriptedTransport(lists, [refused(status(410, "Expired"))]))
        assert run.told == ["+a@7", "+b@8", "+b@70"]


class TestF4ExpiredInThreeForms:
    def test_f4_error_event_in_a_200_stream(self) -> None:
        lists = [page("100", pod("a", "7")), page("5000", pod("a", "4000"))]
        run = Run(ScriptedTransport(lists, [ScriptedStream([error_event(410, "Expired")])]))
        assert run.told == ["+a@7", "+a@4000"]
        assert run.transport.resumed_at() == ["100", "5000"]

    def test_f4_http_status_on_connect(self) -> None:
        lists = [page("100", pod("a", "7")), page("5000")]
        run = Run(ScriptedTransport(lists, [refused(status(410, "Gone"))]))
        assert run.told == ["+a@7", "-a@7"]
        assert run.transport.resumed_at() == ["100", "5000"]

    def test_f4_in_the_middle_of_a_paged_list(self) -> None:
        lists = [page("100", pod("a", "7"), token="t"), status(410, "Expired"), page("5000", pod("b", "8"))]
        run = Run(ScriptedTransport(lists))
        assert run.told == ["+b@8"], "nothing of the torn list is told"
        assert run.transport.resumed_at() == ["5000"]
        assert "continue" not in run.transport.queries("list")[2]

    def test_f4_no_empty_version_is_ever_sent(self) -> None:
        lists = [page("", pod("a", "7")), page("100", pod("a", "7"))]
        streams = [ScriptedStream([event("ADDED", pod("b", "")), CUT])]
        run = Run(ScriptedTransport(lists, streams))
        assert run.transport.resumed_at() == ["100", "100"]

    def test_f4_relists_back_off(self) -> None:
        lists = [page(str(n), pod("a", "7")) for n in range(100, 200)]
        run = Run(ScriptedTransport(lists, [refused(status(410, "Expired")) for _ in range(99)]), 30.0)
        times = run.transport.times("list")
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert len(times) <= 10
        assert gaps[0] >= 0.25
        assert gaps[-1] > 4 * gaps[0]

    @pytest.mark.parametrize("code", [429, 503])
    def test_f4_retry_after_is_kept_and_the_same_watch_tried_again(self, code: int) -> None:
        busy = refused(status(code, "Busy", {"retry-after": "7"}))
        run = Run(ScriptedTransport([page("100")], [busy]))
        first, second = run.transport.times("watch")
        assert second - first >= 7.0
        assert run.transport.resumed_at() == ["100", "100"]

    @pytest.mark.parametrize("code", [429, 503])
    def test_f4_retry_after_of_a_list(self, code: int) -> None:
        lists = [
            status(code, "Busy", {"retry-after": "7"}),
            page("100", pod("a", "1"), token="t"),
            status(code, "Busy", {"retry-after": "9"}),
            page("100", pod("b", "2")),
        ]
        run = Run(ScriptedTransport(lists))
        times = run.transport.times("list")
        assert times[1] - times[0] >= 7.0
        assert times[3] - times[2] >= 9.0
        assert run.told == ["+a@1", "+b@2"]
        assert run.transport.queries("list")[3]["continue"] == "t", "the page again, not the whole list"


class TestF5ResumeAtTheListsVersion:
    def test_f5_not_at_the_last_items(self) -> None:
        lists = [page("5000", pod("a", "4900"), pod("z", "100"))]
        run = Run(ScriptedTransport(lists, [TransportError("dropped", sent=True)]))
        assert run.transport.resumed_at() == ["5000", "5000"]
        assert run.told == ["+a@4900", "+z@100"]

    def test_f5_after_a_bookmark_at_the_bookmarks(self) -> None:
        streams = [ScriptedStream([event("ADDED", pod("b", "5001")), bookmark("5050"), CUT])]
        run = Run(ScriptedTransport([page("5000")], streams))
        assert run.transport.resumed_at() == ["5000", "5050"]

    def test_f5_repeated_events_are_told_once(self) -> None:
        replay = [event("ADDED", pod("b", "5001")), event("MODIFIED", pod("b", "5002"))]
        streams = [ScriptedStream([*replay, CUT]), ScriptedStream([*replay, HANG])]
        run = Run(ScriptedTransport([page("5000")], streams))
        assert run.told == ["+b@5001", "+b@5002"]

    def test_f5_versions_that_are_no_numbers_are_compared_for_equality_only(self) -> None:
        stream = ScriptedStream([event("MODIFIED", pod("a", "x9")), event("MODIFIED", pod("a", "x10")), HANG])
        run = Run(ScriptedTransport([page("x1", pod("a", "x0"))], [stream]))
        assert run.told == ["+a@x0", "+a@x9", "+a@x10"]


def test_a_silent_stream_is_reopened_where_it_was() -> None:
    run = Run(ScriptedTransport([page("5")], [ScriptedStream([bookmark("6"), HANG])]), 130.0)
    assert run.transport.resumed_at() == ["5", "6"]
    assert "silent" in run.problems[0]


def test_a_stream_with_signs_of_life_is_kept() -> None:
    class Slow(ScriptedStream):
        async def lines(self) -> Any:
            for n in range(20):
                await asyncio.sleep(60)
                yield bookmark(str(n + 6))

    run = Run(ScriptedTransport([page("5")], [Slow([])]), 1100.0)
    assert run.transport.resumed_at() == ["5"]


def test_a_polite_end_is_followed_by_the_next_watch_at_once() -> None:
    class Hour(ScriptedStream):
        async def lines(self) -> Any:
            await asyncio.sleep(30)
            yield bookmark("9")

    run = Run(ScriptedTransport([page("5")], [Hour([])]), 31.0)
    assert run.transport.times("watch") == [0.0, 30.0]
    assert run.transport.resumed_at() == ["5", "9"]
    assert run.problems == []


def test_a_server_that_ends_every_watch_at_once_is_not_hammered() -> None:
    run = Run(ScriptedTransport([page("5")], [ScriptedStream([]) for _ in range(99)]), 30.0)
    assert len(run.transport.times("watch")) <= 10


def test_an_api_server_gone_for_ten_seconds_loses_nothing() -> None:
    down = [TransportError("refused", sent=False) for _ in range(4)]
    back = ScriptedStream([event("DELETED", pod("a", "60")), event("ADDED", pod("b", "61")), HANG])
    run = Run(ScriptedTransport([page("50", pod("a", "7"))], [ScriptedStream([CUT]), *down, back]))
    assert run.told == ["+a@7", "-a@60", "+b@61"]
    assert run.reflector.statistics().lists == 1


def test_a_server_that_refuses_the_watch_again_and_again_is_listed_again() -> None:
    broken = [refused(status(500, "InternalError")) for _ in range(3)]
    run = Run(ScriptedTransport([page("50", pod("a", "7")), page("60", pod("a", "7"))], broken))
    assert run.transport.resumed_at() == ["50", "50", "50", "60"]


@pytest.mark.parametrize("response", [status(400, "BadRequest"), status(504, "Timeout")])
def test_a_version_that_the_server_does_not_take_means_a_new_list(response: Any) -> None:
    run = Run(ScriptedTransport([page("50"), page("60")], [refused(response)]))
    assert run.transport.resumed_at() == ["50", "60"]


def test_bytes_that_are_no_event_mean_a_new_list() -> None:
    streams = [ScriptedStream([event("ADDED", pod("b", "51")), b'{"type": "ADD', HANG])]
    run = Run(ScriptedTransport([page("50"), page("60", pod("b", "51"))], streams))
    assert run.told == ["+b@51"]
    assert run.transport.resumed_at() == ["50", "60"]


class TestUndecodableObjects:
    BAD = pod("bad", "9") | {"spec": {"containers": 7}}

    def test_one_in_a_list_of_five_thousand(self) -> None:
        items = [pod(f"p{n}", str(n)) for n in range(4999)]
        run = Run(ScriptedTransport([page("6000", *items[:2500], self.BAD, *items[2500:])]))
        assert len(run.changes) == 5000
        failures = [c for c in run.changes if c.type is ChangeType.UNDECODABLE]
        assert [c.identity.name for c in failures] == ["bad"]
        assert "containers" in failures[0].object.error
        assert run.reflector.statistics().undecodable == 1

    def test_in_a_stream_which_goes_on_after_it(self) -> None:
        bad = event("ADDED", pod("bad", "51") | {"spec": {"containers": 7}})
        stream = ScriptedStream([bad, event("ADDED", pod("b", "52")), CUT])
        run = Run(ScriptedTransport([page("50")], [stream]))
        assert run.told == ["?bad@51", "+b@52"]
        assert run.transport.resumed_at() == ["50", "52"]

    def test_its_deletion_is_told_with_what_is_known_of_it(self) -> None:
        stream = ScriptedStream([event("DELETED", self.BAD | {"spec": {"containers": 7}}), HANG])
        run = Run(ScriptedTransport([page("50", self.BAD)], [stream]))
        assert run.told == ["?bad@9", "-bad@9"]
        assert run.changes[-1].object.metadata.uid == "uid-bad"

    def test_its_deletion_is_told_with_the_last_good_state_if_there_was_one(self) -> None:
        stream = ScriptedStream([event("MODIFIED", self.BAD), error_event(410, "Expired")])
        run = Run(ScriptedTransport([page("5", pod("bad", "1", nodeName="n1")), page("90")], [stream]))
        assert run.told == ["+bad@1", "?bad@9", "-bad@9"]
        assert run.changes[-1].object.spec.node_name == "n1"


def test_dicts_for_those_who_need_whole_objects() -> None:
    stream = ScriptedStream([event("DELETED", pod("a", "51")), HANG])
    run = Run(ScriptedTransport([page("50", pod("a", "7"))], [stream]), decoder=DictDecoder(PODS))
    assert run.told == ["+a@7", "-a@51"]
    assert run.changes[0].object["spec"] == {"containers": []}


def test_two_runs_of_one_seed_wait_equally_and_another_seed_differs() -> None:
    def times(seed: int) -> list[float]:
        streams = [refused(status(503, "Busy")) for _ in range(9)]
        lists = [page("5") for _ in range(9)]
        return Run(ScriptedTransport(lists, streams), seed=seed).transport.times("watch")

    assert times(1) == times(1)
    assert times(1) != times(2)
