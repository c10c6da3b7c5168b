"""`tf.contrib.rnn`: cells with few gates, and a cell with a memory that it addresses (a neural Turing machine)."""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

from tensorfleet.api.layers.rnn_cells import RNNCell
from tensorfleet.api.layers.rnn_wrappers import assert_like_rnncell
from tensorfleet.api.layers.specs import InputSpec
from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.operation import Tensor

NTMControllerState = namedtuple(
    "NTMControllerState", ("controller_state", "read_vector_list", "w_list", "M", "time")
)


def _depth(shape: Any) -> int:
    depth = TensorShape(shape).as_list()[-1]
    if depth is None:
        raise ValueError(f"Expected inputs.shape[-1] to be known, saw shape: {shape}")
    return depth


class _FewGates(RNNCell):
    """The arguments and sizes of both cells below."""

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "ones",
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, **kwargs)
        self.input_spec = InputSpec(ndim=2)
        self.units = units
        self.activation = find("keras.activations.get")(activation)
        self.kernel_initializer = find("keras.initializers.get")(kernel_initializer)
        self.bias_initializer = find("keras.initializers.get")(bias_initializer)

    state_size = readonly("units")
    output_size = readonly("units")


class MinimalRNNCell(_FewGates):
    """A cell with one gate: between its state and what it makes of its input alone (Chen 2017)."""

    def build(self, inputs_shape: Any) -> None:
        size, units = _depth(inputs_shape), self.units
        self.kernel = self.add_weight(
            "kernel", shape=[size + 2 * units, units], initializer=self.kernel_initializer
        )
        self.bias = self.add_weight("bias", shape=[units], initializer=self.bias_initializer)
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        """One step."""
        own, gate = find("split")(self.kernel, [_depth(inputs.shape), 2 * self.units], 0)
        result = self.activation(find("matmul")(inputs, own))
        both = find("matmul")(find("concat")([result, state], 1), gate)
        keep = find("sigmoid")(find("nn.bias_add")(both, self.bias))
        new = keep * state + (1 - keep) * result
        return new, new


class CFNCell(_FewGates):
    """A chaos free cell (Laurent and von Brecht 2016): without inputs, its state fades away."""

    def build(self, inputs_shape: Any) -> None:
        size, units = _depth(inputs_shape), self.units
        start = self.kernel_initializer
        self.kernel = self.add_weight("kernel", shape=[size, 3 * units], initializer=start)
        self.recurrent_kernel = self.add_weight(
            "recurrent_kernel", shape=[units, 2 * units], initializer=start
        )
        self.bias = self.add_weight("bias", shape=[2 * units], initializer=self.bias_initializer)
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple:  # type: ignore[override]
        """One step."""
        of_gates, of_input = find("split")(self.kernel, [2 * self.units, self.units], 1)
        joined = find("matmul")(state, self.recurrent_kernel) + find("matmul")(inputs, of_gates)
        keep, let = find("split")(find("sigmoid")(find("nn.bias_add")(joined, self.bias)), 2, 1)
        result = self.activation(find("matmul")(inputs, of_input))
        new = keep * self.activation(state) + (1 - let) * result
        return new, new


class NTMCell(RNNCell):
    """A neural Turing machine (Graves et al. 2014): a controller whose heads read and write rows of a memory.

    Before the first step, when `time` is 0, memory, weights and what was read last are learned ones.
    """

    def __init__(
        self,
        controller: Any,
        memory_size: int,
        memory_vector_dim: int,
        read_head_num: int,
        write_head_num: int,
        shift_range: int = 1,
        output_dim: int | None = None,
        clip_value: float = 20,
        dtype: Any = dtypes.float32,
        name: str | None = None,
    ) -> None:
        super().__init__(dtype=dtype, name=name)
        assert_like_rnncell("NTM RNN controller cell", controller)
        self.controller, self.memory_size, self.memory_vector_dim = controller, memory_size, memory_vector_dim
        self.read_head_num, self.write_head_num = read_head_num, write_head_num
        self.shift_range, self.output_dim, self.clip_value = shift_range, output_dim, clip_value
        self.num_heads = read_head_num + write_head_num
        # Of each head: a key, its strength, a gate, the shifts, and how sharp the weights become.
        self.num_parameters_per_head = memory_vector_dim + 2 * shift_range + 4
        self.total_parameter_num = (
            self.num_parameters_per_head * self.num_heads + 2 * memory_vector_dim * write_head_num
        )

    output_size = readonly("output_dim", "The size of the output.")

    @property
    def state_size(self) -> NTMControllerState:
        """The sizes of the parts of the state."""
        return NTMControllerState(
            controller_state=self.controller.state_size,
            read_vector_list=[self.memory_vector_dim] * self.read_head_num,
            w_list=[self.memory_size] * self.num_heads,
            M=TensorShape([self.memory_size * self.memory_vector_dim]),
            time=TensorShape([]),
        )

    def build(self, inputs_shape: Any) -> None:
        if self.output_dim is None:
            self.output_dim = _depth(inputs_shape)
        size, dims = self.controller.output_size, self.memory_vector_dim
        zeros, glorot = find("constant_initializer")(0.0), find("glorot_uniform_initializer")

        def linear(name: str, inputs: int, outputs: int) -> tuple:
            start = find("truncated_normal_initializer")(stddev=1.0 / math.sqrt(inputs))
            kernel = self.add_weight(f"{name}_kernel", shape=[inputs, outputs], initializer=start)
            return kernel, self.add_weight(f"{name}_bias", shape=[outputs], initializer=zeros)

        self._parameters = linear("parameters", size, self.total_parameter_num)
        self._output = linear("output", size + dims * self.read_head_num, self.output_dim)
        self._first_reads = [
            self.add_weight(f"initial_read_vector_{i}", shape=[1, dims], initializer=glorot())
            for i in range(self.read_head_num)
        ]
        self._first_weights = [
            self.add_weight(f"initial_address_weights_{i}", shape=[1, self.memory_size], initializer=glorot())
            for i in range(self.num_heads)
        ]
        small = find("constant_initializer")(1e-6)
        self._memory = self.add_weight("memory", shape=[self.memory_size, dims], initializer=small)
        self.built = True

    def zero_state(self, batch_size: Any, dtype: Any) -> NTMControllerState:
        """The state before the first step."""
        zeros = find("zeros")
        return NTMControllerState(
            controller_state=self.controller.zero_state(batch_size, dtype),
            read_vector_list=[zeros([batch_size, self.memory_vector_dim])] * self.read_head_num,
            w_list=[zeros([batch_size, self.memory_size])] * self.num_heads,
            M=zeros([batch_size, self.memory_size, self.memory_vector_dim]),
            time=0,
        )

    def call(self, x: Any, prev_state: Any) -> tuple:  # type: ignore[override]
        """One step: the controller's, then one of each head."""
        reads, weights, memory = self._before(x, prev_state)
        output, inner = self.controller(find("concat")([x, *reads], 1), prev_state.controller_state)
        outcome = self._linear(output, self._parameters)
        cut = self.num_parameters_per_head * self.num_heads
        heads = find("split")(outcome[:, :cut], self.num_heads, 1)
        new_weights = [
            self._addressed(head, memory, before) for head, before in zip(heads, weights, strict=True)
        ]
        new_reads = [
            find("reduce_sum")(find("expand_dims")(w, 2) * memory, 1)
            for w in new_weights[: self.read_head_num]
        ]
        if self.write_head_num:
            changes = find("split")(outcome[:, cut:], 2 * self.write_head_num, 1)
            for i, w in enumerate(new_weights[self.read_head_num :]):
                memory = _written(memory, w, changes[2 * i], changes[2 * i + 1])
        result = self._linear(find("concat")([output, *new_reads], 1), self._output)
        return result, NTMControllerState(inner, new_reads, new_weights, memory, prev_state.time + 1)

    def _linear(self, x: Tensor, weights: tuple) -> Tensor:
        kernel, bias = weights
        output = find("nn.bias_add")(find("matmul")(x, kernel), bias)
        return find("clip_by_value")(output, -self.clip_value, self.clip_value)

    def _before(self, x: Tensor, state: NTMControllerState) -> tuple[list, list, Tensor]:
        """The read vectors, the weights and the memory before this step; before the first step, learned ones."""
        batch = x.shape.as_list()[0] or find("shape")(x)[0]
        first = find("equal")(state.time, 0)

        def either(learned: Tensor, kept: Any) -> Tensor:
            each = find("tile")(learned, [batch, *[1] * (len(learned.shape) - 1)])
            return find("cond")(first, lambda: each, lambda: find("identity")(kept))

        pairs = zip(self._first_reads, state.read_vector_list, strict=True)
        reads = [either(find("tanh")(v), kept) for v, kept in pairs]
        pairs = zip(self._first_weights, state.w_list, strict=True)
        weights = [either(find("nn.softmax")(v), kept) for v, kept in pairs]
        return reads, weights, either(find("expand_dims")(self._memory, 0), state.M)

    def _addressed(self, head: Tensor, memory: Tensor, before: Tensor) -> Tensor:
        """Where a head looks: by content, mixed with where it looked before, shifted, then sharpened."""
        dims, total = self.memory_vector_dim, find("reduce_sum")
        key = find("expand_dims")(find("tanh")(head[:, :dims]), 1)
        strength = find("nn.softplus")(head[:, dims : dims + 1])
        gate = find("sigmoid")(head[:, dims + 1 : dims + 2])
        shifts = find("nn.softmax")(head[:, dims + 2 : -1])
        sharp = find("nn.softplus")(head[:, -1:]) + 1
        lengths = find("norm")(memory, axis=2) * find("norm")(key, axis=2)
        alike = total(memory * key, 2) / (lengths + 1e-8)
        mixed = gate * find("nn.softmax")(strength * alike) + (1 - gate) * before
        # The shifts are 0, 1, ..., and then those to the left: the last is -1.
        steps = [*range(self.shift_range + 1), *range(-self.shift_range, 0)]
        rolled = [find("roll")(mixed, step, 1) * shifts[:, i : i + 1] for i, step in enumerate(steps)]
        sharpened = find("pow")(find("add_n")(rolled), sharp)
        return sharpened / total(sharpened, 1, keepdims=True)


def _written(memory: Tensor, weights: Tensor, erase: Tensor, add: Tensor) -> Tensor:
    where = find("expand_dims")(weights, 2)
    erased = 1 - find("matmul")(where, find("expand_dims")(find("sigmoid")(erase), 1))
    return memory * erased + find("matmul")(where, find("expand_dims")(find("tanh")(add), 1))
