"""Bijectors: maps that can be undone, and how they stretch space; those made of others or of functions."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope


def times_of_events(bijector: Bijector, value: Tensor, ldj: Tensor, least: int, asked: Any) -> Tensor:
    """A log-determinant that counts for events of `least` axes, for events of `asked` axes."""
    asked, known = _checked_axes(bijector, least, asked)
    if known == least:
        return ldj
    if bijector.is_constant_jacobian:
        rank = find("rank")(value)
        ldj = ldj * find("ones")(find("shape")(value)[rank - asked : rank - least], ldj.dtype)
    axes = -find("range")(1, asked - least + 1) if known is None else list(range(least - known, 0))
    return find("reduce_sum")(ldj, axes)


def _checked_axes(bijector: Bijector, least: int, asked: Any) -> tuple[Any, int | None]:
    """A number of axes, and its value if that is known; what is not is checked when a step runs, if that is wanted."""
    axes = to_tensor(asked, name="event_ndims")
    if not axes.dtype.is_integer:
        raise ValueError(f"Expected integer dtype, got dtype {axes.dtype}")
    if axes.shape.rank not in (None, 0):
        raise ValueError(f"Expected scalar event_ndims, got shape {axes.shape}")
    known = find("get_static_value")(axes)
    if known is not None:
        if known < least:
            raise ValueError(f"event_ndims ({int(known)}) must be larger than min_event_ndims ({least})")
        return int(known), int(known)
    if bijector.validate_args:
        checks = [
            find("assert_rank")(axes, 0, message="Expected scalar."),
            find("assert_greater_equal")(axes, least),
        ]
        with find("control_dependencies")(checks):
            axes = find("identity")(axes)
    return axes, None


class Bijector(abc.ABC):
    """A map with an inverse. Subclasses have `_forward`, `_inverse` and one of the `_..._log_det_jacobian`.

    What a bijector has computed it remembers, so that `inverse(forward(x))` is `x` itself.
    """

    _is_injective = True

    @abc.abstractmethod
    def __init__(
        self,
        graph_parents: Any = None,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        dtype: Any = None,
        forward_min_event_ndims: int | None = None,
        inverse_min_event_ndims: int | None = None,
        name: str | None = None,
    ) -> None:
        if forward_min_event_ndims is None and inverse_min_event_ndims is None:
            raise ValueError(
                "Must specify at least one of `forward_min_event_ndims` and `inverse_min_event_ndims`."
            )
        forward, inverse = forward_min_event_ndims, inverse_min_event_ndims
        self._forward_min_event_ndims = inverse if forward is None else forward
        self._inverse_min_event_ndims = forward if inverse is None else inverse
        for n in (self._forward_min_event_ndims, self._inverse_min_event_ndims):
            if n is None or n != int(n) or n < 0:
                raise ValueError(f"min_event_ndims must be a non-negative integer: {n}")
        self._graph_parents = list(graph_parents or ())
        self._is_constant_jacobian, self._validate_args, self._dtype = (
            is_constant_jacobian,
            validate_args,
            dtype,
        )
        self._name = name or _underscored(type(self).__name__)
        self._seen: dict[tuple, Any] = {}

    graph_parents = readonly("_graph_parents", "The tensors it was made with.")
    forward_min_event_ndims = readonly(
        "_forward_min_event_ndims", "How many of the last axes `forward` needs."
    )
    inverse_min_event_ndims = readonly(
        "_inverse_min_event_ndims", "How many of the last axes `inverse` needs."
    )
    is_constant_jacobian = readonly("_is_constant_jacobian", "Whether space is stretched alike everywhere.")
    validate_args = readonly("_validate_args", "Whether arguments are checked when a step runs.")
    dtype = readonly("_dtype", "The type of the values, if it is only one.")
    name = readonly("_name", "The name that its operations go by.")

    # -- shapes --------------------------------------------------------------------------------------

    def forward_event_shape_tensor(
        self, input_shape: Any, name: str = "forward_event_shape_tensor"
    ) -> Tensor:
        """The shape of an event after `forward`, as a tensor."""
        with self._scope(name):
            return self._forward_event_shape_tensor(to_tensor(input_shape, np.int32))

    def forward_event_shape(self, input_shape: Any) -> TensorShape:
        """The same as far as it is known."""
        return TensorShape(self._forward_event_shape(TensorShape(input_shape)))

    def inverse_event_shape_tensor(
        self, output_shape: Any, name: str = "inverse_event_shape_tensor"
    ) -> Tensor:
        """The shape of an event after `inverse`, as a tensor."""
        with self._scope(name):
            return self._inverse_event_shape_tensor(to_tensor(output_shape, np.int32))

    def inverse_event_shape(self, output_shape: Any) -> TensorShape:
        """The same as far as it is known."""
        return TensorShape(self._inverse_event_shape(TensorShape(output_shape)))

    def _forward_event_shape_tensor(self, input_shape: Any) -> Any:
        return input_shape

    def _forward_event_shape(self, input_shape: Any) -> Any:
        return input_shape

    def _inverse_event_shape_tensor(self, output_shape: Any) -> Any:
        return output_shape

    def _inverse_event_shape(self, output_shape: Any) -> Any:
        return output_shape

    # -- values --------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _scope(self, name: str) -> Iterator[None]:
        with name_scope(self._name), name_scope(name):
            yield

    def _value(self, x: Any, name: str) -> Tensor:
        result = to_tensor(x, self._dtype, name)
        if self._dtype is not None and result.dtype.base_dtype != self._dtype:
            raise TypeError(f"Input had dtype {self._dtype} but expected {result.dtype}.")
        return result

    def forward(self, x: Any, name: str = "forward") -> Tensor:
        """The map's value at `x`."""
        return self._call_forward(x, name)

    def inverse(self, y: Any, name: str = "inverse") -> Any:
        """The values that the map takes to `y`; a tuple if there are several."""
        return self._call_inverse(y, name)

    def forward_log_det_jacobian(
        self, x: Any, event_ndims: Any, name: str = "forward_log_det_jacobian"
    ) -> Tensor:
        """The logarithm of how much `forward` stretches space at `x`, for events of `event_ndims` axes."""
        return self._call_forward_log_det_jacobian(x, event_ndims, name)

    def inverse_log_det_jacobian(
        self, y: Any, event_ndims: Any, name: str = "inverse_log_det_jacobian"
    ) -> Any:
        """The same of `inverse` at `y`."""
        return self._call_inverse_log_det_jacobian(y, event_ndims, name)

    def _call_forward(self, x: Any, name: str, **condition: Any) -> Tensor:
        with self._scope(name):
            x = self._value(x, "x")
            return self._recall("y", x, condition, lambda: self._required("_forward")(x, **condition))

    def _call_inverse(self, y: Any, name: str, **condition: Any) -> Any:
        with self._scope(name):
            y = self._value(y, "y")
            return self._recall("x", y, condition, lambda: self._required("_inverse")(y, **condition))

    def _call_forward_log_det_jacobian(self, x: Any, event_ndims: Any, name: str, **condition: Any) -> Tensor:
        if not self._is_injective:
            raise NotImplementedError(
                "forward_log_det_jacobian cannot be implemented for non-injective transforms."
            )
        with self._scope(name):
            x = self._value(x, "x")
            least = self._forward_min_event_ndims or 0
            return self._recall_stretch(
                "fldj",
                x,
                event_ndims,
                condition,
                lambda: times_of_events(self, x, self._forward_stretch(x, condition), least, event_ndims),
            )

    def _call_inverse_log_det_jacobian(self, y: Any, event_ndims: Any, name: str, **condition: Any) -> Any:
        with self._scope(name):
            y = self._value(y, "y")
            least = self._inverse_min_event_ndims or 0

            def stretch() -> Any:
                ldj = self._inverse_stretch(y, condition)
                if isinstance(ldj, tuple):
                    return tuple(times_of_events(self, y, part, least, event_ndims) for part in ldj)
                return times_of_events(self, y, ldj, least, event_ndims)

            return self._recall_stretch("ildj", y, event_ndims, condition, stretch)

    def _forward_stretch(self, x: Tensor, condition: dict) -> Tensor:
        if hasattr(self, "_forward_log_det_jacobian"):
            return self._forward_log_det_jacobian(x, **condition)
        back = self._required("_inverse_log_det_jacobian", asked="_forward_log_det_jacobian")
        return -back(self._call_forward(x, "forward", **condition), **condition)

    def _inverse_stretch(self, y: Tensor, condition: dict) -> Any:
        if hasattr(self, "_inverse_log_det_jacobian"):
            return self._inverse_log_det_jacobian(y, **condition)
        there = self._required("_forward_log_det_jacobian", asked="_inverse_log_det_jacobian")
        return -there(self._call_inverse(y, "inverse", **condition), **condition)

    def _required(self, method: str, asked: str = "") -> Callable:
        result = getattr(self, method, None)
        if result is None:
            raise NotImplementedError(f"{(asked or method)[1:]} not implemented.")
        return result

    def _recall(self, what: str, given: Tensor, condition: dict, compute: Callable[[], Any]) -> Any:
        """A value of `given`, computed once; what `forward` has given, `inverse` gives back."""
        marks = tuple((k, id(v)) for k, v in sorted(condition.items()))
        key = (what, id(given), marks)
        if key not in self._seen:
            result = compute()
            # The tensors and conditions are kept, so that no other can have their identity.
            self._seen[key] = (result, given, condition)
            back = {"y": "x", "x": "y"}.get(what)
            if back is not None and isinstance(result, Tensor) and self._is_injective:
                self._seen.setdefault((back, id(result), marks), (given, result, condition))
        return self._seen[key][0]

    def _recall_stretch(
        self, what: str, given: Tensor, axes: Any, condition: dict, compute: Callable[[], Any]
    ) -> Any:
        """A log-determinant for events of so many axes, computed once; that of the way back is the opposite."""
        if not isinstance(axes, int):
            return compute()
        marks = tuple((k, id(v)) for k, v in sorted(condition.items()))
        side, back = ("y", "ildj") if what == "fldj" else ("x", "fldj")
        other = self._seen.get((side, id(given), marks))
        opposite = other and self._seen.get((f"{back}{axes}", id(other[0]), marks))
        if opposite and self._is_injective:
            return -opposite[0]
        return self._recall(f"{what}{axes}", given, condition, compute)


def _underscored(name: str) -> str:
    from tensorfleet.api.layers.specs import snake_case

    return snake_case(name.lstrip("_"))


class ConditionalBijector(Bijector):
    """A bijector whose methods take further keyword arguments."""

    def forward(self, x: Any, name: str = "forward", **condition_kwargs: Any) -> Tensor:
        """The map's value at `x`."""
        return self._call_forward(x, name, **condition_kwargs)

    def inverse(self, y: Any, name: str = "inverse", **condition_kwargs: Any) -> Any:
        """The value that the map takes to `y`."""
        return self._call_inverse(y, name, **condition_kwargs)

    def forward_log_det_jacobian(
        self, x: Any, event_ndims: Any, name: str = "forward_log_det_jacobian", **condition_kwargs: Any
    ) -> Tensor:
        """The logarithm of how much `forward` stretches space at `x`."""
        return self._call_forward_log_det_jacobian(x, event_ndims, name, **condition_kwargs)

    def inverse_log_det_jacobian(
        self, y: Any, event_ndims: Any, name: str = "inverse_log_det_jacobian", **condition_kwargs: Any
    ) -> Any:
        """The same of `inverse` at `y`."""
        return self._call_inverse_log_det_jacobian(y, event_ndims, name, **condition_kwargs)


def _none(x: Tensor) -> Tensor:
    return to_tensor(0.0, x.dtype.base_dtype)


class Identity(Bijector):
    """y = x."""

    def __init__(self, validate_args: bool = False, name: str = "identity") -> None:
        super().__init__(
            forward_min_event_ndims=0, is_constant_jacobian=True, validate_args=validate_args, name=name
        )

    def _forward(self, x: Tensor) -> Tensor:
        return x

    _inverse = _forward
    _forward_log_det_jacobian = _inverse_log_det_jacobian = staticmethod(_none)


class Inline(Bijector):
    """A bijector made of functions."""

    def __init__(
        self,
        forward_fn: Callable | None = None,
        inverse_fn: Callable | None = None,
        inverse_log_det_jacobian_fn: Callable | None = None,
        forward_log_det_jacobian_fn: Callable | None = None,
        forward_event_shape_fn: Callable | None = None,
        forward_event_shape_tensor_fn: Callable | None = None,
        inverse_event_shape_fn: Callable | None = None,
        inverse_event_shape_tensor_fn: Callable | None = None,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        forward_min_event_ndims: int | None = None,
        inverse_min_event_ndims: int | None = None,
        name: str = "inline",
    ) -> None:
        super().__init__(
            forward_min_event_ndims=forward_min_event_ndims,
            inverse_min_event_ndims=inverse_min_event_ndims,
            is_constant_jacobian=is_constant_jacobian,
            validate_args=validate_args,
            name=name,
        )
        given = {
            "_forward": forward_fn,
            "_inverse": inverse_fn,
            "_inverse_log_det_jacobian": inverse_log_det_jacobian_fn,
            "_forward_log_det_jacobian": forward_log_det_jacobian_fn,
            "_forward_event_shape": forward_event_shape_fn,
            "_forward_event_shape_tensor": forward_event_shape_tensor_fn,
            "_inverse_event_shape": inverse_event_shape_fn,
            "_inverse_event_shape_tensor": inverse_event_shape_tensor_fn,
        }
        self.__dict__.update({name: function for name, function in given.items() if function is not None})


class Invert(Bijector):
    """Another bijector the other way round."""

    def __init__(self, bijector: Bijector, validate_args: bool = False, name: str | None = None) -> None:
        if not bijector._is_injective:
            raise NotImplementedError("Invert is not implemented for non-injective bijectors.")
        self._bijector = bijector
        super().__init__(
            graph_parents=bijector.graph_parents,
            forward_min_event_ndims=bijector.inverse_min_event_ndims,
            inverse_min_event_ndims=bijector.forward_min_event_ndims,
            is_constant_jacobian=bijector.is_constant_jacobian,
            validate_args=validate_args,
            dtype=bijector.dtype,
            name=name or f"invert_{bijector.name}",
        )

    bijector = readonly("_bijector", "The bijector that is turned round.")

    def _forward(self, x: Tensor, **condition: Any) -> Tensor:
        return self._bijector.inverse(x, **condition)

    def _inverse(self, y: Tensor, **condition: Any) -> Tensor:
        return self._bijector.forward(y, **condition)

    def _forward_log_det_jacobian(self, x: Tensor, **condition: Any) -> Tensor:
        return self._bijector.inverse_log_det_jacobian(x, self._forward_min_event_ndims, **condition)

    def _inverse_log_det_jacobian(self, y: Tensor, **condition: Any) -> Tensor:
        return self._bijector.forward_log_det_jacobian(y, self._inverse_min_event_ndims, **condition)

    def _forward_event_shape(self, input_shape: Any) -> Any:
        return self._bijector.inverse_event_shape(input_shape)

    def _forward_event_shape_tensor(self, input_shape: Any) -> Any:
        return self._bijector.inverse_event_shape_tensor(input_shape)

    def _inverse_event_shape(self, output_shape: Any) -> Any:
        return self._bijector.forward_event_shape(output_shape)

    def _inverse_event_shape_tensor(self, output_shape: Any) -> Any:
        return self._bijector.forward_event_shape_tensor(output_shape)


def _least_axes(steps: Sequence[tuple[int, int]]) -> int:
    """The axes that the first of some maps needs so that all have what they need; each (needs, leaves)."""
    needed = grown = 0
    for needs, leaves in steps:
        needed = max(needed, needs - grown)
        grown += leaves - needs
    return needed


class Chain(Bijector):
    """Bijectors one after the other, the last one first."""

    def __init__(
        self,
        bijectors: Sequence[Bijector] | None = None,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        self._bijectors = list(bijectors or ())
        for b in self._bijectors:
            if not b._is_injective:
                raise NotImplementedError(f"Invert is not implemented for non-injective bijector ({b.name})")
        kinds = {b.dtype for b in self._bijectors if b.dtype is not None}
        if len(kinds) > 1:
            raise ValueError(f"incompatible dtypes: {sorted(str(k) for k in kinds)}")
        backward = [(b.inverse_min_event_ndims, b.forward_min_event_ndims) for b in self._bijectors]
        forward = [pair[::-1] for pair in reversed(backward)]
        called = "_of_".join(["chain", *(b.name for b in self._bijectors)]) if self._bijectors else "identity"
        super().__init__(
            graph_parents=[parent for b in self._bijectors for parent in b.graph_parents],
            forward_min_event_ndims=_least_axes(forward),
            inverse_min_event_ndims=_least_axes(backward),
            is_constant_jacobian=all(b.is_constant_jacobian for b in self._bijectors),
            validate_args=validate_args,
            dtype=kinds.pop() if kinds else None,
            name=(name or called).replace("/", ""),
        )

    bijectors = readonly("_bijectors", "The bijectors, the last applied first.")

    def _forward(self, x: Tensor, **condition: Any) -> Tensor:
        for b in reversed(self._bijectors):
            x = b.forward(x, **condition.get(b.name, {}))
        return x

    def _inverse(self, y: Tensor, **condition: Any) -> Tensor:
        for b in self._bijectors:
            y = b.inverse(y, **condition.get(b.name, {}))
        return y

    def _forward_log_det_jacobian(self, x: Tensor, **condition: Any) -> Tensor:
        total, axes = _none(x), self._forward_min_event_ndims or 0
        for b in reversed(self._bijectors):
            own = condition.get(b.name, {})
            total = total + b.forward_log_det_jacobian(x, axes, **own)
            x, axes = b.forward(x, **own), axes + b.inverse_min_event_ndims - b.forward_min_event_ndims
        return total

    def _inverse_log_det_jacobian(self, y: Tensor, **condition: Any) -> Tensor:
        total, axes = _none(y), self._inverse_min_event_ndims or 0
        for b in self._bijectors:
            own = condition.get(b.name, {})
            total = total + b.inverse_log_det_jacobian(y, axes, **own)
            y, axes = b.inverse(y, **own), axes + b.forward_min_event_ndims - b.inverse_min_event_ndims
        return total

    def _forward_event_shape(self, input_shape: Any) -> Any:
        for b in reversed(self._bijectors):
            input_shape = b.forward_event_shape(input_shape)
        return input_shape

    def _forward_event_shape_tensor(self, input_shape: Any) -> Any:
        for b in reversed(self._bijectors):
            input_shape = b.forward_event_shape_tensor(input_shape)
        return input_shape

    def _inverse_event_shape(self, output_shape: Any) -> Any:
        for b in self._bijectors:
            output_shape = b.inverse_event_shape(output_shape)
        return output_shape

    def _inverse_event_shape_tensor(self, output_shape: Any) -> Any:
        for b in self._bijectors:
            output_shape = b.inverse_event_shape_tensor(output_shape)
        return output_shape
