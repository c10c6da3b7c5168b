"""`tf.contrib.slim.evaluation`: a checkpoint evaluated so many times, once or each time there is a new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base.naming import export, find
from tensorfleet.graph.operation import Operation, Tensor

_USE_DEFAULT = 0
_PLACES = ("contrib.slim.evaluation", "contrib.slim.python.slim.evaluation")


def _options(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `tf.contrib.training` for both kinds of evaluation."""
    summaries, restored = given["summary_op"], given["variables_to_restore"]
    if not isinstance(summaries, (Tensor, Operation)) and summaries == _USE_DEFAULT:
        summaries = find("summary.merge_all")()
    used = [find("contrib.training.StopAfterNEvalsHook")(given["num_evals"])]
    if summaries is not None:
        result = find("contrib.training.SummaryAtEndHook")
        used.append(result(given["logdir"], summary_op=summaries, feed_dict=given["summary_op_feed_dict"]))
    scaffold = find("train.Scaffold")(
        init_op=given["initial_op"],
        init_feed_dict=given["initial_op_feed_dict"],
        init_fn=given.get("init_fn"),
        saver=None if restored is None else find("train.Saver")(restored),
    )
    return {
        "master": given["master"],
        "scaffold": scaffold,
        "eval_ops": given["eval_op"],
        "feed_dict": given["eval_op_feed_dict"],
        "final_ops": given["final_op"],
        "final_ops_feed_dict": given["final_op_feed_dict"],
        "config": given["session_config"],
        "hooks": [*used, *(given["hooks"] or [])],
    }


@export(*(f"{place}.evaluate_once" for place in _PLACES))
def evaluate_once(
    master: str,
    checkpoint_path: str,
    logdir: str,
    num_evals: int = 1,
    initial_op: Any = None,
    initial_op_feed_dict: Any = None,
    eval_op: Any = None,
    eval_op_feed_dict: Any = None,
    final_op: Any = None,
    final_op_feed_dict: Any = None,
    summary_op: Any = _USE_DEFAULT,
    summary_op_feed_dict: Any = None,
    variables_to_restore: Any = None,
    session_config: Any = None,
    hooks: Any = None,
) -> Any:
    """Restores a checkpoint, runs `eval_op` so many times, writes summaries; the value of `final_op`."""
    return find("contrib.training.evaluate_once")(checkpoint_path, **_options(locals()))


@export(*(f"{place}.evaluation_loop" for place in _PLACES))
def evaluation_loop(
    master: str,
    checkpoint_dir: str,
    logdir: str,
    num_evals: int = 1,
    initial_op: Any = None,
    initial_op_feed_dict: Any = None,
    init_fn: Callable | None = None,
    eval_op: Any = None,
    eval_op_feed_dict: Any = None,
    final_op: Any = None,
    final_op_feed_dict: Any = None,
    summary_op: Any = _USE_DEFAULT,
    summary_op_feed_dict: Any = None,
    variables_to_restore: Any = None,
    eval_interval_secs: float = 60,
    max_number_of_evaluations: int | None = None,
    session_config: Any = None,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
    hooks: Any = None,
) -> Any:
    """Evaluates each new checkpoint of a directory; the value of `final_op` for the last."""
    return find("contrib.training.evaluate_repeatedly")(
        checkpoint_dir,
        eval_interval_secs=eval_interval_secs,
        max_number_of_evaluations=max_number_of_evaluations,
        timeout=timeout,
        timeout_fn=timeout_fn,
        **_options(locals()),
    )
