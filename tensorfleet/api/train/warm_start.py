"""`tf.train.warm_start`: variables that start from a checkpoint, also where the vocabulary has changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorfleet.api.train.checkpoint_ops import load_and_remap_matrix_initializer
from tensorfleet.api.train.checkpoint_reader import checkpoint_in, load_checkpoint, object_keys
from tensorfleet.api.train.init_from_checkpoint import init_from_checkpoint, start_with
from tensorfleet.api.variables.partitioned import PartitionedVariable, PartitionInfo
from tensorfleet.api.variables.variable import Variable
from tensorfleet.base import dtypes, logging
from tensorfleet.base.naming import export
from tensorfleet.base.types import TensorLike
from tensorfleet.graph.scopes import GraphKeys, device, get_collection

if TYPE_CHECKING:
    from tensorfleet.api.train.types import PathLike


@export("train.VocabInfo", "estimator.VocabInfo")
class VocabInfo(NamedTuple):
    """The vocabulary that a variable's rows (or columns, with `axis=1`) follow, and the one of the checkpoint.

    Both are files of a word in each line. Rows of new words start with `backup_initializer`, else with zeros.
    """

    new_vocab: str
    new_vocab_size: int
    num_oov_buckets: int
    old_vocab: str
    old_vocab_size: int = -1
    backup_initializer: Callable[..., TensorLike] | None = None
    axis: int = 0


@export("train.warm_start")
def warm_start(
    ckpt_to_initialize_from: PathLike,
    vars_to_warm_start: str | Sequence[Any] | None = ".*",
    var_name_to_vocab_info: dict[str, VocabInfo] | None = None,
    var_name_to_prev_var_name: dict[str, str] | None = None,
) -> None:
    """Makes variables start with values from a checkpoint; call it before making the initializing operation.

    `vars_to_warm_start` is a regular expression over the trainable variables' names, a list of expressions over
    those of all variables, a list of variables, or None for only those with a `VocabInfo`.
    """
    path = checkpoint_in(ckpt_to_initialize_from)
    vocabularies, names = dict(var_name_to_vocab_info or {}), dict(var_name_to_prev_var_name or {})
    variables = _grouped(vars_to_warm_start, vocabularies)
    shapes = load_checkpoint(path).get_variable_to_shape_map()
    keys = object_keys(path)
    logging.info("Warm-starting from: %s", ckpt_to_initialize_from)
    used_names = set()
    plain = {}
    for name, parts in variables.items():
        saved = names.get(name, name)
        saved = keys.get(saved, saved)
        used_names |= {name} & set(names)
        if saved not in shapes:
            raise ValueError(
                f"Variable {saved} (for {name}) is not in the checkpoint {path}. It holds {sorted(shapes)}."
            )
        if name in vocabularies:
            for part in parts:
                _from_vocabulary(part, path, saved, vocabularies[name])
        else:
            plain[saved] = parts[0] if len(parts) == 1 else parts
    for saved, target in plain.items():
        init_from_checkpoint(path, {saved: target})
    if vars_to_warm_start is not None:
        _need_all("prev_var_name", set(names) - used_names)
    _need_all("vocab_info", set(vocabularies) - set(variables))


def _need_all(what: str, left: set[str]) -> None:
    if left:
        raise ValueError(
            f"You provided the following variables in var_name_to_{what} that were not used: {sorted(left)}. "
            "Perhaps you misspelled them? Here is the list of viable variable names: "
            f"{sorted(v.op.name for v in get_collection(GraphKeys.GLOBAL_VARIABLES))}"
        )


def _grouped(
    wanted: str | Sequence[Any] | None, vocabularies: dict[str, VocabInfo]
) -> dict[str, list[Variable]]:
    """The variables to start, by name: a partitioned one with all its parts."""
    if isinstance(wanted, str):
        variables = get_collection(GraphKeys.TRAINABLE_VARIABLES, wanted)
    elif wanted is None:
        variables = []
    elif isinstance(wanted, (list, tuple)) and all(isinstance(v, str) for v in wanted):
        variables = [v for pattern in wanted for v in get_collection(GraphKeys.GLOBAL_VARIABLES, pattern)]
    elif isinstance(wanted, (list, tuple)) and all(
        isinstance(v, (Variable, PartitionedVariable, list)) for v in wanted
    ):
        variables = list(wanted)
    else:
        raise ValueError("If `vars_to_warm_start` is a list, it must be all `Variable` or all `str`.")
    for name in vocabularies:
        variables += [v for v in get_collection(GraphKeys.GLOBAL_VARIABLES) if _whole_name(v) == name]
    grouped: dict[str, list[Variable]] = {}
    for variable in variables:
        for part in _parts(variable):
            parts = grouped.setdefault(_whole_name(part), [])
            # A pattern and a vocabulary may name the same variable.
            if not any(part is known for known in parts):
                parts.append(part)
    return grouped


def _whole_name(variable: Variable) -> str:
    info = variable._save_slice_info
    return variable.op.name if info is None else info.full_name


def _from_vocabulary(variable: Variable, path: str, saved: str, info: VocabInfo) -> None:
    """Starts a matrix, or a part of one, with the rows (or columns) of the words it shares with the checkpoint."""
    if variable.dtype.base_dtype != dtypes.float32 or variable.shape.ndims != 2:
        raise ValueError(f"{variable.op.name} has a VocabInfo, and is not a matrix of float32.")
    part = variable._save_slice_info
    whole = variable.shape.as_list() if part is None else part.full_shape
    across: dict[str, Any] = {
        "new_col_vocab_size": info.new_vocab_size,
        "new_col_vocab_file": info.new_vocab,
        "old_col_vocab_file": info.old_vocab,
        "num_col_oov_buckets": whole[1] - info.new_vocab_size,
        "new_row_vocab_size": whole[0],
    }
    down: dict[str, Any] = {
        "new_row_vocab_size": info.new_vocab_size,
        "new_row_vocab_file": info.new_vocab,
        "old_row_vocab_file": info.old_vocab,
        "old_row_vocab_size": info.old_vocab_size,
        "new_col_vocab_size": whole[1],
    }
    initial = load_and_remap_matrix_initializer(
        path, saved, **(across if info.axis else down), initializer=info.backup_initializer
    )
    with device(variable.device), device("/cpu:0"):
        place = None if part is None else PartitionInfo(part.full_shape, part.var_offset)
        value = initial(variable.shape.as_list(), partition_info=place)
    start_with(variable, value)


@export("python.training.warm_starting_util._warm_start_var_with_vocab")
def _warm_start_var_with_vocab(
    var: Variable | PartitionedVariable | list[Variable],
    current_vocab_path: str,
    current_vocab_size: int,
    prev_ckpt: str,
    prev_vocab_path: str,
    previous_vocab_size: int = -1,
    current_oov_buckets: int = 0,
    prev_tensor_name: str | None = None,
    initializer: Callable[..., TensorLike] | None = None,
    axis: int = 0,
) -> None:
    parts = _parts(var)
    info = VocabInfo(
        current_vocab_path,
        current_vocab_size,
        current_oov_buckets,
        prev_vocab_path,
        previous_vocab_size,
        initializer,
        axis,
    )
    for part in parts:
        _from_vocabulary(part, checkpoint_in(prev_ckpt), prev_tensor_name or _whole_name(part), info)


@export("python.training.warm_starting_util._get_var_info")
def _get_var_info(
    var: Variable | PartitionedVariable | list[Variable], prev_tensor_name: str | None = None
) -> tuple[str, Any]:
    parts = _parts(var)
    return prev_tensor_name or _infer_var_name(parts), parts if len(parts) > 1 else parts[0]


@export("python.training.warm_starting_util._infer_var_name")
def _infer_var_name(var: list[Variable]) -> str:
    return _whole_name(var[0])


def _parts(var: Variable | PartitionedVariable | list[Variable]) -> list[Variable]:
    """The parts of a variable: itself, when it is whole."""
    parts = list(var) if isinstance(var, (list, PartitionedVariable)) else [var]
    if not all(isinstance(part, Variable) for part in parts):
        raise TypeError(
            f"var MUST be one of the following: a Variable, list of Variable or PartitionedVariable: {var}"
        )
    return parts
