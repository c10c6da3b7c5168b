"""The base of `tf.keras.metrics`: variables that add up over batches, and a value computed from them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from tensorfleet.api.distribute import context as distribution
from tensorfleet.api.layers.specs import snake_case
from tensorfleet.api.variables.variable import VariableAggregation, VariableSynchronization
from tensorfleet.base import dtypes
from tensorfleet.base.arguments import with_defaults
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import control_dependencies, get_default_graph, name_scope
from tensorfleet.graph.stacks import replaced
from tensorfleet.ops.array.basic import group
from tensorfleet_legacy.keras import backend as state
from tensorfleet_legacy.keras.activations import initializer as initializer_of


def _counting() -> Any:
    """A block whose variables count: one for all replicas, unless each makes its own."""
    if distribution.has_strategy() and distribution.in_cross_replica_context():
        return replaced(get_default_graph()._local(), "creators", [])
    return nullcontext()


class Metric:
    """Base of metrics.

    A metric of your own makes variables with `add_weight` in its constructor, changes them in
    `update_state(y_true, y_pred, sample_weight=None)`, and computes its value in `result()`.
    """

    _is_tracked = True
    _untracked = frozenset({"_weights"})

    def __init__(self, name: str | None = None, dtype: Any = None, **kwargs: Any) -> None:
        for key in kwargs:
            if key not in ("trainable", "dynamic"):
                raise TypeError(f"Keyword argument not understood: {key}")
        self.name = name or state.unique_name(snake_case(type(self).__name__))
        self._dtype = dtypes.as_dtype(dtype or state.floatx())
        self.stateful, self.built = True, True
        self._weights: list[Any] = []
        self._updates: list[Any] = []
        self._reset: tuple[int, Any] | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "update_state" in cls.__dict__:
            cls.update_state = _as_operation(cls.__dict__["update_state"])  # type: ignore[method-assign]

    dtype = readonly("_dtype.name", "The type of its value.")

    def add_weight(
        self,
        name: str,
        shape: Any = (),
        aggregation: Any = VariableAggregation.SUM,
        synchronization: Any = VariableSynchronization.ON_READ,
        initializer: Any = None,
        dtype: Any = None,
    ) -> Any:
        """Makes a variable of the metric, zero unless an initializer says otherwise."""
        first, kind = initializer_of(initializer or "zeros"), dtypes.as_dtype(dtype or self._dtype)
        dims = shape.as_list() if hasattr(shape, "as_list") else list(shape)
        # A worker's own: what other workers see of the data is theirs.
        with name_scope(self.name), find("device")(None), _counting():
            result = find("Variable")(
                lambda: first(dims, dtype=kind),
                trainable=False,
                collections=[],
                name=name,
                dtype=kind,
                use_resource=True,
                synchronization=synchronization,
                aggregation=aggregation,
            )
        if hasattr(result, "_copies"):
            result._summed_for_replicas = True
        state.track(result)
        self._weights.append(result)
        return result

    @property
    def weights(self) -> list:
        """Its variables."""
        return list(self._weights)

    variables = non_trainable_weights = weights
    trainable_weights: list = []

    @property
    def updates(self) -> list:
        """The operations that add batches, of every call of `update_state`."""
        return list(self._updates)

    def update_state(self, *args: Any, **kwargs: Any) -> Any:
        """Adds a batch."""
        raise TypeError(f"{type(self).__name__} must define update_state and result.")

    def result(self) -> Any:
        """The value over all batches since the last reset."""
        raise TypeError(f"{type(self).__name__} must define update_state and result.")

    def _reset_op(self) -> Any:
        """One operation that makes all variables zero, or None when the metric resets itself otherwise."""
        if type(self).reset_states is not Metric.reset_states:
            return None
        if self._reset is None or self._reset[0] != len(self._weights):
            items = [v.assign(find("zeros")(v.shape, v.dtype), read_value=False) for v in self._weights]
            self._reset = (len(self._weights), group(*items))
        return self._reset[1]

    def reset_states(self) -> None:
        """Starts over."""
        if self._weights:
            session = state.get_session()
            with session.graph.as_default():
                session.run(self._reset_op())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Adds a batch and gives the value with it."""
        with name_scope(self.name):
            update = self.update_state(*args, **kwargs)
            with control_dependencies([] if update is None else [update]):
                result = find("identity")(self.result())
        result._metric_obj = self
        return result

    def get_config(self) -> dict[str, Any]:
        """The arguments to make the same metric again."""
        return {"name": self.name, "dtype": self.dtype}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Metric:
        """A metric from what `get_config` gave."""
        return cls(**config)


def _as_operation(update: Callable) -> Callable:
    """An update that gives nothing is all the writes of variables it made."""

    @functools.wraps(update)
    def updated(self: Metric, *args: Any, **kwargs: Any) -> Any:
        graph: Any = get_default_graph()
        before = len(graph._ops)
        result = update(self, *args, **kwargs)
        if result is None:
            writes = [op for op in graph._ops[before:] if op.spec is not None and op.spec.updates]
            result = group(*writes) if writes else None
        elif not isinstance(result, Operation):
            result = result.op
        if result is not None:
            self._updates.append(result)
        return result

    return updated


def weighted(values: Tensor, sample_weight: Any) -> tuple[Tensor, Tensor]:
    """Values and weights of the same shape: weights for whole examples count for all of their values."""
    values = to_tensor(values)
    weights = find("cast")(sample_weight, values.dtype)
    rank, given = values.shape.ndims, weights.shape.ndims
    if rank is not None and given is not None:
        if given == rank + 1:
            weights = find("squeeze")(weights, [-1])
        elif given > rank:
            weights = find("reshape")(weights, find("shape")(values))
        elif 0 < given < rank:  # fewer axes than the values: values of one example are averaged
            values = find("reduce_mean")(values, list(range(given, rank)))
    return values, find("broadcast_to")(weights, find("shape")(values))


class Reduce(Metric):
    """A sum of values, divided by how many if it is a mean."""

    _is_mean = True

    def __init__(self, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.total = self.add_weight("total")
        if self._is_mean:
            self.count = self.add_weight("count")

    def update_state(self, values: Any, sample_weight: Any = None) -> Any:
        """Adds values, each as often as its weight says."""
        values = find("cast")(values, self._dtype)
        count: Any = find("cast")(find("size")(values), self._dtype)
        if sample_weight is not None:
            values, weights = weighted(values, sample_weight)
            values, count = values * weights, find("reduce_sum")(weights)
        total = self.total.assign_add(find("reduce_sum")(values), read_value=False)
        if not self._is_mean:
            return total
        with control_dependencies([total]):  # values that do not come are not counted either
            return self.count.assign_add(count, read_value=False)

    def result(self) -> Any:
        """The sum or the mean so far."""
        if self._is_mean:
            return find("div_no_nan")(self.total.value(), self.count.value())
        return find("identity")(self.total.value())


class Sum(Reduce):
    """The sum of values."""

    _is_mean = False

    __init__ = with_defaults(Reduce.__init__, name="sum")


class Mean(Reduce):
    """The mean of values."""

    __init__ = with_defaults(Reduce.__init__, name="mean")


class MeanMetricWrapper(Mean):
    """The mean of a function of true and predicted values."""

    def __init__(self, fn: Callable, name: str | None = None, dtype: Any = None, **kwargs: Any) -> None:
        super().__init__(name=name, dtype=dtype)
        self._fn, self._fn_kwargs = fn, kwargs

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:  # type: ignore[override]
        y_true, y_pred = find("cast")(y_true, self._dtype), find("cast")(y_pred, self._dtype)
        values = self._fn(y_true, y_pred, **self._fn_kwargs)
        return super().update_state(values, sample_weight=sample_weight)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self._fn_kwargs}
