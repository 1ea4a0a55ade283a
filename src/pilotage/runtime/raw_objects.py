"""Objects as the API server wrote them, for extenders that want them whole.

Decisions work on views that hold only what scheduling reads. Kept here, and only where an extender is asked
about it: nodes, pods that wait, and bound pods where somebody outside has a say in preemption.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pilotage.api.decode import DecodeFailure, EnvelopeError
from pilotage.api.kinds import Kind
from pilotage.api.meta import KubeObject
from pilotage.api.pods import Pod
from pilotage.client.decoding import BrokenFrameError, Frame, FrameType, Page, TypedDecoder
from pilotage.framework.settings import ExtenderSettings


class _Items(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


class _Line(msgspec.Struct):
    object: msgspec.Raw


class RawObjects:
    """Pods by UID, nodes by name."""

    def __init__(self, extenders: Iterable[ExtenderSettings]) -> None:
        asked = list(extenders)
        self._kinds = frozenset(
            resource
            for resource, is_wanted in (
                ("pods", any(one.filter_verb or one.prioritize_verb or one.preempt_verb for one in asked)),
                ("nodes", any(_wants_nodes(one) for one in asked)),
            )
            if is_wanted
        )
        self._keeps_bound = any(one.preempt_verb and not one.node_cache_capable for one in asked)
        self._pods: dict[str, bytes] = {}
        self._nodes: dict[str, tuple[str, bytes]] = {}  # with their UID

    def __len__(self) -> int:
        return len(self._pods) + len(self._nodes)

    def decoder(self, kind: Kind) -> TypedDecoder | None:
        """What the kind's informer shall read with; None: as usual."""
        return KeepingDecoder(kind, self) if kind.resource in self._kinds else None

    def keep(self, seen: KubeObject, raw: bytes) -> None:
        meta = seen.metadata
        if not isinstance(seen, Pod):
            self._nodes[meta.name] = (meta.uid, raw)
        elif seen.spec.node_name and not self._keeps_bound:
            self._pods.pop(meta.uid, None)
        else:
            self._pods[meta.uid] = raw

    def gone(self, last: KubeObject) -> None:
        """The object is not there any more; one that took its name is."""
        meta = last.metadata
        self._pods.pop(meta.uid, None)
        if self._nodes.get(meta.name, ("", b""))[0] == meta.uid:
            del self._nodes[meta.name]

    def pod(self, view: Pod) -> msgspec.Raw:
        """As it was last seen; what its view holds where it never was."""
        raw = self._pods.get(view.metadata.uid)
        return msgspec.Raw(raw if raw is not None else msgspec.json.encode(view))

    def node(self, name: str) -> msgspec.Raw:
        """As it was last seen; the bare name where it never was."""
        known = self._nodes.get(name)
        return msgspec.Raw(known[1] if known else msgspec.json.encode({"metadata": {"name": name}}))


def _wants_nodes(extender: ExtenderSettings) -> bool:
    return bool(extender.filter_verb or extender.prioritize_verb) and not extender.node_cache_capable


class KeepingDecoder(TypedDecoder):
    """Views as usual; the bytes behind them are kept."""

    def __init__(self, kind: Kind, kept: RawObjects) -> None:
        super().__init__(kind)
        self._resource = kind.resource
        self._kept = kept

    def page(self, body: bytes) -> Page:
        page = super().page(body)
        try:
            items = msgspec.json.decode(body, type=_Items).items or []
        except (msgspec.DecodeError, UnicodeDecodeError, EnvelopeError) as problem:
            raise BrokenFrameError(f"no list of {self._resource}: {problem}") from None
        for seen, raw in zip(page.items, items, strict=True):
            self._keep(seen.object, raw)
        return page

    def frame(self, line: bytes) -> Frame:
        frame = super().frame(line)
        if frame.seen is not None and frame.type in (FrameType.ADDED, FrameType.MODIFIED):
            self._keep(frame.seen.object, msgspec.json.decode(line, type=_Line).object)
        return frame

    def _keep(self, seen: object, raw: msgspec.Raw) -> None:
        if isinstance(seen, KubeObject) and not isinstance(seen, DecodeFailure):
            self._kept.keep(seen, bytes(raw))
