"""The optimizer's programs for a set of parameters, and which server keeps which part of its state."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tensorfleet.base import logging
from tensorfleet.base.types import Array, Dims
from tensorfleet.fleet.jax_trees import flatten, unflatten, variable_name
from tensorfleet.fleet.library import phases
from tensorfleet.fleet.library.division import Piece, divide
from tensorfleet.fleet.library.phases import SHARED, Flow, Home, Inseparable, Phases
from tensorfleet.fleet.library.trees import TreeLayout
from tensorfleet.runtime.devices import load_jax


@dataclass(frozen=True)
class Kept:
    """One array that a server keeps as a variable."""

    name: str
    shape: Dims
    dtype: str
    #: a server, or SHARED: every server has it
    home: Home


@dataclass(frozen=True)
class Pack:
    """Gradients of some pieces in one vector."""

    server: int
    dtype: str
    pieces: tuple[int, ...]
    shapes: tuple[Dims, ...]

    @property
    def size(self) -> int:
        """Its elements."""
        return sum(math.prod(shape) for shape in self.shapes)

    def unpacked(self, vector: Any) -> list[Any]:
        """The gradients of the pieces."""
        ends = list(itertools.accumulate(math.prod(shape) for shape in self.shapes))
        begins = [0, *ends[:-1]]
        return [
            vector[begin:end].reshape(shape)
            for begin, end, shape in zip(begins, ends, self.shapes, strict=True)
        ]


class Update:
    """How gradients change the parameters of a layout and the state of an optimizer, on so many servers."""

    def __init__(self, name: str, layout: TreeLayout, optimizer: Any, servers: int) -> None:
        load_jax()
        self.name, self.layout, self._optimizer = name, layout, optimizer
        #: whether JAX needs its 64-bit types for the update
        self.is_wide = any(np.dtype(leaf.dtype).itemsize == 8 for leaf in layout.leaves)
        shapes = [leaf.shape for leaf in layout.leaves]
        sizes = [leaf.size for leaf in layout.leaves]
        whole = [Piece(i, 0, s[0] if s else 1, 0, False) for i, s in enumerate(shapes)]
        self._take(whole)
        if servers > 1:
            may_split = phases.splittable(
                self.flow, [*self._leaf_of(), *self._leaf_of(), *self._state_leaf_of()]
            )
            self._take(divide(shapes, sizes, servers, may_split))
        try:
            self.phases = self._phases()
        except Inseparable as e:
            logging.warning(
                "The optimizer of '%s' cannot run in parts: %s. All of its parameters go to the first server.",
                name,
                e,
            )
            self._take(whole)
            self.phases = self._phases()

    def _take(self, pieces: list[Piece]) -> None:
        self.pieces = pieces
        self._tree = self._nested(list(range(len(pieces))))
        self.parameters = [self._kept(piece) for piece in pieces]
        self._trace()

    def _nested(self, values: Sequence[Any]) -> Any:
        """A tree like that of the user, with a tuple of pieces for an array that is split."""
        leaves: list[Any] = [[] for _ in self.layout.leaves]
        for piece, value in zip(self.pieces, values, strict=True):
            leaves[piece.leaf].append(value)
        split = {piece.leaf for piece in self.pieces if piece.is_part}
        return unflatten(
            self.layout.structure, [tuple(v) if i in split else v[0] for i, v in enumerate(leaves)]
        )

    def _kept(self, piece: Piece) -> Kept:
        leaf = self.layout.leaves[piece.leaf]
        number = [p.begin for p in self.pieces if p.leaf == piece.leaf].index(piece.begin)
        part = f"/part_{number}" if piece.is_part else ""
        shape = (piece.end - piece.begin, *leaf.shape[1:]) if leaf.shape else ()
        name = f"{self.name}/{leaf.name}" if leaf.name else self.name
        return Kept(f"{name}{part}", shape, leaf.dtype, piece.server)

    def _trace(self) -> None:
        import optax

        jax, _ = load_jax()
        count, optimizer = len(self.pieces), self._optimizer
        with jax.enable_x64(self.is_wide):
            arrays = [jax.ShapeDtypeStruct(kept.shape, np.dtype(kept.dtype)) for kept in self.parameters]
        with jax.enable_x64(self.is_wide):
            state = jax.eval_shape(optimizer.init, self._nested(arrays))
        found, structure = flatten(state)
        numbered = unflatten(structure, list(range(len(found))))
        owners = optax.tree_utils.tree_map_params(
            optimizer,
            lambda _, piece: piece,
            numbered,
            self._tree,
            transform_non_params=lambda _: SHARED,
        )
        self._owners: list[int] = jax.tree_util.tree_leaves(owners)
        self.state = [
            Kept(
                f"{self.name}/optimizer/{variable_name(path)}",
                tuple(leaf.shape),
                np.dtype(leaf.dtype).name,
                SHARED if owner == SHARED else self.pieces[owner].server,
            )
            for (path, leaf), owner in zip(found, self._owners, strict=True)
        ]

        def update(*values: Any) -> list[Any]:
            gradients, parameters, kept = values[:count], values[count : 2 * count], values[2 * count :]
            tree = self._nested(parameters)
            steps, new = optimizer.update(self._nested(gradients), unflatten(structure, kept), tree)
            changed = jax.tree_util.tree_leaves(optax.apply_updates(tree, steps))
            return [*changed, *jax.tree_util.tree_leaves(new)]

        with jax.enable_x64(self.is_wide):
            self.flow: Flow = phases.trace(update, [*arrays, *arrays, *(leaf for _, leaf in found)])

    def _leaf_of(self) -> list[int | None]:
        return [piece.leaf for piece in self.pieces]

    def _state_leaf_of(self) -> list[int | None]:
        return [None if owner == SHARED else self.pieces[owner].leaf for owner in self._owners]

    def _phases(self) -> Phases:
        of_pieces = [piece.server for piece in self.pieces]
        of_state = [kept.home for kept in self.state]
        return Phases(self.flow, [*of_pieces, *of_pieces, *of_state], [*of_pieces, *of_state])

    @cached_property
    def servers(self) -> list[int]:
        """The servers that have a part."""
        return sorted({piece.server for piece in self.pieces})

    @cached_property
    def packs(self) -> list[Pack]:
        """The gradients as they are sent: those of one type for one server in a row."""
        of: dict[tuple[int, str], list[int]] = {}
        for i, kept in enumerate(self.parameters):
            of.setdefault((kept.home, kept.dtype), []).append(i)
        return [
            Pack(server, dtype, tuple(pieces), tuple(self.parameters[i].shape for i in pieces))
            for (server, dtype), pieces in of.items()
        ]

    def packed(self, arrays: Sequence[Array]) -> list[Array]:
        """The packs of the gradients of all arrays."""
        parts = self.cut(arrays)
        return [np.concatenate([parts[i].reshape(-1) for i in pack.pieces]) for pack in self.packs]

    @cached_property
    def digest(self) -> str:
        """Tells apart what different optimizers do."""
        text = str(self.flow.closed.jaxpr).encode()
        consts = [np.asarray(c).tobytes() for c in self.flow.closed.consts]
        return hashlib.sha256(b"".join([text, *consts])).hexdigest()[:16]

    def initial(self, tree: Any) -> list[Array]:
        """The values of all parameters and of the state when training begins."""
        jax, jnp = load_jax()
        parts = self.cut(self.layout.arrays(tree, "init"))
        with jax.enable_x64(self.is_wide):
            state = self._optimizer.init(self._nested([jnp.asarray(part) for part in parts]))
        return [*parts, *(np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(state))]

    def cut(self, arrays: Sequence[Array]) -> list[Array]:
        """The pieces of arrays."""
        return [arrays[p.leaf][p.begin : p.end] if p.is_part else arrays[p.leaf] for p in self.pieces]

    def joined(self, parts: Sequence[Array]) -> list[Array]:
        """The arrays that pieces are of."""
        of: list[list[Array]] = [[] for _ in self.layout.leaves]
        for piece, part in zip(self.pieces, parts, strict=True):
            of[piece.leaf].append(part)
        return [some[0] if len(some) == 1 else np.concatenate(some) for some in of]
