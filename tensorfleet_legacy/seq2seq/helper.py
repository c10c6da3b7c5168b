"""Sources of a decoder's inputs: the truth, the decoder's own choice, or a mixture of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorfleet.api.layers.rnn import transpose_batch_time
from tensorfleet.base import dtypes, nest
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.constructors import zeros_like
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet.ops.control.cond import cond
from tensorfleet.ops.state.tensor_array import TensorArray


class Helper:
    """Gives a `BasicDecoder` its first inputs, samples of its outputs, and the next inputs."""

    @property
    def batch_size(self) -> Any:
        """How many sequences there are."""
        raise TypeError(f"{type(self).__name__} does not define batch_size.")

    @property
    def sample_ids_shape(self) -> Any:
        """The shape of a sample of one sequence."""
        return TensorShape([])

    @property
    def sample_ids_dtype(self) -> Any:
        """The type of samples."""
        return dtypes.int32

    def initialize(self, name: str | None = None) -> tuple:
        """(finished, inputs) before the first step."""
        raise TypeError(f"{type(self).__name__} does not define initialize().")

    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Samples of the outputs."""
        raise TypeError(f"{type(self).__name__} does not define sample().")

    def next_inputs(
        self, time: Tensor, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple:
        """(finished, inputs, state) for the next step."""
        raise TypeError(f"{type(self).__name__} does not define next_inputs().")


class CustomHelper(Helper):
    """A helper made of three functions."""

    def __init__(
        self,
        initialize_fn: Callable,
        sample_fn: Callable,
        next_inputs_fn: Callable,
        sample_ids_shape: Any = None,
        sample_ids_dtype: Any = None,
    ) -> None:
        self._initialize_fn, self._sample_fn, self._next_inputs_fn = initialize_fn, sample_fn, next_inputs_fn
        self._shape = TensorShape(sample_ids_shape or [])
        self._kind = sample_ids_dtype or dtypes.int32
        self._batch_size: Any = None

    @property
    def batch_size(self) -> Any:
        if self._batch_size is None:
            raise ValueError("batch_size accessed before initialize was called")
        return self._batch_size

    sample_ids_shape = readonly("_shape")
    sample_ids_dtype = readonly("_kind")

    def initialize(self, name: str | None = None) -> tuple:
        with name_scope(name, "CustomHelperInitialize"):
            finished, inputs = self._initialize_fn()
            if self._batch_size is None:
                self._batch_size = apply("Size", finished)
        return finished, inputs

    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Any:
        with name_scope(name, "CustomHelperSample", [time]):
            return self._sample_fn(time=time, outputs=outputs, state=state)

    def next_inputs(
        self, time: Tensor, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple:
        with name_scope(name, "CustomHelperNextInputs", [time]):
            return self._next_inputs_fn(time=time, outputs=outputs, state=state, sample_ids=sample_ids)


def _argmax(outputs: Tensor) -> Tensor:
    return find("argmax")(outputs, axis=-1, output_type=dtypes.int32)


class TrainingHelper(Helper):
    """Feeds the truth: `inputs` [batch, time, ...], each sequence as long as `sequence_length` says."""

    def __init__(
        self, inputs: Any, sequence_length: Any, time_major: bool = False, name: str | None = None
    ) -> None:
        with name_scope(name, "TrainingHelper", [sequence_length]):
            self._inputs = nest.map_structure(to_tensor, inputs)
            ordered = self._inputs
            if not time_major:
                ordered = nest.map_structure(transpose_batch_time, ordered)
            self._stores = nest.map_structure(_unstacked, ordered)
            self._lengths = to_tensor(sequence_length, name="sequence_length")
            if self._lengths.shape.rank != 1:
                raise ValueError(
                    f"Expected sequence_length to be a vector, but received shape: {self._lengths.shape}"
                )
            self._zero_inputs = nest.map_structure(lambda x: zeros_like(x[0, :]), ordered)
            self._batch_size = apply("Size", self._lengths)

    inputs = readonly("_inputs", "What is fed.")
    sequence_length = readonly("_lengths", "How long each sequence is.")
    batch_size = readonly("_batch_size")

    def initialize(self, name: str | None = None) -> tuple:
        with name_scope(name, "TrainingHelperInitialize"):
            finished = apply("Equal", number(0, self._lengths), self._lengths)
            return finished, self._inputs_at(finished, np.int32(0))

    def _inputs_at(self, finished: Tensor, time: Any) -> Any:
        return cond(
            find("reduce_all")(finished),
            lambda: self._zero_inputs,
            lambda: nest.map_structure(lambda store: store.read(time), self._stores),
        )

    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Any:
        with name_scope(name, "TrainingHelperSample", [time, outputs]):
            return _argmax(outputs)

    def next_inputs(
        self, time: Tensor, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple:
        with name_scope(name, "TrainingHelperNextInputs", [time]):
            following = time + np.int32(1)
            finished = find("cast")(following, self._lengths.dtype.base_dtype) >= self._lengths
            return finished, self._inputs_at(finished, following), state


def number(value: float, like: Tensor) -> Tensor:
    """A constant of another tensor's type."""
    return to_tensor(value, like.dtype.base_dtype)


def _unstacked(x: Tensor) -> TensorArray:
    store = TensorArray(x.dtype.base_dtype, size=shape_of(x)[0], element_shape=x.shape[1:])
    return store.unstack(x)


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """Feeds the truth, or with some probability the embedding of a sample of the last output."""

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        embedding: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        scheduling_seed: int | None = None,
        name: str | None = None,
    ) -> None:
        with name_scope(name, "ScheduledEmbeddingSamplingWrapper", [sampling_probability]):
            self._embed = _embedding(embedding)
            self._probability = to_tensor(sampling_probability, name="sampling_probability")
            if self._probability.shape.rank not in (0, 1):
                raise ValueError(
                    "sampling_probability must be either a scalar or a vector. saw shape: "
                    f"{self._probability.shape}"
                )
            self._seed, self._scheduling_seed = seed, scheduling_seed
            super().__init__(inputs, sequence_length, time_major)

    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Any:
        with name_scope(name, "ScheduledEmbeddingTrainingHelperSample", [time, outputs]):
            kind = self._probability.dtype.base_dtype
            size = apply("Reshape", self._batch_size, [1])
            draws = find("random_uniform")(size, dtype=kind, seed=self._scheduling_seed)
            chosen = find("multinomial")(outputs, 1, seed=self._seed, output_dtype=dtypes.int32)
            chosen = apply("Reshape", chosen, [-1])
            none = apply("Fill", size, np.int32(-1))
            return apply("Select", draws < self._probability, chosen, none)

    def next_inputs(
        self, time: Tensor, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple:
        finished, truth, state = super().next_inputs(time, outputs, state, sample_ids)
        sampled = sample_ids > np.int32(-1)
        ids = apply("Maximum", sample_ids, np.int32(0))
        return finished, apply("Select", sampled, self._embed(ids), truth), state


class ScheduledOutputTrainingHelper(TrainingHelper):
    """Feeds the truth, or with some probability the last output itself."""

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        next_inputs_fn: Callable | None = None,
        auxiliary_inputs: Any = None,
        name: str | None = None,
    ) -> None:
        with name_scope(name, "ScheduledOutputTrainingHelper", [sampling_probability]):
            self._probability = to_tensor(sampling_probability, name="sampling_probability")
            self._seed, self._next_inputs_fn = seed, next_inputs_fn
            self._extra = None
            if auxiliary_inputs is not None:
                extra = to_tensor(auxiliary_inputs)
                self._extra = _unstacked(extra if time_major else transpose_batch_time(extra))
                inputs = find("concat")([to_tensor(inputs), extra], -1)
            super().__init__(inputs, sequence_length, time_major)

    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Any:
        with name_scope(name, "ScheduledOutputTrainingHelperSample", [time, outputs]):
            size = apply("Reshape", self._batch_size, [1])
            draws = find("random_uniform")(size, dtype=self._probability.dtype.base_dtype, seed=self._seed)
            return find("cast")(draws < self._probability, dtypes.int32)

    def next_inputs(
        self, time: Tensor, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple:
        finished, truth, state = super().next_inputs(time, outputs, state, sample_ids)
        own = outputs if self._next_inputs_fn is None else self._next_inputs_fn(outputs)
        if self._extra is not None:
            store, later = self._extra, time + np.int32(1)
            rest = cond(
                find("reduce_all")(finished), lambda: zeros_like(store.read(0)), lambda: store.read(later)
            )
            own = find("concat")([own, rest], -1)
        return finished, apply("Select", find("cast")(sample_ids, dtypes.bool_), own, truth), state


def _embedding(embedding: Any) -> Callable:
    if callable(embedding):
        return embedding
    return lambda ids: find("nn.embedding_lookup")(embedding, ids)


def first_and_last(start_tokens: Any, end_token: Any) -> tuple[Tensor, Tensor]:
    """The tokens that sequences begin with, and the one that ends them, checked."""
    start = to_tensor(start_tokens, dtypes.int32, name="start_tokens")
    end = to_tensor(end_token, dtypes.int32, name="end_token")
    if start.shape.rank != 1:
        raise ValueError("start_tokens must be a vector")
    if end.shape.rank != 0:
        raise ValueError("end_token must be a scalar")
    return start, end


class GreedyEmbeddingHelper(Helper):
    """Feeds the embedding of the most likely output, until that is `end_token`."""

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        self._embed = _embedding(embedding)
        self._start, self._end = first_and_last(start_tokens, end_token)
        self._batch_size = apply("Size", self._start)
        self._start_inputs = self._embed(self._start)

    batch_size = readonly("_batch_size")

    def initialize(self, name: str | None = None) -> tuple:
        return find("tile")([False], apply("Reshape", self._batch_size, [1])), self._start_inputs

    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Any:
        return _argmax(outputs)

    def next_inputs(
        self, time: Tensor, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple:
        finished = apply("Equal", sample_ids, self._end)
        inputs = cond(
            find("reduce_all")(finished), lambda: self._start_inputs, lambda: self._embed(sample_ids)
        )
        return finished, inputs, state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Feeds the embedding of a sample of the outputs, until that is `end_token`."""

    def __init__(
        self,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        softmax_temperature: Any = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding, start_tokens, end_token)
        self._temperature, self._seed = softmax_temperature, seed

    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Any:
        logits = outputs if self._temperature is None else outputs / self._temperature
        drawn = find("multinomial")(logits, 1, seed=self._seed, output_dtype=dtypes.int32)
        return apply("Reshape", drawn, [-1])


class InferenceHelper(Helper):
    """Feeds what functions make of the outputs."""

    def __init__(
        self,
        sample_fn: Callable,
        sample_shape: Any,
        sample_dtype: Any,
        start_inputs: Any,
        end_fn: Callable,
        next_inputs_fn: Callable | None = None,
    ) -> None:
        self._sample_fn, self._end_fn, self._next_inputs_fn = sample_fn, end_fn, next_inputs_fn
        self._shape, self._kind = TensorShape(sample_shape), sample_dtype
        self._start_inputs = to_tensor(start_inputs, name="start_inputs")
        self._batch_size = shape_of(self._start_inputs)[0]

    batch_size = readonly("_batch_size")
    sample_ids_shape = readonly("_shape")
    sample_ids_dtype = readonly("_kind")

    def initialize(self, name: str | None = None) -> tuple:
        return find("tile")([False], apply("Reshape", self._batch_size, [1])), self._start_inputs

    def sample(self, time: Tensor, outputs: Any, state: Any, name: str | None = None) -> Any:
        return self._sample_fn(outputs)

    def next_inputs(
        self, time: Tensor, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple:
        inputs = sample_ids if self._next_inputs_fn is None else self._next_inputs_fn(sample_ids)
        return self._end_fn(sample_ids), inputs, state
