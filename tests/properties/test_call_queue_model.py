"""Every order in which things can happen to the call queue, up to a depth, against `reference.plain_calls`.

States that look the same to the queue, the server and the specification are explored once; so are states
that differ only by the names of the two pods. `PILOTAGE_MODEL_DEPTH=8` explores as deep as the requirement
says; the suite goes less deep and walks on at random.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from random import Random

import pytest

from pilotage.calls.slots import Slot, Wish
from reference.plain_calls import PlainWorld, Step

DEPTH = int(os.environ.get("PILOTAGE_MODEL_DEPTH", "4"))
WALKS, WALK_STEPS = 1500, 24
Path = tuple[Step, ...]


def replayed(path: Path) -> PlainWorld:
    """The world after these steps; all but the last were checked when they were the last."""
    world = PlainWorld(is_checked=False)
    for step in path[:-1]:
        world.do(step)
    world.is_checked = True
    for step in path[-1:]:
        world.do(step)
    return world


def explore(depth: int) -> Iterator[int]:
    """Breadth first; the number of new states per depth. Raises AssertionError with the steps to it."""
    known: set[Hashable] = set()
    layer: list[Path] = [()]
    for _ in range(depth):
        found: list[Path] = []
        for path in layer:
            for step in replayed(path).steps():
                with told((*path, step)):
                    world = replayed((*path, step))
                    key = canonical(world)
                    if key not in known:
                        known.add(key)
                        found.append((*path, step))
                        world.settle()
        yield len(found)
        layer = found


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Names the steps that led to a fault."""
    try:
        yield
    except Exception as problem:
        raise AssertionError(f"{problem} after: {'; '.join(map(str, path))}") from problem


def canonical(world: PlainWorld) -> Hashable:
    return min(key_of(world, world.names), key_of(world, world.names[::-1]))


def key_of(world: PlainWorld, names: tuple[str, ...]) -> tuple[Hashable, ...]:
    """All that later steps can depend on, with versions, tickets and times told by their order."""
    slots = {slot.object.name: slot for slot in world.rig.queue._slots.values()}
    order = sorted(slots, key=lambda name: slots[name].sequence)
    parts: list[Hashable] = []
    for name in names:
        server, slot = world.pods[name], slots.get(name)
        parts += [
            (bool(server.node), server.node == "n1", server.message, server.leaving, server.binds),
            tuple((w.call_type, w.content, w.cancelled, w.is_true) for w in world.open[name]),
            name in world.unread,
            order.index(name) if name in order else -1,
            newest_key(world, name),
            slot_key(slot, server.version, world.rig.now) if slot is not None else (),
        ]
    return tuple(repr(part) for part in parts)


def newest_key(world: PlainWorld, name: str) -> Hashable:
    known = world.newest[name]
    texts = [condition.message for condition in known.status.conditions or ()]
    leaves = bool(known.metadata.deletion_timestamp)
    age = age_of(known.metadata.resource_version, world.pods[name].version)
    is_first = known.metadata.resource_version == "1"
    return (age, is_first, known.spec.node_name, texts, leaves)


def slot_key(slot: Slot, version: int, now: float) -> Hashable:
    base, sent = slot.base, slot.sent_base
    return (
        slot.position.value,
        age_of(base.metadata.resource_version if base is not None else "", version),
        bool(base is not None and getattr(getattr(base, "spec", None), "node_name", "")),
        age_of(sent.metadata.resource_version if sent is not None else "", version),
        wish_key(slot.running, now) if slot.running is not None else (),
        tuple(wish_key(wish, now) for wish in slot.waiting),
    )


def age_of(version: str, newest: int) -> int:
    """How many versions behind; beyond two it makes no difference."""
    return min(3, newest - int(version)) if version else -1


def wish_key(wish: Wish, now: float) -> Hashable:
    return (
        wish.kind.name,
        repr(wish.call),
        wish.not_before > now,
        wish.phase.value,
        wish.step,
        wish.unsure,
        wish.cancelled,
        min(wish.tries, 2),
    )


def test_every_order_of_a_few_steps() -> None:
    counts = list(explore(DEPTH))
    assert all(count > 3 * before for before, count in pairwise(counts)), "something cannot happen any more"


@pytest.mark.parametrize("seed", range(4))
def test_long_walks(seed: int) -> None:
    random = Random(seed)
    for _ in range(WALKS // 4):
        world, path = PlainWorld(), []
        for _ in range(random.randint(8, WALK_STEPS)):
            path.append(random.choice(world.steps()))
            with told(tuple(path)):
                world.do(path[-1])
        with told(tuple(path)):
            world.settle()
