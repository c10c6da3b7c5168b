"""Walking two structures at once, of which one may be shallower: the rest of `tensorflow.python.util.nest`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tensorfleet.base import nest
from tensorfleet.base.naming import export, publish
from tensorfleet.base.nest import _children, _like, _sorted_keys, is_nested


def _names(*names: str) -> Any:
    return export(
        *(f"{place}.{n}" for n in names for place in ("python.util.nest", "contrib.framework.nest"))
    )


_LENGTHS = (
    "The two structures don't have the same sequence length. Input structure has length {input_length}, while shallow "
    "structure has length {shallow_length}."
)
_TYPES = (
    "The two structures don't have the same sequence type. Input structure has type {input_type}, while shallow "
    "structure has type {shallow_type}."
)
_NO_SUBSET = (
    "The shallow_tree's keys are not a subset of the input_tree's keys. The shallow_tree has the following keys that "
    "are not in the input_tree: {}."
)
_NO_SEQUENCE = "If shallow structure is a sequence, input must also be a sequence. Input has type: {}."
for _text, _name in (
    (_LENGTHS, "_STRUCTURES_HAVE_MISMATCHING_LENGTHS"),
    (_TYPES, "_STRUCTURES_HAVE_MISMATCHING_TYPES"),
    (_NO_SUBSET, "_SHALLOW_TREE_HAS_INVALID_KEYS"),
    (_NO_SEQUENCE, "_IF_SHALLOW_IS_SEQ_INPUT_MUST_BE_SEQ"),
):
    publish(_text, f"python.util.nest.{_name}")


@export("python.util.nest._is_attrs")
def is_attrs(instance: Any) -> bool:
    """Whether a value is an instance of a class that attrs made."""
    return hasattr(type(instance), "__attrs_attrs__")


@export("python.util.nest._is_mapping")
def is_mapping(instance: Any) -> bool:
    """Whether a value is a dictionary of some kind."""
    return isinstance(instance, Mapping)


@export("python.util.nest._is_namedtuple")
def is_namedtuple(instance: Any, strict: bool = False) -> bool:
    """Whether a value is a named tuple."""
    return (
        isinstance(instance, tuple)
        and hasattr(instance, "_fields")
        and (not strict or type(instance).__base__ is tuple)
    )


def _is_open(structure: Any, expand: bool) -> bool:
    """Whether something has children: a structure, or a value of several tensors where those are expanded."""
    return is_nested(structure) or (expand and nest._is_composite(structure))


def _within(structure: Any) -> list:
    """The children; of a value of several tensors, what it is made of is the only one."""
    if is_nested(structure):
        return _children(structure)
    spec = nest._spec_of(structure)
    return [nest._parts(structure) if spec is None else spec._to_components(structure)]


def _keys(structure: Any) -> list:
    """The path to each child."""
    if not is_nested(structure):
        return [type(structure).__name__]
    if isinstance(structure, Mapping):
        return _sorted_keys(structure)
    fields = getattr(structure, "_fields", None)
    return list(fields) if fields is not None else list(range(len(_children(structure))))


@_names("assert_shallow_structure")
def assert_shallow_structure(
    shallow_tree: Any,
    input_tree: Any,
    check_types: bool = True,
    expand_composites: bool = False,
    check_subtrees_length: bool = True,
) -> None:
    """Raises unless one structure is like the top of another."""
    if not _is_open(shallow_tree, expand_composites):
        return
    if not _is_open(input_tree, expand_composites):
        raise TypeError(_NO_SEQUENCE.format(type(input_tree)))
    if not is_nested(shallow_tree) or not is_nested(input_tree):
        return _assert_shallow_composites(shallow_tree, input_tree, check_types)
    both = isinstance(shallow_tree, Mapping) and isinstance(input_tree, Mapping)
    if check_types and not both and not nest._same_type(shallow_tree, input_tree):
        raise TypeError(_TYPES.format(input_type=type(input_tree), shallow_type=type(shallow_tree)))
    if check_subtrees_length and len(input_tree) != len(shallow_tree):
        raise ValueError(_LENGTHS.format(input_length=len(input_tree), shallow_length=len(shallow_tree)))
    if both and not set(shallow_tree) <= set(input_tree):
        raise ValueError(_NO_SUBSET.format(sorted(set(shallow_tree) - set(input_tree))))
    for mine, theirs in _pairs(shallow_tree, input_tree):
        assert_shallow_structure(mine, theirs, check_types, expand_composites, check_subtrees_length)


def _assert_shallow_composites(shallow: Any, tree: Any, check_types: bool) -> None:
    if is_nested(shallow) or is_nested(tree) or (check_types and type(shallow) is not type(tree)):
        raise TypeError(_TYPES.format(input_type=type(tree), shallow_type=type(shallow)))
    specs = nest._spec_of(shallow), nest._spec_of(tree)
    if None not in specs:
        specs[0].most_specific_compatible_type(specs[1])
    assert_shallow_structure(_within(shallow), _within(tree), check_types, True)


def _pairs(shallow: Any, tree: Any) -> list[tuple]:
    """The children of one structure with those of another; what only the other has is left out."""
    if isinstance(shallow, Mapping) and isinstance(tree, Mapping):
        return [(child, tree[key]) for key, child in zip(_keys(shallow), _within(shallow), strict=True)]
    return list(zip(_within(shallow), _within(tree), strict=False))


def _up_to(shallow: Any, tree: Any, expand: bool = False) -> list:
    if not _is_open(shallow, expand):
        return [tree]
    return [a for s, t in _pairs(shallow, tree) for a in _up_to(s, t, expand)]


@_names("flatten_up_to")
def flatten_up_to(
    shallow_tree: Any,
    input_tree: Any,
    check_types: bool = True,
    expand_composites: bool = False,
    check_subtrees_length: bool = True,
) -> list:
    """The parts of a structure where a shallower one has its atoms."""
    assert_shallow_structure(shallow_tree, input_tree, check_types, expand_composites, check_subtrees_length)
    return _up_to(shallow_tree, input_tree, expand_composites)


@_names("map_structure_up_to")
def map_structure_up_to(shallow_tree: Any, func: Callable, *inputs: Any, **kwargs: Any) -> Any:
    """Calls `func` with the parts of the structures where a shallower one has its atoms."""
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    parts = [flatten_up_to(shallow_tree, each, **kwargs) for each in inputs]
    results = [func(*each) for each in zip(*parts, strict=True)]
    return nest.pack_sequence_as(shallow_tree, results, kwargs.get("expand_composites", False))


def _paths(structure: Any, expand: bool = False, path: tuple = ()) -> Iterator[tuple]:
    if not _is_open(structure, expand):
        yield path
        return
    for key, child in zip(_keys(structure), _within(structure), strict=True):
        yield from _paths(child, expand, (*path, key))


@_names("yield_flattened_paths", "yield_flat_paths")
def yield_flattened_paths(structure: Any, expand_composites: bool = False) -> Iterator[tuple]:
    """The way to each atom, as a tuple of keys."""
    return _paths(structure, expand_composites)


@_names("flatten_with_tuple_paths")
def flatten_with_tuple_paths(structure: Any, expand_composites: bool = False) -> list[tuple]:
    """Each atom behind the way to it."""
    return list(
        zip(_paths(structure, expand_composites), nest.flatten(structure, expand_composites), strict=True)
    )


@_names("flatten_with_joined_string_paths")
def flatten_with_joined_string_paths(
    structure: Any, separator: str = "/", expand_composites: bool = False
) -> list[tuple]:
    """Each atom behind the way to it, as one string."""
    result = flatten_with_tuple_paths(structure, expand_composites)
    return [(separator.join(map(str, path)), atom) for path, atom in result]


@_names("flatten_with_tuple_paths_up_to")
def flatten_with_tuple_paths_up_to(
    shallow_tree: Any,
    input_tree: Any,
    check_types: bool = True,
    expand_composites: bool = False,
    check_subtrees_length: bool = True,
) -> list[tuple]:
    """The parts of a structure where a shallower one has its atoms, each behind the way to it."""
    parts = flatten_up_to(shallow_tree, input_tree, check_types, expand_composites, check_subtrees_length)
    return list(zip(_paths(shallow_tree, expand_composites), parts, strict=True))


@_names("map_structure_with_tuple_paths_up_to")
def map_structure_with_tuple_paths_up_to(
    shallow_tree: Any, func: Callable, *inputs: Any, **kwargs: Any
) -> Any:
    """Like `map_structure_up_to`, with the way to each place as first argument."""
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    expand = kwargs.pop("expand_composites", False)
    parts = [flatten_up_to(shallow_tree, each, kwargs.get("check_types", True), expand) for each in inputs]
    results = [func(path, *each) for path, *each in zip(_paths(shallow_tree, expand), *parts, strict=True)]
    return nest.pack_sequence_as(shallow_tree, results, expand)


@_names("map_structure_with_tuple_paths")
def map_structure_with_tuple_paths(func: Callable, *structure: Any, **kwargs: Any) -> Any:
    """Like `map_structure`, with the way to each atom as first argument."""
    return map_structure_with_tuple_paths_up_to(structure[0], func, *structure, **kwargs)


@_names("map_structure_with_paths")
def map_structure_with_paths(func: Callable, *structure: Any, **kwargs: Any) -> Any:
    """Like `map_structure`, with the way to each atom, as `a/0/b`, as first argument."""

    def joined(path: tuple, *atoms: Any) -> Any:
        return func("/".join(map(str, path)), *atoms)

    for other in structure[1:]:
        nest.assert_same_structure(structure[0], other, kwargs.get("check_types", True))
    return map_structure_with_tuple_paths(joined, *structure, **kwargs)


@_names("flatten_dict_items")
def flatten_dict_items(dictionary: Any) -> dict:
    """One flat dictionary of one whose keys and values are structures that match."""
    if not isinstance(dictionary, Mapping):
        raise TypeError("input must be a dictionary")
    flat: dict = {}
    for key, value in dictionary.items():
        if not is_nested(key):
            pairs = [(key, value)]
        else:
            keys, values = nest.flatten(key), nest.flatten(value)
            if len(keys) != len(values):
                raise ValueError(
                    "Could not flatten dictionary. Key had "
                    f"{len(keys)} elements, but value had {len(values)} elements. Key: {keys}, value: {values}."
                )
            pairs = list(zip(keys, values, strict=True))
        for k, v in pairs:
            if k in flat:
                raise ValueError(f"Could not flatten dictionary: key {k} is not unique.")
            flat[k] = v
    return flat


@_names("get_traverse_shallow_structure")
def get_traverse_shallow_structure(
    traverse_fn: Callable, structure: Any, expand_composites: bool = False
) -> Any:
    """The top of a structure down to where `traverse_fn` says False; a structure of answers cuts below it."""
    answer = traverse_fn(structure)
    if not _is_open(structure, expand_composites):
        if not isinstance(answer, bool):
            raise TypeError(f"traverse_fn returned structure: {answer} for non-structure: {structure}")
        return answer
    if isinstance(answer, bool):
        if not answer:
            return False
        below = [
            get_traverse_shallow_structure(traverse_fn, c, expand_composites) for c in _within(structure)
        ]
        if is_nested(structure):
            return _like(structure, below)
        return nest.pack_sequence_as(structure, nest.flatten(below, True), True)
    if not is_nested(answer):
        raise TypeError(f"traverse_fn returned a non-bool scalar: {answer} for input: {structure}")
    assert_shallow_structure(answer, structure)
    results = []
    for item, child in zip(_children(answer), _children(structure), strict=True):
        if not isinstance(item, bool):
            raise TypeError(
                f"traverse_fn didn't return a depth=1 structure of bools. saw: {item} for structure: {child}"
            )
        results.append(
            get_traverse_shallow_structure(traverse_fn, child, expand_composites) if item else False
        )
    return _like(answer, results)


@_names("list_to_tuple")
def list_to_tuple(structure: Any) -> Any:
    """The same structure with tuples for lists."""
    if not is_nested(structure):
        return structure
    parts = [list_to_tuple(child) for child in _children(structure)]
    return tuple(parts) if isinstance(structure, list) else _like(structure, parts)
