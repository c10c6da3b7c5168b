"""The default gradient: the vector-Jacobian product of an op's own kernel, as an op of its own.

Every pure op differentiates through this without further code; XLA shares the forward work with the
forward op in the same segment.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tensorfleet.base.types import Array, ArrayModule
from tensorfleet.graph.kernels import Kernel
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import op


def _differentiable(tensor: Tensor) -> bool:
    return tensor.dtype.base_dtype.is_floating or tensor.dtype.base_dtype.is_complex


@op(
    "FleetVjp",
    "inputs: list(Tin), grads: list(Tgrad) -> output: list(Tout)",
    "Tin: list(type); Tgrad: list(type); Tout: list(type); forward: string",
    shape=lambda op: [t.shape for t in op._inputs[: len(op._attrs["Tin"])] if _differentiable(t)],
    heavy=True,
)
def _vjp(xp: ArrayModule, inputs: list[Array], grads: list[Array], *, op: Operation) -> tuple[Array, ...]:
    import jax
    import jax.numpy as jnp

    forward = op.graph.get_operation_by_name(op._attrs["forward"].decode())
    kernel = Kernel(forward)
    moving = [i for i, t in enumerate(forward._inputs) if _differentiable(t)]

    def run(*values: Array) -> list[Array]:
        full = list(inputs)
        for i, v in zip(moving, values, strict=True):
            full[i] = v
        results = kernel.call(jnp, full, check=lambda *args: None)
        return [r for r, t in zip(results, forward._outputs, strict=True) if _differentiable(t)]

    def pull() -> Sequence[Array]:
        _, back = jax.vjp(run, *[jnp.asarray(inputs[i]) for i in moving])
        moved: Sequence[Array] = back([jnp.asarray(g) for g in grads])
        return moved

    if xp is not np:
        return tuple(pull())
    # Concrete values stay concrete, also inside a trace, and doubles double, also before anything was compiled.
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        return tuple(np.asarray(g) for g in pull())
