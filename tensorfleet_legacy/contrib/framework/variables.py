"""`tf.contrib.framework`: variables by role and by name, and restoring them from checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api.variables.scope import VariableScope, get_variable
from tensorfleet.base import dtypes
from tensorfleet.base.arguments import function, like, signature_of
from tensorfleet.base.naming import export, find, publish
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import (
    GraphKeys,
    add_to_collection,
    control_dependencies,
    device,
    get_collection,
    name_scope,
)
from tensorfleet_legacy.contrib.framework.arg_scope import add_arg_scope, given_to


@export("contrib.framework.variable")
@add_arg_scope
def variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Any = None,
    caching_device: Any = None,
    device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    use_resource: bool | None = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Any:
    """A variable made or found like with `tf.get_variable`, on a device given by name or by `device(name)`."""
    given = locals()
    collections = list(collections if collections is not None else [GraphKeys.GLOBAL_VARIABLES])
    collections = list(dict.fromkeys(collections))  # a doubled one would list the variable twice
    unused = ("name", "shape", "device", "synchronization", "aggregation")
    options = {key: value for key, value in given.items() if key not in unused}
    with _on(device):
        return get_variable(name, shape, **{**options, "collections": collections})


def _on(where: Any) -> Any:
    return device(where if where is not None else "")


def _of_model(given: dict[str, Any]) -> Any:
    more = [GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]
    return variable(**{**given, "collections": [*(given["collections"] or []), *more]})


model_variable = add_arg_scope(
    function(
        like(variable, dtype=dtypes.float32),
        "model_variable",
        _of_model,
        "A variable of the model: one that a checkpoint for inference must hold.",
    )
)
publish(model_variable, "contrib.framework.model_variable")


def on_model_device() -> Any:
    """Where `arg_scope` says that variables of the model are: layers say all else of theirs themselves."""
    return _on(given_to(model_variable).get("device"))


@export("contrib.framework.local_variable")
def local_variable(
    initial_value: Any,
    validate_shape: bool = True,
    name: str | None = None,
    use_resource: bool | None = None,
) -> Any:
    """A variable of this process alone, in the graph's LOCAL_VARIABLES."""
    return _unlisted(initial_value, validate_shape, name, use_resource, GraphKeys.LOCAL_VARIABLES)


@export("contrib.framework.global_variable")
def global_variable(
    initial_value: Any,
    validate_shape: bool = True,
    name: str | None = None,
    use_resource: bool | None = None,
) -> Any:
    """A variable that is not trained, in the graph's GLOBAL_VARIABLES."""
    return _unlisted(initial_value, validate_shape, name, use_resource, GraphKeys.GLOBAL_VARIABLES)


def _unlisted(value: Any, validate_shape: bool, name: str | None, use_resource: Any, collection: str) -> Any:
    return find("Variable")(
        initial_value=value,
        trainable=False,
        collections=[collection],
        validate_shape=validate_shape,
        name=name,
        use_resource=use_resource,
    )


@export("contrib.framework.add_model_variable")
def add_model_variable(var: Any) -> None:
    """Counts a variable among the model's."""
    if not any(var is known for known in get_collection(GraphKeys.MODEL_VARIABLES)):
        add_to_collection(GraphKeys.MODEL_VARIABLES, var)


@export("contrib.framework.get_variables")
def get_variables(
    scope: Any = None, suffix: str | None = None, collection: str = GraphKeys.GLOBAL_VARIABLES
) -> list:
    """The variables of a collection, in a scope, with names that end in `suffix`."""
    if isinstance(scope, VariableScope):
        scope = scope.name
    if suffix is not None:
        scope = (scope or "") + ".*" + (suffix if ":" in suffix else suffix + ":")
    return get_collection(collection, scope)


@export("contrib.framework.get_model_variables")
def get_model_variables(scope: Any = None, suffix: str | None = None) -> list:
    """The model's variables."""
    return get_variables(scope, suffix, GraphKeys.MODEL_VARIABLES)


@export("contrib.framework.get_local_variables")
def get_local_variables(scope: Any = None, suffix: str | None = None) -> list:
    """The local variables."""
    return get_variables(scope, suffix, GraphKeys.LOCAL_VARIABLES)


@export("contrib.framework.get_trainable_variables")
def get_trainable_variables(scope: Any = None, suffix: str | None = None) -> list:
    """The variables that are trained."""
    return get_variables(scope, suffix, GraphKeys.TRAINABLE_VARIABLES)


@export("contrib.framework.get_variables_by_suffix")
def get_variables_by_suffix(suffix: str, scope: Any = None) -> list:
    """The variables with names that end in `suffix`."""
    return get_variables(scope=scope, suffix=suffix)


@export("contrib.framework.get_variables_by_name")
def get_variables_by_name(given_name: str, scope: Any = None) -> list:
    """The variables with this as the last part of their names."""
    suffix = "/" + given_name + ":|^" + given_name + ":"
    return get_variables(scope=scope, suffix=suffix)


@export("contrib.framework.get_unique_variable")
def get_unique_variable(var_op_name: str) -> Any:
    """The variable of exactly this name; ValueError when there is none."""
    items = [v for v in get_variables(var_op_name) if v.op.name == var_op_name]
    if not items:
        raise ValueError(
            f"Variable {var_op_name} not found. Its name is that of its operation, without ':0'."
        )
    return items[0]


@export("contrib.framework.get_variable_full_name")
def get_variable_full_name(var: Any) -> str:
    """A variable's name; for a part of one, the whole one's."""
    part = getattr(var, "_save_slice_info", None)
    return part.full_name if part is not None else var.op.name


@export("contrib.framework.get_placeholders")
def get_placeholders(graph: Graph) -> list[Tensor]:
    """The placeholders of a graph, in the order they were made."""
    if not isinstance(graph, Graph):
        raise TypeError(f"Input graph needs to be a Graph: {graph}")
    return [op.outputs[0] for op in graph.get_operations() if op.type == "Placeholder"]


@export("contrib.framework.get_variables_to_restore")
def get_variables_to_restore(include: list | None = None, exclude: list | None = None) -> list:
    """The variables of some scopes (all when None), without those of others."""
    if include is None:
        wanted = get_variables()
    elif isinstance(include, (list, tuple)):
        wanted = [v for scope in include for v in get_variables(scope)]
    else:
        raise TypeError("include is provided but is not a list or a tuple.")
    if exclude is None:
        return wanted
    if not isinstance(exclude, (list, tuple)):
        raise TypeError("exclude is provided but is not a list or a tuple.")
    unwanted = {id(v) for scope in exclude for v in get_variables(scope)}
    return [v for v in wanted if id(v) not in unwanted]


@export("contrib.framework.filter_variables")
def filter_variables(
    var_list: list,
    include_patterns: list | None = None,
    exclude_patterns: list | None = None,
    reg_search: bool = True,
) -> list:
    """The variables whose names match some of the patterns, and none of the others."""
    import re

    match = re.search if reg_search else re.match
    names = [(v, v.op.name) for v in var_list]
    if include_patterns:
        names = [(v, n) for v, n in names if any(match(p, n) for p in include_patterns)]
    return [v for v, n in names if not any(match(p, n) for p in exclude_patterns or [])]


@export("contrib.framework.assign_from_values")
def assign_from_values(var_names_to_values: dict) -> tuple[Operation, dict]:
    """An operation that sets variables by name, and the feeds it needs."""
    feeds: dict = {}
    assigns: list[Any] = []
    for name, value in var_names_to_values.items():
        target = get_unique_variable(name)
        place = find("placeholder")(target.dtype.base_dtype, value.shape, name=f"Assign_{len(assigns)}")
        feeds[place] = value.reshape(target.shape.as_list())
        assigns.append(target.assign(find("reshape")(place, target.shape.as_list())))
    return find("group")(*assigns), feeds


@export("contrib.framework.assign_from_values_fn")
def assign_from_values_fn(var_names_to_values: dict) -> Callable:
    """A function of a session that sets variables by name."""
    assign, feeds = assign_from_values(var_names_to_values)
    return lambda session: session.run(assign, feeds)


def _by_name(var_list: Any) -> dict[str, Any]:
    if isinstance(var_list, dict):
        return dict(var_list)
    named: dict[str, Any] = {}
    for var in var_list:
        parts = named.setdefault(get_variable_full_name(var), [])
        parts.append(var)
    return {name: parts[0] if len(parts) == 1 else parts for name, parts in named.items()}


@export("contrib.framework.assign_from_checkpoint")
def assign_from_checkpoint(
    model_path: str, var_list: Any, ignore_missing_vars: bool = False
) -> tuple[Operation, dict]:
    """An operation that sets variables (or names in the checkpoint to variables) and the feeds it needs."""
    reader = find("train.NewCheckpointReader")(model_path)
    feeds: dict = {}
    assigns: list[Any] = []
    for name, target in _by_name(var_list).items():
        if not reader.has_tensor(name):
            if ignore_missing_vars:
                find("logging.warning")("Variable %s missing in checkpoint %s", name, model_path)
                continue
            raise ValueError(f"Checkpoint is missing variable [{name}]")
        value = reader.get_tensor(name)
        for part in target if isinstance(target, list) else [target]:
            piece = value[_rows_of(part)]
            place = find("placeholder")(part.dtype.base_dtype, part.shape, name=f"Assign_{len(assigns)}")
            feeds[place] = piece.reshape(part.shape.as_list())
            assigns.append(part.assign(place))
    return find("group")(*assigns), feeds


def _rows_of(part: Any) -> tuple:
    info = getattr(part, "_save_slice_info", None)
    if info is None:
        return ()
    return tuple(slice(o, o + n) for o, n in zip(info.var_offset, info.var_shape, strict=True))


@export("contrib.framework.assign_from_checkpoint_fn")
def assign_from_checkpoint_fn(
    model_path: str, var_list: Any, ignore_missing_vars: bool = False, reshape_variables: bool = False
) -> Callable | None:
    """A function of a session that restores variables; None when none of them is in the checkpoint."""
    if not var_list:
        raise ValueError("var_list cannot be empty")
    wanted = _by_name(var_list)
    if ignore_missing_vars:
        reader = find("train.NewCheckpointReader")(model_path)
        for name in [n for n in wanted if not reader.has_tensor(n)]:
            find("logging.warning")("Variable %s missing in checkpoint %s", name, model_path)
            del wanted[name]
        if not wanted:
            find("logging.warning")("No Variables to restore")
            return None
    saver = find("train.Saver")(wanted, reshape=reshape_variables)
    return lambda session: saver.restore(session, model_path)


@export("contrib.framework.zero_initializer")
def zero_initializer(ref: Any, use_locking: bool = True, name: str = "zero_initializer") -> Any:
    """Sets a variable that has no value yet to zeros; running it again is an error."""
    with name_scope(name):
        has_value = ref.is_initialized() if hasattr(ref, "handle") else find("is_variable_initialized")(ref)
        check = find("Assert")(find("logical_not")(has_value), ["input is already initialized"])
        with control_dependencies([check]):
            return ref.assign(find("zeros")(ref.shape, ref.dtype.base_dtype))


@export("contrib.framework.VariableDeviceChooser")
class VariableDeviceChooser:
    """A device for each variable: parameter servers in turn. For the `device` of variables in an `arg_scope`."""

    def __init__(
        self,
        num_tasks: int = 0,
        job_name: str = "ps",
        device_type: str = "CPU",
        device_index: int = 0,
        replica: int | None = None,
    ) -> None:
        self._job_name = job_name
        self._device_type = device_type
        self._device_index = device_index
        self._replica = replica
        self._num_tasks = num_tasks
        self._next_task_id = 0

    def __call__(self, op: Any) -> str:
        spec = find("DeviceSpec")(
            replica=self._replica, device_type=self._device_type, device_index=self._device_index
        )
        if self._num_tasks > 0:
            task, self._next_task_id = self._next_task_id, (self._next_task_id + 1) % self._num_tasks
            spec.job, spec.task = self._job_name, task
        return spec.to_string()


@export("contrib.framework.assert_or_get_global_step")
def assert_or_get_global_step(graph: Any = None, global_step_tensor: Any = None) -> Any:
    """The given global step, checked, else the graph's."""
    if global_step_tensor is None:
        return find("train.get_global_step")(graph)
    find("train.assert_global_step")(global_step_tensor)
    return global_step_tensor


@export("contrib.framework.assert_global_step")
def assert_global_step(global_step_tensor: Any) -> None:
    """Raises TypeError when a tensor cannot count steps."""
    find("train.assert_global_step")(global_step_tensor)


def _of_checkpoints(name: str, arguments: str) -> None:
    """A function of `tf.train` about checkpoints, with the names that its arguments have here."""
    inner = find(f"train.{name}")
    does = f"`tf.train.{name}`."
    body = function(signature_of(arguments), name, lambda given: inner(*given.values()), does)
    publish(body, f"contrib.framework.{name}")


_of_checkpoints("load_checkpoint", "filepattern")
_of_checkpoints("load_variable", "checkpoint_dir, name")
_of_checkpoints("list_variables", "checkpoint_dir")
_of_checkpoints("init_from_checkpoint", "checkpoint_dir, assignment_map")
