"""`tf.contrib.slim`: learning, and small helpers.

Layers and variables of slim are those of `tf.contrib.layers` and `tf.contrib.framework`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from tensorfleet.api.train.waiting import step_stall_timer
from tensorfleet.base.naming import export, find
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import get_default_graph, name_scope
from tensorfleet_legacy.contrib.layers.optimizers import clip_gradient_norms, multiply_gradients
from tensorfleet_legacy.contrib.layers.optimizers import create_train_op as make_train_op

_USE_DEFAULT = 0
_JOIN_TIMEOUT_SECONDS = 120  # for each thread of a supervisor


@export("contrib.slim.learning.create_train_op", "contrib.slim.create_train_op")
def create_train_op(
    total_loss: Any,
    optimizer: Any,
    global_step: Any = _USE_DEFAULT,
    update_ops: Any = None,
    variables_to_train: Any = None,
    clip_gradient_norm: float = 0,
    summarize_gradients: bool = False,
    gate_gradients: int = 1,
    aggregation_method: Any = None,
    colocate_gradients_with_ops: bool = False,
    gradient_multipliers: Any = None,
    check_numerics: bool = True,
) -> Tensor:
    """A tensor with the loss that, when computed, makes one step of training."""
    given = locals()
    del given["clip_gradient_norm"], given["gradient_multipliers"]

    def transform(grads: list) -> list:
        if gradient_multipliers:
            grads = multiply_gradients(grads, gradient_multipliers)
        return clip_gradient_norms(grads, clip_gradient_norm) if clip_gradient_norm > 0 else grads

    return make_train_op(**given, transform_grads_fn=transform)


@export("contrib.slim.learning.train_step")
def train_step(sess: Any, train_op: Any, global_step: Any, train_step_kwargs: dict) -> tuple[Any, bool]:
    """One step, logged now and then; the loss, and whether training is over."""
    begin = time.time()
    should_trace = train_step_kwargs.get("should_trace")
    if should_trace is not None and sess.run(should_trace):
        loss, number = _traced(sess, train_op, global_step, train_step_kwargs)
    else:
        loss, number = sess.run([train_op, global_step])
    should_log = train_step_kwargs.get("should_log")
    if should_log is not None and sess.run(should_log):
        find("logging.info")("global step %d: loss = %.4f (%.3f sec/step)", number, loss, time.time() - begin)
    should_stop = train_step_kwargs.get("should_stop")
    return loss, bool(sess.run(should_stop)) if should_stop is not None else False


def _traced(sess: Any, train_op: Any, global_step: Any, kwargs: dict) -> tuple[Any, Any]:
    """The loss and the number of a step, whose times are left in a file for chrome://tracing."""
    options = find("RunOptions")(trace_level=find("RunOptions").FULL_TRACE)
    metadata = find("RunMetadata")()
    loss = sess.run(train_op, options=options, run_metadata=metadata)
    number = sess.run(global_step)
    path = os.path.join(kwargs["logdir"], f"tf_trace-{number}.json")
    find("logging.info")("Writing trace to %s", path)
    with find("gfile.Open")(path, "w") as file:
        file.write(find("fleet.Timeline")(metadata.step_stats).generate_chrome_trace_format())
    if kwargs.get("summary_writer") is not None:
        kwargs["summary_writer"].add_run_metadata(metadata, f"run_metadata-{number}", number)
    return loss, number


@export("contrib.slim.learning.train")
def train(
    train_op: Any,
    logdir: str | None,
    train_step_fn: Callable = train_step,
    train_step_kwargs: Any = _USE_DEFAULT,
    log_every_n_steps: int = 1,
    graph: Any = None,
    master: str = "",
    is_chief: bool = True,
    global_step: Any = None,
    number_of_steps: int | None = None,
    init_op: Any = _USE_DEFAULT,
    init_feed_dict: Any = None,
    local_init_op: Any = _USE_DEFAULT,
    init_fn: Callable | None = None,
    ready_op: Any = _USE_DEFAULT,
    summary_op: Any = _USE_DEFAULT,
    save_summaries_secs: int = 600,
    summary_writer: Any = _USE_DEFAULT,
    startup_delay_steps: int = 0,
    saver: Any = None,
    save_interval_secs: int = 600,
    sync_optimizer: Any = None,
    session_config: Any = None,
    session_wrapper: Callable | None = None,
    trace_every_n_steps: int | None = None,
    ignore_live_threads: bool = False,
) -> Any:
    """Trains under a `Supervisor`: checkpoints, summaries, recovery; the last loss.

    Ends after `number_of_steps` global steps, when the input ends, or when the step function says so.
    """
    if train_op is None:
        raise ValueError("train_op cannot be None.")
    if logdir is None and (saver is not None or (_is_given(summary_op) and summary_op is not None)):
        raise ValueError("Cannot provide summary_op or saver when logdir=None")
    if logdir is None and trace_every_n_steps is not None:
        raise ValueError("Cannot provide trace_every_n_steps because logdir=None")
    if sync_optimizer is not None and startup_delay_steps > 0:
        raise ValueError("startup_delay_steps must be zero when sync_optimizer is supplied.")
    graph = graph or get_default_graph()
    with graph.as_default():
        step = global_step if global_step is not None else find("train.get_or_create_global_step")()
        sync = _sync_options(sync_optimizer, is_chief)
        if train_step_kwargs == _USE_DEFAULT:
            train_step_kwargs = _stop_and_log(step, number_of_steps, log_every_n_steps)
            if trace_every_n_steps is not None:
                traces = find("equal")(find("mod")(step, trace_every_n_steps), 0)
                train_step_kwargs.update(should_trace=traces, logdir=logdir)
    options = {
        "init_op": init_op,
        "local_init_op": local_init_op,
        "ready_op": ready_op,
        "summary_op": summary_op if logdir is not None else None,
        "summary_writer": summary_writer if logdir is not None else None,
        "saver": _USE_DEFAULT if saver is None else saver,
        **sync.pop("options", {}),
    }
    supervisor = find("train.Supervisor")(
        graph=graph,
        is_chief=is_chief,
        logdir=logdir,
        init_feed_dict=init_feed_dict,
        global_step=step,
        save_summaries_secs=save_summaries_secs,
        save_model_secs=save_interval_secs,
        init_fn=init_fn,
        **{name: value for name, value in options.items() if _is_given(value)},
    )
    with supervisor.managed_session(master, start_standard_services=False, config=session_config) as sess:
        sess = session_wrapper(sess) if session_wrapper is not None else sess
        services: list = []
        if is_chief and logdir is not None:
            services = supervisor.start_standard_services(sess) or []
        elif startup_delay_steps > 0:
            _wait_for_step(sess, step, min(startup_delay_steps, number_of_steps or sys.maxsize))
        supervisor.start_queue_runners(sess)
        if is_chief and sync_optimizer is not None:
            supervisor.start_queue_runners(sess, [sync["queue_runner"]])
            sess.run(sync["init_tokens"])
        if train_step_kwargs and "should_trace" in train_step_kwargs:
            train_step_kwargs["summary_writer"] = supervisor.summary_writer
        loss = _loop(supervisor, sess, train_step_fn, train_op, step, train_step_kwargs or {})
        if logdir is not None and is_chief and supervisor.saver is not None:
            supervisor.request_stop()
            for service in services:  # a checkpoint that one of them still writes would count as the last
                service.join(_JOIN_TIMEOUT_SECONDS)
            supervisor.saver.save(sess, supervisor.save_path, global_step=supervisor.global_step)
    return loss


def _is_given(value: Any) -> bool:
    return isinstance(value, (Tensor, Operation)) or value is None or value != _USE_DEFAULT


def _sync_options(optimizer: Any, is_chief: bool) -> dict[str, Any]:
    """The additions of a `SyncReplicasOptimizer`: its start, and for the chief the threads that hand out tokens."""
    if optimizer is None:
        return {}
    start = optimizer.chief_init_op if is_chief else optimizer.local_step_init_op
    options = {"local_init_op": start, "ready_for_local_init_op": optimizer.ready_for_local_init_op}
    return {
        "options": options,
        "queue_runner": optimizer.get_chief_queue_runner(),
        "init_tokens": optimizer.get_init_tokens_op(),
    }


def _stop_and_log(step: Any, number_of_steps: int | None, log_every: int) -> dict[str, Any]:
    """Tensors that say when to stop and when to log."""
    with name_scope("train_step"):
        result = {"should_log": find("equal")(find("mod")(step, log_every), 0)}
        if number_of_steps:
            result["should_stop"] = find("greater_equal")(step, number_of_steps)
    return result


def _loop(supervisor: Any, sess: Any, step_fn: Callable, train_op: Any, step: Any, kwargs: dict) -> Any:
    loss = None
    try:
        while not supervisor.should_stop():
            loss, stop = step_fn(sess, train_op, step, kwargs)
            if stop:
                find("logging.info")("Stopping Training.")
                supervisor.request_stop()
    except find("errors.OutOfRangeError"):
        find("logging.info")("Caught OutOfRangeError. Stopping Training.")
    return loss


def _wait_for_step(sess: Any, step: Any, number: int) -> None:
    """Waits until the others have made so many steps."""
    patience = step_stall_timer()
    while (now := sess.run(step)) < number:
        patience.look(now, f"global step {number} before starting training; it is {now}")
        time.sleep(1)


@export("contrib.slim.prefetch_queue.prefetch_queue")
def prefetch_queue(
    tensors: Any,
    capacity: int = 8,
    num_threads: int = 1,
    dynamic_pad: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """A queue that threads keep filled with what `tensors` (a list or a dict) computes."""
    items = list(tensors.values()) if isinstance(tensors, dict) else list(tensors)
    names = list(tensors) if isinstance(tensors, dict) else None
    with name_scope(name, "prefetch_queue", items):
        items = [find("convert_to_tensor")(t) for t in items]
        queue = find("PaddingFIFOQueue" if dynamic_pad else "FIFOQueue")(
            capacity=capacity,
            dtypes=[t.dtype.base_dtype for t in items],
            shapes=[t.shape for t in items],
            names=names,
            shared_name=shared_name,
        )
        put = queue.enqueue(dict(zip(names, items, strict=True)) if names else items)
        find("train.add_queue_runner")(find("train.QueueRunner")(queue, [put] * num_threads))
        fill = find("to_float")(queue.size()) * (1.0 / capacity)
        find("summary.scalar")(f"fraction_of_{capacity}_full", fill)
        return queue


@export("contrib.slim.model_analyzer.analyze_vars")
def analyze_vars(variables: list, print_info: bool = False) -> tuple[int, int]:
    """How many numbers and bytes some variables hold."""
    size = sum(v.shape.num_elements() for v in variables)
    total = sum(v.shape.num_elements() * v.dtype.size for v in variables)
    if print_info:
        for v in variables:
            print(
                v.name, v.shape, f"[{v.shape.num_elements()}, bytes: {v.shape.num_elements() * v.dtype.size}]"
            )
        print("Total size of variables:", size)
        print("Total bytes of variables:", total)
    return size, total
