"""`tf.hessians`: second derivatives, row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorfleet.base.naming import export
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.gradients import gradients, listed
from tensorfleet.graph.scopes import name_scope

if TYPE_CHECKING:
    from tensorfleet.base.types import TensorLike
    from tensorfleet.graph.operation import Tensor


@export("hessians")
def hessians(
    ys: TensorLike,
    xs: TensorLike,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
) -> list[Tensor]:
    """The matrices of second derivatives of the sum of `ys` with respect to each of `xs`."""
    xs = listed(xs)
    options: dict[str, Any] = dict(
        colocate_gradients_with_ops=colocate_gradients_with_ops,
        gate_gradients=gate_gradients,
        aggregation_method=aggregation_method,
    )
    result = []
    for i, (g, x) in enumerate(zip(gradients(ys, xs, **options), xs, strict=True)):
        with name_scope(f"{name}_{i}" if i else name):
            value = to_tensor(x)
            size = value.shape.num_elements()
            if size is None:
                raise ValueError(
                    f"tf.hessians needs a fully known shape, but {value.name} has {value.shape}."
                )
            flat = apply("Reshape", g, [-1])
            rows = []
            for k in range(size):
                element = apply("Reshape", apply("Slice", flat, [k], [1]), [])
                row = gradients(element, [x], **options)[0]
                if row is None:
                    raise ValueError(f"None values not supported: the gradient by {value.name} is constant.")
                rows.append(row)
            dims = value.shape.as_list()
            result.append(apply("Reshape", apply("Pack", rows), [*dims, *dims]))
    return result
