"""`tf.nondifferentiable_batch_function`: a function that computes the calls of several steps together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tensorfleet.api.functions.def_function import function
from tensorfleet.base.naming import export
from tensorfleet.graph.apply import apply_op
from tensorfleet.graph.functions import add_function
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.type_specs import TensorSpec

#: Makes a function of tensors one that computes the calls of several steps together.
_Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., list[Tensor]]]


@export("nondifferentiable_batch_function", "contrib.batching.batch_function")
def nondifferentiable_batch_function(
    num_batch_threads: int,
    max_batch_size: int,
    batch_timeout_micros: int,
    allowed_batch_sizes: Sequence[int] | None = None,
    max_enqueued_batches: int = 10,
    autograph: bool = True,
) -> _Decorator:
    """Decorator of a function of tensors whose calls, of steps that run at the same time, are joined along their rows.

    A batch is computed when it has `max_batch_size` rows, or `batch_timeout_micros` after its first call. It is filled up
    to one of `allowed_batch_sizes`, if there are any.
    """

    def decorate(fn: Callable[..., Any]) -> Callable[..., list[Tensor]]:
        def called(*args: Any) -> list[Tensor]:
            for given in args:
                if not isinstance(given, Tensor):
                    raise ValueError(
                        "All arguments to functions decorated with `batch_function`  are supposed to be Tensors; found "
                        f"{given!r}"
                    )
            # Rows of any number: the calls that are joined have different ones.
            specs = [TensorSpec([None, *t.shape[1:]] if t.shape.ndims else t.shape, t.dtype) for t in args]
            concrete = function(fn, autograph=autograph).get_concrete_function(*specs)
            add_function(concrete.graph)
            with name_scope("batch") as scope:
                op = apply_op(
                    "BatchFunction",
                    list(args),
                    concrete.captured_inputs,
                    f=concrete.name,
                    num_batch_threads=num_batch_threads,
                    max_batch_size=max_batch_size,
                    batch_timeout_micros=batch_timeout_micros,
                    allowed_batch_sizes=allowed_batch_sizes,
                    max_enqueued_batches=max_enqueued_batches,
                    shared_name=scope.rstrip("/"),
                    Tout=[t.dtype for t in concrete.outputs],
                    name=scope,
                )
            return list(op.outputs)

        return called

    return decorate
