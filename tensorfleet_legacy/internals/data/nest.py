"""`tensorflow.python.data.util.nest`: structures of datasets, where a list is an atom (it becomes one tensor)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tensorfleet.base import nest
from tensorfleet.base.naming import export
from tensorfleet.base.nest import _children, _like, same_kind
from tensorfleet.graph.sparse_tensor import SparseTensorValue

_HERE = "python.data.util.nest"


@export(f"{_HERE}.is_sequence")
def is_sequence(seq: Any) -> bool:
    """Whether something is a structure: tuples and dictionaries are, lists and sparse values are not."""
    return nest.is_nested(seq) and not isinstance(seq, (list, SparseTensorValue))


@export(f"{_HERE}.flatten")
def flatten(structure: Any) -> list:
    """The atoms of a structure, as one list."""
    if not is_sequence(structure):
        return [structure]
    return [atom for child in _children(structure) for atom in flatten(child)]


@export(f"{_HERE}.assert_same_structure")
def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """ValueError when two structures differ in shape, TypeError when they differ in their types."""
    head = f"The two structures don't have the same nested structure.\n\nFirst structure: {nest1}\n\nSecond structure: {nest2}"
    try:
        _assert_same(nest1, nest2, check_types)
    except (ValueError, TypeError) as e:
        raise type(e)(f"{head}\n\nMore specifically: {e}") from None


def _assert_same(a: Any, b: Any, check_types: bool) -> None:
    if not same_kind(a, b, is_sequence, check_types):
        return
    mine, theirs = _children(a), _children(b)
    if len(mine) != len(theirs):
        raise ValueError(
            f"The two structures don't have the same number of elements. First structure: {a}. Second structure: {b}"
        )
    for x, y in zip(mine, theirs, strict=True):
        _assert_same(x, y, check_types)


@export(f"{_HERE}.pack_sequence_as")
def pack_sequence_as(structure: Any, flat_sequence: Any) -> Any:
    """The atoms in `flat_sequence`, arranged like `structure`."""
    if not (is_sequence(flat_sequence) or isinstance(flat_sequence, list)):
        raise TypeError("flat_sequence must be a sequence")
    atoms = list(flat_sequence)
    if not is_sequence(structure):
        if len(atoms) != 1:
            raise ValueError(f"Structure is a scalar but len(flat_sequence) == {len(atoms)} > 1")
        return atoms[0]
    wanted = len(flatten(structure))
    if wanted != len(atoms):
        raise ValueError(
            f"Could not pack sequence. Structure had {wanted} elements, but flat_sequence had {len(atoms)} elements.  "
            f"Structure: {structure}, flat_sequence: {flat_sequence}."
        )
    return _pack(structure, iter(atoms))


def _pack(structure: Any, atoms: Iterator) -> Any:
    if not is_sequence(structure):
        return next(atoms)
    return _like(structure, [_pack(child, atoms) for child in _children(structure)])


@export(f"{_HERE}.map_structure")
def map_structure(func: Callable, *structure: Any, **check_types_dict: Any) -> Any:
    """Calls `func` with the atoms at each place of the structures; the results, arranged like the first."""
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    check_types = check_types_dict.pop("check_types", True)
    if check_types_dict:
        raise ValueError("Only valid keyword argument is check_types")
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types)
    results = [func(*atoms) for atoms in zip(*map(flatten, structure), strict=True)]
    return pack_sequence_as(structure[0], results)


@export(f"{_HERE}.assert_shallow_structure")
def assert_shallow_structure(shallow_tree: Any, input_tree: Any, check_types: bool = True) -> None:
    """An error when a structure is not another one whose atoms may have become structures."""
    if not is_sequence(shallow_tree):
        return
    if not is_sequence(input_tree):
        raise TypeError(
            f"If shallow structure is a sequence, input must also be a sequence. Input has type: {type(input_tree)}."
        )
    if check_types and not isinstance(input_tree, type(shallow_tree)):
        raise TypeError(
            f"The two structures don't have the same sequence type. Input structure has type {type(input_tree)}, while "
            f"shallow structure has type {type(shallow_tree)}."
        )
    if len(input_tree) != len(shallow_tree):
        raise ValueError(
            "The two structures don't have the same sequence length. Input structure has length "
            f"{len(input_tree)}, while shallow structure has length {len(shallow_tree)}."
        )
    if check_types and isinstance(shallow_tree, Mapping) and set(input_tree) != set(shallow_tree):
        raise ValueError(
            f"The two structures don't have the same keys. Input structure has keys {list(input_tree)}, while shallow "
            f"structure has keys {list(shallow_tree)}."
        )
    for shallow, inner in zip(_children(shallow_tree), _children(input_tree), strict=True):
        assert_shallow_structure(shallow, inner, check_types)


@export(f"{_HERE}.flatten_up_to")
def flatten_up_to(shallow_tree: Any, input_tree: Any) -> list:
    """The subtrees of `input_tree` at the atoms of `shallow_tree`, as one list."""
    assert_shallow_structure(shallow_tree, input_tree)
    return _up_to(shallow_tree, input_tree)


def _up_to(shallow: Any, tree: Any) -> list:
    if not is_sequence(shallow):
        return [tree]
    pairs = zip(_children(shallow), _children(tree), strict=True)
    return [part for s, t in pairs for part in _up_to(s, t)]


@export(f"{_HERE}.map_structure_up_to")
def map_structure_up_to(shallow_tree: Any, func: Callable, *inputs: Any) -> Any:
    """Calls `func` with what the inputs have at each atom of `shallow_tree`; the results, arranged like that."""
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    for tree in inputs:
        assert_shallow_structure(shallow_tree, tree)
    rows = zip(*(flatten_up_to(shallow_tree, tree) for tree in inputs), strict=True)
    return pack_sequence_as(shallow_tree, [func(*row) for row in rows])
