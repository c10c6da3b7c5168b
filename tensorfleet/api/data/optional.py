"""`tf.data.experimental.Optional`: an element that may be missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.api.data import structure as structures
from tensorfleet.api.data.blocks import Element, boxed, unboxed
from tensorfleet.api.data.iterator import Iterator
from tensorfleet.api.data.iterator_ops import IteratorState
from tensorfleet.api.data.specs import OptionalKind, OptionalSpec, leaves_of, specs_of
from tensorfleet.api.data.structure import Nested, Structure, leaf_of, map_leaves
from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.types import Array
from tensorfleet.graph.apply import apply, apply_list
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.common import SCALAR

if TYPE_CHECKING:
    from tensorfleet.runtime.scheduling.host_ops import StepHostContext

# Variants that carry an element inside this process.
_SCALAR: dict[str, Any] = {"shape": lambda op: SCALAR, "host": True}


class _Element:
    """The components of an element, or None."""

    def __init__(self, components: Element | None) -> None:
        self.components = components


@op(
    "OptionalFromValue",
    "components: list(Toutput_types) -> optional: variant",
    "Toutput_types: list(type)",
    **_SCALAR,
)
def _from_value(ctx: StepHostContext, components: Element) -> Array:
    return boxed(_Element(list(components)))


@op("OptionalNone", "-> optional: variant", **_SCALAR)
def _none(ctx: StepHostContext) -> Array:
    return boxed(_Element(None))


def _element(optional: Array) -> _Element:
    result = unboxed(optional)
    if not isinstance(result, _Element):
        raise errors.invalid("Input is not an Optional.")
    return result


@op("OptionalHasValue", "optional: variant -> has_value: bool", **_SCALAR)
def _has_value(ctx: StepHostContext, optional: Array) -> Array:
    return np.asarray(_element(optional).components is not None)


@op(
    "OptionalGetValue",
    "optional: variant -> components: list(output_types)",
    structures.ELEMENTS,
    shape=structures.declared_shapes,
    host=True,
)
def _get_value(ctx: StepHostContext, optional: Array) -> tuple[Any, ...]:
    components = _element(optional).components
    if components is None:
        raise errors.invalid("The given optional does not have a value.")
    return tuple(components)


@op(
    "IteratorGetNextAsOptional",
    "iterator: resource -> optional: variant",
    structures.ELEMENTS,
    shape=lambda op: SCALAR,
    host=True,
    blocks=True,
    stateful=True,
)
def _next_as_optional(ctx: StepHostContext, state: IteratorState) -> Array:
    try:
        return boxed(_Element(list(state.next(ctx))))
    except errors.OutOfRangeError:
        return boxed(_Element(None))


not_differentiable("OptionalFromValue", "OptionalNone", "OptionalHasValue", "OptionalGetValue")
not_differentiable("IteratorGetNextAsOptional")


@export("data.experimental.Optional")
class Optional:
    """An element that may be missing, as `get_next_as_optional` gives it."""

    _variant_tensor: Tensor
    _structure: Structure

    @classmethod
    def _of(cls, variant: Tensor, structure: Structure) -> Optional:
        result = cls.__new__(cls)
        result._variant_tensor, result._structure = variant, structure
        return result

    @staticmethod
    def from_value(value: Nested) -> Optional:
        """An element that is there."""
        with name_scope("optional"):
            components = structures.converted(value, "value")
            variant = apply("OptionalFromValue", structures.carried(components))
            return Optional._of(variant, map_leaves(leaf_of, components))

    @staticmethod
    def none_from_structure(value_structure: Nested) -> Optional:
        """An element of this structure that is missing."""
        return Optional._of(apply("OptionalNone"), leaves_of(value_structure))

    def has_value(self, name: str | None = None) -> Tensor:
        """Whether there is one."""
        return apply("OptionalHasValue", self._variant_tensor, name=name)

    def get_value(self, name: str | None = None) -> Any:
        """The element; a step that asks for a missing one fails."""
        with name_scope(name, "OptionalGetValue", [self._variant_tensor]):
            declared = structures.declared(self._structure)
            outputs = apply_list("OptionalGetValue", self._variant_tensor, **declared)
        return structures.unpacked(self._structure, outputs)

    @property
    def value_structure(self) -> Any:
        """The specs of the element's components."""
        return specs_of(self._structure)

    @property
    def _kind(self) -> OptionalKind:
        return OptionalKind(self._structure)

    @property
    def _type_spec(self) -> OptionalSpec:
        return OptionalSpec(self.value_structure)


@export("data.experimental.get_next_as_optional", "contrib.data.get_next_as_optional")
def get_next_as_optional(iterator: Iterator) -> Optional:
    """The next element of an iterator; at its end one that is missing, and no error."""
    declared = structures.declared(iterator._structure)
    variant = apply("IteratorGetNextAsOptional", iterator._iterator_resource, **declared)
    return Optional._of(variant, iterator._structure)
