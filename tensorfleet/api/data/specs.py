"""Specs of datasets and optional elements, and the way between specs and what datasets keep of their elements."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.data import structure as structures
from tensorfleet.api.data.structure import Leaf, Ragged, map_leaves
from tensorfleet.base import dtypes
from tensorfleet.base.naming import export, publish
from tensorfleet.base.shapes import TensorShape, as_shape
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.sparse_tensor import SparseTensor
from tensorfleet.ops.type_specs import RaggedTensorSpec, SparseTensorSpec, TensorSpec, TypeSpec


class Described:
    """What datasets and iterators tell of their elements."""

    _structure: Any

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
        """What an element's components are: `tf.Tensor`, `tf.SparseTensor` or `tf.data.Dataset`."""
        return structures.classes_of(self._structure)

    @property
    def element_spec(self) -> Any:
        """The specs of an element's components: their types and shapes."""
        return specs_of(self._structure)


@export("data.DatasetSpec")
class DatasetSpec(TypeSpec):
    """What is known of a dataset: the specs of its elements."""

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        self._element_spec = element_spec
        self._dataset_shape = as_shape(dataset_shape)

    @property
    def value_type(self) -> Any:
        """`tf.data.Dataset`."""
        from tensorfleet.api.data.dataset import Dataset

        return Dataset

    def _to_tensor_list(self, value: Any) -> list:
        """The tensor that carries such a value."""
        return [value._variant_tensor]

    def _from_tensor_list(self, tensors: Any) -> Any:
        """The value that a tensor carries."""
        return _leaf(self).unpacked(tensors[0])

    @staticmethod
    def from_value(value: Any) -> DatasetSpec:
        """The spec of a dataset."""
        return DatasetSpec(value.element_spec)

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a dataset, or every dataset that another spec describes, may be one of these."""
        other = (
            spec_or_value
            if isinstance(spec_or_value, TypeSpec)
            else getattr(spec_or_value, "_type_spec", None)
        )
        return isinstance(other, DatasetSpec) and _all_fit(self._element_spec, other._element_spec)

    def most_specific_compatible_type(self, other: Any) -> DatasetSpec:
        """The spec that describes the datasets of both, and as little else as possible."""
        if not isinstance(other, DatasetSpec):
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        return DatasetSpec(_common(self._element_spec, other._element_spec), self._dataset_shape)

    def _serialize(self) -> tuple:
        return self._element_spec, self._dataset_shape

    def _key(self) -> tuple:
        return tuple(structures.flatten(self._element_spec))


class OptionalSpec(TypeSpec):
    """What is known of an optional element: the specs of its components."""

    def __init__(self, value_structure: Any) -> None:
        self._value_structure = value_structure

    @property
    def value_type(self) -> Any:
        """`tf.data.experimental.Optional`."""
        from tensorfleet.api.data.optional import Optional

        return Optional

    def _to_tensor_list(self, value: Any) -> list:
        """The tensor that carries such a value."""
        return [value._variant_tensor]

    def _from_tensor_list(self, tensors: Any) -> Any:
        """The value that a tensor carries."""
        return _leaf(self).unpacked(tensors[0])

    @staticmethod
    def from_value(value: Any) -> OptionalSpec:
        """The spec of an optional element."""
        return OptionalSpec(value.value_structure)

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether an optional, or every optional that another spec describes, may be one of these."""
        other = (
            spec_or_value
            if isinstance(spec_or_value, TypeSpec)
            else getattr(spec_or_value, "_type_spec", None)
        )
        return isinstance(other, OptionalSpec) and _all_fit(self._value_structure, other._value_structure)

    def most_specific_compatible_type(self, other: Any) -> OptionalSpec:
        """The spec that describes the optionals of both, and as little else as possible."""
        if not isinstance(other, OptionalSpec):
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        return OptionalSpec(_common(self._value_structure, other._value_structure))

    def _serialize(self) -> tuple:
        return (self._value_structure,)

    def _key(self) -> tuple:
        return tuple(structures.flatten(self._value_structure))


class Missing(structures.Kind):
    """An optional element of a structure."""

    def __init__(self, structure: Any) -> None:
        self.structure = structure

    @property
    def public(self) -> Any:
        """`tf.data.experimental.Optional`."""
        from tensorfleet.api.data.optional import Optional

        return Optional

    def unpacked(self, leaf: Leaf, tensor: Tensor) -> Any:
        """The optional element that a tensor carries."""
        return self.public._of(tensor, self.structure)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Missing) and structures.same_form(self.structure, other.structure)

    def __hash__(self) -> int:
        return hash(Missing)


publish(DatasetSpec, "data.experimental.DatasetStructure")
publish(OptionalSpec, "OptionalSpec", "data.experimental.OptionalStructure")


def _pairs(mine: Any, theirs: Any) -> list[tuple]:
    others = structures.match(mine, theirs, lambda v: isinstance(v, TypeSpec), "The other spec")
    return list(zip(structures.flatten(mine), others, strict=True))


def _all_fit(mine: Any, theirs: Any) -> bool:
    try:
        return all(a.is_compatible_with(b) for a, b in _pairs(mine, theirs))
    except (TypeError, ValueError):
        return False


def _common(mine: Any, theirs: Any) -> Any:
    return structures.pack_like(mine, [a.most_specific_compatible_type(b) for a, b in _pairs(mine, theirs)])


def specs_of(structure: Any) -> Any:
    """What a dataset keeps of its elements, as specs."""
    return map_leaves(_spec, structure)


def _spec(leaf: Leaf) -> TypeSpec:
    if leaf.kind is Tensor:
        return TensorSpec(leaf.shape, leaf.dtype)
    if leaf.kind is SparseTensor:
        return SparseTensorSpec(leaf.shape, leaf.dtype)
    if isinstance(leaf.kind, Ragged):
        return RaggedTensorSpec(leaf.shape, leaf.dtype, leaf.kind.rank, leaf.kind.splits)
    if isinstance(leaf.kind, Missing):
        return OptionalSpec(specs_of(leaf.kind.structure))
    return DatasetSpec(specs_of(leaf.kind))


def leaves_of(specs: Any) -> Any:
    """Specs as what a dataset keeps of its elements."""
    return map_leaves(_leaf, specs)


def _leaf(spec: Any) -> Leaf:
    if isinstance(spec, Leaf):
        return spec
    if isinstance(spec, SparseTensorSpec):
        return Leaf(spec.dtype, spec.shape, SparseTensor)
    if isinstance(spec, RaggedTensorSpec):
        kind: Any = Ragged(spec._ragged_rank, spec._row_splits_dtype) if spec._ragged_rank else Tensor
        return Leaf(spec._dtype, spec._shape, kind)
    if isinstance(spec, OptionalSpec):
        return Leaf(dtypes.variant, TensorShape([]), Missing(leaves_of(spec._value_structure)))
    if isinstance(spec, DatasetSpec):
        return Leaf(dtypes.variant, TensorShape([]), leaves_of(spec._element_spec))
    if isinstance(spec, TensorSpec):
        return Leaf(spec.dtype, spec.shape)
    raise TypeError(f"The elements of a dataset cannot be described by {spec!r}.")
