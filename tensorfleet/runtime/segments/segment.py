"""A segment: pure and variable operations of one device that run as one unit, interpreted or compiled.

The same interpreter runs both modes. On numpy values it computes at once; on tracers it records the whole segment into
one XLA program (runtime/segments/compiled.py). State is functional inside: variables come in as values, new values go
out, and they become visible together when the segment has succeeded.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import errors
from tensorfleet.graph.kernels import Kernel
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.kernels import matmul_onednn
from tensorfleet.kernels.rows import FUSED
from tensorfleet.passes.plan import Part, Plan, variable_of
from tensorfleet.runtime.kernel_errors import refused
from tensorfleet.runtime.segments.branches import guard, run_guarded

if TYPE_CHECKING:
    from tensorfleet.base.types import ArrayModule
    from tensorfleet.graph.kernel_types import Check
    from tensorfleet.runtime.segments.xla_barriers import Barriers
    from tensorfleet.runtime.values import Values

_CONCRETE = (np.ndarray, np.generic)
_READS = {"Identity", "ReadVariableOp"}
_NOTHING = {"NoOp", "ControlTrigger"}  # they only order others
_PASSES = {"Switch", "RefSwitch", "Enter", "RefEnter", "Exit", "RefExit"}


class SegmentStep:
    """One operation of a segment: where its arguments are and where its results go.

    An argument or result code >= 0 is a slot of the segment's values; ~code is the index of a variable.
    """

    __slots__ = (
        "args",
        "choices",
        "guard",
        "kernel",
        "op",
        "outs",
        "plain",
        "rng",
        "static",
        "updates",
        "variables",
    )

    def __init__(self, op: Operation, args: list[int], outs: list[int | None], updates: list[int]) -> None:
        self.op = op
        self.kernel = Kernel(op)
        self.args = args
        self.outs = outs
        self.updates = updates
        self.static = _flat_positions(op, op.spec.static)
        self.variables = [i for i, a in enumerate(args) if a < 0]
        self.rng: int | None = None
        self.guard: tuple[tuple[int, bool], ...] = ()
        self.choices: list[tuple[tuple[int, bool], ...]] | None = None
        #: the kernel itself if nothing else is to be done in numpy, None if there is; False until that was looked up
        self.plain: Callable[..., Any] | bool | None = False

    def find_plain(self) -> Callable[..., Any] | None:
        """The kernel as a plain function, if all this step does is to take values and make one."""
        alone = self.rng is None and not self.variables and not self.updates
        self.plain = self.kernel.in_numpy() if alone and len(self.outs) == 1 else None
        return self.plain


def _hands_on(op: Operation, plan: Plan) -> bool:
    """Whether an operation only passes on the reference or handle of a variable."""
    if op.type not in _PASSES and op.type != "Identity":
        return False
    kind = op._inputs[0].dtype
    if kind.name != "resource" and (op.type == "Identity" or not kind._is_ref_dtype):
        return False
    return plan.variable_of(op._inputs[0]) is not None


def stand_in(tensor: Tensor) -> Tensor:
    """A tensor for the result of an operation whose own tensor has a fed value."""
    computed = Tensor(tensor._op, tensor._value_index, tensor._dtype)
    computed._shape = tensor._shape
    return computed


def reference_inputs(op: Operation) -> set[int]:
    """The inputs of which an operation takes the variable itself, wherever the reference came from."""
    if not any(a.is_ref for a in op.spec.inputs):
        return set()
    return {i for p, a in enumerate(op.spec.inputs) if a.is_ref for i in range(*op.input_list(p))}


def _flat_positions(op: Operation, declared: frozenset[int]) -> tuple[int, ...]:
    """Declared input positions as positions among the flat inputs."""
    return tuple(i for position in sorted(declared) for i in range(*op.input_list(position)))


class _Stacked(Kernel):
    """A product whose factors arrive in pieces, to be stacked along the dimension that is summed over."""

    def __init__(self, product: Operation, terms: int) -> None:
        super().__init__(product)
        self._terms = terms

    def call(self, first: Any, values: Sequence[Any], check: Check | None = None) -> tuple[Any, ...]:
        """Stacks the left factors and the right ones, and multiplies. The library needs no copies of them."""
        left, right = values[: self._terms], values[self._terms :]
        if matmul_onednn.suits(first, left, right):
            return (matmul_onednn.sum_of_products(first, left, right),)
        return super().call(first, [first.concatenate(left), first.concatenate(right)], check)


class _Columns(Kernel):
    """Some columns of a product by a transposed matrix: the product by some of its rows."""

    def __init__(self, product: Operation, begin: int, end: int) -> None:
        super().__init__(product)
        self._taken = slice(begin, end)

    def call(self, first: Any, values: Sequence[Any], check: Check | None = None) -> tuple[Any, ...]:
        """Multiplies by the rows."""
        return super().call(first, [values[0], values[1][self._taken]], check)


class _InPlace(Kernel):
    """An update of rows: of the array itself in numpy, functional in XLA, which owns the table's memory."""

    def call(self, first: Any, values: Sequence[Any], check: Check | None = None) -> tuple[Any, ...]:
        """Updates the table, which comes first, and returns it."""
        if first is np:
            super().call(first, values)
            return (values[0],)
        return (FUSED[self.op.type](first, *values, check),)


class NeedsValue(Exception):
    """While tracing: an operation needs the value, not only the shape, of a slot or variable."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


class Segment:
    """A list of operations with the values that flow in and out."""

    def __init__(self, part: Part, plan: Plan, same: Mapping[Tensor, Tensor] | None = None) -> None:
        self.ops = ops = list(part.ops)
        #: for inputs that others have computed twice, the tensor that has the value of both
        self._same = same or {}
        self.outputs = list(part.outputs)
        self._live = plan.live
        self._fed = fed = plan.fed
        self._constants = constants = plan.constants
        self.inputs: list[Tensor] = []
        self.variables: list[Operation] = []
        self.reads: list[int] = []
        self.writes: list[int] = []
        #: tables whose rows are updated: their memory is this segment's while it runs
        self.owned: list[int] = []
        self.rng_steps: list[SegmentStep] = []
        self.template: list[Any] = []
        self.steps: list[SegmentStep] = []
        self._slots: dict[Tensor, int] = {}
        self._variable_index: dict[Operation, int] = {}
        self._written: set[int] = set()
        #: variables that only operations in branches need: they may be uninitialized if no such branch is taken
        self.optional: set[int] = set()
        computed = {t for op in ops for t in op._outputs if t not in fed}
        for op in ops:
            if op in part.products:
                self._add_products(op, part.products[op], computed, constants)
            elif not (op.spec.variable or op.type in _NOTHING or op in part.hidden or _hands_on(op, plan)):
                self._add(op, computed, constants)
        self.guarded = bool(plan.guards or plan.merges) and guard(self, plan, computed)
        self.input_slots = [self._slots[t] for t in self.inputs]
        self.output_codes = [self.code_of(t, computed, constants) for t in self.outputs]
        self.writes = sorted(self._written)
        self.reads = [r for r in self.reads if r not in self.owned]

    @property
    def numeric(self) -> bool:
        """Whether XLA can run it at all: no strings inside."""
        return not any(
            t.dtype.np_dtype.kind == "O" and t.dtype.name != "resource" and t not in self._constants
            for op in self.ops
            for t in (*op._inputs, *op._outputs)
        )

    def _add(self, op: Operation, computed: set[Tensor], constants: dict[Tensor, Any]) -> None:
        spec = op.spec
        updated = [t for u in spec.updates for t in op._inputs[slice(*op.input_list(u))]]
        taken = reference_inputs(op)
        args = []
        for i, t in enumerate(op._inputs):
            live = variable_of(t) if i in taken else self._live.get((op, i))
            code = self.code_of(t, computed, constants) if live is None else ~self._index_of(live)
            # A variable that is only overwritten need not have a value yet.
            writes_only = spec.overwrites and any(i == op.input_list(u)[0] for u in spec.updates)
            if code < 0 and not writes_only and ~code not in self._written and ~code not in self.reads:
                self.reads.append(~code)
            args.append(code)
        updates = [self._variable(t) for t in updated]
        self._written.update(updates)
        results = [stand_in(t) if t in self._fed else t for t in op._outputs]
        outs: list[int | None] = [None if t.dtype._is_ref_dtype else self._slot(t) for t in results]
        if updates:
            outs = [o for o in outs if o is not None]
        step = SegmentStep(op, args, outs, updates)
        if spec.rows is not None:
            step.kernel = _InPlace(op)
            self.owned += updates
        if spec.rng is not None:
            step.rng = len(self.rng_steps)
            self.rng_steps.append(step)
        self.steps.append(step)

    def kept_shape(self) -> dict[int, Operation]:
        """The variables whose new value must have the shape of the old one, with the operation that assigns it."""
        assigned = {s.updates[0]: s.op for s in self.steps if s.op.type == "Assign"}
        return {v: op for v, op in assigned.items() if op._attrs["validate_shape"]}

    def advanced(self) -> list[int]:
        """The variables whose new value is made from the one before: they are not simply assigned to."""
        assigned = {u for step in self.steps if step.op.spec.overwrites for u in step.updates}
        return [i for i in self.writes if i not in assigned]

    def changed(self) -> list[int]:
        """The variables that are read and then updated, and never get a value of another shape."""
        kept = set(self.advanced()) - self.optional
        return [i for i in self.reads if i in kept]

    def taken(self) -> set[int]:
        """The variables whose value a step other than an update takes, or that is an output."""
        result = {~code for code in self.output_codes if code < 0}
        for step in self.steps:
            if step.variables:
                result |= {~step.args[i] for i in step.variables} - set(step.updates)
        return result

    def only_reads(self) -> list[int] | None:
        """For each output the variable whose value it is, if the segment does nothing but read."""
        source: dict[int | None, int] = {}
        for step in self.steps:
            if step.op.type not in _READS or step.args[0] >= 0 or step.updates:
                return None
            source[step.outs[0]] = ~step.args[0]
        variables = [~code if code < 0 else source.get(code, -1) for code in self.output_codes]
        plain = not (self.inputs or self.writes or self.guarded or self.optional) and bool(self.reads)
        return variables if plain and all(i in self.reads for i in variables) else None

    def _add_products(
        self, op: Operation, terms: list[Operation], computed: set[Tensor], constants: dict[Tensor, Any]
    ) -> None:
        """Adds an entry of `Part.products` as one step."""
        outs: list[int | None] = [self._slot(op._outputs[0])]
        factors = [term._inputs[side] for side in (0, 1) for term in terms]
        step = SegmentStep(op, [self.code_of(t, computed, constants) for t in factors], outs, [])
        step.static = ()
        if op.type == "Slice":
            begin, size = int(constants[op._inputs[1]][1]), op._outputs[0].shape.as_list()[1]
            step.kernel = _Columns(terms[0], begin, begin + size)
        else:
            step.kernel = _Stacked(terms[0], len(terms))
        self.steps.append(step)

    def code_of(self, tensor: Tensor, computed: set[Tensor], constants: dict[Tensor, Any]) -> int:
        """The code of a step's argument: the slot of a value, or `~index` of a variable."""
        if tensor not in self._fed and (
            (tensor.dtype._is_ref_dtype and tensor.op.type != "RefSelect")
            or (
                tensor.dtype.name == "resource"
                and (tensor not in computed or variable_of(tensor, self._fed) is not None)
            )
        ):
            return ~self._variable(tensor)
        if tensor not in computed:
            tensor = self._same.get(tensor, tensor)
        if tensor not in self._slots and tensor not in computed:
            slot = self._slot(tensor)
            if tensor in constants:
                self.template[slot] = constants[tensor]
            else:
                self.inputs.append(tensor)
        return self._slot(tensor)

    def slot_of(self, tensor: Tensor) -> int | None:
        """The slot of a value of this segment, None for a tensor that it does not compute or take."""
        return self._slots.get(tensor)

    def tensor_of(self, slot: int) -> Tensor:
        """The tensor that a slot has the value of."""
        return next(itertools.islice(self._slots, slot, None))  # slots are numbered as they are made

    def _slot(self, tensor: Tensor) -> int:
        slot = self._slots.get(tensor)
        if slot is None:
            slot = self._slots[tensor] = len(self.template)
            self.template.append(None)
        return slot

    def _variable(self, tensor: Tensor) -> int:
        variable = variable_of(tensor)
        if variable is None:
            raise errors.UnimplementedError(
                None,
                tensor.op,
                f"'{tensor.name}' is a handle that does not lead to a variable of this graph.",
            )
        return self._index_of(variable)

    def _index_of(self, variable: Operation) -> int:
        index = self._variable_index.get(variable)
        if index is None:
            index = self._variable_index[variable] = len(self.variables)
            self.variables.append(variable)
        return index

    def interpret(  # noqa: C901 - the loop over a step's kernels, where a call for each part would cost time
        self,
        values: Values,
        state: Values,
        streams: Sequence[Any],
        jnp: ArrayModule | None = None,
        check: Check | None = None,
        traced: Barriers | None = None,
        steps: list[SegmentStep] | None = None,
    ) -> None:
        """Runs every step, filling `values` and `state`. With `jnp`, arguments that are not concrete trace.

        `traced(step, args, results)`, if given, may replace the results of a step that was traced, and
        `traced.before_update(step, args)` the arguments of one that updates variables.
        """
        if steps is None:
            if self.guarded:
                run_guarded(self, values, state, streams, jnp, check, traced)
                return
            steps = self.steps
        step: Any = None
        try:
            for step in steps:
                if jnp is None:  # most steps of most segments: nothing but the kernel is called
                    plain = step.find_plain() if step.plain is False else step.plain
                    if plain is not None:
                        result = plain(*[values[a] for a in step.args])
                        values[step.outs[0]] = result[0] if type(result) in (tuple, list) else result
                        continue
                args = [values[a] if a >= 0 else state[~a] for a in step.args]
                if step.variables:
                    _need_initialized(step, args)
                xp: Any = np
                if jnp is not None and not all(isinstance(a, _CONCRETE) for a in args):
                    xp = jnp
                    for position in step.static:
                        if not isinstance(args[position], _CONCRETE):
                            raise NeedsValue(step.args[position])
                if step.rng is not None:
                    # Random numbers come from the stream, an argument, even where all others are constants.
                    xp = np if jnp is None else jnp
                    args.insert(0, streams[step.rng])
                    if jnp is not None:
                        for position in step.static:
                            if not isinstance(args[position + 1], _CONCRETE):
                                raise NeedsValue(step.args[position])
                if traced is not None and step.updates and xp is jnp:
                    args = traced.before_update(step, args)
                results = step.kernel.call(xp, args, check)
                if traced is not None and xp is jnp:
                    results = traced(step, args, results)
                updates = step.updates
                if updates:
                    for variable, value in zip(updates, results, strict=False):
                        state[variable] = value
                    results = results[len(updates) :]
                for out, value in zip(step.outs, results, strict=True):
                    values[out] = value
        except (NeedsValue, errors.OpError) as e:
            if isinstance(e, errors.OpError) and e._op is None:
                e._op = step.op
            raise
        except Exception as e:
            args = [values[a] if a >= 0 else state[~a] for a in step.args]
            raise refused(step.op, args, e) from e

    def collect(self, values: Values, state: Values) -> Values:
        """The outputs after `interpret`."""
        return [values[c] if c >= 0 else state[~c] for c in self.output_codes]


def _need_initialized(step: SegmentStep, args: Values) -> None:
    for i in step.variables:
        if args[i] is None and not (step.op.spec.overwrites and i == 0):
            variable = variable_of(step.op._inputs[i])
            assert variable is not None
            raise uninitialized(variable)


def uninitialized(variable: Operation) -> errors.OpError:
    """The error for reading a variable that has no value yet."""
    name = variable.name
    if variable.type == "VarHandleOp":
        name = (variable._attrs["shared_name"] or name.encode()).decode()
        text = (
            f"Error while reading resource variable {name} from Container: localhost. This could mean that the "
            f"variable was uninitialized. Not found: Resource localhost/{name}/N10tensorflow3VarE does not "
            "exist. Run tf.global_variables_initializer(), or restore a checkpoint, before using it."
        )
    else:
        text = (
            f"Attempting to use uninitialized value {name}. Run tf.global_variables_initializer() (or "
            "tf.local_variables_initializer() for local ones), or restore a checkpoint, before using it."
        )
    return errors.FailedPreconditionError(None, variable, text)
