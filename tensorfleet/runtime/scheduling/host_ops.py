"""Operations that run in Python on numpy values: host ops, and rows of large variables."""

from __future__ import annotations

import math
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.graph.kernels import Kernel
from tensorfleet.kernels.packed_strings import Strings
from tensorfleet.kernels.record_origin import place_read
from tensorfleet.passes.plan import Part, Plan, variable_of
from tensorfleet.runtime.kernel_errors import refused
from tensorfleet.runtime.segments.segment import reference_inputs, uninitialized
from tensorfleet.runtime.step_parts import part_of
from tensorfleet.runtime.variable_packs import WriterLocks, release
from tensorfleet.state.tensor_lists import TensorList

if TYPE_CHECKING:
    from tensorfleet.graph.operation import Operation
    from tensorfleet.runtime.resources import ResourceManager, VariableStore
    from tensorfleet.runtime.scheduling.program import Slots
    from tensorfleet.runtime.scheduling.step import ExecutionContext
    from tensorfleet.runtime.values import Values


# These only look up the resource of their shared name, or make it at first. The result is remembered until resources
# are dropped.
_LOOKUPS = {"ConditionalAccumulator", "ResourceConditionalAccumulator", "SparseConditionalAccumulator"}
_LOOKUPS |= {"FIFOQueue", "FIFOQueueV2", "Iterator", "IteratorV2", "OneShotIterator"}
# If these fail, a record is malformed: their errors say which file it was read from.
_PARSING = {"DecodeCSV", "ParseExample", "ParseExampleV2", "ParseSingleExample", "ParseSequenceExample"}
_PARSING |= {"ParseSequenceExampleV2", "ParseSingleSequenceExample", "DecodeRaw", "DecodePaddedRaw"}
_PARSING |= {"StringToNumber", "DecodeJSONExample", "ParseTensor", "DecodeImage", "DecodeJpeg", "DecodePng"}
_PARSING |= {"DecodeBmp", "DecodeGif", "DecodeAndCropJpeg", "DecodeCompressed", "DecodeBase64"}
# Elements of an array that are changed at a time: few enough that all arrays of an update stay in the cache.
_PIECE_ELEMENTS = 1 << 16
# The inputs of updating ops that are as large as the variable; the rest are scalars.
_VALUES = ("grad", "delta", "value")


class StepHostContext:
    """The argument of a host op's kernel in place of an array namespace."""

    __slots__ = ("op", "step")

    def __init__(self, op: Operation, step: ExecutionContext) -> None:
        self.op = op
        self.step = step

    @property
    def resources(self) -> ResourceManager:
        """The resources of the session or server."""
        return self.step.resources

    @property
    def private(self) -> ResourceManager:
        """The resources that belong to this session alone."""
        return self.step.private

    def random(self, blocks: int) -> np.ndarray:
        """The state of this op's random stream, which then moves on by `blocks`."""
        return self.step.streams.take(self.op, blocks)


class _Item:
    """A single operation with its arguments: a slot, a constant, a store, or the value of a store."""

    def __init__(self, part: Part, plan: Plan, slots: Slots, resources: ResourceManager) -> None:
        (self.op,) = part.ops
        self.name = self.op.name
        self.device = part.device
        self.blocks = self.op.spec.blocks
        self.packed = self.op.spec.packed
        self.kernel = Kernel(self.op, self.packed)
        # A reference to a variable has no value of its own. Any other reference is a handle, as a resource is.
        self.outs = [
            None if t.dtype._is_ref_dtype and plan.variable_of(t) is not None else slots.made_by(t)
            for t in self.op._outputs
        ]
        self._kept = [o for o in self.outs if o is not None]
        refs = reference_inputs(self.op)
        self.args: list[Any] = []
        for i, t in enumerate(self.op._inputs):
            takes = i in refs  # the variable itself, which then is one of this task
            looks = t.dtype._is_ref_dtype or t.dtype.name == "resource"
            variable = (variable_of(t) if takes else plan.variable_of(t)) if looks else None
            if (self.op, i) in plan.live:
                live = plan.live[(self.op, i)]
                self.args.append(_Read(resources.variable(live), live))
            elif variable is not None:
                store = resources.variable(variable)
                by_value = not takes and t.dtype._is_ref_dtype
                self.args.append(_Read(store, variable) if by_value else store)
            else:
                self.args.append(slots.of(t))

    def arguments(self, values: Values) -> Values:
        """The arguments of this run."""
        result = []
        for a in self.args:
            if type(a) is int:
                a = values[a]
            elif isinstance(a, _Read):
                a = a()
            else:
                result.append(a)
                continue
            if (
                type(a) is not np.ndarray
                and not isinstance(a, np.generic)
                and not (self.packed and type(a) is Strings)
                and hasattr(a, "__array__")
            ):
                a = np.asarray(a)
            result.append(a)
        return result

    def finish(self, values: Values, results: tuple[Any, ...]) -> None:
        """Puts the results into their slots."""
        for slot, value in zip(self._kept, results, strict=True):
            values[slot] = value


class _Read:
    """The value of a variable given to a host op."""

    __slots__ = ("store", "variable")

    def __init__(self, store: VariableStore, variable: Operation) -> None:
        self.store = store
        self.variable = variable

    def __call__(self) -> Any:
        value = self.store.read()
        if value is None:
            raise uninitialized(self.variable)
        return value


class HostItem(_Item):
    """A host op: its kernel gets a `StepHostContext`. An ordinary op that runs here, on strings, gets numpy.

    A handle is the resource itself for a host op, and an array holding it for others (Identity, Pack, Gather).
    """

    def __init__(self, part: Part, plan: Plan, slots: Slots, resources: ResourceManager) -> None:
        super().__init__(part, plan, slots, resources)
        self._slots = slots
        self._handles = [
            i
            for i, t in enumerate(self.op._inputs)
            if type(self.args[i]) is int and (t.dtype.name == "resource" or t.dtype._is_ref_dtype)
        ]
        self._lists = [i for i, t in enumerate(self.op._inputs) if t.dtype.name == "variant"]

        moves = self.op.spec.moves
        self._moved = None if moves is None else self.op.input_list(moves)[0]
        self.packed = self.packed or moves is not None
        self._shared = bool(self.op._attrs.get("shared_name"))
        self._lookup: list[Any] | None = [None, -1, None] if self.op.type in _LOOKUPS else None
        #: the part of the step that it is, if it is one that is measured
        self._timed = part_of([self.op])
        special = self._handles or self._lists or self._moved is not None or self.blocks or self._lookup
        #: whether it only takes values and makes some: the short way in `run`
        self._plain = self.op.spec.host and not special and all(type(a) is int for a in self.args)

    def run(self, ctx: ExecutionContext, values: Values) -> None:
        """Runs the operation."""
        if self._plain:
            args = [values[a] for a in self.args]
            if not all([type(a) is np.ndarray for a in args]):
                args = self.arguments(values)
            try:
                with np.errstate(all="ignore"):
                    self.finish(values, self.kernel.call(StepHostContext(self.op, ctx), args))
            except Exception as e:
                raise self._with_origin(refused(self.op, args, e), values) from e
            return
        if self._lookup is None:
            if ctx.timer is None or self._timed is None:
                self._call(ctx, values)
            else:
                began = perf_counter()
                self._call(ctx, values)
                ctx.timer.add(self._timed, perf_counter() - began)
            return
        known, epoch, resource = self._lookup
        resources = ctx.resources if self._shared else ctx.private
        if known is not resources or epoch != resources.epoch:
            # Read before the look-up: if resources are dropped meanwhile, the next run looks again.
            epoch = resources.epoch
            self._call(ctx, values)
            self._lookup = [resources, epoch, values[self._kept[0]]]
        else:
            values[self._kept[0]] = resource

    def _call(self, ctx: ExecutionContext, values: Values) -> None:
        host = self.op.spec.host
        first: Any = StepHostContext(self.op, ctx) if host else np
        args = self.arguments(values)
        for i in self._handles:
            if host:
                args[i] = _unboxed(args[i])
            elif not isinstance(args[i], np.ndarray):
                args[i] = _boxed(args[i])
        if host:
            for i in self._lists:
                if isinstance(_unboxed(args[i]), TensorList):
                    args[i] = _unboxed(args[i])
        try:
            if self._moved is not None and type(args[self._moved]) is Strings:
                self.finish(values, self._move(args))
                return
            if self.blocks:  # it waits, and computes nothing itself
                self.finish(values, self.kernel.call(first, args))
                return
            with np.errstate(all="ignore"):
                self.finish(values, self.kernel.call(first, args))
        except Exception as e:
            raise self._with_origin(refused(self.op, args, e), values) from e

    def reads(self) -> list[VariableStore]:
        """The variables whose value it takes."""
        return [a.store for a in self.args if isinstance(a, _Read)]

    def _move(self, args: Values) -> tuple[Any, ...]:
        """Moves strings in the form they have."""
        moved = self._moved
        assert moved is not None

        def move(array: np.ndarray) -> tuple[Any, ...]:
            given = list(args)
            given[moved] = array
            return self.kernel.call(np, given)

        results: tuple[Any, ...] = args[moved].moved(move)
        return results

    def _with_origin(self, error: errors.OpError, values: Values) -> errors.OpError:
        """Adds to an error about a record where that was read from."""
        if isinstance(error, errors.InvalidArgumentError) and self.op.type in _PARSING:
            slots = self._slots._of
            known = lambda t: _array(values[slots[t]]) if t in slots else None  # noqa: E731
            place = place_read(self.op, known, error.message)
            error._message += f" ({place})" if place else ""
        return error


def _array(value: Any) -> Any:
    return np.asarray(value) if type(value) is Strings else value


def _boxed(resource: object) -> np.ndarray:
    box = np.empty((), object)
    box[()] = resource
    return box


def _unboxed(handle: Any) -> Any:
    return handle[()] if isinstance(handle, np.ndarray) and handle.ndim == 0 else handle


class SameItem:
    """An operation whose results are those of another one."""

    blocks = False

    def __init__(self, part: Part, plan: Plan, slots: Slots, resources: ResourceManager) -> None:
        (self.op,) = part.ops
        self.name = self.op.name
        self.device = part.device

    def run(self, ctx: ExecutionContext, values: Values) -> None:
        """Does nothing: whoever takes the results takes the other one's (`Slots.place`)."""


class RowsItem(_Item):
    """An update of some rows: the kernel changes the variables' arrays in place, under their locks."""

    def __init__(self, part: Part, plan: Plan, slots: Slots, resources: ResourceManager) -> None:
        super().__init__(part, plan, slots, resources)
        self.updated = [self.op.input_list(u)[0] for u in self.op.spec.updates]
        self.stores = [self.args[i] for i in self.updated]
        self.locking = sorted(set(self.stores), key=lambda s: s.order)
        self.locks = WriterLocks(self.locking)
        self.changing = set(self.stores)
        names = [argument.name for argument in self.op.spec.inputs]
        #: which argument has the numbers of the rows; None where whole variables are updated
        self.rows = self.op.input_list(names.index("indices"))[0] if "indices" in names else None

    def run(self, ctx: ExecutionContext, values: Values) -> None:
        """Runs the update."""
        args = self.arguments(values)
        opened = []
        held: list[Any] = []
        try:
            self.locks.acquire(held)
            for store in self.locking:  # readers wait from here on
                store.gate.acquire()
                opened.append(store)
            for i, store in zip(self.updated, self.stores, strict=True):
                if store.value is None:
                    variable = variable_of(self.op._inputs[i])
                    assert variable is not None
                    raise uninitialized(variable)
                args[i] = store.writable()
            with np.errstate(all="ignore"):
                self.change(args)
            if ctx.versions is not None:
                ctx.versions.note_update(self.changing)
            for i, store in zip(self.updated, self.stores, strict=True):
                if self.rows is None:
                    store.touched()
                else:
                    rows = args[self.rows]
                    store.rows_touched(rows, rows.size * args[i][:1].nbytes)
        except Exception as e:
            raise errors.about(self.op, e) from e
        finally:
            for store in opened:
                store.gate.release()
            release(held)

    def change(self, args: Values) -> None:
        """Changes the arrays."""
        self.kernel.call(np, args)


class ChunksItem(RowsItem):
    """An update of whole variables, element by element, in place: piece by piece, so that no piece leaves the cache."""

    def change(self, args: Values) -> None:
        """Changes one piece of every array after the other."""
        shape = args[self.updated[0]].shape
        whole = [i for i, a in enumerate(self.op.spec.inputs) if i in self.updated or a.name in _VALUES]
        if any(np.shape(a) != (shape if i in whole else ()) for i, a in enumerate(args)):
            self.kernel.call(np, args)  # it says what is wrong
        flat = [(i, np.ascontiguousarray(args[i]).reshape(-1)) for i in whole]
        piece, change = list(args), self.op.spec.elementwise
        assert change is not None
        for start in range(0, math.prod(shape), _PIECE_ELEMENTS):
            for i, array in flat:
                piece[i] = array[start : start + _PIECE_ELEMENTS]
            change(self.op, *piece)


class GatherItem:
    """Rows of a large variable, taken without touching the rest."""

    blocks = False

    def __init__(self, part: Part, plan: Plan, slots: Slots, resources: ResourceManager) -> None:
        (self.op,) = part.ops
        self.name = self.op.name
        self.device = part.device
        source = self.op._inputs[0]
        if not (source.dtype._is_ref_dtype or source.dtype.name == "resource"):
            source = source._op._inputs[0]
        variable = variable_of(source)
        assert variable is not None
        self.variable = variable
        self.store = resources.variable(variable)
        self.taking = {self.store}
        self.indices = slots.of(self.op._inputs[1])
        self.out = slots.made_by(self.op._outputs[0])

    def run(self, ctx: ExecutionContext, values: Values) -> None:
        """Fetches the rows."""
        if self.store.value is None:
            raise uninitialized(self.variable)
        indices = np.asarray(values[self.indices])
        try:
            if indices.size and indices.min() < 0:
                raise IndexError
            values[self.out] = self.store.take_rows(indices)
            if ctx.versions is not None:
                ctx.versions.note_read(self.taking)
        except IndexError:
            rows = self.store.value.shape[0]
            flat = indices.ravel()
            bad = int(np.argmax((flat < 0) | (flat >= rows)))
            where = ",".join(str(int(i)) for i in np.unravel_index(bad, indices.shape))
            text = f"indices[{where}] = {flat[bad]} is not in [0, {rows})"
            raise errors.InvalidArgumentError(None, self.op, text) from None
