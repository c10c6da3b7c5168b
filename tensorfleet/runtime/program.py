"""An executable plan: parts bound to slots, stores and devices, and the loop that runs them."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorfleet import dtypes, errors
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.packed_strings import Strings
from tensorfleet.passes.pipeline import divide
from tensorfleet.passes.plan import Part, Plan
from tensorfleet.runtime.compiled import Compiled, Compiler
from tensorfleet.runtime.control import settle_absent
from tensorfleet.runtime.host import ChunksItem, GatherItem, HostItem, RowsItem, SameItem
from tensorfleet.runtime.indices import IndexItem
from tensorfleet.runtime.joined import JoinedItem
from tensorfleet.runtime.leaving import stay_outside
from tensorfleet.runtime.loops import Guarded, LoopItem, MergeItem
from tensorfleet.runtime.resources import ResourceManager, VariableStore, release
from tensorfleet.runtime.segment import Segment, uninitialized
from tensorfleet.runtime.step import StepContext
from tensorfleet.runtime.threads import Pool
from tensorfleet.runtime.trimmed import Trimmer
from tensorfleet.runtime.turns import Turns
from tensorfleet.runtime.varying import Varying, Watch


class SegmentItem:
    """A segment with its variables' stores, running in numpy or compiled, whichever pays."""

    blocks = False

    def __init__(self, part: Part, plan: Plan, slots: Slots, resources: ResourceManager) -> None:
        self.device = part.device
        self.name = part.ops[-1].name
        self.segment = Segment(part, plan)
        self.compiler = Compiler(
            self.segment, part.device, any("/device:CPU" not in p.device for p in plan.parts)
        )
        self.ins = [slots.of(t) for t in self.segment.inputs]
        self.outs = [slots.of(t) for t in self.segment.outputs]
        self.stores = [resources.variable(v) for v in self.segment.variables]
        self.trimmer = Trimmer(self.segment)
        self._drawing = threading.Lock()
        self.writing = sorted((self.stores[w] for w in self.segment.writes), key=lambda s: s.order)
        self.kept_shape = self.segment.kept_shape()
        self.owned = [s for s in self.writing if s in [self.stores[i] for i in self.segment.owned]]
        self.reading = self.segment.only_reads()

    def run(self, ctx: StepContext, values: list) -> None:
        """Runs the segment and makes its variable updates visible, all or none."""
        if self.reading is not None:
            read = {i: self.stores[i].hand_out() for i in self.segment.reads}
            for slot, i in zip(self.outs, self.reading, strict=True):
                values[slot] = read[i]
            for i, value in read.items():
                if value is None:
                    raise uninitialized(self.segment.variables[i])
            return
        stay_outside()
        inputs = [values[i] for i in self.ins]
        compiler = self.compiler
        compiled = None
        if compiler.wanted() and not self._lacking():
            compiled = compiler.program(inputs, self._state())
        opened: list[VariableStore] = []
        made: list = []
        try:
            for store in self.writing:
                store.lock.acquire()
            state = self._state()
            if compiled is not None and compiler.static_variables:
                # What it was compiled for may have changed before the locks were ours.
                compiled = compiler.programs.get(compiler.key(inputs, state))
            for store in self._owned_by(compiled):
                store.gate.acquire()
                opened.append(store)
            if compiled is None:
                outputs = self._numpy_life(ctx, inputs, state)
            else:
                outputs = self._in_xla(ctx, compiled, inputs, state, made)
            for w, op in self.kept_shape.items():
                _need_same_shape(op, self.stores[w].value, state[w])
            for w in self.segment.writes:
                if state[w] is not None:
                    self.stores[w].swap(state[w])
        except BaseException:
            self._replace_consumed(made)
            raise
        finally:
            for store in opened:
                store.gate.release()
            release(self.writing)
        for slot, value in zip(self.outs, outputs, strict=True):
            values[slot] = value

    def _owned_by(self, compiled: Compiled | None) -> list[VariableStore]:
        """The variables whose memory this run changes, in the order of their locks."""
        if compiled is None or not compiled.reused:
            return self.owned
        indices = (*self.segment.owned, *compiled.reused)
        return sorted((self.stores[i] for i in indices), key=lambda s: s.order)

    def _own(self, state: list) -> None:
        """Puts arrays that may be changed into the places of the tables this segment owns."""
        for i in self.segment.owned:
            state[i] = None  # another reference would mean that somebody holds it
            state[i] = self.stores[i].writable()

    def _consume(self, state: list, compiled: Compiled) -> bool:
        """Puts arrays whose memory a program may use again into the places of variables. Whether some had to be copied.

        What a program fails with is lost. So it gets copies the first time, when memory may turn out to be too small;
        but not of tables, which may be most of the memory.
        """
        disturbed = False
        for i in (*self.segment.owned, *compiled.reused):
            store = self.stores[i]
            state[i] = None  # another reference would mean that somebody holds it
            state[i] = store.consumable(kept=not compiled.proven and i in compiled.reused)
            disturbed |= compiled.proven and state[i] is not store.value
        return disturbed

    def _lacking(self) -> bool:
        """Whether a variable that perhaps nobody needs has no value."""
        optional = self.segment.optional
        return bool(optional) and any(self.stores[i].read() is None for i in optional)

    def _state(self) -> list:
        state: list = [None] * len(self.stores)
        for i in self.segment.reads:
            value = self.stores[i].read()
            if value is None and i not in self.segment.optional:
                raise uninitialized(self.segment.variables[i])
            state[i] = value
        for i in self.segment.owned:
            state[i] = self.stores[i].value
            if state[i] is None:
                raise uninitialized(self.segment.variables[i])
        return state

    def _numpy_life(self, ctx: StepContext, inputs: list, state: list) -> list:
        if not self.segment.rng_steps:
            return self._in_numpy(ctx, inputs, state)
        with self._drawing:  # how far a stream moves is known only after drawing from it
            return self._in_numpy(ctx, inputs, state)

    def _in_numpy(self, ctx: StepContext, inputs: list, state: list) -> list:
        segment = self.segment
        self._own(state)
        started = time.perf_counter()
        for i in segment.reads:
            if not isinstance(state[i], np.ndarray) and state[i] is not None:
                state[i] = np.asarray(state[i])
        shapes = self.trimmer.key(inputs, state)
        template, steps = self.trimmer.left(shapes)
        values = template.copy()
        for slot, value in zip(segment.input_slots, inputs, strict=True):
            known = value is None or isinstance(value, (np.ndarray, np.generic))
            values[slot] = value if known else np.asarray(value)
        streams = [ctx.streams.take(step.op, 0) for step in segment.rng_steps]
        with np.errstate(all="ignore"):
            segment.interpret(values, state, streams, steps=steps)
        if steps is None and shapes is not None:
            self.trimmer.learn(shapes, values)
        if self.compiler.varying is not None and steps is None:
            self.compiler.varying.note(inputs, values, self.compiler.pays())
        outputs = segment.collect(values, state)
        for step in segment.rng_steps:
            assert step.op.spec.rng is not None
            outs = [values[o] for o in step.outs if o is not None]
            if outs[0] is not None:  # None in a branch not taken
                ctx.streams.take(step.op, step.op.spec.rng(step.op, outs))
        self.compiler.timed(time.perf_counter() - started, inputs)
        return outputs

    def _in_xla(self, ctx: StepContext, compiled: Compiled, inputs: list, state: list, made: list) -> list:
        segment = self.segment
        streams = [ctx.streams.take(s.op, n) for s, n in zip(segment.rng_steps, compiled.skips, strict=True)]
        waits = sum([self.stores[i].waits for i in compiled.reused])
        disturbed = self._consume(state, compiled)
        started = time.perf_counter()
        args = self.compiler.arguments(inputs, state, streams, compiled.joined, compiled.cpu, compiled.reused)
        try:
            outputs, written, ok = compiled.run(args, made)
            if self.compiler.on_trial:
                self.compiler.called(time.perf_counter() - started)
            if compiled.reused:
                disturbed |= sum([self.stores[i].waits for i in compiled.reused]) > waits
                self.compiler.note_disturbance(disturbed)
        except TypeError as e:
            if self.compiler.loose:
                raise self._failure(e) from e
            # A variable has another shape than before (`tf.assign` with validate_shape=False).
            self.compiler.loose = list(segment.reads)
            return self._numpy_life(ctx, inputs, state)
        except Exception as e:
            raise self._failure(e) from e
        if ok and not np.asarray(ok[0]):  # asking the array itself takes longer
            for w, value in zip(segment.writes, written, strict=True):
                if w in segment.owned or w in compiled.reused:  # unchanged, but in new hands
                    self.stores[w].swap(value)
                    state[w] = np.array(value)
            # The flag says only that a check failed. The numpy life knows which, and says so.
            self._explain(inputs, state, streams)
            raise self._unexplained()
        for w, value in zip(segment.writes, written, strict=True):
            state[w] = value
        return outputs

    def _replace_consumed(self, made: list) -> None:
        """After an interrupt: ends the step if variables are gone that it was to replace. If it has failed, forgets them."""
        stores = [self.stores[w] for w in self.segment.writes]
        if not any(_is_gone(store.value) for store in stores):
            return
        _, written, ok = made[0] if made else ((), [None] * len(stores), [False])
        whole = not ok or np.asarray(ok[0])
        for store, value in zip(stores, written, strict=True):
            if _is_gone(store.value) or whole:
                store.swap(value)

    def _explain(self, inputs: list, state: list, streams: list) -> None:
        values = self.segment.template.copy()
        for slot, value in zip(self.segment.input_slots, inputs, strict=True):
            values[slot] = None if value is None else np.asarray(value)
        state = [None if v is None else np.asarray(v) for v in state]
        with np.errstate(all="ignore"):
            self.segment.interpret(values, state, streams)

    def _unexplained(self) -> errors.OpError:
        """For a value so close to its limit that XLA finds it outside and numpy inside."""
        checking = [step.op for step in self.segment.steps if step.kernel.checks]
        names = ", ".join(op.name for op in checking[:5])
        return errors.InvalidArgumentError(
            None,
            checking[0],
            f"A check of one of these operations failed: {names}. Look at the values they are given.",
        )

    def _failure(self, error: Exception) -> errors.OpError:
        text = str(error)
        if "RESOURCE_EXHAUSTED" in text or isinstance(error, MemoryError) or "Out of memory" in text:
            return errors.ResourceExhaustedError(
                None,
                self.segment.ops[-1],
                f"OOM when running a step on {self.device}: {next(iter(text.splitlines()), 'no memory left')}. Use a smaller batch or model.",
            )
        return errors.about(self.segment.ops[-1], error)


def _is_gone(value: Any) -> bool:
    """Whether a program has used the memory of a value for something else."""
    deleted = getattr(value, "is_deleted", None)
    return deleted is not None and deleted()


def _need_same_shape(op: Any, before: Any, value: Any) -> None:
    """Raises when a variable would change its shape: another program has left one of this name behind."""
    if before is None or value is None or before.shape == value.shape:
        return
    left, right = (str(list(v.shape)).replace(" ", "") for v in (before, value))
    raise errors.InvalidArgumentError(
        None,
        op,
        f"Assign requires shapes of both tensors to match. lhs shape= {left} rhs shape= {right}. The variable has a "
        "value of that shape already, perhaps from another program: use another name or container, "
        "tf.Session.reset, or validate_shape=False.",
    )


def _bare(item: Any) -> Any:
    """An item without the conditions it runs under."""
    return item.item if isinstance(item, Guarded) else item


def _soon_done(item: Any) -> bool:
    """Whether an item takes so little time that waking a thread for it does not pay."""
    item = _bare(item)
    if isinstance(item, SegmentItem):
        return len(item.segment.steps) <= _FEW and not any(s.op.spec.heavy for s in item.segment.steps)
    return type(item) is HostItem and not _may_last(item) and not item.op._inputs  # it looks up a resource


def _may_last(item: Any) -> bool:
    """Whether an item may take for ever: it waits, loops, or calls a function of the user's."""
    item = _bare(item)
    return item.blocks or isinstance(item, LoopItem) or _is_call(item)


def _is_call(item: Any) -> bool:
    """Whether an item calls a function of the user's."""
    item = _bare(item)
    return type(item) is HostItem and item.op.type in ("PyFunc", "PyFuncStateless", "EagerPyFunc")


def _takes(item: Any) -> bool:
    """Whether a waiting item only takes something away: nobody waits for it to have done so."""
    op = getattr(item, "op", None)
    return op is not None and ("Dequeue" in op.type or "TakeGradient" in op.type)


class Slots:
    """Numbers the values that pass between the parts of one program."""

    def __init__(self) -> None:
        self._of: dict[Tensor, int] = {}

    def of(self, tensor: Tensor) -> int:
        """The slot of a tensor."""
        return self._of.setdefault(tensor, len(self._of))

    def __len__(self) -> int:
        return len(self._of)


_KINDS: dict[str, Any] = {"host": HostItem, "rows": RowsItem, "chunks": ChunksItem, "gather": GatherItem}
_KINDS |= {"index": IndexItem, "joined": JoinedItem, "merge": MergeItem, "same": SameItem}
# A segment of so many operations, none of them heavy, runs before another thread would have started.
_FEW = 8


class Program:
    """What one combination of fetches and feeds runs, ready to go."""

    def __init__(self, plan: Plan, resources: ResourceManager) -> None:
        slots = Slots()
        self.plan = plan
        self._resources = resources
        self._watch = Watch()
        self._divided: Program | None = None
        self._dividing = threading.Lock()
        self.feed_slots = [slots.of(t) for t in plan.feeds]
        self.items: list[Any] = []
        for part in plan.parts:
            kind = LoopItem if part.kind == "loop" else _KINDS.get(part.kind, SegmentItem)
            item = kind(part, plan, slots, resources)
            self.items.append(Guarded(item, part.guard, slots) if part.guard else item)
        if not plan.nested:
            self._learn()
        self.after = [len(part.after) for part in plan.parts]
        self.followers: list[list[int]] = [[] for _ in plan.parts]
        for i, part in enumerate(plan.parts):
            for j in part.after:
                self.followers[j].append(i)
        self.fetch_slots = [self._fetch(t, plan, slots, resources) for t in plan.fetches]
        self._strings = any(t.dtype.base_dtype == dtypes.string for t in plan.fetches)
        self.template: list = [None] * len(slots)
        for tensor, value in plan.constants.items():
            if tensor in slots._of:
                self.template[slots.of(tensor)] = value
        #: settles what becomes of a result that lies in a branch not taken
        self._settle = settle_absent(plan)
        self._in_order = self.items
        # Nothing to run beside an item, even one that waits: no thread is worth waking.
        self.sequential = len({p.device for p in plan.parts}) <= 1 and self._one_after_the_other()
        #: when it is each item's turn, if several functions of the user's might wait for each other
        self.turn = self._turns() if self.sequential else []
        # A segment of NoOps only orders others, which the list does already.
        self._work = [i for i in self._in_order if not (isinstance(i, SegmentItem) and not i.segment.steps)]
        # Nothing to wait for either: such a step needs no cancelling.
        self.inline = self.sequential and not any(map(_may_last, self.items))

    def _learn(self) -> None:
        """Lets segments find out what of theirs changes its shape from run to run."""
        for part, item in zip(self.plan.parts, self.items, strict=True):
            if isinstance(item, SegmentItem) and part.varying:
                item.compiler.possible &= item.compiler.heavy  # its signatures do not come back
            elif isinstance(item, SegmentItem):
                varying = Varying(item.segment, item.compiler.heavy, self._watch)
                item.compiler.varying = None if varying.over else varying

    def _divide(self) -> None:
        """Makes the program that runs from now on: with what changes its shape apart from the rest."""
        with self._dividing:
            if self._divided is None:
                learned = [i.compiler.varying for i in self.items if isinstance(i, SegmentItem)]
                apart = [op for one in learned if one is not None for op in one.found()]
                divided = Program(divide(self.plan, apart), self._resources)
                loops = {item.op: item for item in map(_bare, self.items) if isinstance(item, LoopItem)}
                for item in map(_bare, divided.items):
                    if isinstance(item, LoopItem):
                        item.follow(loops[item.op])
                self._divided = divided

    def last_to_run(self) -> Any:
        """The item that runs when all others have, if there is one."""
        return self._work[-1] if self.sequential and not self.turn and self._work else None

    def _turns(self) -> list[int]:
        """The order of the items, if there are calls of functions that do not need each other; else nothing."""
        calls = [i for i, item in enumerate(self.items) if _is_call(item)]
        if len(calls) < 2:
            return []
        before: list[set[int]] = []
        for part in self.plan.parts:
            before.append(set(part.after).union(*(before[j] for j in part.after)))
        if all(i in before[j] for i, j in itertools.pairwise(calls)):
            return []
        place = {id(item): n for n, item in enumerate(self._in_order)}
        return [place[id(item)] for item in self.items]

    def _one_after_the_other(self) -> bool:
        """Whether all work that is not before a waiting item needs what that item waits for, or is soon done.

        Several that only take something may wait in turn: nothing could run between them. What is soon done
        goes first, so the items get an order in which each waits as late as it can.
        """
        items = self.items
        blocking = [i for i, item in enumerate(items) if item.blocks]
        if not blocking:
            return True
        before: list[set[int]] = []
        waits: list[int] = []  # how many items wait, one after the other, before each
        for part in self.plan.parts:
            before.append(set(part.after).union(*(before[j] for j in part.after)))
            waits.append(max((waits[j] + items[j].blocks for j in part.after), default=0))
        takes = {i for i in blocking if _takes(items[i])}
        # Of several to take, the last is filled last: waiting for it first means to wait once.
        order = sorted(range(len(items)), key=lambda j: (waits[j], items[j].blocks, -j if j in takes else j))
        self._in_order = [items[j] for j in order]
        return all(
            i in before[j] or (i in takes and j in takes) or (waits[j] <= waits[i] and _soon_done(items[j]))
            for i in blocking
            for j in range(len(items))
            if j != i and j not in before[i]
        )

    def _fetch(self, tensor: Tensor, plan: Plan, slots: Slots, resources: ResourceManager) -> int | _Fetched:
        from tensorfleet.passes.plan import variable_of

        if tensor.dtype._is_ref_dtype and tensor not in plan.feeds:
            variable = variable_of(tensor)
            if variable is not None:
                # Fetching a reference gives what the variable holds when the step is over.
                return _Fetched(resources.variable(variable), variable)
        return slots.of(tensor)

    def run(self, ctx: StepContext, feeds: Sequence[Any], pool: Pool) -> list:
        """Runs the program and returns the fetched values."""
        if self._watch.asked and self._divided is None:
            self._divide()
        if self._divided is not None:
            return self._divided.run(ctx, feeds, pool)
        values = self.template.copy()
        for slot, value in zip(self.feed_slots, feeds, strict=True):
            values[slot] = value
        if self.turn:
            Turns(self, ctx, values).run()
        elif self.sequential:
            if ctx.trace is None:
                for item in self._work:
                    item.run(ctx, values)
            else:
                for item in self._in_order:
                    ctx.trace.run(item, ctx, values)
        else:
            pool.run(self, ctx, values)
        found = [values[s] if isinstance(s, int) else s.read() for s in self.fetch_slots]
        if self._strings:
            found = [np.asarray(v) if type(v) is Strings else v for v in found]
        return found if self._settle is None else self._settle(found)


class _Fetched:
    """A fetched reference: read at the end of the step."""

    __slots__ = ("store", "variable")

    def __init__(self, store: VariableStore, variable: Any) -> None:
        self.store = store
        self.variable = variable

    def read(self) -> Any:
        value = self.store.hand_out()
        if value is None:
            raise uninitialized(self.variable)
        return value
