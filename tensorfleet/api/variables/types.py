"""Types of arguments that many functions about variables take. Nothing looks at them at run time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tensorfleet.base.types import ShapeLike, TensorLike

if TYPE_CHECKING:
    from tensorfleet.api.variables.scope import _ReuseMode
    from tensorfleet.api.variables.variable import Variable
    from tensorfleet.base.devices import DeviceSpec
    from tensorfleet.graph.operation import Operation, Tensor

#: An initializer, its class, a function that makes the first value, or that value.
InitializerLike: TypeAlias = object

#: Called with `shape` and `dtype` of a variable: the number of parts along each axis.
Partitioner: TypeAlias = Callable[..., Sequence[int]]

#: From a variable to its penalty, None for none.
Regularizer: TypeAlias = Callable[[Any], "Tensor | None"]

#: From the value of a variable after an update to the value that it gets.
Constraint: TypeAlias = Callable[[Any], TensorLike]

#: A custom getter: called with the next getter and the arguments of `get_variable`.
Getter: TypeAlias = Callable[..., Any]

#: Called with the arguments of `tf.Variable`; gives the variable.
VariableMaker: TypeAlias = Callable[..., "Variable"]

#: Whether `get_variable` finds variables: False, True, `tf.AUTO_REUSE`, or None for the setting of the scope.
Reuse: TypeAlias = "bool | _ReuseMode | None"

#: A device as `tf.device` takes it.
DeviceLike: TypeAlias = "str | DeviceSpec | Callable[[Operation], str] | None"

#: A shape that may be known only to a running step.
AnyShape: TypeAlias = "ShapeLike | Tensor"

#: The names of collections.
CollectionKeys: TypeAlias = Collection[Hashable]
