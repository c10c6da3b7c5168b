"""Kernels in their two lives, without an op around them."""

import jax
import jax.numpy as jnp
import numpy as np


def both_lives(kernel, *args, **attrs):
    """What a kernel gives in numpy, checked against what it gives under jit; both in 64 bits."""
    plain = kernel(np, *args, **attrs)
    dynamic = [i for i, a in enumerate(args) if isinstance(a, np.ndarray)]

    def traced(*values):
        full = list(args)
        for i, v in zip(dynamic, values, strict=True):
            full[i] = v
        return kernel(jnp, *full, **attrs)

    with jax.enable_x64(True):
        compiled = jax.jit(traced)(*(args[i] for i in dynamic))
    for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(compiled), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    return plain
