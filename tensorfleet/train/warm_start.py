"""`tf.train.warm_start`: variables that start from a checkpoint, also where the vocabulary has changed."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorfleet import dtypes
from tensorfleet.api import export
from tensorfleet.graph.apply import apply
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.scopes import GraphKeys, device, get_collection
from tensorfleet.platform import logging
from tensorfleet.train.checkpoint_reader import checkpoint_in, load_checkpoint
from tensorfleet.train.init_from_checkpoint import init_from_checkpoint
from tensorfleet.train.saveables import saveables_of
from tensorfleet.variables.initializers import Zeros
from tensorfleet.variables.partitioned import PartitionedVariable
from tensorfleet.variables.variable import Variable


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
    backup_initializer: Any = None
    axis: int = 0


@export("train.warm_start")
def warm_start(
    ckpt_to_initialize_from: Any,
    vars_to_warm_start: Any = ".*",
    var_name_to_vocab_info: dict[str, VocabInfo] | None = None,
    var_name_to_prev_var_name: dict[str, str] | None = None,
) -> None:
    """Makes variables start with values from a checkpoint; call it before making the initializing operation.

    `vars_to_warm_start` is a regular expression over the trainable variables' names, a list of expressions over
    those of all variables, a list of variables, or None for only those with a `VocabInfo`.
    """
    path = checkpoint_in(ckpt_to_initialize_from)
    vocabularies, names = dict(var_name_to_vocab_info or {}), dict(var_name_to_prev_var_name or {})
    found = _grouped(vars_to_warm_start, vocabularies)
    shapes = load_checkpoint(path).get_variable_to_shape_map()
    logging.info("Warm-starting from: %s", ckpt_to_initialize_from)
    used_names = set()
    plain = {}
    for name, parts in found.items():
        saved = names.get(name, name)
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
    _need_all("prev_var_name", set(names) - used_names)
    _need_all("vocab_info", set(vocabularies) - set(found))


def _need_all(what: str, left: set[str]) -> None:
    if left:
        raise ValueError(
            f"You provided the following variables in var_name_to_{what} that were not used: {sorted(left)}. "
            "Perhaps you misspelled them? Here is the list of viable variable names: "
            f"{sorted(v.op.name for v in get_collection(GraphKeys.GLOBAL_VARIABLES))}"
        )


def _grouped(wanted: Any, vocabularies: dict[str, VocabInfo]) -> dict[str, list[Variable]]:
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
        for part in variable if isinstance(variable, (list, PartitionedVariable)) else [variable]:
            parts = grouped.setdefault(_whole_name(part), [])
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
    rows, columns = variable.shape.as_list()
    part = variable._save_slice_info
    first = part.var_offset[info.axis] if part is not None else 0
    size = (rows, columns)[info.axis]
    words = min(max(info.new_vocab_size - first, 0), size)
    with device(variable.device), device("/cpu:0"):
        places, _ = apply(
            "GenerateVocabRemapping",
            info.new_vocab,
            info.old_vocab,
            new_vocab_offset=min(first, info.new_vocab_size),
            num_new_vocab=words,
            old_vocab_size=info.old_vocab_size,
        )
        if words < size:
            places = apply("ConcatV2", [places, to_tensor([-1] * (size - words), dtypes.int64)], 0)
        other = (columns, rows)[info.axis]
        start = part.var_offset[1 - info.axis] if part is not None else 0
        rest = to_tensor(list(range(start, start + other)), dtypes.int64)
        whole = (info.backup_initializer or Zeros())([rows, columns], dtype=dtypes.float32)
        missing = apply("Reshape", apply("Where", apply("Less", places, to_tensor(0, dtypes.int64))), [-1])
        initial = apply("GatherV2", whole, missing, info.axis)
        value = apply(
            "LoadAndRemapMatrix",
            path,
            saved,
            places if info.axis == 0 else rest,
            rest if info.axis == 0 else places,
            apply("Reshape", initial, [-1]),
            num_rows=rows,
            num_cols=columns,
        )
    made = saveables_of([variable])[0].restore([value], None)
    variable._initializer_op = getattr(made, "op", made)
    variable._initial_value = value
