"""`tf.nest`: lists, tuples, named tuples and dictionaries of anything, nested at will.

The atoms of a dictionary come in the order of its sorted keys, whatever order it keeps itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MappingView, Sequence
from typing import Any

from tensorfleet.base.naming import export

# Most structures and atoms are of these types; to ask the abstract classes takes five times as long.
_USUAL = dict.fromkeys((list, tuple, dict), True) | dict.fromkeys(
    (int, float, bool, str, bytes, type(None)), False
)


@export("nest.is_nested", "contrib.framework.nest.is_sequence", "python.util.nest.is_sequence")
def is_nested(seq: object) -> bool:
    """Whether something is a structure rather than an atom. Strings and arrays are atoms."""
    if (known := _USUAL.get(type(seq))) is not None:
        return known
    return (
        isinstance(seq, (Sequence, Mapping, MappingView)) and not isinstance(seq, (str, bytes, bytearray))
    ) or (hasattr(type(seq), "__attrs_attrs__"))


@export("nest.flatten", "contrib.framework.nest.flatten", "python.util.nest.flatten")
def flatten(structure: object, expand_composites: bool = False) -> list[Any]:
    """The atoms of a structure, as one list."""
    if not is_nested(structure):
        return _parts(structure) if expand_composites else [structure]
    return [atom for child in _children(structure) for atom in flatten(child, expand_composites)]


def _spec_of(atom: object) -> Any:
    """The `_type_spec` of a user's composite, which takes it apart and puts it together again."""
    spec = getattr(atom, "_type_spec", None)
    return spec if hasattr(spec, "_to_components") and hasattr(spec, "_from_components") else None


def _parts(atom: Any) -> list[Any]:
    """The tensors of a composite such as IndexedSlices."""
    if (spec := _spec_of(atom)) is not None:
        return flatten(spec._to_components(atom), True)
    if hasattr(atom, "nested_row_splits"):
        return [atom.flat_values, *atom.nested_row_splits]
    names = [n for n in ("indices", "values", "dense_shape") if hasattr(atom, "values") and hasattr(atom, n)]
    return [getattr(atom, n) for n in names if getattr(atom, n) is not None] if len(names) == 3 else [atom]


@export(
    "nest.pack_sequence_as", "contrib.framework.nest.pack_sequence_as", "python.util.nest.pack_sequence_as"
)
def pack_sequence_as(structure: object, flat_sequence: object, expand_composites: bool = False) -> Any:
    """The atoms in `flat_sequence`, arranged like `structure`."""
    if not is_nested(flat_sequence):
        raise TypeError(
            f"flat_sequence must be a sequence: Attempted to pack value:\n  {flat_sequence}\ninto a structure, but "
            f"found incompatible type `{type(flat_sequence)}` instead."
        )
    atoms = list(flat_sequence)  # type: ignore[call-overload]  # it is nested, so it can be iterated
    if not is_nested(structure) and not (expand_composites and _is_composite(structure)):
        if len(atoms) != 1:
            raise ValueError(
                f"Structure is a scalar but len(flat_sequence) == {len(atoms)} > 1. The target structure is of type "
                f"`{type(structure)}`\n  {structure}\nHowever the input is a sequence ({type(flat_sequence)}) of length "
                f"{len(atoms)}.\n  {flat_sequence}\nnest cannot guarantee that it is safe to map one to the other."
            )
        return atoms[0]
    wanted = len(flatten(structure, expand_composites))
    if wanted != len(atoms):
        raise ValueError(
            f"Could not pack sequence. Structure had {wanted} elements, but flat_sequence had {len(atoms)} elements.  "
            f"Structure: {structure}, flat_sequence: {flat_sequence}."
        )
    return _pack(structure, iter(atoms), expand_composites)


def _is_composite(atom: object) -> bool:
    return _spec_of(atom) is not None or len(_parts(atom)) > 1


def _pack(structure: Any, atoms: Iterator[Any], expand_composites: bool) -> Any:
    if is_nested(structure):
        return _like(structure, [_pack(child, atoms, expand_composites) for child in _children(structure)])
    if expand_composites and (spec := _spec_of(structure)) is not None:
        return spec._from_components(_pack(spec._to_components(structure), atoms, True))
    parts = _parts(structure) if expand_composites else [structure]
    if len(parts) == 1:
        return next(atoms)
    if hasattr(structure, "nested_row_splits"):
        values, *splits = [next(atoms) for _ in parts]
        return type(structure).from_nested_row_splits(values, splits, validate=False)
    indices, values, *shape = [next(atoms) for _ in parts]
    return type(structure)(indices=indices, values=values, dense_shape=shape[0] if shape else None)


@export("nest.map_structure", "contrib.framework.nest.map_structure", "python.util.nest.map_structure")
def map_structure(func: Callable[..., Any], *structure: object, **kwargs: Any) -> Any:
    """Calls `func` with the atoms at each place of the structures; the results, arranged like the first."""
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    check_types = kwargs.pop("check_types", True)
    expand = kwargs.pop("expand_composites", False)
    if kwargs:
        names = "`, `".join(kwargs)
        raise ValueError(
            f"Only valid keyword arguments are `check_types` and `expand_composites`, not: `{names}`"
        )
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types, expand)
    results = [func(*atoms) for atoms in zip(*(flatten(s, expand) for s in structure), strict=True)]
    return pack_sequence_as(structure[0], results, expand)


@export(
    "nest.assert_same_structure",
    "contrib.framework.nest.assert_same_structure",
    "python.util.nest.assert_same_structure",
)
def assert_same_structure(
    nest1: object, nest2: object, check_types: bool = True, expand_composites: bool = False
) -> None:
    """ValueError when two structures differ in shape, TypeError when they differ in their types."""
    try:
        _assert_same(nest1, nest2, check_types, expand_composites)
    except (ValueError, TypeError) as e:
        raise type(e)(
            f"The two structures don't have the same nested structure.\n\nFirst structure: {_told(nest1)}\n\n"
            f"Second structure: {_told(nest2)}\n\nMore specifically: {e}\nEntire first structure:\n"
            f"{_form(nest1)}\nEntire second structure:\n{_form(nest2)}"
        ) from None


def _assert_same(a: object, b: object, check_types: bool, expand: bool = False) -> None:
    if expand and (_spec_of(a) is not None or _spec_of(b) is not None):
        return _assert_same_composites(a, b, check_types)
    if not same_kind(a, b, is_nested, check_types):
        return
    mine, theirs = _children(a), _children(b)
    for x, y in zip(mine, theirs, strict=False):
        _assert_same(x, y, check_types, expand)
    if len(mine) != len(theirs):
        raise ValueError(
            f"The two structures don't have the same number of elements. First structure: {_told(a)}. Second "
            f"structure: {_told(b)}"
        )


def same_kind(a: object, b: object, is_structure: Callable[[object], bool], check_types: bool) -> bool:
    """Whether two things are structures; an error when only one is, or when they are not of one kind."""
    if is_structure(a) != is_structure(b):
        whole, atom = (a, b) if is_structure(a) else (b, a)
        raise ValueError(
            f'Substructure "{_told(whole)}" is a sequence, while substructure "{_told(atom)}" is not'
        )
    if not is_structure(a):
        return False
    if check_types and not _same_type(a, b):
        raise TypeError(
            f"The two structures don't have the same sequence type. First structure {_told(a)} has type "
            f"{type(a).__name__}, while second structure {_told(b)} has type {type(b).__name__}"
        )
    if check_types and isinstance(a, Mapping) and isinstance(b, Mapping) and set(a) != set(b):
        raise ValueError(
            f"The two dictionaries don't have the same set of keys. First structure has keys {list(a)}, while second "
            f"structure has keys {list(b)}"
        )
    return True


def _assert_same_composites(a: object, b: object, check_types: bool) -> None:
    first, second = _spec_of(a), _spec_of(b)
    if first is None or second is None:
        whole, atom = (a, b) if second is None else (b, a)
        raise ValueError(
            f'Substructure "{_told(whole)}" is a sequence, while substructure "{_told(atom)}" is not'
        )
    try:
        first.most_specific_compatible_type(second)
    except ValueError as e:
        raise ValueError(f"Incompatible CompositeTensor TypeSpecs: {e}") from None
    _assert_same(first._to_components(a), second._to_components(b), check_types, True)


class _Dot:
    """Stands for any atom in a message."""

    def __repr__(self) -> str:
        return "."


def _form(structure: object) -> str:
    """A structure with dots for its atoms."""
    return str(pack_sequence_as(structure, [_Dot()] * len(flatten(structure))))


def _same_type(a: object, b: object) -> bool:
    if type(a) is type(b) or (isinstance(a, Mapping) and isinstance(b, Mapping)):
        return True
    fields = getattr(a, "_fields", None)
    return (
        fields is not None and fields == getattr(b, "_fields", None) and type(a).__name__ == type(b).__name__
    )


def _told(structure: object) -> str:
    return f"type={type(structure).__name__} str={structure}"


def _sorted_keys(mapping: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(mapping)
    except TypeError:
        raise TypeError("nest only supports dicts with sortable keys.") from None


def _children(structure: Any) -> list[Any]:
    if isinstance(structure, Mapping):
        return [structure[k] for k in _sorted_keys(structure)]
    if hasattr(type(structure), "__attrs_attrs__"):
        return [getattr(structure, a.name) for a in structure.__attrs_attrs__]
    return list(structure)


def _like(structure: object, children: list[Any]) -> Any:
    """The children in a structure of the same type."""
    kind: Any = type(structure)
    if isinstance(structure, Mapping):
        values = dict(zip(_sorted_keys(structure), children, strict=True))
        if hasattr(structure, "default_factory"):
            return kind(structure.default_factory, {k: values[k] for k in structure})
        return kind((k, values[k]) for k in structure)
    if hasattr(structure, "_fields") or hasattr(kind, "__attrs_attrs__"):
        return kind(*children)
    if isinstance(structure, (MappingView, range)):
        return list(children)
    return kind(children)
