"""The call queue alone: cost per operation and bytes per pending call (the call itself included), by how
many wait.

Usage: `.venv/bin/python tests/perf/calls.py`, or `--pending 10 10000`. Status patches and binds, half and
half, each on a pod of its own. Read the ratio to the smallest queue, not the absolutes.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable

from pilotage.api.meta import Condition, ObjectMeta
from pilotage.api.pods import Pod
from pilotage.api.wire import Response
from pilotage.calls.defaults import default_call_types
from pilotage.calls.lanes import Allowance
from pilotage.calls.queue import CallQueue
from pilotage.framework.calls import BindPod, Call, ObjectKey, PatchPodStatus

SIZES = (10, 10_000, 1_000_000)
ROUNDS = 2_000
NOW = 1_700_000_000.0
CREATED = Response(201, b'{"kind":"Status","status":"Success"}')
MESSAGE = "0/50 nodes are available: 50 Insufficient cpu."


def key(number: int) -> ObjectKey:
    return ObjectKey("pods", "default", f"pod-{number:07}", f"0b5c7a5e-0000-4000-8000-{number:012}")


def bind(number: int) -> Call:
    return BindPod(key(number), "node-0001")


def patch(number: int, message: str = MESSAGE) -> Call:
    condition = Condition(type="PodScheduled", status="False", reason="Unschedulable", message=message)
    return PatchPodStatus(key(number), (condition,))


def wish(number: int) -> Call:
    return bind(number) if number % 2 else patch(number)


def pod(number: int, version: int) -> Pod:
    found = key(number)
    meta = ObjectMeta(
        name=found.name, namespace=found.namespace, uid=found.uid, resource_version=str(version)
    )
    return Pod(metadata=meta)


def resident() -> int:
    """Bytes of memory of this process (Linux)."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


class Filled:
    """A queue with so many calls waiting, and fresh numbers beyond them."""

    def __init__(self, pending: int) -> None:
        self.queue = CallQueue(default_call_types("perf"))
        self.fresh = pending
        gc.collect()
        before = resident()
        for number in range(pending):
            self.queue.offer(wish(number), NOW)
        gc.collect()
        self.bytes_per_call = (resident() - before) / pending
        self.pending = pending

    def numbers(self, count: int) -> list[int]:
        """Of calls that wait, spread over the queue."""
        step = max(1, self.pending // count)
        return [number * step % self.pending for number in range(count)]

    def offer_and_cancel(self) -> tuple[float, float]:
        calls = [wish(self.fresh + number) for number in range(ROUNDS)]
        offered = timed(lambda: [self.queue.offer(call, NOW) for call in calls])
        uids = [call.key.uid for call in calls]
        return offered, timed(lambda: [self.queue.cancel(uid, "deleted", NOW) for uid in uids])

    def merge(self) -> float:
        even = [number - number % 2 for number in self.numbers(ROUNDS)]
        calls = [patch(number, f"{MESSAGE} {index}") for index, number in enumerate(even)]
        return timed(lambda: [self.queue.offer(call, NOW) for call in calls])

    def sync(self) -> float:
        pods = [pod(number, 100 + index) for index, number in enumerate(self.numbers(ROUNDS))]
        return timed(lambda: [self.queue.sync("pods", one, NOW) for one in pods])

    def take_and_finish(self) -> float:
        """Binds: taken one at a time and answered; each is wished anew, so that the queue stays as long."""
        calls = [bind(2 * (self.fresh + number) + 1) for number in range(ROUNDS)]

        def run() -> None:
            for call in calls:
                (dispatch,) = self.queue.take(NOW, Allowance(1))
                self.queue.finish(dispatch.id, CREATED, NOW)
                self.queue.offer(call, NOW)

        return timed(run)


def timed(work: Callable[[], object]) -> float:
    """Microseconds per operation, of ROUNDS."""
    gc.collect()
    gc.disable()
    start = time.process_time()
    work()
    taken = time.process_time() - start
    gc.enable()
    return taken / ROUNDS * 1e6


def measure(pending: int) -> dict[str, float]:
    filled = Filled(pending)
    offer, cancel = filled.offer_and_cancel()
    return {
        "offer": offer,
        "cancel": cancel,
        "offer, merged": filled.merge(),
        "sync": filled.sync(),
        "take, finish, offer": filled.take_and_finish(),
        "bytes": filled.bytes_per_call,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pending", type=int, nargs="+", default=SIZES, metavar="N")
    sizes = parser.parse_args().pending
    found = {}
    measure(sizes[0])  # what is done for the first time takes longer
    for size in sizes:
        print(f"filling a queue with {size:,} calls", file=sys.stderr)
        found[size] = measure(size)
    print(f"{'':<22}" + "".join(f"{size:>22,}" for size in sizes))
    for name in list(found[sizes[0]])[:-1]:
        cells = []
        for size in sizes:
            us, ratio = found[size][name], found[size][name] / found[sizes[0]][name]
            cells.append(f"{1e6 / us:>12,.0f}/s  x{ratio:>5.2f}")
        print(f"{name:<22}" + "".join(f"{cell:>22}" for cell in cells))
    print(f"{'bytes per call':<22}" + "".join(f"{found[size]['bytes']:>22,.0f}" for size in sizes))


if __name__ == "__main__":
    main()
