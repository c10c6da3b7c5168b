"""The parameters of JAX models (Flax, Haiku, Equinox) as variables, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.api.train.checkpoint_reader import NewCheckpointReader
from tensorfleet.api.variables.scope import get_variable, variable_scope
from tensorfleet.api.variables.variable import Variable
from tensorfleet.base.naming import export
from tensorfleet.fleet.jax_trees import Path, PyTree, flatten, unflatten, variable_name, written_path
from tensorfleet.runtime.devices import load_jax

if TYPE_CHECKING:
    from tensorfleet.session.session import BaseSession


@export("fleet.jax_variables")
def jax_variables(params: PyTree, name: str = "params", trainable: bool = True) -> PyTree:
    """A variable for each array of a tree of parameters, which it starts as; the result has the same structure.

    A variable has the name of its path: "params/Dense_0/kernel". Variables are made by `tf.get_variable`: they are where
    `tf.device` or a `replica_device_setter` puts them, a variable scope may reuse them, and a `tf.train.Saver` saves them.
    Pass the tree to a `tf.fleet.jax_op` as the parameters. Whole numbers are never trained.
    """
    leaves, structure = flatten(params)
    _check_names(leaves)
    made = []
    with variable_scope(name):
        for path, leaf in leaves:
            array = _as_array(path, leaf)
            floating = trainable and (array.dtype.kind in "fc" or array.dtype.name == "bfloat16")
            variable: Variable = get_variable(
                variable_name(path) or "value", initializer=array, trainable=floating
            )
            made.append(variable)
    return unflatten(structure, made)


@export("fleet.jax_values")
def jax_values(tree: PyTree, session: BaseSession) -> PyTree:
    """The values of a tree of variables or tensors, as a tree of NumPy arrays."""
    leaves, structure = flatten(tree)
    return unflatten(structure, session.run([leaf for _, leaf in leaves]))


@export("fleet.jax_from_checkpoint")
def jax_from_checkpoint(path: str, params: PyTree, name: str = "params") -> PyTree:
    """The values of `jax_variables(params, name)` in a checkpoint, as a tree of NumPy arrays.

    `params` is any tree of the same structure and shapes: arrays, `jax.ShapeDtypeStruct`s or variables.
    """
    reader: Any = NewCheckpointReader(path)
    saved = reader.get_variable_to_shape_map()
    leaves, structure = flatten(params)
    _check_names(leaves)
    values = []
    for leaf_path, leaf in leaves:
        key = f"{name}/{variable_name(leaf_path) or 'value'}"
        if key not in saved:
            others = ", ".join(sorted(k for k in saved if k.startswith(f"{name}/"))[:8]) or "nothing"
            raise ValueError(
                f"The checkpoint {path} has no {key!r}, the parameter params{written_path(leaf_path)}. Under "
                f"'{name}/' it has {others}. Pass a tree with the structure of the one that was saved."
            )
        wanted = tuple(int(d) for d in leaf.shape)
        if tuple(saved[key]) != wanted:
            raise ValueError(
                f"{key!r} in the checkpoint {path} has shape {list(saved[key])}; params{written_path(leaf_path)} has "
                f"{list(wanted)}. Pass a tree with the shapes of the one that was saved."
            )
        values.append(reader.get_tensor(key))
    return unflatten(structure, values)


def _check_names(leaves: Sequence[tuple[Path, Any]]) -> None:
    """Refuses trees in which two leaves would be one variable."""
    known: dict[str, Path] = {}
    for path, _ in leaves:
        first = known.setdefault(variable_name(path), path)
        if first is not path:
            raise ValueError(
                f"params{written_path(first)} and params{written_path(path)} would both be the variable "
                f"{variable_name(path)!r}. Rename one of them."
            )


def _as_array(path: Path, leaf: object) -> np.ndarray[Any, Any]:
    jax, _ = load_jax()
    where = f"params{written_path(path)}"
    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        raise TypeError(f"{where} is a typed key of JAX. Keep jax.random.key_data(key) in its place.")
    array = None if callable(leaf) or isinstance(leaf, (str, bytes, Variable)) else np.asarray(leaf)
    if array is None or array.dtype.kind == "O":
        raise TypeError(
            f"{where} is {leaf!r}, which is no array. Pass the arrays of a model alone, such as "
            "eqx.partition(model, eqx.is_array)[0]."
        )
    return array
