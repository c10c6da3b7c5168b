"""The graph behind a set of parameters: its variables on the servers, and the steps that change them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.types import Array
from tensorfleet.fleet.consistency.auto import Adaptive
from tensorfleet.fleet.consistency.scheme import WHOLE
from tensorfleet.fleet.consistency.text import Schedule
from tensorfleet.fleet.consistency.wiring import GatedUpdate, Training
from tensorfleet.fleet.library.phases import SHARED
from tensorfleet.fleet.library.updates import Kept, Pack, Update
from tensorfleet.graph.apply import apply
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import colocate_with, device, get_default_graph, name_scope
from tensorfleet.kernels.exported_functions import ArrayType, TracedFunction
from tensorfleet.ops.array.basic import group, placeholder
from tensorfleet.ops.control.jax_call import call_traced
from tensorfleet.ops.state.accumulators import ConditionalAccumulator


class UpdateGraph:
    """Variables, and operations on them. Made while the graph of the cluster is the default one."""

    def __init__(self, update: Update, devices: Sequence[str]) -> None:
        self._update, self._devices = update, devices
        self.parameters = [self._variable(kept, kept.home) for kept in update.parameters]
        # Every server has all of the state that belongs to no parameter, such as the number of the step.
        self.state = [
            {s: self._variable(kept, s) for s in (update.servers if kept.home == SHARED else [kept.home])}
            for kept in update.state
        ]
        with name_scope(f"{update.name}/steps"):
            self.gradients = [
                self._apply("Placeholder", p.server, dtype=dtypes.as_dtype(p.dtype), shape=[p.size])
                for p in update.packs
            ]
            self.values, self.assign = self._assigning()
            self.are_initialized = [self._apply("IsVariableInitialized", s, v) for v, s in self._stores()]

    # -- variables ------------------------------------------------------------------------------------

    def _apply(self, kind: str, server: int, *inputs: Tensor, **attrs: Any) -> Tensor:
        with device(self._devices[server]):
            return apply(kind, *inputs, **attrs)

    def _variable(self, kept: Kept, server: int) -> Tensor:
        first = self._update.servers[0]
        name = kept.name if kept.home != SHARED or server == first else f"{kept.name}/replica_{server}"
        dtype = dtypes.as_dtype(kept.dtype)
        return self._apply("VariableV2", server, name=name, shape=list(kept.shape), dtype=dtype)

    def _stores(self) -> list[tuple[Tensor, int]]:
        """All variables with their servers: parameters, then the state, each copy of it."""
        of_parameters = [(v, k.home) for v, k in zip(self.parameters, self._update.parameters, strict=True)]
        return [*of_parameters, *((v, s) for copies in self.state for s, v in copies.items())]

    def _fed(self, stores: Sequence[tuple[Tensor, int]]) -> list[Tensor]:
        return [self._apply("Placeholder", s, dtype=v.dtype.base_dtype, shape=v.shape) for v, s in stores]

    def _assigning(self) -> tuple[list[Tensor], Operation]:
        stores = self._stores()
        fed = self._fed(stores)
        made = [self._assign(v, value, s).op for (v, s), value in zip(stores, fed, strict=True)]
        return fed, group(*made)

    def _assign(self, variable: Tensor, value: Tensor, server: int) -> Tensor:
        return self._apply("Assign", server, variable, value)

    def spread(self, values: Sequence[Array]) -> list[Array]:
        """What to feed of the initial values of parameters and state: one for each variable."""
        count = len(self.parameters)
        return [
            *values[:count],
            *(v for v, copies in zip(values[count:], self.state, strict=True) for _ in copies),
        ]

    # -- updates --------------------------------------------------------------------------------------

    def apply(self, gradients: Sequence[Tensor]) -> Operation:
        """The operation that makes one update."""
        update, flow = self._update, self._update.phases
        crossing: dict[Any, Tensor] = {}
        done: list[Operation] = []
        for phase in range(flow.count):
            sent: dict[Any, Tensor] = {}
            known = flow.known(phase)
            for server in update.servers:
                inputs = self._inputs(server) | {v: crossing[v] for v in known}
                packs = {p: g for p, g in zip(update.packs, gradients, strict=True) if p.server == server}
                if phase < flow.count - 1:
                    wanted = flow.sent(phase, server)
                    sent.update(zip(wanted, self._call(server, packs, inputs, wanted), strict=True))
                else:
                    done += self._finish(server, packs, inputs)
            crossing |= sent
        return group(*done)

    def _inputs(self, server: int) -> dict[Any, Tensor]:
        """The parameters and the state that a server has."""
        inputs, count = self._update.flow.inputs, len(self.parameters)
        own = [i for i, kept in enumerate(self._update.parameters) if kept.home == server]
        found = {inputs[count + i]: self.parameters[i] for i in own}
        copies = zip(inputs[2 * count :], self.state, strict=True)
        return found | {v: stores[server] for v, stores in copies if server in stores}

    def _call(
        self, server: int, packs: dict[Pack, Tensor], inputs: dict[Any, Tensor], wanted: Sequence[Any]
    ) -> list[Tensor]:
        if not wanted:
            return []
        of_pieces = [self._update.flow.inputs[i] for pack in packs for i in pack.pieces]
        inside = self._update.phases.program([*of_pieces, *inputs], wanted)

        def program(*values: Any) -> list[Any]:
            parts = [pack.unpacked(vector) for pack, vector in zip(packs, values, strict=False)]
            return inside(*itertools.chain(*parts), *values[len(packs) :])

        given = [*packs.values(), *inputs.values()]
        types = [
            ArrayType(t.dtype.base_dtype.name, ", ".join(str(size) for size in t.shape.as_list()))
            for t in given
        ]
        labels = [f"value {i}" for i in range(len(given))]
        name = f"update_on_server_{server}"
        traced = TracedFunction(program, name, labels, types, self._update.is_wide)
        with device(self._devices[server]):
            return call_traced(traced, given, get_default_graph())

    def _finish(self, server: int, packs: dict[Pack, Tensor], inputs: dict[Any, Tensor]) -> list[Operation]:
        """Computes the new values of a server's variables and assigns them."""
        outputs, count = self._update.flow.outputs, len(self.parameters)
        targets = [
            (outputs[i], self.parameters[i])
            for i, kept in enumerate(self._update.parameters)
            if kept.home == server
        ]
        targets += [
            (v, stores[server])
            for v, stores in zip(outputs[count:], self.state, strict=True)
            if server in stores
        ]
        made = self._call(server, packs, inputs, [v for v, _ in targets])
        return [
            self._assign(variable, value, server).op
            for (_, variable), value in zip(targets, made, strict=True)
        ]

    def push(self, schedule: Schedule, workers: int) -> tuple[Operation, PushedUpdate]:
        """The operation that applies this worker's gradients when and as a consistency says."""
        firsts = [self.parameters[pack.pieces[0]] for pack in self._update.packs]
        pairs: list[tuple[Any, Any]] = list(zip(self.gradients, firsts, strict=True))
        training = Training(pairs, None, schedule, workers, f"consistency/{self._update.name}")
        gated = PushedUpdate(training, lambda ready, _: self.apply([gradient for gradient, _ in ready]))
        return gated.build(), gated


class PushedUpdate(GatedUpdate):
    """A gated update whose worker has read the parameters in an earlier run.

    Where the age of gradients matters, `pulled` is to be fed with what `updates` was then.
    """

    pulled: Tensor | None = None
    updates: Tensor | None = None

    def _accumulator(self, grad: Any, var: Any) -> ConditionalAccumulator:
        name = f"{self._it.key}/{var.op.name}/{grad.dtype.base_dtype.name}"
        return ConditionalAccumulator(grad.dtype, shape=grad.shape, shared_name=name)

    def _read_step_early(self) -> Tensor:
        with colocate_with(self._place):
            updates = apply("FleetConsistencySeen", self._gate(), name="updates")
            if not _looks_at_ages(self._it.schedule):
                return updates  # nothing depends on it: a push then is a single message
            self.updates, self.pulled = updates, placeholder(dtypes.int64, [], name="pulled")
        return self.pulled


def _looks_at_ages(schedule: Schedule) -> bool:
    """Whether what becomes of a gradient depends on its age."""
    ruled = [getattr(scheme, "rule", WHOLE) for scheme in schedule.schemes]
    return any(rule is not WHOLE for rule in ruled) or any(isinstance(s, Adaptive) for s in schedule.schemes)
