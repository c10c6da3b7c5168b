"""JAX with the array type of kernels, for the code that only XLA traces.

Import it inside the function that needs it: JAX takes most of a second to load, and a program that compiles nothing
never needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import jax.lax
import jax.numpy

if TYPE_CHECKING:
    from tensorfleet.base.types import Array, ArrayFunctions, ArrayModule

jnp: ArrayModule = jax.numpy
lax: ArrayFunctions = jax.lax
vmap: Callable[..., Callable[..., Array]] = jax.vmap


def at(array: Array, index: object) -> ArrayFunctions:
    """The updates of a traced array at an index: `at(x, i).add(y)` is the new array, since `x` cannot change."""
    updates: ArrayFunctions = array.at[index]  # type: ignore[attr-defined] # arrays of NumPy have it not
    return updates
