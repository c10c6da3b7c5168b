"""Specs of datasets and optional elements, and conversions between specs and structures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.api.data import structure as structures
from tensorfleet.api.data.structure import Leaf, Nested, Ragged, Structure, map_leaves
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, publish
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.base.types import ShapeLike
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet.ops.type_specs import RaggedTensorSpec, SparseTensorSpec, TensorSpec, TypeSpec

if TYPE_CHECKING:
    from tensorfleet.api.data.dataset import Dataset
    from tensorfleet.api.data.optional import Optional


class Described:
    """The properties by which datasets and iterators describe their elements."""

    _structure: Structure

    @property
    def output_types(self) -> Any:
        """The types of an element's components."""
        return structures.types_of(self._structure)

    @property
    def output_shapes(self) -> Any:
        """The shapes of an element's components."""
        return structures.shapes_of(self._structure)

    @property
    def output_classes(self) -> Any:
        """The classes of an element's components: `tf.Tensor`, `tf.SparseTensor` or `tf.data.Dataset`."""
        return structures.classes_of(self._structure)

    @property
    def element_spec(self) -> Any:
        """The specs of an element's components: their types and shapes."""
        return specs_of(self._structure)


class _CarriedSpec(TypeSpec):
    """The spec of a value that one tensor carries; `_inner` has the specs of the components of its elements."""

    _inner: Nested

    def _to_tensor_list(self, value: Dataset | Optional) -> list[Tensor]:
        """The tensor that carries such a value."""
        return [value._variant_tensor]

    def _from_tensor_list(self, tensors: Sequence[Tensor]) -> Any:
        """The value that a tensor carries."""
        return _leaf(self).unpacked(tensors[0])

    def is_compatible_with(self, spec_or_value: object) -> bool:
        """Whether a value, or every value that another spec describes, may be one of these."""
        is_spec = isinstance(spec_or_value, TypeSpec)
        other = spec_or_value if is_spec else getattr(spec_or_value, "_type_spec", None)
        return isinstance(other, _CarriedSpec) and self._fits(other)

    def _fits(self, other: _CarriedSpec) -> bool:
        return self._is_like(other) and _all_fit(self._inner, other._inner)

    def _is_like(self, other: object) -> bool:
        return self.value_type is getattr(other, "value_type", None)

    def most_specific_compatible_type(self, other: object) -> Any:
        """The spec that describes the values of both, and as little else as possible."""
        if not isinstance(other, _CarriedSpec) or not self._is_like(other):
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        return self._combined(other)

    def _combined(self, other: _CarriedSpec) -> Any:
        return self._of((_common(self._inner, other._inner), *self._parts()[1:]))

    def _key(self) -> tuple[Any, ...]:
        return tuple(structures.flatten(self._inner))


@export("data.DatasetSpec")
class DatasetSpec(_CarriedSpec):
    """The description of a dataset: the specs of its elements."""

    def __init__(self, element_spec: Nested, dataset_shape: ShapeLike = ()) -> None:
        self._element_spec = self._inner = element_spec
        self._dataset_shape = as_shape(dataset_shape)

    @property
    def value_type(self) -> type[Dataset]:
        """`tf.data.Dataset`."""
        from tensorfleet.api.data.dataset import Dataset

        return Dataset

    @staticmethod
    def from_value(value: Dataset) -> DatasetSpec:
        """The spec of a dataset."""
        return DatasetSpec(value.element_spec)

    def _serialize(self) -> tuple[Any, ...]:
        return self._element_spec, self._dataset_shape


class OptionalSpec(_CarriedSpec):
    """The description of an optional element: the specs of its components."""

    def __init__(self, value_structure: Nested) -> None:
        self._value_structure = self._inner = value_structure

    @property
    def value_type(self) -> type[Optional]:
        """`tf.data.experimental.Optional`."""
        from tensorfleet.api.data.optional import Optional

        return Optional

    @staticmethod
    def from_value(value: Optional) -> OptionalSpec:
        """The spec of an optional element."""
        return OptionalSpec(value.value_structure)

    def _serialize(self) -> tuple[Any, ...]:
        return (self._value_structure,)


class OptionalKind(structures.Kind):
    """An optional element of a structure."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure

    @property
    def public(self) -> type[Optional]:
        """`tf.data.experimental.Optional`."""
        from tensorfleet.api.data.optional import Optional

        return Optional

    def unpacked(self, leaf: Leaf, tensor: Tensor) -> Optional:
        """The optional element that a tensor carries."""
        return self.public._of(tensor, self.structure)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OptionalKind) and structures.same_form(self.structure, other.structure)

    def __hash__(self) -> int:
        return hash(OptionalKind)


publish(DatasetSpec, "data.experimental.DatasetStructure")
publish(OptionalSpec, "OptionalSpec", "data.experimental.OptionalStructure")


def _pairs(mine: Nested, theirs: Nested) -> list[tuple[TypeSpec, TypeSpec]]:
    others = structures.match(mine, theirs, lambda v: isinstance(v, TypeSpec), "The other spec")
    return list(zip(structures.flatten(mine), others, strict=True))


def _all_fit(mine: Nested, theirs: Nested) -> bool:
    try:
        return all(a.is_compatible_with(b) for a, b in _pairs(mine, theirs))
    except (TypeError, ValueError):
        return False


def _common(mine: Nested, theirs: Nested) -> Any:
    return structures.pack_like(mine, [a.most_specific_compatible_type(b) for a, b in _pairs(mine, theirs)])


def specs_of(structure: Structure) -> Any:
    """The specs of the elements that a structure describes."""
    return map_leaves(_spec, structure)


def _spec(leaf: Leaf) -> TypeSpec:
    if leaf.kind is Tensor:
        return TensorSpec(leaf.shape, leaf.dtype)
    if leaf.kind is SparseTensor:
        return SparseTensorSpec(leaf.shape, leaf.dtype)
    if isinstance(leaf.kind, Ragged):
        return RaggedTensorSpec(leaf.shape, leaf.dtype, leaf.kind.rank, leaf.kind.splits)
    if isinstance(leaf.kind, OptionalKind):
        return OptionalSpec(specs_of(leaf.kind.structure))
    return DatasetSpec(specs_of(leaf.kind))


def leaves_of(specs: Nested) -> Structure:
    """The structure of the elements that specs describe."""
    structure: Structure = map_leaves(_leaf, specs)
    return structure


def _leaf(spec: TypeSpec | Leaf) -> Leaf:
    if isinstance(spec, Leaf):
        return spec
    if isinstance(spec, SparseTensorSpec):
        return Leaf(spec.dtype, spec.shape, SparseTensor)
    if isinstance(spec, RaggedTensorSpec):
        kind: Any = Ragged(spec._ragged_rank, spec._row_splits_dtype) if spec._ragged_rank else Tensor
        return Leaf(spec._dtype, spec._shape, kind)
    if isinstance(spec, OptionalSpec):
        return Leaf(dtypes.variant, TensorShape([]), OptionalKind(leaves_of(spec._value_structure)))
    if isinstance(spec, DatasetSpec):
        return Leaf(dtypes.variant, TensorShape([]), leaves_of(spec._element_spec))
    if isinstance(spec, TensorSpec):
        return Leaf(spec.dtype, spec.shape)
    raise TypeError(f"The elements of a dataset cannot be described by {spec!r}.")
