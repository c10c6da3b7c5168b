"""The common interface of distributions, in terms of the few methods that each defines."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from tensorfleet.base.arguments import REQUIRED, like, taking
from tensorfleet.base.dtypes import DType
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape, broadcast_shape
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.array.shape import shape as shape_of
from tensorfleet_legacy.quick_arguments import binder


class ReparameterizationType:
    """Whether gradients flow from samples back to the parameters."""

    def __init__(self, rep_type: str) -> None:
        self._rep_type = rep_type

    def __repr__(self) -> str:
        return f"<Reparameterization Type: {self._rep_type}>"


FULLY_REPARAMETERIZED = ReparameterizationType("FULLY_REPARAMETERIZED")
NOT_REPARAMETERIZED = ReparameterizationType("NOT_REPARAMETERIZED")


def tensors(dtype: Any = None, **values: Any) -> list[Tensor]:
    """Parameters as tensors of one type, float32 unless one of them has another."""
    kind = dtype
    for v in values.values():
        if kind is None and hasattr(v, "dtype"):
            kind = v.dtype.base_dtype if isinstance(v.dtype, DType) else v.dtype
    return [to_tensor(v, kind, name, preferred=np.float32) for name, v in values.items()]


def turned(base: type, name: str, **functions: Callable[[Tensor], Tensor]) -> Any:
    """An `__init__` like that of a distribution, some of whose parameters go through functions first."""
    required: dict[str, Any] = dict.fromkeys(functions, REQUIRED)
    own = like(base, name=name, **required)
    parameters = [p for p in own.parameters if p not in ("validate_args", "allow_nan_stats", "name")]

    def make(self: Any, given: dict[str, Any]) -> None:
        with name_scope(given["name"]) as scope:
            result = zip(parameters, tensors(**{p: given[p] for p in parameters}), strict=True)
            changed = {p: functions[p](t) if p in functions else t for p, t in result}
        base.__init__(self, **{**given, **changed, "name": scope})  # type: ignore[misc]
        self._remember(given)

    bind = binder(own, name)

    @functools.wraps(taking(own)(make))
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, bind(args, kwargs))

    return __init__


def softplus(name: str | None = None) -> Callable[[Tensor], Tensor]:
    """The softplus function, which maps any number to a positive one."""
    return functools.partial(apply, "Softplus", name=name)


def number(value: float, like: Tensor) -> Tensor:
    """A constant of another tensor's type."""
    return to_tensor(value, like.dtype.base_dtype)


def joint_shape(*parts: Tensor) -> Tensor:
    """The shape that tensors broadcast to."""
    result = shape_of(parts[0])
    for p in parts[1:]:
        result = find("broadcast_dynamic_shape")(result, shape_of(p))
    return result


def joint_static_shape(*parts: Tensor) -> TensorShape:
    """The same as far as it is known."""
    result = parts[0].shape
    for p in parts[1:]:
        result = broadcast_shape(result, p.shape)
    return result


class Distribution:
    """A batch of random variables. Subclasses give `_parameters` names and the `_...` methods they can."""

    def __init__(
        self,
        dtype: Any,
        reparameterization_type: ReparameterizationType,
        validate_args: bool,
        allow_nan_stats: bool,
        parameters: dict | None = None,
        graph_parents: Any = None,
        name: str | None = None,
    ) -> None:
        self._dtype = dtype
        self._reparameterization_type = reparameterization_type
        self._validate_args, self._allow_nan_stats = validate_args, allow_nan_stats
        self._remember(parameters or {})
        self._graph_parents = list(graph_parents or ())
        for i, parent in enumerate(self._graph_parents):
            if not isinstance(parent, Tensor):
                raise ValueError(f"Graph parent item {i} is not a Tensor; {parent}.")
        self._name = name or ""
        if not self._name.endswith("/"):
            with name_scope(name or type(self).__name__) as self._name:
                pass

    def _remember(self, given: dict[str, Any]) -> None:
        """Keeps the arguments of a constructor, which are its `locals()`."""
        self._given = {k: v for k, v in given.items() if k not in ("self", "__class__")}

    def _start(
        self, dtype: Any, kind: ReparameterizationType, given: dict[str, Any], scope: str | None = None
    ) -> None:
        """The end of every constructor; `given` are its `locals()`, `scope` where its operations are."""
        flags = (given["validate_args"], given["allow_nan_stats"])
        Distribution.__init__(self, dtype, kind, *flags, given, name=scope or given["name"])

    # -- what it is ----------------------------------------------------------------------------------

    name = readonly("_name", "The name that its operations go by.")
    dtype = readonly("_dtype", "The type of its samples.")

    @property
    def parameters(self) -> dict:
        """The arguments it was made with."""
        return dict(self._given)

    reparameterization_type = readonly(
        "_reparameterization_type", "Whether gradients flow through its samples."
    )
    allow_nan_stats = readonly(
        "_allow_nan_stats", "Whether a moment that does not exist is NaN rather than an error."
    )
    validate_args = readonly("_validate_args", "Whether parameters are checked when a step runs.")

    @property
    def batch_shape(self) -> TensorShape:
        """The shape of the batch of variables, as far as it is known."""
        return TensorShape(self._batch_shape())

    @property
    def event_shape(self) -> TensorShape:
        """The shape of one sample of one variable, as far as it is known."""
        return TensorShape(self._event_shape())

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """The shape of the batch as a tensor."""
        with self._scope(name):
            return to_tensor(self._batch_shape_tensor(), np.int32)

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Tensor:
        """The shape of one sample as a tensor."""
        with self._scope(name):
            return to_tensor(self._event_shape_tensor(), np.int32)

    def is_scalar_batch(self, name: str = "is_scalar_batch") -> Tensor:
        """Whether there is one variable only."""
        return apply("Equal", apply("Size", self.batch_shape_tensor()), np.int32(0), name=name)

    def is_scalar_event(self, name: str = "is_scalar_event") -> Tensor:
        """Whether a sample is one number."""
        return apply("Equal", apply("Size", self.event_shape_tensor()), np.int32(0), name=name)

    #: the parameters whose shapes `param_shapes` tells; all alike
    _alike: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def param_shapes(cls, sample_shape: Any, name: str = "DistributionParamShapes") -> dict[str, Tensor]:
        """The shapes that the parameters must have for samples of a shape."""
        if not cls._alike:
            raise NotImplementedError("_param_shapes not implemented")
        with name_scope(name, values=[sample_shape]):
            return {n: to_tensor(sample_shape, np.int32) for n in cls._alike}

    @classmethod
    def param_static_shapes(cls, sample_shape: Any) -> dict[str, TensorShape]:
        """The same for a shape that is known."""
        if isinstance(sample_shape, TensorShape):
            if not sample_shape.is_fully_defined():
                raise ValueError("TensorShape sample_shape must be fully defined")
            sample_shape = sample_shape.as_list()
        by_name = {n: find("get_static_value")(t) for n, t in cls.param_shapes(sample_shape).items()}
        if any(shape is None for shape in by_name.values()):
            raise ValueError("sample_shape must be a fully-defined TensorShape or list/tuple")
        return {n: TensorShape(shape.tolist()) for n, shape in by_name.items()}

    def copy(self, **override_parameters_kwargs: Any) -> Any:
        """The same distribution with some parameters changed."""
        return type(self)(**{**self._given, **override_parameters_kwargs})

    #: the attributes with one element per variable of the batch
    _each: ClassVar[tuple[str, ...]] = ()

    def _batched(self) -> tuple:
        if not self._each:
            raise TypeError(f"{type(self).__name__} does not say what its parameters are.")
        return tuple(getattr(self, name) for name in self._each)

    def _batch_shape(self) -> TensorShape:
        return joint_static_shape(*self._batched())

    def _batch_shape_tensor(self) -> Any:
        return joint_shape(*self._batched())

    def _event_shape(self) -> TensorShape:
        return TensorShape([])

    def _event_shape_tensor(self) -> Any:
        return np.zeros(0, np.int32)

    @contextmanager
    def _scope(self, name: str) -> Iterator[None]:
        with name_scope(self._name), name_scope(name):
            yield

    def _expand_sample_shape_to_vector(self, x: Any, name: str) -> tuple[Tensor, Any]:
        """A sample shape as a vector, and how many samples that is."""
        x = to_tensor(x, np.int32, name)
        if x.shape.rank not in (None, 0, 1):
            raise ValueError("Input is neither scalar nor vector.")
        return apply("Reshape", x, [-1]), find("reduce_prod")(x)

    def _call(self, method: str, name: str, *args: Any, **condition: Any) -> Any:
        function = getattr(self, method, None)
        if function is None:
            raise NotImplementedError(f"{method[1:]} is not implemented: {type(self).__name__}")
        with self._scope(name):
            return function(*args, **condition)

    # -- samples and densities -----------------------------------------------------------------------

    def sample(self, sample_shape: Any = (), seed: int | None = None, name: str = "sample") -> Tensor:
        """Samples of shape `sample_shape + batch_shape + event_shape`."""
        return self._call_sample_n(sample_shape, seed, name)

    def _call_sample_n(self, sample_shape: Any, seed: int | None, name: str, **condition: Any) -> Tensor:
        with self._scope(name):
            wanted = to_tensor(sample_shape, np.int32) if sample_shape != () else None
            if wanted is None:
                drawn = self._call("_sample_n", name, np.int32(1), seed, **condition)
                result = apply("Squeeze", drawn, squeeze_dims=[0])
            else:
                flat = apply("Reshape", wanted, [-1])
                count = apply("Prod", flat, np.array([0], np.int32))
                drawn = self._call("_sample_n", name, count, seed, **condition)
                result = apply("Reshape", drawn, apply("ConcatV2", [flat, shape_of(drawn)[1:]], 0))
            known = self._static_sample_shape(sample_shape)
            result.set_shape(known.concatenate(self.batch_shape).concatenate(self.event_shape))
            return result

    def _static_sample_shape(self, sample_shape: Any) -> TensorShape:
        if sample_shape == ():
            return TensorShape([])
        result = find("get_static_value")(to_tensor(sample_shape, np.int32))
        return TensorShape(None) if result is None else TensorShape(np.ravel(result).tolist())

    def _ask(self, what: str, value: Any, name: str, **condition: Any) -> Tensor:
        """A density or probability at `value`, or its logarithm: by its own method, or by that of the other."""
        value = to_tensor(value, preferred=self._dtype, name="value")
        if hasattr(self, f"_{what}"):
            return self._call(f"_{what}", name, value, **condition)
        if what.startswith("log_"):
            return apply("Log", self._call(f"_{what.removeprefix('log_')}", name, value, **condition))
        return apply("Exp", self._call(f"_log_{what}", name, value, **condition))

    def log_prob(self, value: Any, name: str = "log_prob") -> Tensor:
        """The logarithm of the density (or probability) at `value`."""
        return self._ask("log_prob", value, name)

    def prob(self, value: Any, name: str = "prob") -> Tensor:
        """The density (or probability) at `value`."""
        return self._ask("prob", value, name)

    def cdf(self, value: Any, name: str = "cdf") -> Tensor:
        """The probability of at most `value`."""
        return self._ask("cdf", value, name)

    def log_cdf(self, value: Any, name: str = "log_cdf") -> Tensor:
        """The logarithm of the probability of at most `value`."""
        return self._ask("log_cdf", value, name)

    def survival_function(self, value: Any, name: str = "survival_function") -> Tensor:
        """The probability of more than `value`."""
        return self._above(value, name)

    def log_survival_function(self, value: Any, name: str = "log_survival_function") -> Tensor:
        """The logarithm of the probability of more than `value`."""
        return self._log_above(value, name)

    def _above(self, value: Any, name: str, **condition: Any) -> Tensor:
        if hasattr(self, "_survival_function"):
            return self._ask("survival_function", value, name, **condition)
        below = self._ask("cdf", value, name, **condition)
        return number(1, below) - below

    def _log_above(self, value: Any, name: str, **condition: Any) -> Tensor:
        if hasattr(self, "_log_survival_function"):
            return self._ask("log_survival_function", value, name, **condition)
        return apply("Log1p", apply("Neg", self._ask("cdf", value, name, **condition)))

    def quantile(self, value: Any, name: str = "quantile") -> Tensor:
        """Where the probability of at most that is `value`."""
        return self._call("_quantile", name, to_tensor(value, self._dtype, name="value"))

    # -- moments -------------------------------------------------------------------------------------

    def entropy(self, name: str = "entropy") -> Tensor:
        """The entropy, in nats."""
        return self._call("_entropy", name)

    def mean(self, name: str = "mean") -> Tensor:
        """The mean."""
        return self._call("_mean", name)

    def mode(self, name: str = "mode") -> Tensor:
        """The most likely value."""
        return self._call("_mode", name)

    def variance(self, name: str = "variance") -> Tensor:
        """The variance."""
        if hasattr(self, "_variance"):
            return self._call("_variance", name)
        return apply("Square", self._call("_stddev", name))

    def stddev(self, name: str = "stddev") -> Tensor:
        """The standard deviation."""
        if hasattr(self, "_stddev"):
            return self._call("_stddev", name)
        return apply("Sqrt", self._call("_variance", name))

    def covariance(self, name: str = "covariance") -> Tensor:
        """The covariance matrix of a vector's elements."""
        return self._call("_covariance", name)

    # -- against another -----------------------------------------------------------------------------

    def kl_divergence(self, other: Any, name: str = "kl_divergence") -> Tensor:
        """How much information is lost when `other` stands for this one, in nats."""
        from tensorfleet_legacy.distributions.kullback_leibler import kl_divergence

        return kl_divergence(self, other, allow_nan_stats=self._allow_nan_stats, name=name)

    def cross_entropy(self, other: Any, name: str = "cross_entropy") -> Tensor:
        """The mean of `-other.log_prob` under this distribution."""
        return self.kl_divergence(other, name) + self.entropy()

    def __str__(self) -> str:
        shapes = (("batch", self.batch_shape), ("event", self.event_shape))
        known = "".join(f", {what}_shape={shape}" for what, shape in shapes if shape.rank is not None)
        kind = getattr(self._dtype, "name", self._dtype)
        return f'tfp.distributions.{type(self).__name__}("{self._name}"{known}, dtype={kind})'

    def __repr__(self) -> str:
        kind = getattr(self._dtype, "name", self._dtype)
        return (
            f"<tfp.distributions.{type(self).__name__} '{self._name}' batch_shape={self.batch_shape} "
            f"event_shape={self.event_shape} dtype={kind}>"
        )


def counted(count: Any, shape: Any) -> Tensor:
    """The shape of so many samples."""
    first = apply("Reshape", to_tensor(count, np.int32), [1])
    return apply("ConcatV2", [first, shape], 0)


def checked(validate: bool, checks: Any, value: Tensor) -> Tensor:
    """`value`, available only after the checks have passed, when they are asked for."""
    if not validate:
        return value
    with find("control_dependencies")([check() for check in checks]):
        return apply("Identity", value)
