"""The structure of a dataset's elements: tuples and dictionaries of tensors, sparse tensors and datasets.

Unlike elsewhere in TensorFlow a list is no structure here: it becomes a tensor.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tensorfleet.base import dtypes
from tensorfleet.base.dtypes import DType
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.graph.apply import apply, apply_any, apply_list
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.sparse_tensor import SparseTensor, SparseTensorValue
from tensorfleet.ops.ragged.ragged_tensor import RaggedTensor
from tensorfleet.ops.ragged.value import RaggedTensorValue

if TYPE_CHECKING:
    from tensorfleet.api.data.dataset import Dataset

#: A user's tensors, types, shapes or specs, nested in tuples and dictionaries (or instances of attrs classes).
Nested: TypeAlias = object
#: What is known of the elements of a dataset: one `Leaf` per component, nested as the components are.
Structure: TypeAlias = "Leaf | tuple[Structure, ...] | Mapping[Any, Structure]"

#: The attributes by which operations declare the components of elements: see `declared`.
ELEMENTS = "output_types: list(type); output_shapes: list(shape)"


class Kind(abc.ABC):
    """The kind of a component that is no tensor, sparse tensor or dataset."""

    @property
    @abc.abstractmethod
    def public(self) -> type[Any]:
        """The class that users see."""

    @abc.abstractmethod
    def unpacked(self, leaf: Leaf, tensor: Tensor) -> Any:
        """The value that users see of the carrying tensor."""

    def stacked(self) -> Kind:
        """The kind of batches of these."""
        raise TypeError(f"Elements with a {self.public.__name__} cannot be batched.")

    def row(self) -> Any:
        """The kind of a row of these."""
        raise TypeError(f"A {self.public.__name__} has no rows.")


class Ragged(Kind):
    """A ragged tensor: how many of its dimensions are ragged, and the type of its splits."""

    public = RaggedTensor

    def __init__(self, rank: int, splits: DType) -> None:
        self.rank = rank
        self.splits = splits

    def unpacked(self, leaf: Leaf, tensor: Tensor) -> RaggedTensor:
        """The ragged tensor that a tensor carries."""
        attrs: dict[str, Any] = {"N": self.rank, "Tsplits": self.splits, "T": leaf.dtype}
        splits, values = apply_any("FleetVariantToRagged", tensor, shape=leaf.shape, **attrs)
        return RaggedTensor.from_nested_row_splits(values, splits, validate=False)

    def stacked(self) -> Ragged:
        """One more dimension is ragged."""
        return Ragged(self.rank + 1, self.splits)

    def row(self) -> Any:
        """One less is; a tensor in the end."""
        return Ragged(self.rank - 1, self.splits) if self.rank > 1 else Tensor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ragged) and (self.rank, self.splits) == (other.rank, other.splits)

    def __hash__(self) -> int:
        return hash((self.rank, self.splits))


class Leaf:
    """The description of one component: its type, its shape, and the kind of value that users see.

    `kind` is `tf.Tensor`, `tf.SparseTensor`, a `Kind`, or the structure of the datasets that are the elements.
    """

    __slots__ = ("dtype", "kind", "shape")

    def __init__(self, dtype: DType, shape: TensorShape, kind: Any = Tensor) -> None:
        self.dtype = dtype
        self.shape = shape
        self.kind = kind

    @property
    def flat_dtype(self) -> DType:
        """The type of the tensor that carries the component between operations."""
        return self.dtype if self.kind is Tensor else dtypes.variant

    @property
    def flat_shape(self) -> TensorShape:
        """The shape of that tensor."""
        return self.shape if self.kind is Tensor else TensorShape(None)

    def unpacked(self, tensor: Tensor) -> Any:
        """The value that users see of the carrying tensor."""
        if self.kind is Tensor:
            return tensor
        if self.kind is SparseTensor:
            parts = apply_list("FleetVariantToSparse", tensor, Tvalues=self.dtype, shape=self.shape)
            result = SparseTensor(*parts)
            result._known = self.shape
            return result
        if isinstance(self.kind, Kind):
            return self.kind.unpacked(self, tensor)
        from tensorfleet.api.data.dataset import VariantDataset

        return VariantDataset(tensor, self.kind)

    def with_shape(self, shape: TensorShape) -> Leaf:
        """The same with another shape."""
        return Leaf(self.dtype, shape, self.kind)

    def batched(self, size: int | None) -> Leaf:
        """The component of batches of that size."""
        kind = self.kind.stacked() if isinstance(self.kind, Kind) else self.kind
        return Leaf(self.dtype, TensorShape([size]).concatenate(self.shape), kind)

    def row(self) -> Leaf:
        """The component of the rows of such elements."""
        shape = TensorShape(None) if self.shape.rank is None else TensorShape(self.shape.as_list()[1:])
        return Leaf(self.dtype, shape, self.kind.row() if isinstance(self.kind, Kind) else self.kind)

    def agrees(self, other: Leaf) -> bool:
        """Whether both can be elements of one dataset."""
        if isinstance(self.kind, Kind) or isinstance(other.kind, Kind):
            return self.kind == other.kind and self.dtype == other.dtype
        # Datasets have structures as kinds, which differ as objects: it is enough that both are datasets.
        same = self.kind is other.kind or not (self.kind is Tensor or other.kind is Tensor)
        return same and self.dtype == other.dtype

    def __repr__(self) -> str:
        kind = self.kind.public if isinstance(self.kind, Kind) else self.kind
        return f"{getattr(kind, '__name__', 'Dataset')}Spec({self.shape}, {self.dtype!r})"


def is_structure(value: object) -> bool:
    """Whether a value is a tuple or dictionary, or anything of the kind."""
    if isinstance(value, (SparseTensorValue, TensorShape)):
        return False
    return isinstance(value, (tuple, Mapping)) or hasattr(type(value), "__attrs_attrs__")


def _children(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        # TensorFlow flattens dictionaries by sorted keys, so that equal ones match whatever their order.
        return [value[k] for k in sorted(value)]
    if hasattr(type(value), "__attrs_attrs__"):
        return [getattr(value, a.name) for a in value.__attrs_attrs__]
    return list(value)


def flatten(value: Nested) -> list[Any]:
    """The components of a structure; dictionaries in the order of their sorted keys."""
    if not is_structure(value):
        return [value]
    return [leaf for child in _children(value) for leaf in flatten(child)]


def pack_like(structure: Nested, flat: Iterable[Any]) -> Any:
    """Components in the form of another structure."""
    leaves = iter(flat)
    return _pack(structure, leaves)


def _pack(structure: Any, leaves: Iterator[Any]) -> Any:
    if not is_structure(structure):
        return next(leaves)
    if isinstance(structure, Mapping):
        items = {k: _pack(structure[k], leaves) for k in sorted(structure)}
        kind: Any = type(structure)
        # A `defaultdict` takes its factory first.
        if hasattr(structure, "default_factory"):
            return kind(structure.default_factory, {k: items[k] for k in structure})
        return kind([(k, items[k]) for k in structure])
    parts = [_pack(child, leaves) for child in _children(structure)]
    if hasattr(structure, "_fields") or hasattr(type(structure), "__attrs_attrs__"):
        return type(structure)(*parts)
    return tuple(parts)


def map_leaves(function: Callable[[Any], Any], structure: Nested) -> Any:
    """The same structure with every component replaced."""
    return pack_like(structure, [function(leaf) for leaf in flatten(structure)])


def match(structure: Nested, given: Nested, atom: Callable[[Any], bool], what: str) -> list[Any]:
    """The atoms of `given` at the components of `structure`; TypeError or ValueError when its form is another."""
    if not is_structure(structure):
        return [given]
    if atom(given) or (not is_structure(given) and not isinstance(given, list)):
        raise TypeError(f"{what} {given!r} does not have the structure of the elements: {structure!r}.")
    if isinstance(structure, Mapping):
        if not isinstance(given, Mapping) or set(given) != set(structure):
            raise ValueError(f"{what} {given!r} does not have the structure of the elements: {structure!r}.")
        pairs = [(structure[k], given[k]) for k in sorted(structure)]
    else:
        mine, theirs = _children(structure), list(given) if isinstance(given, list) else _children(given)
        if len(mine) != len(theirs):
            raise ValueError(f"{what} {given!r} does not have the structure of the elements: {structure!r}.")
        pairs = list(zip(mine, theirs, strict=True))
    return [leaf for s, g in pairs for leaf in match(s, g, atom, what)]


# -- values of the graph -----------------------------------------------------------------------------


def leaf_of(value: Any) -> Leaf:
    """The description of a value of the graph."""
    if isinstance(value, SparseTensor):
        return Leaf(value.dtype, value.get_shape(), SparseTensor)
    if isinstance(value, RaggedTensor):
        return Leaf(value.dtype, value.shape, Ragged(value.ragged_rank, value.row_splits.dtype))
    if isinstance(kind := getattr(value, "_kind", None), Kind):
        return Leaf(dtypes.variant, TensorShape([]), kind)
    if hasattr(value, "_variant_tensor"):
        return Leaf(dtypes.variant, TensorShape([]), value._structure)
    return Leaf(value.dtype.base_dtype, value.shape)


def converted(value: Nested, name: str = "component") -> Any:
    """A structure of Python values as one of tensors, sparse tensors and datasets."""
    flat: list[Any] = []
    for i, leaf in enumerate(flatten(value)):
        if isinstance(leaf, SparseTensorValue):
            flat.append(SparseTensor.from_value(leaf))
        elif isinstance(leaf, RaggedTensorValue):
            flat.append(RaggedTensor.from_nested_row_splits(leaf.flat_values, leaf.nested_row_splits))
        elif isinstance(leaf, (SparseTensor, RaggedTensor)) or hasattr(leaf, "_variant_tensor"):
            flat.append(leaf)
        else:
            flat.append(to_tensor(leaf, name=f"{name}_{i}"))
    return pack_like(value, flat)


def carried(value: Nested) -> list[Tensor]:
    """The tensors that carry the components of a converted structure between operations."""
    result = []
    for leaf in flatten(value):
        if isinstance(leaf, SparseTensor):
            result.append(apply("FleetSparseToVariant", leaf.indices, leaf.values, leaf.dense_shape))
        elif isinstance(leaf, RaggedTensor):
            result.append(apply("FleetRaggedToVariant", list(leaf.nested_row_splits), leaf.flat_values))
        else:
            result.append(leaf._variant_tensor if hasattr(leaf, "_variant_tensor") else leaf)
    return result


def declared(structure: Structure) -> dict[str, Any]:
    """The attributes `output_types` and `output_shapes` of an operation that gives such elements."""
    leaves = flatten(structure)
    types = [leaf.flat_dtype for leaf in leaves]
    return {"output_types": types, "output_shapes": [leaf.flat_shape for leaf in leaves]}


def declared_shapes(op: Operation) -> list[TensorShape]:
    """The shape function of operations with these attributes."""
    return list(op._attrs["output_shapes"])


def unpacked(structure: Structure, tensors: Sequence[Tensor]) -> Any:
    """The element that the user sees of the tensors that carry its components."""
    leaves = zip(flatten(structure), tensors, strict=True)
    return pack_like(structure, [leaf.unpacked(t) for leaf, t in leaves])


# -- the forms of TensorFlow 1 -----------------------------------------------------------------------


def from_legacy(types: Nested, shapes: Nested = None, classes: Nested = None) -> Structure:
    """The structure that `output_types`, `output_shapes` and `output_classes` describe."""
    flat_types = [dtypes.as_dtype(t) for t in flatten(types)]
    form = pack_like(types, flat_types)
    if shapes is None:
        flat_shapes: list[TensorShape] = [TensorShape(None)] * len(flat_types)
    else:
        flat_shapes = [as_shape(s) for s in match(form, shapes, is_shape, "output_shapes")]
    flat_classes = [Tensor] * len(flat_types) if classes is None else flatten(classes)
    parts = zip(flat_types, flat_shapes, flat_classes, strict=True)
    structure: Structure = pack_like(form, [Leaf(*each) for each in parts])
    return structure


def is_shape(value: object) -> bool:
    """Whether something stands for a shape (and not for a structure of shapes)."""
    if value is None or isinstance(value, TensorShape) or hasattr(value, "dim"):
        return True
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return all(v is None or isinstance(v, int) or hasattr(v, "value") for v in value) and bool(value)
    return False


def types_of(structure: Structure) -> Any:
    """`output_types`."""
    return map_leaves(lambda leaf: leaf.dtype, structure)


def shapes_of(structure: Structure) -> Any:
    """`output_shapes`."""
    return map_leaves(lambda leaf: leaf.shape, structure)


def classes_of(structure: Structure) -> Any:
    """`output_classes`."""
    return map_leaves(_class_of, structure)


def _class_of(leaf: Leaf) -> Any:
    if isinstance(leaf.kind, Kind):
        return leaf.kind.public
    return leaf.kind if isinstance(leaf.kind, type) else _dataset_class()


def _dataset_class() -> type[Dataset]:
    from tensorfleet.api.data.dataset import Dataset

    return Dataset


def same_form(a: Structure, b: Structure) -> bool:
    """Whether two structures have the same form and types."""
    others = leaves_like(a, b)
    return others is not None and all(leaf.agrees(o) for leaf, o in zip(flatten(a), others, strict=True))


def leaves_like(a: Structure, b: Structure) -> list[Leaf] | None:
    """The leaves of `b` at the components of `a`, if their forms are the same."""
    try:
        # `match` raises with a text for users; here it is only asked.
        others = match(a, b, lambda v: isinstance(v, Leaf), "")
    except (TypeError, ValueError):
        return None
    return others if all(isinstance(o, Leaf) for o in others) else None
