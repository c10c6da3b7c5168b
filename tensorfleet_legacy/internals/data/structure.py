"""`tensorflow.python.data.util.structure`: specs of elements, and the way from elements to flat tensors and back."""

from __future__ import annotations

from typing import Any

from tensorfleet.api.data import structure as structures
from tensorfleet.api.data.specs import DatasetSpec, OptionalSpec, _all_fit, leaves_of, specs_of
from tensorfleet.api.data.structure import flatten, leaf_of, map_leaves, pack_like
from tensorfleet.base.dtypes import variant
from tensorfleet.base.naming import export, find, publish
from tensorfleet.ops.type_specs import TensorSpec, TypeSpec

_HERE = "python.data.util.structure"


@export(f"{_HERE}.type_spec_from_value")
def type_spec_from_value(element: Any, use_fallback: bool = True) -> Any:
    """The spec of a value; of a structure the specs of its components."""
    spec = getattr(element, "_type_spec", None)
    if isinstance(spec, TypeSpec):
        return spec
    return specs_of(map_leaves(leaf_of, structures.converted(element)))


@export(f"{_HERE}.are_compatible")
def are_compatible(spec1: Any, spec2: Any) -> bool:
    """Whether two structures of specs have the same form, and each component of one allows that of the other."""
    return _all_fit(spec1, spec2) and _all_fit(spec2, spec1)


@export(f"{_HERE}.get_flat_tensor_specs")
def get_flat_tensor_specs(element_spec: Any) -> list:
    """The specs of the tensors that carry an element."""
    return [TensorSpec(leaf.flat_shape, leaf.flat_dtype) for leaf in _leaves(element_spec)]


@export(f"{_HERE}.get_flat_tensor_shapes")
def get_flat_tensor_shapes(element_spec: Any) -> list:
    """The shapes of those tensors."""
    return [leaf.shape if leaf.dtype == variant else leaf.flat_shape for leaf in _leaves(element_spec)]


@export(f"{_HERE}.get_flat_tensor_types")
def get_flat_tensor_types(element_spec: Any) -> list:
    """The types of those tensors."""
    return [leaf.flat_dtype for leaf in _leaves(element_spec)]


@export(f"{_HERE}.to_tensor_list")
def to_tensor_list(element_spec: Any, element: Any) -> list:
    """The tensors that carry an element, which has to fit its spec."""
    if not _all_fit(element_spec, type_spec_from_value(element)):
        raise ValueError(
            f"The value {element!r} is not compatible with the nested structure {element_spec!r}."
        )
    return structures.carried(structures.converted(element))


@export(f"{_HERE}.from_tensor_list", f"{_HERE}.from_compatible_tensor_list")
def from_tensor_list(element_spec: Any, tensor_list: Any) -> Any:
    """The element that some tensors carry."""
    leaves = _leaves(element_spec)
    if len(leaves) != len(tensor_list):
        raise ValueError(f"Expected {len(leaves)} flat values in the tensor list but got {len(tensor_list)}.")
    for leaf, tensor in zip(leaves, tensor_list, strict=True):
        if tensor.dtype != leaf.flat_dtype or not tensor.shape.is_compatible_with(leaf.flat_shape):
            raise ValueError(f"The tensor {tensor} is not compatible with {leaf}.")
    items = [leaf.unpacked(t) for leaf, t in zip(leaves, tensor_list, strict=True)]
    return pack_like(element_spec, items)


def _leaves(element_spec: Any) -> list:
    return flatten(leaves_of(element_spec))


@export(f"{_HERE}.convert_legacy_structure")
def convert_legacy_structure(output_types: Any, output_shapes: Any, output_classes: Any) -> Any:
    """The specs that types, shapes and classes describe."""
    return specs_of(structures.from_legacy(output_types, output_shapes, output_classes))


publish(DatasetSpec, "python.data.ops.dataset_ops.DatasetSpec")
publish(OptionalSpec, "python.data.ops.optional_ops.OptionalSpec")
publish(find("data.experimental.Optional"), "python.data.ops.optional_ops.Optional")
publish(find("data.experimental.get_next_as_optional"), "python.data.ops.iterator_ops.get_next_as_optional")


@export("python.data.ops.optional_ops._OptionalImpl")
def optional_of(variant_tensor: Any, value_structure: Any) -> Any:
    """The optional element that a tensor carries."""
    return OptionalSpec(value_structure)._from_tensor_list([variant_tensor])


publish(find("data.experimental.get_structure"), "python.data.ops.dataset_ops.get_structure")
