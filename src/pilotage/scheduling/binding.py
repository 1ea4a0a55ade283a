"""From a chosen node to a bound pod: Reserve, Permit, PreBind, Bind, PostBind, and the way back.

Laws
- One `Binding` per assumed pod of ours whose bind is not settled; its stage moves by the table in
  transitions.py, and each waiting stage has exactly what it waits for: a step, permits or a ticket.
- Whatever fails, Unreserve runs for all Reserve plugins in reverse order, the pod is forgotten, and the
  room it gives back is an AssignedPodDelete event, unless nobody can have seen it taken.
- A bind that failed although the informer shows the pod on the chosen node is a success.
- A step of a binding that ended meanwhile is cancelled; what still comes back of it is ignored.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from typing import Any

from pilotage.framework.binding_calls import ConfirmBinding
from pilotage.framework.calls import Call, CallResult, RecordEvent
from pilotage.framework.guard import PluginFailedError, failed, guarded, shown
from pilotage.framework.plugin import MAX_PERMIT_SECONDS, AwaitObjects, PermitResult
from pilotage.framework.status import SUCCESS, Code, Status, unschedulable
from pilotage.scheduling.bindinganswers import (
    failed_binding,
    permit_seconds,
    preempted_binding,
    same,
    status_of,
    timed_out,
    why_not_bound,
)
from pilotage.scheduling.bindingrecord import Binding
from pilotage.scheduling.bindingtimes import BindingTimes
from pilotage.scheduling.cluster_events import pod_deleted
from pilotage.scheduling.deadlines import Deadlines
from pilotage.scheduling.enginestate import EngineState
from pilotage.scheduling.extenders_binding import Binders
from pilotage.scheduling.failure import FailureHandler
from pilotage.scheduling.messages import CallFinished, PermitResolved, StepFinished
from pilotage.scheduling.objectwaits import ObjectWaits
from pilotage.scheduling.placements import placed
from pilotage.scheduling.post_binding import PostBinds
from pilotage.scheduling.statuswriter import pod_key
from pilotage.scheduling.texts import note
from pilotage.scheduling.transitions import Stage, Step
from pilotage.state.podinfo import PodInfo

_POINTS = {
    Stage.RESERVED: ("Permit", "permit"),
    Stage.PERMITTING: ("Permit", "permit"),
    Stage.PRE_BINDING: ("PreBind", "pre_bind"),
    Stage.BINDING: ("Bind", "bind"),
}
_LATER = object()


class Bindings:
    """All binding cycles under way."""

    def __init__(self, state: EngineState, failures: FailureHandler, binders: Binders = ()) -> None:
        self._state = state
        self._binders = binders  # they go before the Bind plugins of every profile
        self._failures = failures
        self._by_uid: dict[str, Binding] = {}
        # Step or ticket -> the binding that waits for it.
        self._steps: dict[int, Binding] = {}
        self._tickets: dict[int, Binding] = {}
        # (UID, Permit plugin) of every wait.
        self._waits: Deadlines[tuple[str, str]] = Deadlines()
        self.object_waits = ObjectWaits(state, self._objects_came)
        self._post_binds = PostBinds(state)
        # Told when the binding of a preempted pod ends: UID, and whether it is bound all the same.
        self.on_victim: Callable[[str, bool], None] = lambda _uid, _is_bound: None

    def __len__(self) -> int:
        return len(self._by_uid)

    def __contains__(self, uid: object) -> bool:
        return uid in self._by_uid

    def uids(self) -> frozenset[str]:
        return frozenset(self._by_uid)

    def undecided(self) -> frozenset[str]:
        """Pods that Permit has not let go yet: they still are in flight for the queue."""
        before = (Stage.RESERVED, Stage.PERMITTING, Stage.WAITING)
        return frozenset(uid for uid, binding in self._by_uid.items() if binding.stage in before)

    # -- start and end ---------------------------------------------------------------------------

    def start(self, binding: Binding) -> None:
        """Takes over a pod that was just assumed."""
        self._by_uid[binding.uid] = binding
        binding.binders = [one for one in self._binders if one.is_interested(binding.pod)]
        binding.times = BindingTimes(self._state.outbox, self._state.now)
        status = status_of("Reserve", binding, binding.profile.run_reserve)
        if not status.is_success:
            self._fail(binding, status)
            return
        binding.move(Step.RESERVE)
        self._go_on(binding)

    def abort(self, uid: str, why: str) -> Binding | None:
        """The pod is gone, or somebody bound it: undo what was reserved, quietly."""
        binding = self._by_uid.get(uid)
        if binding is None:
            return None
        binding.move(Step.FAIL)
        self._undo(binding)
        self._state.tell(uid, f"binding to {binding.node} ended: {why}")
        return binding

    def confirmed(self, uid: str, node: str) -> bool:
        """The informer shows the pod bound; True when this is (or will be) the success of our bind call."""
        binding = self._by_uid.get(uid)
        if binding is None:
            return False
        if binding.stage is Stage.BINDING:
            return True  # the answer to our call is still to come and settles it
        self.abort(uid, f"bound to {node} by someone else")
        return False

    def preempt(self, uid: str) -> None:
        """Ends the binding in memory, at once unless its bind may be on the way; `on_victim` hears of it."""
        binding = self._by_uid[uid]
        binding.is_preempted = True
        if binding.stage is not Stage.BINDING:
            self._fail(binding, preempted_binding().status)
        elif binding.ticket and not binding.is_confirming:
            self._state.outbox.cancel(uid, "the pod is preempted")

    def _undo(self, binding: Binding) -> None:
        self._drop(binding)
        for failure in binding.profile.run_unreserve(binding.cycle, binding.pod, binding.node):
            self._state.outbox.log("error", f"unreserving {binding.pod.key}: {failure.message}")

    def _drop(self, binding: Binding) -> None:
        del self._by_uid[binding.uid]
        binding.report_times()
        if self._steps.pop(binding.step, None) is not None:
            self._state.outbox.cancel_step(binding.step)
        self._tickets.pop(binding.ticket, None)
        self.object_waits.drop(binding.uid, "its pod is not bound now")
        for plugin in binding.waits:
            self._waits.remove((binding.uid, plugin))

    def _fail(self, binding: Binding, status: Status) -> None:
        binding.move(Step.FAIL, status)
        self._undo(binding)
        self._state.cluster.forget(binding.uid)
        outcome = preempted_binding() if binding.is_preempted else failed_binding(status)
        if status.is_rejection:
            self._failures.handle(binding.record, binding.pod, outcome)
            self._room_given_back(binding, only=lambda pod: pod.uid != binding.uid)
        else:
            self._room_given_back(binding, only=None)
            self._failures.handle(binding.record, binding.pod, outcome)
        if binding.is_preempted:
            self.on_victim(binding.uid, False)

    def _room_given_back(self, binding: Binding, only: Callable[[PodInfo], bool] | None) -> None:
        if binding.was_seen:
            self._state.notify(pod_deleted(), placed(binding.pod, binding.node), None, only, is_ours=True)

    # -- one plugin after another ----------------------------------------------------------------

    def _go_on(self, binding: Binding) -> None:
        """Runs the plugins of the present point from the next one on, until one has to be waited for."""
        while binding.uid in self._by_uid and binding.is_running:
            plugin = binding.next_plugin()
            if plugin is None:
                self._point_done(binding)
                continue
            try:
                result = self._call(binding, plugin)
            except PluginFailedError as fault:
                self._fail(binding, fault.status)
                return
            if result is not _LATER:
                self._take(binding, plugin.name, result)

    def _call(self, binding: Binding, plugin: Any) -> Any:
        """The plugin's answer; _LATER when it is to come from a step. Raises PluginFailedError."""
        point, method_name = _POINTS[binding.stage]
        method = getattr(plugin, method_name)
        call = partial(method, binding.cycle, binding.pod, binding.node)
        if iscoroutinefunction(method):
            self._wait_for_step(binding, plugin.name, point, call)
            return _LATER
        result = guarded(plugin.name, point, call)
        if isawaitable(result):
            self._wait_for_step(binding, plugin.name, point, partial(same, result))
            return _LATER
        return result

    def _wait_for_step(
        self, binding: Binding, plugin: str, point: str, start: Callable[[], Awaitable[Any]]
    ) -> None:
        binding.waiting_for(plugin)
        if binding.stage is Stage.RESERVED:
            binding.move(Step.PERMIT_STEP)
        elif binding.stage is Stage.PRE_BINDING:
            self._expect(binding)
        binding.step = self._state.outbox.run_step(plugin, point, binding.uid, start)
        self._steps[binding.step] = binding
        self._state.tell(binding.uid, f"{point} of {plugin} runs")

    def _take(self, binding: Binding, plugin: str, result: Any) -> None:
        """What a plugin answered at the present point; None is a success, but not for Bind."""
        if result is None and binding.stage is not Stage.BINDING:
            result = SUCCESS
        if binding.stage is Stage.BINDING:
            self._take_bind(binding, plugin, result)
        elif binding.stage is Stage.PRE_BINDING and isinstance(result, AwaitObjects):
            self._wait_for_objects(binding, plugin, result)
        elif binding.stage is Stage.PRE_BINDING:
            self._take_status(binding, plugin, "PreBind", result)
        else:
            self._take_permit(binding, plugin, result)

    def _take_status(self, binding: Binding, plugin: str, point: str, result: Any) -> None:
        if not isinstance(result, Status):
            self._fail(binding, failed(plugin, point, f"it answered {shown(result)}, not a Status"))
        elif result.is_rejection:
            self._fail(binding, result.by(plugin))
        elif not result.is_success:
            self._fail(binding, failed(plugin, point, result.message))

    def _wait_for_objects(self, binding: Binding, plugin: str, wanted: AwaitObjects) -> None:
        binding.waiting_for(plugin)
        binding.awaits_objects = True
        self._expect(binding)
        self._state.tell(binding.uid, f"PreBind of {plugin} waits for objects")
        self.object_waits.start(binding.uid, plugin, wanted)

    def _objects_came(self, uid: str, answer: Any) -> None:
        binding = self._by_uid[uid]
        plugin = binding.resume()
        if isinstance(answer, PluginFailedError):
            self._fail(binding, answer.status)
            return
        self._take_status(binding, plugin, "PreBind", answer)
        self._go_on(binding)

    def _take_permit(self, binding: Binding, plugin: str, result: Any) -> None:
        # A bare WAIT names no time: it waits the longest, instead of being over before it began.
        answer = result if isinstance(result, PermitResult) else PermitResult(result, MAX_PERMIT_SECONDS)
        if isinstance(answer.status, Status) and answer.status.code is Code.WAIT:
            timeout = permit_seconds(answer.timeout)
            if timeout is None:
                self._fail(binding, failed(plugin, "Permit", f"its timeout is {shown(answer.timeout)}"))
            elif timeout == 0.0:  # over before a nomination says where it goes, which would wake the pod
                self._fail(binding, timed_out(plugin, timeout))
            else:
                binding.waits[plugin] = timeout
                self._waits.set((binding.uid, plugin), self._state.now + timeout)
        else:
            self._take_status(binding, plugin, "Permit", answer.status)

    def _take_bind(self, binding: Binding, plugin: str, result: Any) -> None:
        if isinstance(result, Call):
            binding.waiting_for(plugin)
            binding.is_confirming = isinstance(result, ConfirmBinding)
            binding.ticket = self._state.outbox.submit(result, awaited=True)
            self._tickets[binding.ticket] = binding
        elif isinstance(result, Status) and result.is_success:
            self._bound(binding)
        elif not (isinstance(result, Status) and result.is_skip):
            self._take_status(binding, plugin, "Bind", result)

    def _point_done(self, binding: Binding) -> None:
        if binding.stage is Stage.PRE_BINDING:
            binding.move(Step.BIND)
        elif binding.stage is Stage.BINDING:
            self._fail(binding, failed("Bind", "Bind", "no plugin took the pod"))
        else:
            self._permit_done(binding)

    def _permit_done(self, binding: Binding) -> None:
        status = status_of("PreBindPreFlight", binding, binding.profile.run_pre_bind_pre_flight)
        if not status.is_success and not status.is_skip:
            self._fail(binding, status)
        elif binding.waits:
            binding.move(Step.WAIT)
            self._expect(binding)
            self._state.tell(binding.uid, f"waits at Permit for {', '.join(sorted(binding.waits))}")
        else:
            self._allowed(binding)

    def _allowed(self, binding: Binding) -> None:
        binding.move(Step.ALLOW)
        self._state.queue.done(binding.uid)
        binding.move(Step.PRE_BIND)

    def _expect(self, binding: Binding) -> None:
        """The placement takes time: the pod's nomination tells others where it is going."""
        if self._state.settings.gates.get("NominatedNodeNameForExpectation", True):
            self._failures.writer.expect(binding.pod, binding.node)

    # -- what comes back -------------------------------------------------------------------------

    def step_finished(self, event: StepFinished) -> None:
        self._post_binds.step_finished(event)
        binding = self._steps.pop(event.step, None)
        if binding is None:
            return
        plugin, point = binding.resume(), _POINTS[binding.stage][0]
        if event.error:
            self._fail(binding, failed(plugin, point, event.error))
            return
        self._take(binding, plugin, event.value)
        self._go_on(binding)

    def call_finished(self, event: CallFinished) -> None:
        binding = self._tickets.pop(event.ticket, None)
        if binding is None:
            self.object_waits.call_finished(event)
            return
        plugin = binding.resume()
        newest = self._state.cluster.pod(binding.uid)
        is_there = newest is not None and newest.node_name == binding.node
        if is_there or event.outcome.result is CallResult.DONE:
            self._bound(binding)
        else:
            self._fail(binding, failed(plugin, "Bind", why_not_bound(event.outcome)))

    def permit_resolved(self, event: PermitResolved) -> None:
        binding = self._by_uid.get(event.uid)
        if binding is None or event.plugin not in binding.waits:
            return
        if not event.allowed:
            status = unschedulable(event.reason or "rejected while waiting on permit")
            self._fail(binding, status.by(event.plugin))
            return
        del binding.waits[event.plugin]
        self._waits.remove((event.uid, event.plugin))
        if binding.stage is Stage.WAITING and not binding.waits:
            self._allowed(binding)
            self._go_on(binding)

    def expire(self) -> None:
        """Rejects pods whose Permit plugins took too long."""
        for uid, plugin in self._waits.pop_due(self._state.now):
            binding = self._by_uid.get(uid)
            if binding is not None and plugin in binding.waits:
                self._fail(binding, timed_out(plugin, binding.waits[plugin]))
        self.object_waits.expire()

    def next_deadline(self) -> float | None:
        times = (self._waits.next(), self.object_waits.next_deadline())
        return min((time for time in times if time is not None), default=None)

    @property
    def waiting_permits(self) -> int:
        """Pods that a Permit plugin keeps waiting; computed."""
        return sum(1 for binding in self._by_uid.values() if binding.waits)

    # -- success ---------------------------------------------------------------------------------

    def _bound(self, binding: Binding) -> None:
        binding.move(Step.CONFIRM)
        self._drop(binding)
        self._failures.writer.forget(binding.uid)
        self._post_binds.start(binding)
        pod, record, outbox = binding.pod, binding.record, self._state.outbox
        text = f"Successfully assigned {pod.key} to {binding.node}"
        outbox.submit(
            RecordEvent(
                pod_key(pod),
                type="Normal",
                reason="Scheduled",
                action="Binding",
                note=note(text),
                reporting_controller=binding.profile.name,
            )
        )
        details = {
            "node": binding.node,
            "age": record.age(self._state.now),
            "after_flush": record.flushed,
            "started": record.popped_at,
        }
        outbox.attempt(pod.uid, pod.key, binding.profile.name, "scheduled", record.attempts, **details)
        self._state.tell(pod.uid, text)
        if binding.is_preempted:
            self.on_victim(pod.uid, True)

    # -- looking in ------------------------------------------------------------------------------

    def check_invariants(self) -> None:
        assert set(self._steps) == {b.step for b in self._by_uid.values() if b.step}
        assert set(self._tickets) == {b.ticket for b in self._by_uid.values() if b.ticket}
        for uid, binding in self._by_uid.items():
            assert binding.uid == uid
            binding.check_invariants()
            assert all((uid, plugin) in self._waits for plugin in binding.waits)
            assert binding.awaits_objects == (uid in self.object_waits)
        self.object_waits.check_invariants()
        assert len(self._waits) == sum(len(binding.waits) for binding in self._by_uid.values())
