"""The structure that a program has agreed on: names, shapes and types of the leaves of a pytree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorfleet.base.types import Array, Dims
from tensorfleet.fleet.jax_trees import PyTree, flatten, variable_name, written_path
from tensorfleet.fleet.library.arrays import kind_of, to_numpy


@dataclass(frozen=True)
class TreeLeaf:
    """One array of a tree."""

    name: str
    #: as Python writes the way to it: "['dense']['kernel']"
    path: str
    shape: Dims
    dtype: str

    @property
    def size(self) -> int:
        """Its bytes."""
        return int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize


class TreeLayout:
    """The leaves of a tree and how they are nested."""

    def __init__(self, owner: str, tree: PyTree) -> None:
        self.owner = owner
        found, self.structure = flatten(tree)
        if not found:
            raise ValueError(f"init of '{owner}' gave a tree without arrays: {tree!r}.")
        self.leaves: list[TreeLeaf] = []
        self.kinds: list[str] = []
        for path, value in found:
            shaped = hasattr(value, "shape") and hasattr(value, "dtype") and kind_of(value) != "torch"
            array = value if shaped else to_numpy(value, f"init of '{owner}': the leaf {written_path(path)}")
            name = variable_name(path)
            self.leaves.append(
                TreeLeaf(name, written_path(path), tuple(array.shape), np.dtype(array.dtype).name)
            )
            self.kinds.append(kind_of(value))

    def arrays(self, tree: PyTree, argument: str) -> list[Array]:
        """The arrays of a tree of this structure, or an error that names what differs."""
        found, structure = flatten(tree)
        if structure != self.structure:
            raise ValueError(self._other_structure(found, argument))
        result = []
        for leaf, (_, value) in zip(self.leaves, found, strict=True):
            label = f"{argument}{leaf.path} of '{self.owner}'"
            array = to_numpy(value, label)
            if array.shape != leaf.shape:
                raise ValueError(f"{label} has shape {list(array.shape)}, not {list(leaf.shape)}.")
            if array.dtype.name != leaf.dtype:
                raise TypeError(
                    f"{label} has the type {array.dtype.name}, not {leaf.dtype}: convert it with astype({leaf.dtype!r})."
                )
            result.append(array)
        return result

    def kinds_like(self, tree: PyTree) -> Sequence[str]:
        """The library of each array of a tree of this structure."""
        found, structure = flatten(tree)
        if structure != self.structure:
            raise ValueError(self._other_structure(found, "like"))
        return [kind_of(value) for _, value in found]

    def _other_structure(self, found: Sequence[tuple[Any, Any]], argument: str) -> str:
        given = {written_path(path) for path, _ in found}
        wanted = {leaf.path for leaf in self.leaves}
        parts = [
            f"{what} {', '.join(sorted(paths)[:4])}{' and more' if len(paths) > 4 else ''}"
            for what, paths in (("lacks", wanted - given), ("also has", given - wanted))
            if paths
        ]
        said = " and ".join(parts) or "nests them otherwise"
        return (
            f"{argument} does not have the structure of '{self.owner}': it {said}. Pass a tree like the one that init "
            "gave."
        )


def clean(name: str) -> str:
    """A name of parameters or of a table, which is also one in graphs; ValueError for any other."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9_.\-/]*", name):
        raise ValueError(
            f"name must be a text of letters, digits and any of _.-/ that begins with a letter or digit, not {name!r}."
        )
    return name
