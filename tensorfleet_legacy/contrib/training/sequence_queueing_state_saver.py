"""`tf.contrib.training.SequenceQueueingStateSaver`: long sequences in segments, and a state kept from one to the next.

Each segment is an element of a barrier, under a key such as `00000_of_00003:name`. All components but the states
come with the sequence; a segment is complete, and can be taken, when the one before it has saved its states.
"""

from __future__ import annotations

from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import colocate_with, control_dependencies, name_scope
from tensorfleet.ops.state.barriers import Barrier
from tensorfleet.ops.state.queues import FIFOQueue
from tensorfleet_legacy.contrib.training.sequence_queueing_state_saver_checks import (
    assured,
    multiple_of,
    with_length,
    with_rank,
    with_shape,
)

_PLACE = "contrib.training.python.training.sequence_queueing_state_saver"
# What a sequence has besides its own tensors, in the order of the barrier's components.
_COUNTS = ("length", "total_length", "next_key", "sequence", "sequence_count")


def _named(kind: str, values: Any, text: str = "string") -> None:
    """Refuses names that are none."""
    for name in values:
        if not isinstance(name, str):
            raise TypeError(f"{kind} must be {text}: {name}")
        if ":" in name:
            raise ValueError(f"{kind} may not have a colon: '{name}'")


def _sorted(values: dict, prefix: str) -> dict[str, Tensor]:
    """The tensors of a dictionary in the order of their names, which is that of the barrier."""
    return {name: to_tensor(values[name], name=f"{prefix}_{name}") for name in sorted(values)}


def _check_static(label: str, values: dict[str, Tensor], start: int = 0) -> None:
    note = "(ignoring first dimension)" if start else ""
    for name, value in values.items():
        if not value.shape[start:].is_fully_defined():
            raise ValueError(f"Shape for {label} {name} is not fully defined {note}: {value.shape}")


@export(f"{_PLACE}._SequenceInputWrapper")
class SequenceInputs:
    """The tensors of one sequence: its length, its key, what changes from step to step, and what does not."""

    def __init__(self, length: Any, key: Any, sequences: Any, context: Any) -> None:
        self._length, self._key = to_tensor(length, name="length"), to_tensor(key, name="key")
        if not isinstance(sequences, dict):
            raise TypeError("sequences must be a dict")
        if not isinstance(context, dict):
            raise TypeError("context must be a dict")
        if not sequences:
            raise ValueError("must have at least one sequence tensor")
        _named("sequence key", sequences)
        _named("context key", context)
        self._sequences, self._context = _sorted(sequences, "sequence"), _sorted(context, "context")

    length = readonly("_length", "How many steps the sequence has.")
    key = readonly("_key", "Its name, different from those of all others.")
    sequences = readonly("_sequences", "Tensors with a row for each step.")
    context = readonly("_context", "Tensors for the whole sequence.")


@export("contrib.training.NextQueuedSequenceBatch")
class NextQueuedSequenceBatch:
    """A batch of segments of different sequences, with their states: `SequenceQueueingStateSaver.next_batch`."""

    def __init__(self, state_saver: Any) -> None:
        self._state_saver = state_saver

    total_length = readonly("_state_saver._received_total_length", "The lengths of the whole sequences.")
    length = readonly(
        "_state_saver._received_length", "How many steps of each segment are the sequence's, not padding."
    )
    batch_size = readonly("_state_saver._received_batch_size", "How many segments these are, a scalar.")
    insertion_index = readonly(
        "_state_saver._received_indices", "The number of each sequence, counted from -2**63."
    )
    key = readonly("_state_saver._received_keys", "The segments' keys, such as `00000_of_00003:name`.")
    next_key = readonly(
        "_state_saver._received_next_key",
        "The keys of the segments that follow; `STOP:name` behind the last.",
    )
    sequence = readonly("_state_saver._received_sequence", "The number of each segment in its sequence.")
    sequence_count = readonly("_state_saver._received_sequence_count", "How many segments each sequence has.")
    context = readonly("_state_saver._received_context", "The tensors of the whole sequences by name.")
    sequences = readonly(
        "_state_saver._received_sequences", "The segments by name, [batch_size, num_unroll, ...]."
    )

    def state(self, state_name: str) -> Tensor:
        """A state of each sequence: as it began, or as `save_state` left it after the segment before."""
        return self._state_saver._received_states[state_name]

    def save_state(self, state_name: str, value: Any, name: str | None = None) -> Operation:
        """The operation that saves a state for the next segments. It must run with every batch, for every state."""
        saver = self._state_saver
        if state_name not in saver._received_states:
            raise KeyError(f"state was not declared: {state_name}")
        with (
            name_scope(name, "InputQueueingStateSaver_SaveState", [value]),
            colocate_with(saver._capacity_queue.queue_ref),
        ):
            going_on = find("reshape")(find("where")(find("logical_not")(saver._sequence_is_done)), [-1])
            value = find("identity")(value, name=f"convert_{state_name}")
            value = with_shape(value, find("shape")(saver._received_states[state_name]))
            return saver.barrier.insert_many(
                saver._components.index(("state", state_name)),
                find("gather")(self.next_key, going_on),
                find("gather")(value, going_on),
                name=f"BarrierInsertState_{state_name}",
            )


@export("contrib.training.SequenceQueueingStateSaver")
class SequenceQueueingStateSaver:
    """Cuts sequences of any length into segments of `num_unroll` steps, and makes batches of them.

    `prefetch_op` takes in one sequence; a `tf.train.QueueRunner` runs it in threads. `next_batch` has a segment of
    `batch_size` different sequences, and each sequence's states: those it began with, and then those of
    `next_batch.save_state`. The sequences are padded to a multiple of `num_unroll`; `input_length` is their length
    before. At most `capacity` sequences are under way (None: any number). With `allow_small_batch`, batches become
    smaller at the end of the input.
    """

    def __init__(
        self,
        batch_size: Any,
        num_unroll: int,
        input_length: Any,
        input_key: Any,
        input_sequences: dict,
        input_context: dict,
        initial_states: dict,
        capacity: int | None = None,
        allow_small_batch: bool = False,
        name: str | None = None,
    ) -> None:
        if capacity is not None:
            input_key = _with_capacity(input_key, capacity, batch_size)
        # A place in this queue for each sequence that is under way: where it is full, the next one waits.
        self._capacity_queue = FIFOQueue(
            -1 if capacity is None else capacity, dtypes=[dtypes.int32], shapes=[[]]
        )
        if not isinstance(initial_states, dict):
            raise TypeError("initial_states must be a dictionary")
        if not initial_states:
            raise ValueError(
                "initial_states may not be empty: at least one state variable is required to properly enqueue "
                "split sequences to run in separate iterations"
            )
        _named("state name", initial_states, "a string")
        self._batch_size, self._num_unroll = batch_size, num_unroll
        self._allow_small_batch = allow_small_batch
        self._prefetch_op: Operation | None = None
        self._next_batch: NextQueuedSequenceBatch | None = None
        values = [input_length, input_key, *input_sequences.values(), *input_context.values()]
        with (
            colocate_with(self._capacity_queue.queue_ref),
            name_scope(name, "InputQueueingStateSaver", values) as scope,
        ):
            self._name = scope
            inputs = SequenceInputs(input_length, input_key, input_sequences, input_context)
            self._take_in(inputs, _sorted(initial_states, "state"))
            self._make_barrier()

    name = readonly("_name", "The scope of the saver's operations.")
    barrier = readonly("_barrier", "The `Barrier` in which the segments are.")
    batch_size = readonly("_batch_size", "How many segments a batch has.")
    num_unroll = readonly("_num_unroll", "How many steps a segment has.")

    def _take_in(self, inputs: SequenceInputs, states: dict[str, Tensor]) -> None:
        """The tensors of a sequence, checked."""
        _check_static("state", states)
        _check_static("context", inputs.context)
        _check_static("sequence", inputs.sequences, start=1)
        length, self._key = with_rank(inputs.length, 0), with_rank(inputs.key, 0)
        if length.dtype != dtypes.int32:
            raise TypeError(f"length dtype must be int32, but received: {length.dtype}")
        if self._key.dtype != dtypes.string:
            raise TypeError(f"key dtype must be string, but received: {self._key.dtype}")
        first = next(iter(inputs.sequences.values()))
        padded = find("identity")(find("shape")(first)[0], name="padded_length")
        whole = multiple_of(padded, self._num_unroll, f"Tensor {padded.name}")
        self._padded_length = assured(padded, [whole], "multiple_of_checked")
        self._sequences = {
            k: with_length(v, self._padded_length, f"sorted_sequences_{k}")
            for k, v in inputs.sequences.items()
        }
        words = "Input length should be <= than length from sequences:"
        fits = find("less_equal")(length, self._padded_length)
        self._length = assured(length, [(fits, [words, length, " vs. ", self._padded_length])])
        self._context, self._states = inputs.context, states

    def _make_barrier(self) -> None:
        counts = {name: dtypes.string if name == "next_key" else dtypes.int32 for name in _COUNTS}
        steps = self._num_unroll
        parts = [
            *((("count", k), t, []) for k, t in counts.items()),
            *(
                (("sequence", k), v.dtype, [steps, *v.shape.as_list()[1:]])
                for k, v in self._sequences.items()
            ),
            *((("context", k), v.dtype, v.shape) for k, v in self._context.items()),
            *((("state", k), v.dtype, v.shape) for k, v in self._states.items()),
        ]
        self._components = [name for name, _, _ in parts]
        self._barrier = Barrier([kind for _, kind, _ in parts], [shape for _, _, shape in parts])

    @property
    def prefetch_op(self) -> Operation:
        """The operation that takes in one sequence. It waits while `capacity` sequences are under way."""
        if self._prefetch_op is None:
            with name_scope(None), name_scope(self._name), colocate_with(self._capacity_queue.queue_ref):
                self._prefetch_op = self._make_prefetch_op()
        return self._prefetch_op

    @property
    def next_batch(self) -> NextQueuedSequenceBatch:
        """The batch of segments of each step, and their states."""
        _ = self.prefetch_op
        if self._next_batch is None:
            with name_scope(None), name_scope(self._name), colocate_with(self._capacity_queue.queue_ref):
                self._receive()
            self._next_batch = NextQueuedSequenceBatch(self)
        return self._next_batch

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """The operation after which no more sequences come in; those under way can still be finished."""
        with name_scope(name, "SQSSClose", [self._barrier.barrier_ref]) as scope:
            barrier = self._barrier.close(cancel_pending_enqueues, "BarrierClose")
            queue = self._capacity_queue.close(cancel_pending_enqueues, "FIFOClose")
            return find("group")(barrier, queue, name=scope)

    def _segments(self) -> tuple[Tensor, dict[tuple[str, str], Tensor]]:
        """The keys of a sequence's segments, and all their components except the states."""
        steps, count = self._num_unroll, self._padded_length // self._num_unroll
        number = find("range")(count)
        width = {"width": 5, "fill": "0"}
        as_string, join, concat = find("as_string"), find("string_join"), find("concat")
        keys = join(
            [as_string(number, **width), "_of_", as_string(count, **width), ":", self._key],
            name="StringJoinCurrentKeys",
        )
        stop = join(["STOP:", self._key], name="StringJoinStop")
        left = find("clip_by_value")(self._length - steps * number, 0, steps)
        ones = find("ones_like")(number)
        by_name = {
            ("count", "length"): left,
            ("count", "total_length"): self._length * ones,
            ("count", "next_key"): concat([keys[1:], [stop]], 0, name="concat_next_keys"),
            ("count", "sequence"): number,
            ("count", "sequence_count"): count * ones,
        }
        for k, v in self._sequences.items():
            dims = [count, steps, *v.shape.as_list()[1:]]
            by_name["sequence", k] = find("reshape")(v, dims, name=f"reshape_sequences_{k}")
        for k, v in self._context.items():
            times = [count] + [1] * v.shape.rank
            by_name["context", k] = find("tile")(find("expand_dims")(v, 0), times, name=f"tile_context_{k}")
        return keys, by_name

    def _make_prefetch_op(self) -> Operation:
        keys, segments = self._segments()

        def insert(part: tuple[str, str], keys: Tensor, value: Tensor) -> Operation:
            label = f"BarrierInsert_{part[0]}_{part[1]}"
            return self._barrier.insert_many(self._components.index(part), keys, value, name=label)

        # The barrier orders keys as they first appear: the segments of a sequence must come together.
        first = insert(("count", "sequence"), keys, segments.pop(("count", "sequence")))
        room = self._capacity_queue.enqueue([0])
        rest = [insert(part, keys, value) for part, value in segments.items()]
        with control_dependencies([first, room]):
            states = [insert(("state", k), keys[:1], find("stack")([v])) for k, v in self._states.items()]
        return find("group")(room, first, *rest, *states, name="StateSaverPrefetchGroup")

    def _receive(self) -> None:
        taken = self._barrier.take_many(self._batch_size, self._allow_small_batch, name="BarrierTakeMany")
        self._received_indices, self._received_keys = taken.indices, taken.keys
        parts: dict[str, dict[str, Tensor]] = {"count": {}, "sequence": {}, "context": {}, "state": {}}
        for (kind, name), value in zip(self._components, taken.values, strict=True):
            parts[kind][name] = value
        for name, value in parts["count"].items():
            setattr(self, f"_received_{name}", value)
        self._received_context, self._received_sequences = parts["context"], parts["sequence"]
        self._received_batch_size = find("squeeze")(find("shape")(parts["count"]["length"]))
        self._sequence_is_done = parts["count"]["sequence"] + 1 >= parts["count"]["sequence_count"]
        ended = find("reduce_sum")(find("cast")(self._sequence_is_done, dtypes.int32))
        # Whoever looks at a state makes room for as many sequences as have come to their end.
        with control_dependencies([self._capacity_queue.dequeue_many(ended)]):
            self._received_states = {k: find("identity")(v) for k, v in parts["state"].items()}


def _with_capacity(key: Any, capacity: int, batch_size: Any) -> Any:
    """The key, which can only be had where a batch fits into the capacity."""
    if not isinstance(batch_size, Tensor):
        if capacity < batch_size:
            raise ValueError(f"capacity {capacity} needs to be >= batch_size {batch_size}")
        return key
    check = find("assert_greater_equal")(
        find("cast")(capacity, dtypes.int64),
        find("cast")(batch_size, dtypes.int64),
        message="capacity needs to be >= batch_size.",
    )
    with control_dependencies([check]):
        return find("identity")(key)
