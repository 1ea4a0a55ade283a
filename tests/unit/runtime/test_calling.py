"""The call queue and its dispatcher without a scheduler: waiters, misuse, closing, no leaks (A8, A17)."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from callkit import EPOCH, bind, event, ok, patch, pod, pod_key, status
from pilotage.api.wire import Request, Response
from pilotage.calls.pod_binding import PodBinding
from pilotage.calls.pod_status_patch import PodStatusPatch
from pilotage.calls.registry import CallTypeError
from pilotage.calls.reports import Finished
from pilotage.calls.types import Lane
from pilotage.client.credentials import CredentialsError
from pilotage.client.transport import Stream, TransportError
from pilotage.framework.calls import CallResult
from pilotage.runtime.calling import Calls, CallsUsageError, UnknownCallTypeError
from pilotage.testing.virtualtime import run

Behaviour = Callable[[Request], Coroutine[Any, Any, Response]]


class Transport:
    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.sent: list[Request] = []
        self.is_closed = False

    async def request(self, request: Request, *, timeout: float = 30.0) -> Response:
        self.sent.append(request)
        return await asyncio.wait_for(self.behaviour(request), timeout)

    async def stream(self, request: Request) -> Stream:
        raise NotImplementedError

    async def close(self) -> None:
        self.is_closed = True


async def at_once(_request: Request) -> Response:
    return ok()


async def never(_request: Request) -> Response:
    await asyncio.Event().wait()
    raise AssertionError


async def slow(_request: Request) -> Response:
    await asyncio.sleep(1.0)
    return ok()


async def slow_with_object(_request: Request) -> Response:
    """Slow, and with the written object."""
    await asyncio.sleep(1.0)
    return ok(pod("p", version=2))


def calls_over(behaviour: Behaviour, **options: Any) -> tuple[Calls, Transport]:
    transport = Transport(behaviour)

    def now() -> float:
        return EPOCH + asyncio.get_running_loop().time()

    return Calls(transport, [PodBinding(), PodStatusPatch()], time=now, **options), transport


def test_a_wish_is_answered_with_its_outcome() -> None:
    async def main() -> None:
        calls, transport = calls_over(at_once)
        async with calls:
            calls.saw("pods", pod("p"))
            done, bound = await calls.do(patch()), await calls.do(bind())
            assert (done.result, bound.result) == (CallResult.DONE, CallResult.DONE)
            assert [request.method for request in transport.sent] == ["PATCH", "POST"]
            calls.check_invariants()

    run(main())


def test_a_thousand_wishes_on_one_object_are_two_requests_and_the_newest_lands() -> None:
    async def main() -> None:
        calls, transport = calls_over(slow_with_object)
        async with calls:
            calls.saw("pods", pod("p"))
            first = calls.submit(patch("first"))
            await asyncio.sleep(0.5)
            rest = [calls.submit(patch(f"number {n}")) for n in range(1000)]
            assert len(calls.pending()) == 2
            assert (await first).result is CallResult.DONE
            assert (await rest[-1]).result is CallResult.DONE
            ends = {(await one).result for one in rest[:-1]}
            assert ends == {CallResult.OVERWRITTEN}
        assert len(transport.sent) == 2
        assert b"number 999" in transport.sent[1].body

    run(main())


def test_a_seen_object_comes_back_with_what_is_still_on_its_way() -> None:
    async def main() -> None:
        calls, _ = calls_over(slow)
        async with calls:
            calls.saw("pods", pod("p"))
            calls.submit(patch("waits"))
            shown = calls.saw("pods", pod("p", version=2, labels={"a": "b"}))
            assert shown.metadata.labels == {"a": "b"}
            assert shown.condition("PodScheduled").message == "waits"  # type: ignore[attr-defined]

    run(main())


def test_what_a_write_returned_is_not_undone_by_an_older_version() -> None:
    async def returned(_request: Request) -> Response:
        return ok(pod("p", version=7, labels={"new": "yes"}))

    async def main() -> None:
        calls, _ = calls_over(returned)
        async with calls:
            calls.saw("pods", pod("p", version=3))
            await calls.do(patch())
            assert calls.saw("pods", pod("p", version=5)).metadata.resource_version == "7"
            assert calls.saw("pods", pod("p", version=8)).metadata.resource_version == "8"

    run(main())


def test_failures_are_outcomes() -> None:
    async def refused(_request: Request) -> Response:
        return status(403, "Forbidden", "no rights")

    async def main() -> None:
        ended: list[Finished] = []
        calls, _ = calls_over(refused, on_ended=ended.append)
        async with calls:
            outcome = await calls.do(bind())
        assert (outcome.result, outcome.status, outcome.reason) == (CallResult.FAILED, 403, "Forbidden")
        assert [one.call_type for one in ended] == ["pod_binding"]

    run(main())


def test_a_listener_that_raises_loses_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_one: Finished) -> None:
        raise RuntimeError("a fault")

    async def main() -> None:
        calls, _ = calls_over(at_once, on_ended=broken)
        async with calls:
            assert (await calls.do(bind())).is_ok

    run(main())
    assert "on_ended failed" in caplog.text


def test_cancelling_the_future_ends_the_waiting_alone() -> None:
    async def main() -> None:
        calls, transport = calls_over(slow)
        async with calls:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(calls.do(bind()), 0.5)
            await calls.wait_idle()
            assert calls.statistics().ended["pod_binding", CallResult.DONE] == 1
        assert len(transport.sent) == 1

    run(main())


def test_cancelled_and_deleted_objects() -> None:
    async def main() -> None:
        calls, transport = calls_over(at_once)
        async with calls:
            calls.saw("pods", pod("a"))
            calls.saw("pods", pod("b"))
            one, two = calls.submit(patch(name="a")), calls.submit(patch(name="b"))
            calls.cancel("uid-a", "not wanted")
            calls.gone("uid-b")
            assert (await one).error == "not wanted"
            assert (await two).error == "the object was deleted"
            assert (await two).result is CallResult.CANCELLED
            assert calls._source.newest.get("uid-b") is None
        assert transport.sent == []

    run(main())


def test_close_sends_what_waits() -> None:
    async def main() -> None:
        calls, transport = calls_over(slow)
        async with calls:
            for n in range(20):
                calls.saw("pods", pod(f"p{n}"))
            futures = [calls.submit(patch(name=f"p{n}")) for n in range(20)]
        assert {future.result().result for future in futures} == {CallResult.DONE}
        assert asyncio.get_running_loop().time() < 4
        assert not transport.is_closed  # it is the caller's

    run(main())


@pytest.mark.parametrize("qps", [50, 5])
def test_close_answers_every_waiter_within_its_deadline_though_the_server_is_silent(
    qps: float, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        calls, _ = calls_over(never, qps=qps, burst=int(qps))
        async with calls:
            for n in range(60):
                calls.saw("pods", pod(f"p{n}"))
            futures = [calls.submit(patch(name=f"p{n}")) for n in range(60)]
            futures += [calls.submit(bind(f"b{n}")) for n in range(20)]
            await asyncio.sleep(1)
            started = asyncio.get_running_loop().time()
            await calls.close(3.0)
            assert asyncio.get_running_loop().time() - started == pytest.approx(3.0, abs=0.1)
        assert {future.result().result for future in futures} == {CallResult.CANCELLED}
        assert len(asyncio.all_tasks()) == 1
        assert calls.pending() == []
        calls.check_invariants()

    run(main())
    assert "80 calls had not ended after 3 s" in caplog.text


def test_a_body_that_raises_still_closes() -> None:
    async def main() -> None:
        calls, _ = calls_over(slow)
        futures = []

        async def body() -> None:
            async with calls:
                futures.append(calls.submit(bind()))
                raise KeyError

        with pytest.raises(KeyError):
            await body()
        assert futures[0].result().is_ok

    run(main())


def test_an_idle_close_takes_no_time_and_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def main() -> None:
        calls, _ = calls_over(at_once)
        async with calls:
            await calls.do(bind())
        await calls.close()
        assert asyncio.get_running_loop().time() == 0.0

    run(main())
    assert caplog.text == ""


def test_misuse_is_named() -> None:
    async def main() -> None:
        calls, _ = calls_over(at_once)
        with pytest.raises(CallsUsageError, match=r"submit: the calls are not open yet: use 'async with'"):
            calls.submit(bind())
        async with calls:
            with pytest.raises(
                UnknownCallTypeError, match=r"'event'.*there are: pod_binding, pod_status_patch"
            ):
                calls.submit(event())
            with pytest.raises(UnknownCallTypeError, match="'ObjectKey'"):
                calls.submit(pod_key())  # type: ignore[arg-type]
            with pytest.raises(CallsUsageError, match="opened before"):
                await calls.__aenter__()
            from_a_thread: list[str] = []

            def elsewhere() -> None:
                try:
                    calls.submit(bind())
                except CallsUsageError as error:
                    from_a_thread.append(str(error))

            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join()
            assert "call_soon_threadsafe" in from_a_thread[0]
        with pytest.raises(CallsUsageError, match="submit: the calls are closed"):
            calls.submit(bind())
        with pytest.raises(CallsUsageError, match="saw: the calls are closed"):
            calls.saw("pods", pod())

    run(main())


def test_a_merged_wish_is_told_with_the_lane_that_it_was_in() -> None:
    async def main() -> None:
        ended: list[Finished] = []
        calls, _ = calls_over(slow, on_ended=ended.append)
        async with calls:
            calls.saw("pods", pod("p"))
            calls.submit(patch(node="n1"))
            calls.submit(patch(node="n2"))
            assert [one.lane for one in ended] == [Lane.NOMINATION]

    run(main())


def test_a_kubeconfig_is_read_and_its_connection_closed(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError):
        Calls.from_kubeconfig([PodBinding()], str(tmp_path / "none"))
    file = tmp_path / "config"
    file.write_text(
        "{apiVersion: v1, kind: Config, current-context: c, users: [{name: u, user: {}}],"
        " clusters: [{name: k, cluster: {server: 'http://127.0.0.1:1'}}],"
        " contexts: [{name: c, context: {cluster: k, user: u}}]}"
    )

    async def main() -> None:
        async with Calls.from_kubeconfig([PodBinding()], str(file), qps=5) as calls:
            assert calls.limits()["qps"] == 5
        with pytest.raises(TransportError, match="closed"):
            await calls.transport.request(Request("GET", "/version"))

    asyncio.run(main())


def test_types_are_checked_at_once() -> None:
    with pytest.raises(CallTypeError, match="already implemented"):
        Calls(Transport(at_once), [PodBinding(), PodBinding()])


def test_unreachable_and_back() -> None:
    tries = 0

    async def flaky(_request: Request) -> Response:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise TransportError("nobody listens", sent=False)
        return ok()

    async def main() -> None:
        calls, _ = calls_over(flaky)
        async with calls:
            calls.saw("pods", pod("p"))
            assert (await calls.do(patch())).result is CallResult.DONE

    run(main())
    assert tries == 3
