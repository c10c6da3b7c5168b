"""`cluster.parameters`: a pytree on the parameter servers, which also run its optimizer."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.types import Array
from tensorfleet.fleet.consistency.text import parse_schedule
from tensorfleet.fleet.jax_trees import PyTree, unflatten
from tensorfleet.fleet.library.arrays import from_numpy
from tensorfleet.fleet.library.requests import Requests
from tensorfleet.fleet.library.trees import TreeLayout
from tensorfleet.fleet.library.update_graph import UpdateGraph
from tensorfleet.fleet.library.updates import Update

if TYPE_CHECKING:
    from tensorfleet.fleet.library.join import Cluster

_POLL_SECONDS = (0.005, 0.2)  # between two looks whether the chief has initialized the parameters


@export("fleet.Parameters")
class Parameters:
    """A pytree of arrays on the parameter servers. `Cluster.parameters` makes it."""

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        init: Callable[[], PyTree] | PyTree,
        optimizer: Any,
        consistency: object,
    ) -> None:
        self.name = name
        self._schedule = parse_schedule(consistency)
        if not callable(getattr(optimizer, "init", None)) or not callable(getattr(optimizer, "update", None)):
            raise TypeError(
                f"optimizer must be a transformation of Optax, such as optax.adam(1e-3), not {optimizer!r}."
            )
        self._cluster = cluster
        self._requests = Requests(name)
        tree = init() if callable(init) else init
        self._layout = TreeLayout(name, tree)
        self._update = Update(name, self._layout, optimizer, len(cluster.servers))
        self._is_left = False
        with cluster.building():
            self._graph = UpdateGraph(self._update, cluster.servers)
            push, gated = self._graph.push(self._schedule, cluster.workers)
        cluster.agree(f"parameters/{name}", self._agreement(), self._difference)
        self._read = cluster.step(self._graph.parameters)
        self._write = cluster.step(
            push, [*self._graph.gradients, *([] if gated.pulled is None else [gated.pulled])]
        )
        #: how many updates there were when the parameters were read, where the age of gradients matters
        self._look = None if gated.updates is None else cluster.step(gated.updates)
        self._seen: list[Array] = []
        self._make_sure_it_is_initialized(tree)

    @property
    def consistency(self) -> str:
        """How far the workers may be apart."""
        return self._schedule.text

    # -- the beginning --------------------------------------------------------------------------------

    def _agreement(self) -> dict[str, Any]:
        return {
            "leaves": [[leaf.path, leaf.dtype, list(leaf.shape)] for leaf in self._layout.leaves],
            "optimizer": self._update.digest,
            "consistency": self.consistency,
        }

    def _difference(self, have: dict[str, Any], want: dict[str, Any]) -> str:
        """How this program's parameters differ from those that are there."""
        if have["leaves"] != want["leaves"]:
            theirs, ours = ({leaf[0]: leaf[1:] for leaf in told["leaves"]} for told in (have, want))
            path = next(p for p in [*theirs, *ours] if theirs.get(p) != ours.get(p))
            said = [_type(found.get(path)) for found in (theirs, ours)]
            return f"init: its leaf {path} is {said[0]} on the servers and {said[1]} here"
        if have["optimizer"] != want["optimizer"]:
            return "optimizer: another program made them with an optimizer that computes something else"
        return f"consistency: it is {have['consistency']!r} on the servers and {want['consistency']!r} here"

    def _make_sure_it_is_initialized(self, tree: PyTree) -> None:
        session, graph = self._cluster.session, self._graph
        limit, pause = time.monotonic() + self._cluster.timeout, _POLL_SECONDS[0]
        while not all(session.run(graph.are_initialized)):
            if self._cluster.is_chief:
                values = graph.spread(self._update.initial(tree))
                session.run(graph.assign, dict(zip(graph.values, values, strict=True)))
                return
            if time.monotonic() > limit:
                raise errors.DeadlineExceededError(
                    None,
                    None,
                    f"Timed out after {self._cluster.timeout:g} s waiting for the chief to initialize '{self.name}'. "
                    "Is worker 0 running, and does it call cluster.parameters with this name?",
                )
            time.sleep(pause)
            pause = min(2 * pause, _POLL_SECONDS[1])

    # -- pull and push --------------------------------------------------------------------------------

    def pull(self, like: PyTree = None) -> PyTree:
        """The parameters as they are now: a copy, which later pushes do not change.

        Arrays are of the library that `init` used, or those of `like`, a tree of the same structure.
        """
        kinds = self._layout.kinds if like is None else self._layout.kinds_like(like)
        if self._look is not None:
            self._seen = [self._look()]
        arrays = self._update.joined(self._read())
        return unflatten(self._layout.structure, from_numpy(arrays, kinds))

    def push(self, gradients: PyTree, wait: bool = True) -> int:
        """Has the servers update the parameters with gradients, a tree like that of `init`. Returns a timestamp.

        It returns when this worker may begin its next step: with "bsp" when the mean of all workers' gradients is
        applied. With `wait=False` it returns at once, and `wait(timestamp)` waits.
        """
        if self._is_left:
            raise RuntimeError(f"'{self.name}' is closed. Push inside the block of fleet.join().")
        parts = self._update.packed(self._layout.arrays(gradients, "gradients"))
        if wait and not self._requests.is_busy():
            self._send(*parts, *self._seen)
            return self._requests.done()
        seen = self._seen
        timestamp = self._requests.begin("push", lambda: self._send(*parts, *seen))
        if wait:
            self._requests.wait(timestamp, self._cluster.timeout)
        return timestamp

    def _send(self, *values: Array) -> None:
        try:
            self._write(*values)
        except errors.DeadlineExceededError as e:
            raise errors.DeadlineExceededError(
                None,
                None,
                f"Timed out after {self._cluster.timeout:g} s waiting for other workers to push '{self.name}' "
                f"({self.consistency}), or for the servers. fleet.join(timeout=...) sets the limit. {e.message}",
            ) from e

    def wait(self, timestamp: int | None = None, timeout: float | None = None) -> None:
        """Waits for a push that did not wait, or for all. Raises its error."""
        limit = self._cluster.timeout if timeout is None else timeout
        if timestamp is None:
            self._requests.wait_for_all(limit)
        else:
            self._requests.wait(timestamp, limit)

    def assign(self, tree: PyTree) -> None:
        """Sets the parameters, and lets the state of the optimizer begin anew."""
        values = self._graph.spread(self._update.initial(tree))
        self._cluster.session.run(self._graph.assign, dict(zip(self._graph.values, values, strict=True)))

    # -- the end --------------------------------------------------------------------------------------

    def close(self, in_good_order: bool = True) -> None:
        """Waits for what is under way. The end of the session tells the other workers not to wait for this one."""
        if self._is_left:
            return
        self._is_left = True
        try:
            if in_good_order:
                self._requests.wait_for_all(self._cluster.timeout)
        finally:
            self._requests.close()


def _type(told: Sequence[Any] | None) -> str:
    return "missing" if told is None else f"{told[0]}{told[1]}"
