"""`tf.custom_gradient`: functions that bring their gradients along."""

from __future__ import annotations

import functools
from typing import Any

from tensorfleet.api import export
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.gradients import listed
from tensorfleet.graph.operation import Operation


@export("custom_gradient")
def custom_gradient(f: Any) -> Any:
    """Decorator: `f` returns its result and the function that computes its gradient."""

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            raise ValueError(
                "The custom_gradient decorator currently supports keywords arguments only when eager execution is enabled."
            )
        inputs = [apply("Identity", to_tensor(a)) for a in args]
        result, grad_fn = f(*inputs)
        flat = listed(result)
        single = not isinstance(result, (list, tuple))
        outputs = apply("IdentityN", [*[to_tensor(r) for r in flat], *inputs])
        count = len(flat)

        def gradient(op: Operation, *grads: Any) -> list:
            found = listed(grad_fn(*grads[:count]))
            if len(found) != len(inputs):
                raise ValueError(
                    f"The gradient function of {f.__name__} gave {len(found)} gradients for {len(inputs)} inputs."
                )
            return [None] * count + found

        outputs[0]._op._gradient_function = gradient
        results = outputs[:count]
        return results[0] if single else type(result)(results)

    return wrapped
