"""Ops by name: `OpDefLibrary.apply_op`, the registry of op definitions, and operations made by hand."""

from __future__ import annotations

from typing import Any

from tensorfleet.base.naming import export
from tensorfleet.graph import registry
from tensorfleet.graph.apply import apply_any
from tensorfleet.graph.graphdef import op_def
from tensorfleet.graph.registry import REQUIRED, OpSpec


@export("python.framework.op_def_library.OpDefLibrary")
class OpDefLibrary:
    """Adds operations to the graph by the name of their op."""

    def add_op(self, op_def: Any) -> None:
        """Accepted for an op that is registered; there are no ops from definitions alone."""
        registry.get(op_def.name)

    def add_op_list(self, op_list: Any) -> None:
        """Accepts a list of ops that are registered."""
        for each in op_list.op:
            self.add_op(each)

    def apply_op(self, op_type_name: str, name: str | None = None, **keywords: Any) -> Any:
        """Adds an operation, with its inputs and attributes by name."""
        return apply_op(op_type_name, name, **keywords)


@export("python.framework.op_def_library.apply_op")
def apply_op(op_type_name: str, name: str | None = None, **keywords: Any) -> Any:
    """Adds an operation, with its inputs and attributes by name."""
    spec = registry.find(op_type_name)
    if spec is None:
        raise RuntimeError(f"Unrecognized Op name {op_type_name}")
    if name is not None and not isinstance(name, str):
        raise TypeError(f"{op_type_name} name must be a string, not {name!r}")
    _check_inferred(spec, keywords)
    inputs = [_taken(arg.name, keywords) for arg in spec.inputs]
    given = {a for arg in spec.inputs for a in (arg.type_attr, arg.number_attr, arg.type_list_attr) if a}
    attrs = {n: _attribute(spec, n, keywords) for n in spec.attrs if n not in given}
    if keywords:
        names = ", ".join(sorted(keywords))
        raise TypeError(f"apply_op() got unexpected keyword arguments: {names}")
    return apply_any(op_type_name, *inputs, name=name, **{n: v for n, v in attrs.items() if v is not None})


def _check_inferred(spec: OpSpec, keywords: dict[str, Any]) -> None:
    for arg in spec.inputs:
        for attr in (arg.type_attr, arg.number_attr, arg.type_list_attr):
            if attr and attr in keywords:
                raise TypeError(f"Should not specify value for inferred attr '{attr}'.")


def _taken(name: str, keywords: dict[str, Any]) -> Any:
    for key in (name, f"{name}_"):  # the names of what Python has itself end with an underscore
        if key in keywords:
            return keywords.pop(key)
    raise TypeError(f"No argument for input {name}")


def _attribute(spec: OpSpec, name: str, keywords: dict[str, Any]) -> Any:
    for key in (name, f"{name}_"):
        if key in keywords:
            value = keywords.pop(key)
            if value is None and spec.attrs[name].default is REQUIRED:
                kind = {"type": "DataType"}.get(spec.attrs[name].kind, spec.attrs[name].kind)
                raise TypeError(f"Expected {kind} for argument '{name}' not None.")
            return value
    if spec.attrs[name].default is REQUIRED:
        raise TypeError(f"No argument for attr {name}")
    return None


@export("python.framework.op_def_registry.get_registered_ops")
def get_registered_ops() -> dict[str, Any]:
    """The definitions of all ops, by name."""
    return {name: op_def(spec) for name, spec in registry.all_ops().items()}


@export("python.framework.op_def_registry.get")
def get(name: str) -> Any:
    """The definition of an op; None when there is no such op."""
    spec = registry.find(name)
    return None if spec is None else op_def(spec)


@export("python.framework.op_def_registry.register_op_list")
def register_op_list(op_list: Any) -> None:
    """Accepts the definitions of ops that are registered."""
    OpDefLibrary().add_op_list(op_list)


@export("python.framework.ops._NodeDef")
def node_def(op_type: str, name: str, device: Any = None, attrs: Any = None) -> Any:
    """A node with an op type, a name, and attributes as messages."""
    from tensorfleet.base.protos import NodeDef

    result = NodeDef(op=op_type, name=name, device=str(device or ""))
    for key, value in (attrs or {}).items():
        result.attr[key].CopyFrom(value)
    return result
