"""`tf.contrib.slim.evaluation`: a checkpoint evaluated so many times, once or each time there is a new one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api import export, find
from tensorfleet.graph.operation import Operation, Tensor

_USE_DEFAULT = 0
_PLACES = ("contrib.slim.evaluation", "contrib.slim.python.slim.evaluation")


def _options(
    logdir: str,
    num_evals: int,
    initial_op: Any,
    initial_feed: Any,
    init_fn: Callable | None,
    summary_op: Any,
    summary_feed: Any,
    variables_to_restore: Any,
    hooks: Any,
) -> dict[str, Any]:
    """What both kinds of evaluation give to `tf.contrib.training`."""
    default = not isinstance(summary_op, (Tensor, Operation)) and summary_op == _USE_DEFAULT
    summaries = find("summary.merge_all")() if default else summary_op
    used = [find("contrib.training.StopAfterNEvalsHook")(num_evals)]
    if summaries is not None:
        made = find("contrib.training.SummaryAtEndHook")
        used.append(made(logdir, summary_op=summaries, feed_dict=summary_feed))
    saver = find("train.Saver")(variables_to_restore) if variables_to_restore is not None else None
    scaffold = find("train.Scaffold")(
        init_op=initial_op, init_feed_dict=initial_feed, init_fn=init_fn, saver=saver
    )
    return {"scaffold": scaffold, "hooks": [*used, *(hooks or [])]}


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
    options = _options(
        logdir,
        num_evals,
        initial_op,
        initial_op_feed_dict,
        None,
        summary_op,
        summary_op_feed_dict,
        variables_to_restore,
        hooks,
    )
    return find("contrib.training.evaluate_once")(
        checkpoint_path,
        master=master,
        eval_ops=eval_op,
        feed_dict=eval_op_feed_dict,
        final_ops=final_op,
        final_ops_feed_dict=final_op_feed_dict,
        config=session_config,
        **options,
    )


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
    options = _options(
        logdir,
        num_evals,
        initial_op,
        initial_op_feed_dict,
        init_fn,
        summary_op,
        summary_op_feed_dict,
        variables_to_restore,
        hooks,
    )
    return find("contrib.training.evaluate_repeatedly")(
        checkpoint_dir,
        master=master,
        eval_ops=eval_op,
        feed_dict=eval_op_feed_dict,
        final_ops=final_op,
        final_ops_feed_dict=final_op_feed_dict,
        eval_interval_secs=eval_interval_secs,
        config=session_config,
        max_number_of_evaluations=max_number_of_evaluations,
        timeout=timeout,
        timeout_fn=timeout_fn,
        **options,
    )
