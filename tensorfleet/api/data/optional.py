"""`tf.data.experimental.Optional`: an element that may be missing."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorfleet.api.data import structure as structures
from tensorfleet.api.data.blocks import boxed
from tensorfleet.api.data.iterator_ops import IteratorState
from tensorfleet.api.data.specs import Missing, OptionalSpec, leaves_of, specs_of
from tensorfleet.api.data.structure import flatten, leaf_of, map_leaves, pack_like
from tensorfleet.base import errors
from tensorfleet.base.naming import export
from tensorfleet.base.shapes import TensorShape
from tensorfleet.graph.apply import apply_any
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.registry import not_differentiable, op
from tensorfleet.graph.scopes import name_scope
from tensorfleet.ops.common import SCALAR

_SCALAR: dict[str, Any] = {"shape": lambda op: SCALAR, "host": True}


class _Element:
    """The components of an element, or None."""

    def __init__(self, components: list | None) -> None:
        self.components = components


@op(
    "OptionalFromValue",
    "components: list(Toutput_types) -> optional: variant",
    "Toutput_types: list(type)",
    **_SCALAR,
)
def _from_value(ctx: Any, components: list) -> Any:
    return boxed(_Element(list(components)))


@op("OptionalNone", "-> optional: variant", **_SCALAR)
def _none(ctx: Any) -> Any:
    return boxed(_Element(None))


def _element(optional: Any) -> _Element:
    found = np.asarray(optional, object).ravel()[0]
    if not isinstance(found, _Element):
        raise errors.InvalidArgumentError(None, None, "Input is not an Optional.")
    return found


@op("OptionalHasValue", "optional: variant -> has_value: bool", **_SCALAR)
def _has_value(ctx: Any, optional: Any) -> Any:
    return np.asarray(_element(optional).components is not None)


def _declared(op: Operation) -> list[TensorShape]:
    return list(op._attrs["output_shapes"])


@op(
    "OptionalGetValue",
    "optional: variant -> components: list(output_types)",
    "output_types: list(type); output_shapes: list(shape)",
    shape=_declared,
    host=True,
)
def _get_value(ctx: Any, optional: Any) -> tuple:
    components = _element(optional).components
    if components is None:
        raise errors.InvalidArgumentError(None, None, "The given optional does not have a value.")
    return tuple(components)


@op(
    "IteratorGetNextAsOptional",
    "iterator: resource -> optional: variant",
    "output_types: list(type); output_shapes: list(shape)",
    shape=lambda op: SCALAR,
    host=True,
    blocks=True,
    stateful=True,
)
def _next_as_optional(ctx: Any, state: IteratorState) -> Any:
    try:
        return boxed(_Element(list(state.next(ctx))))
    except errors.OutOfRangeError:
        return boxed(_Element(None))


not_differentiable("OptionalFromValue", "OptionalNone", "OptionalHasValue", "OptionalGetValue")
not_differentiable("IteratorGetNextAsOptional")


@export("data.experimental.Optional")
class Optional:
    """An element that may be missing: what `get_next_as_optional` gives, at the end too."""

    _variant_tensor: Tensor
    _structure: Any

    @classmethod
    def _of(cls, variant: Tensor, structure: Any) -> Optional:
        made = cls.__new__(cls)
        made._variant_tensor, made._structure = variant, structure
        return made

    @staticmethod
    def from_value(value: Any) -> Optional:
        """An element that is there."""
        with name_scope("optional"):
            components = structures.converted(value, "value")
            variant = apply_any("OptionalFromValue", structures.carried(components))
            return Optional._of(variant, map_leaves(leaf_of, components))

    @staticmethod
    def none_from_structure(value_structure: Any) -> Optional:
        """An element of this structure that is missing."""
        return Optional._of(apply_any("OptionalNone"), leaves_of(value_structure))

    def has_value(self, name: str | None = None) -> Tensor:
        """Whether there is one."""
        return apply_any("OptionalHasValue", self._variant_tensor, name=name)

    def get_value(self, name: str | None = None) -> Any:
        """The element; a step that asks for a missing one fails."""
        leaves = flatten(self._structure)
        with name_scope(name, "OptionalGetValue", [self._variant_tensor]):
            outputs = apply_any(
                "OptionalGetValue",
                self._variant_tensor,
                output_types=[leaf.flat_dtype for leaf in leaves],
                output_shapes=[leaf.flat_shape for leaf in leaves],
            )
        found = [leaf.unpacked(t) for leaf, t in zip(leaves, outputs, strict=True)]
        return pack_like(self._structure, found)

    @property
    def value_structure(self) -> Any:
        """The specs of the element's components."""
        return specs_of(self._structure)

    @property
    def _kind(self) -> Missing:
        return Missing(self._structure)

    @property
    def _type_spec(self) -> OptionalSpec:
        return OptionalSpec(self.value_structure)


@export("data.experimental.get_next_as_optional", "contrib.data.get_next_as_optional")
def get_next_as_optional(iterator: Any) -> Optional:
    """The next element of an iterator; at its end one that is missing, and no error."""
    leaves = flatten(iterator._structure)
    variant = apply_any(
        "IteratorGetNextAsOptional",
        iterator._resource,
        output_types=[leaf.flat_dtype for leaf in leaves],
        output_shapes=[leaf.flat_shape for leaf in leaves],
    )
    return Optional._of(variant, iterator._structure)
