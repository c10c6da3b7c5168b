"""Training that masks weights, and graphs in which masked weights are constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base.arguments import function, signature_of
from tensorfleet.base.naming import find
from tensorfleet_legacy.contrib.model_pruning.pruning import MASKED_NAME
from tensorfleet_legacy.contrib.slim.learning import train as slim_train
from tensorfleet_legacy.contrib.slim.learning import train_step

_ARGUMENTS = """
    train_op, logdir, mask_update_op, train_step_fn=step, train_step_kwargs=0, log_every_n_steps=1, graph=None, master="",
    is_chief=True, global_step=None, number_of_steps=None, init_op=0, init_feed_dict=None, local_init_op=0, init_fn=None,
    ready_op=0, summary_op=0, save_summaries_secs=600, summary_writer=0, startup_delay_steps=0, saver=None,
    save_interval_secs=600, sync_optimizer=None, session_config=None, trace_every_n_steps=None
"""


def _train(given: dict[str, Any]) -> Any:
    masks, step = given.pop("mask_update_op"), given.pop("train_step_fn")

    def step_and_mask(sess: Any, train_op: Any, global_step: Any, kwargs: dict) -> tuple:
        loss, stop = step(sess, train_op, global_step, kwargs)
        sess.run(masks)
        return loss, stop

    result: Callable = step_and_mask
    return slim_train(train_step_fn=result, **given)


train = function(
    signature_of(" ".join(_ARGUMENTS.split()), step=train_step),
    "train",
    _train,
    "`slim.learning.train` that also runs `mask_update_op` after each step.",
)


def graph_def_from_checkpoint(checkpoint_dir: str, output_node_names: list[str]) -> Any:
    """The graph of the latest checkpoint in a folder, its variables as constants."""
    path = find("train.latest_checkpoint")(checkpoint_dir)
    if path is None:
        raise ValueError(f"Could not find a checkpoint at: {checkpoint_dir}.")
    saver = find("train.import_meta_graph")(f"{path}.meta", clear_devices=True)
    with find("Session")() as sess:
        saver.restore(sess, path)
        graph_def = find("get_default_graph")().as_graph_def()
        return find("graph_util.convert_variables_to_constants")(sess, graph_def, output_node_names)


def strip_pruning_vars_fn(input_graph_def: Any, output_node_names: list[str]) -> Any:
    """A graph of constants in which masked weights are constants, and masks and thresholds are gone."""
    names = [node.name for node in input_graph_def.node if MASKED_NAME in node.name]
    with find("Graph")().as_default() as graph:
        find("import_graph_def")(input_graph_def, name="")
        with find("Session")(graph=graph) as sess:
            values = sess.run({name: f"{name}:0" for name in names}) if names else {}
    stripped = find("GraphDef")()
    stripped.versions.CopyFrom(input_graph_def.versions)
    for node in input_graph_def.node:
        result = stripped.node.add()
        if node.name not in values:
            result.CopyFrom(node)
            continue
        result.name, result.op = node.name, "Const"
        result.attr["dtype"].CopyFrom(node.attr["T"])
        result.attr["value"].tensor.CopyFrom(find("make_tensor_proto")(values[node.name]))
    return find("graph_util.extract_sub_graph")(stripped, output_node_names)
