"""The order of operations that their edges give.

The order in which operations were made mostly is such an order, but not always: an input can be replaced by a newer
operation (`op._update_input`, the graph editor, quantization).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from tensorfleet.base import errors

N = TypeVar("N")


def in_order(before: Mapping[N, Collection[N]], position: Callable[[N], int]) -> list[N]:
    """The nodes, each after those `before` it, and otherwise by their `position`, which differs for each."""
    positions = {node: position(node) for node in before}
    at = {place: node for node, place in positions.items()}
    waiting = {node: len(needs) for node, needs in before.items()}
    after: dict[N, list[N]] = {}
    for node, needs in before.items():
        for b in needs:
            after.setdefault(b, []).append(node)
    # A heap of positions, so that the order never depends on hashes.
    ready = [positions[node] for node, count in waiting.items() if not count]
    heapq.heapify(ready)
    result: list[N] = []
    while ready:
        node = at[heapq.heappop(ready)]
        result.append(node)
        for follower in after.get(node, ()):
            waiting[follower] -= 1
            if not waiting[follower]:
                heapq.heappush(ready, positions[follower])
    if len(result) != len(before):
        raise _endless(_cycle(before, {node for node, count in waiting.items() if count}))
    return result


def _cycle(before: Mapping[N, Collection[N]], stuck: set[N]) -> list[N]:
    """One of the cycles among nodes that wait for each other: each of them waits for another one of them."""
    path: dict[N, None] = {}
    node = next(iter(stuck))
    while node not in path:
        path[node] = None
        node = next(b for b in before[node] if b in stuck)
    nodes = list(path)
    return nodes[nodes.index(node) :]


def _endless(cycle: list[Any]) -> errors.OpError:
    names = ", ".join(sorted(node.name for node in cycle)[:5])
    return errors.invalid(
        f"Graph is invalid, contains a cycle with {len(cycle)} nodes, including: {names}. Give one of them another input, or "
        "remove one of the control dependencies between them."
    )
