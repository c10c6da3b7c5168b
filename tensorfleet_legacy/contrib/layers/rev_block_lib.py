"""`tf.contrib.layers`: layers that need not keep what is inside of them for their gradients.

What is inside is computed again: from the inputs (`recompute_grad`), or, where a layer can be reversed, from
its outputs (`rev_block`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tensorfleet.api.layers.base import Layer
from tensorfleet.api.variables.base import Variable
from tensorfleet.api.variables.scope import get_variable_scope, variable_scope
from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies

_DEFAULT = "__rev_block_lib_default"


def _listed(value: Any) -> list:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _gradients(outputs: Any, sources: list, grads: list) -> list[Tensor]:
    """Gradients, zero where there are none."""
    result = find("gradients")(outputs, sources, grads)
    pairs = zip(result, sources, strict=True)
    return [find("zeros_like")(s) if g is None else find("convert_to_tensor")(g) for g, s in pairs]


def _with_options(decorate: Callable) -> Callable:
    """A decorator that is used as it is, or called with its options first."""

    @functools.wraps(decorate)
    def called(*args: Any, **options: Any) -> Callable:
        if args or "fn" in options:
            return decorate(*args, **options)
        return functools.partial(decorate, **options)

    return called


@_with_options
def recompute_grad(fn: Callable, use_data_dep: Any = _DEFAULT, tupleize_grads: bool = False) -> Callable:
    """A function that computes the same as `fn`, and computes it again for its gradient; decorates, with options or not.

    `fn` takes tensors, and makes its variables with `tf.get_variable`. If it has an argument `is_recomputing`, that
    tells it the second time from the first.
    """
    _check_closure(fn)
    takes_flag = "is_recomputing" in inspect.signature(fn).parameters

    @functools.wraps(fn)
    def recomputed(*args: Any) -> Any:
        if not all(isinstance(a, Tensor) for a in args):
            raise ValueError("All inputs to function must be Tensors")
        scope = get_variable_scope()

        def compute(*inputs: Tensor) -> Any:
            def again(*grads: Tensor, variables: Any = ()) -> Any:
                used: list = []
                with (
                    control_dependencies(grads),
                    variable_scope(scope, reuse=True, use_resource=True, custom_getter=_noting(used)),
                ):
                    fresh = [find("identity")(x) for x in inputs]
                    output = _listed(fn(*fresh, **({"is_recomputing": True} if takes_flag else {})))
                _check_same(variables, used)
                result = _gradients(output, [*fresh, *variables], list(grads))
                result = list(find("tuple")(result)) if tupleize_grads else result
                return (result[: len(fresh)], result[len(fresh) :]) if variables else result

            with _with_resources(scope):
                return fn(*inputs, **({"is_recomputing": False} if takes_flag else {})), again

        return find("custom_gradient")(compute)(*args)

    return recomputed


def _check_closure(fn: Callable) -> None:
    """Raises ValueError for a function that captures tensors: they would get no gradient through it."""
    for name, value in inspect.getclosurevars(fn).nonlocals.items():
        if isinstance(value, (Tensor, Variable)):
            raise ValueError(
                f"fn decorated with @recompute_grad closes over Tensor {value.name} (local variable name: {name}). The "
                "decorated fn must not close over Tensors or Variables because gradients will NOT be computed for them "
                "through fn. To ensure correct gradients, make the Tensor an input to fn."
            )


def _noting(used: list) -> Callable:
    """A getter of variables that keeps a list of them."""

    def noting(getter: Callable, *args: Any, **kwargs: Any) -> Any:
        used.append(getter(*args, **kwargs))
        return used[-1]

    return noting


def _check_same(variables: Any, used: list) -> None:
    missed = {v.name for v in variables} - {v.name for v in used}
    if missed:
        raise ValueError(
            f"Computing a function again did not use its variables {sorted(missed)}. A function decorated with "
            "@recompute_grad may not be called twice in the same enclosing scope: put each call into a variable scope."
        )


@contextmanager
def _with_resources(scope: Any) -> Iterator[None]:
    """Makes resource variables, which is what custom gradients are for, without entering the scope once more."""
    before = scope.use_resource
    scope.set_use_resource(True)
    try:
        yield
    finally:
        scope.set_use_resource(before)


class RevBlock(Layer):
    """Layers `y1 = x1 + f(x2)`, `y2 = x2 + g(y1)`, whose inputs are found from their outputs (Gomez et al. 2017)."""

    f: list[Callable]
    g: list[Callable]

    def __init__(
        self,
        f: Any,
        g: Any,
        num_layers: int = 1,
        f_side_input: Any = None,
        g_side_input: Any = None,
        use_efficient_backprop: bool = True,
        name: str = "revblock",
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.num_layers, self._efficient = num_layers, use_efficient_backprop
        self.f_side_input, self.g_side_input = list(f_side_input or []), list(g_side_input or [])
        for part, functions in (("f", f), ("g", g)):
            each = functions if isinstance(functions, list) else [functions] * num_layers
            if len(each) != num_layers:
                raise ValueError(
                    f"{part} has {len(each)} functions for {num_layers} layers: give one for each."
                )
            setattr(self, part, [_inside(fn, f"revlayer_{i}/{part}") for i, fn in enumerate(each)])

    def build(self, input_shape: Any) -> None:
        self.built = True

    def call(self, inputs: Any, forward: bool = True) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """The outputs of the layers; with `forward=False`, the inputs of given outputs."""
        known = {id(v) for v in find("global_variables")()}
        result = self._outputs(*inputs) if forward else self._inputs_of(*inputs)
        for variable in find("global_variables")():
            if id(variable) not in known:
                trained = getattr(variable, "trainable", False)
                (self._trainable_weights if trained else self._non_trainable_weights).append(variable)
        return result

    def forward(self, x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
        """The outputs of the last layer."""
        return self.apply([x1, x2])

    def backward(self, y1: Any, y2: Any) -> tuple[Tensor, Tensor]:
        """The inputs of the first layer from the outputs of the last."""
        return self.apply([y1, y2], forward=False)

    def _outputs(self, x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
        count, sides = len(self.f_side_input), [*self.f_side_input, *self.g_side_input]
        if not self._efficient:
            return self._through(x1, x2, self.f_side_input, self.g_side_input)
        scope = get_variable_scope()

        def compute(x1: Tensor, x2: Tensor, *given: Tensor) -> Any:
            at_f, at_g = list(given[:count]), list(given[count:])
            outputs = self._through(x1, x2, at_f, at_g)

            def again(*grads: Tensor, variables: Any = ()) -> Any:
                with control_dependencies(grads), variable_scope(scope, reuse=True):
                    result = self._gradients_of(outputs, grads, at_f, at_g, list(variables))
                return (result[: 2 + len(sides)], result[2 + len(sides) :]) if variables else result

            return outputs, again

        return find("custom_gradient")(compute)(x1, x2, *sides)

    def _through(self, x1: Tensor, x2: Tensor, at_f: list, at_g: list) -> tuple[Tensor, Tensor]:
        for f, g in zip(self.f, self.g, strict=True):
            x1 = x1 + f(x2, at_f)
            x2 = x2 + g(x1, at_g)
        return x1, x2

    def _inputs_of(self, y1: Tensor, y2: Tensor) -> tuple[Tensor, Tensor]:
        for f, g in reversed(list(zip(self.f, self.g, strict=True))):
            y2 = y2 - g(y1, self.g_side_input)
            y1 = y1 - f(y2, self.f_side_input)
        return y1, y2

    def _gradients_of(
        self, outputs: Any, grads: Any, at_f: list, at_g: list, variables: list
    ) -> list[Tensor]:
        """The gradients of both inputs, of what `f` and `g` take besides, and of variables."""
        (y1, y2), (d1, d2) = (list(map(find("identity"), pair)) for pair in (outputs, grads))
        sums = [find("zeros_like")(s) for s in (*at_f, *at_g, *variables)]
        places = {"f": [*range(len(at_f))], "g": [*range(len(at_f), len(at_f) + len(at_g))]}
        behind = [*range(len(at_f) + len(at_g), len(sums))]

        def step(which: str, function: Callable, x: Tensor, side: list, dy: Tensor) -> tuple[Tensor, Tensor]:
            x = find("stop_gradient")(x)
            output = function(x, side)
            slope, *rest = _gradients(output, [x, *side, *variables], [dy])
            for place, more in zip([*places[which], *behind], rest, strict=True):
                sums[place] = sums[place] + more
            return output, slope

        for f, g in reversed(list(zip(self.f, self.g, strict=True))):
            result, slope = step("g", g, y1, at_g, d2)
            y2, d1 = y2 - result, d1 + slope
            result, slope = step("f", f, y2, at_f, d1)
            y1, d2 = y1 - result, d2 + slope
        return [d1, d2, *sums]


def _inside(function: Callable, scope: str) -> Callable:
    """A function of x and a list of other inputs whose variables are in a scope."""

    def call(x: Tensor, side: list) -> Tensor:
        with variable_scope(scope, use_resource=True):
            return function(x, side) if side else function(x)

    return call


def rev_block(
    x1: Any,
    x2: Any,
    f: Any,
    g: Any,
    num_layers: int = 1,
    f_side_input: Any = None,
    g_side_input: Any = None,
    is_training: bool = True,
) -> tuple[Tensor, Tensor]:
    """The function of `RevBlock`."""
    block = RevBlock(
        f, g, num_layers, f_side_input, g_side_input, is_training, _reuse=get_variable_scope().reuse
    )
    return block.forward(x1, x2)
