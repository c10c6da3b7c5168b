"""`tf.contrib.gan.features`: weights that are clipped, conditions, pools of earlier data, virtual batches."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.variables.initializers import Ones, Zeros
from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.base import dtypes, nest
from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies, name_scope
from tensorfleet_legacy.contrib.opt.variable_clipping_optimizer import VariableClippingOptimizer

_ZEROS, _ONES = Zeros(), Ones()


def clip_variables(optimizer: Any, variables: Any, weight_clip: float) -> VariableClippingOptimizer:
    """An optimizer after whose steps each number of some variables is between `-weight_clip` and `weight_clip`."""
    if weight_clip < 0:
        raise ValueError(f"`discriminator_weight_clip` must be positive. Instead, was {weight_clip}")
    dims: dict[Any, list[int]] = {variable: [] for variable in variables}
    return VariableClippingOptimizer(optimizer, dims, weight_clip, True, True)


def clip_discriminator_weights(optimizer: Any, model: Any, weight_clip: float) -> VariableClippingOptimizer:
    """An optimizer after whose steps the discriminator's variables are clipped."""
    return clip_variables(optimizer, model.discriminator_variables, weight_clip)


def condition_tensor(tensor: Any, conditioning: Any) -> Tensor:
    """A tensor plus what a dense layer makes of a condition."""
    tensor, conditioning = to_tensor(tensor), to_tensor(conditioning)
    tensor.shape[1:].assert_is_fully_defined()
    if conditioning.shape.ndims < 2:
        raise ValueError(f"conditioning must be at least 2D, but saw shape: {conditioning.shape}")
    flat = find("layers.flatten")(conditioning)
    mapped = find("layers.dense")(
        flat, tensor.shape[1:].num_elements(), kernel_initializer=find("glorot_uniform_initializer")()
    )
    if not mapped.shape.is_compatible_with(tensor.shape):
        mapped = find("reshape")(mapped, find("shape")(tensor))
    return tensor + mapped


def condition_tensor_from_onehot(tensor: Any, one_hot_labels: Any, embedding_size: int = 256) -> Tensor:
    """A tensor plus what a dense layer makes of the embedding of a class."""
    labels = to_tensor(one_hot_labels)
    labels.shape.assert_has_rank(2)
    labels.shape[1:].assert_is_fully_defined()
    table = find("get_variable")("embedding", [labels.shape.as_list()[1], embedding_size])
    rows = find("nn.embedding_lookup")(table, find("argmax")(labels, 1), name="token_to_embedding")
    return condition_tensor(tensor, rows)


def tensor_pool(
    input_values: Any, pool_size: int = 50, pooling_probability: float = 0.5, name: str = "tensor_pool"
) -> Any:
    """The values, or now and then earlier ones: the last `pool_size` are kept in a pool (Shrivastava et al. 2017)."""
    size = int(pool_size)
    if size < 0:
        raise ValueError("`pool_size` is negative.")
    if size == 0:
        return input_values
    given = [to_tensor(v) for v in nest.flatten(input_values)]
    with name_scope(f"{name}_pool_queue", values=given):
        queue = find("RandomShuffleQueue")(size, 0, [v.dtype for v in given])

        def fill() -> list:
            with control_dependencies([queue.enqueue(given)]):
                return [find("identity")(v) for v in given]

        def exchange() -> list:
            taken = queue.dequeue()
            taken = taken if isinstance(taken, list) else [taken]
            with control_dependencies(taken):
                put = queue.enqueue(given)
            with control_dependencies([put]):
                early = find("random_uniform")([]) < pooling_probability
                chosen = find("cond")(
                    early,
                    lambda: [find("identity")(v) for v in taken],
                    lambda: [find("identity")(v) for v in given],
                )
            return list(chosen) if isinstance(chosen, (list, tuple)) else [chosen]

        result = find("cond")(queue.size() < size, fill, exchange)
        result = result if isinstance(result, (list, tuple)) else [result]
        for value, like in zip(result, given, strict=True):
            value.set_shape(like.shape)
    return nest.pack_sequence_as(input_values, list(result))


class VBN:
    """Virtual batch normalization (Salimans et al. 2016): each example is normalized together with a reference batch."""

    def __init__(
        self,
        reference_batch: Any,
        axis: int = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = _ZEROS,
        gamma_initializer: Any = _ONES,
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        trainable: bool = True,
        name: str | None = None,
        batch_axis: int = 0,
    ) -> None:
        self._reference = to_tensor(reference_batch)
        rank = self._reference.shape.ndims
        if rank is None:
            raise ValueError("`reference_batch` has unknown dimensions.")
        for value in (axis, batch_axis):
            if not -rank <= value < rank:
                raise ValueError(
                    f"Value of `axis` argument {value % rank if value >= 0 else value + rank} is out of range for "
                    f"input with rank {rank}"
                )
        self._axis, self._batch_axis, self._epsilon = axis % rank, batch_axis % rank, epsilon
        if self._axis == self._batch_axis:
            raise ValueError("`axis` and `batch_axis` cannot be the same.")
        with variable_scope(name, "VBN", [self._reference]) as self._scope:
            others = [d for d in range(rank) if d != self._axis]
            self._mean, self._squares = _moments(self._reference, others)
            count = find("cast")(find("shape")(self._reference)[self._batch_axis], dtypes.float32)
            self._share = 1.0 / (count + 1.0)
            size = [self._reference.shape.as_list()[self._axis]]
            get = find("get_variable")
            self._beta = (
                get("beta", size, None, beta_initializer, beta_regularizer, trainable) if center else None
            )
            self._gamma = (
                get("gamma", size, None, gamma_initializer, gamma_regularizer, trainable) if scale else None
            )

    def _parameter(self, value: Any) -> Any:
        if value is None:
            return None
        shape = [1] * len(self._reference.shape)
        shape[self._axis] = -1
        return find("reshape")(value, shape)

    def _normalized(self, values: Tensor, mean: Tensor, squares: Tensor) -> Tensor:
        return find("nn.batch_normalization")(
            values,
            mean,
            squares - find("square")(mean),
            self._parameter(self._beta),
            self._parameter(self._gamma),
            self._epsilon,
        )

    def reference_batch_normalization(self) -> Tensor:
        """The reference batch, normalized by itself."""
        with name_scope(self._scope.name):
            return self._normalized(self._reference, self._mean, self._squares)

    def __call__(self, inputs: Any) -> Tensor:
        """Each example normalized with the reference batch."""
        inputs = to_tensor(inputs)
        own, known = (
            [d for i, d in enumerate(x.shape.as_list()) if i != self._batch_axis]
            for x in (inputs, self._reference)
        )
        if len(own) != len(known) or any(a and b and a != b for a, b in zip(own, known, strict=True)):
            raise ValueError(f"Shapes {own} and {known} of one example are incompatible")
        with name_scope(self._scope.name, values=[inputs, self._reference]):
            others = [d for d in range(inputs.shape.ndims) if d not in (self._axis, self._batch_axis)]
            mean, squares = _moments(inputs, others)
            share = self._share
            return self._normalized(
                inputs,
                share * mean + (1.0 - share) * self._mean,
                share * squares + (1.0 - share) * self._squares,
            )


def _moments(values: Tensor, axes: list[int]) -> tuple[Tensor, Tensor]:
    values = find("cast")(values, dtypes.float32)
    mean = find("reduce_mean")
    return mean(values, axes, keepdims=True), mean(find("square")(values), axes, keepdims=True)
