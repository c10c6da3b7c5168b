"""Trees of JAX (pytrees) whose leaves are tensors or variables: their leaves, with the names people know them by."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tensorfleet.runtime.devices import load_jax

#: nested structures of JAX: dictionaries, lists, tuples, modules, and classes registered with it
PyTree: TypeAlias = Any
#: the way to a leaf, as `jax.tree_util` gives it
Path: TypeAlias = "Sequence[Any]"


def flatten(tree: PyTree) -> tuple[list[tuple[Path, Any]], Any]:
    """The leaves of a tree, each with its path, and its structure."""
    jax, _ = load_jax()
    leaves, structure = jax.tree_util.tree_flatten_with_path(tree)
    return [(path, leaf) for path, leaf in leaves], structure


def unflatten(structure: Any, leaves: Sequence[Any]) -> PyTree:
    """A tree of this structure."""
    jax, _ = load_jax()
    return jax.tree_util.tree_unflatten(structure, leaves)


def map_leaves(function: Callable[[str, Any], Any], tree: PyTree) -> PyTree:
    """The tree with `function(name, leaf)` in the place of each leaf."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [function(variable_name(path), leaf) for path, leaf in leaves])


def written_path(path: Path) -> str:
    """A path as Python writes it: "['dense'].kernel"."""
    jax, _ = load_jax()
    text: str = jax.tree_util.keystr(tuple(path))
    return text


def variable_name(path: Path) -> str:
    """A path as a variable is named: "dense/kernel"."""
    parts = [re.sub(r"[^A-Za-z0-9_.\-/]+", "_", str(_key(entry))) for entry in path]
    named = "/".join(part.strip("/") for part in parts)
    return re.sub(r"/_?/+", "/", re.sub(r"(^|/)_(?=/)", r"\1", named)).strip("/")


def _key(entry: Any) -> Any:
    """The name or number in an entry of a path."""
    for field in ("key", "idx", "name"):
        if hasattr(entry, field):
            return getattr(entry, field)
    return entry
