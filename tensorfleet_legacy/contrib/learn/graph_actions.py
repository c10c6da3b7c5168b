"""`tf.contrib.learn.graph_actions`: training, evaluation and inference of a graph, from before there were estimators."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tensorfleet.api.summary.writer import FileWriter, FileWriterCache
from tensorfleet.base import errors, logging
from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, add_to_collection, get_collection
from tensorfleet_legacy.contrib.learn.monitors import NanLossDuringTrainingError
from tensorfleet_legacy.contrib.learn.monitors_saving import get_default_monitors

_STOP_SECONDS = 120
# The end of an input: that of a queue, or of an iterator that `feed_fn` reads.
_ENDS = (errors.OutOfRangeError, StopIteration)


def clear_summary_writers() -> None:
    """Closes the event files that these functions have written to."""
    FileWriterCache.clear()


def get_summary_writer(logdir: str) -> FileWriter:
    """The writer of a folder, always the same."""
    return FileWriterCache.get(logdir)


# -- training ----------------------------------------------------------------------------------------


def train(
    graph: Any,
    output_dir: str,
    train_op: Any,
    loss_op: Tensor,
    global_step_tensor: Any = None,
    init_op: Any = None,
    init_feed_dict: Any = None,
    init_fn: Any = None,
    log_every_steps: int = 10,
    supervisor_is_chief: bool = True,
    supervisor_master: str = "",
    supervisor_save_model_secs: float = 600,
    keep_checkpoint_max: int = 5,
    supervisor_save_summaries_steps: int = 100,
    feed_fn: Callable | None = None,
    steps: int | None = None,
    fail_on_nan_loss: bool = True,
    monitors: Any = None,
    max_steps: int | None = None,
) -> Any:
    """Trains a graph with checkpoints and summaries in `output_dir`, from the latest checkpoint on; the last loss.

    `steps` are counted from there, `max_steps` from the beginning. `feed_fn()` gives what is fed in each step.
    """
    if steps is not None and max_steps is not None:
        raise ValueError("Can not provide both steps and max_steps.")
    if not output_dir:
        raise ValueError(f"Output directory should be non-empty {output_dir}.")
    if train_op is None:
        raise ValueError("Missing train_op.")
    if loss_op is None:
        raise ValueError("Missing loss_op.")
    with graph.as_default():
        step = find("contrib.framework.assert_or_get_global_step")(graph, global_step_tensor)
        if step is None:
            raise ValueError('No "global_step" was provided or found in the graph.')
        if max_steps is None and steps:
            max_steps = _step_in(output_dir, step) + steps
        writer = get_summary_writer(output_dir) if supervisor_is_chief else None
        monitors = _monitors(monitors, supervisor_is_chief, loss_op, supervisor_save_summaries_steps, writer)
        for monitor in monitors:
            monitor.begin(max_steps=max_steps)
        saver = _saver_of(graph, keep_checkpoint_max)
    options = {} if init_op is None else {"init_op": init_op}
    supervisor = find("train.Supervisor")(
        graph,
        init_feed_dict=init_feed_dict,
        is_chief=supervisor_is_chief,
        logdir=output_dir,
        saver=saver,
        global_step=step,
        summary_op=None,
        summary_writer=writer,
        save_model_secs=supervisor_save_model_secs,
        init_fn=init_fn,
        **options,
    )
    loop = _Loop(supervisor, [train_op, loss_op], step, monitors, feed_fn, max_steps)
    while True:
        try:
            return loop.run(supervisor_master, log_every_steps, fail_on_nan_loss)
        except errors.AbortedError:  # a parameter server has been started anew
            logging.warning("Training got Aborted error. Keep training.")


def _monitors(given: Any, chief: bool, loss: Tensor, summary_steps: int, writer: Any) -> list:
    if given:
        return [m for m in given if chief or m.run_on_all_workers]
    if not chief:
        return []
    summary = find("summary.merge_all")()
    return get_default_monitors(loss, summary, save_summary_steps=summary_steps, summary_writer=writer)


def _step_in(folder: str, step: Any) -> int:
    try:
        return int(find("train.load_variable")(folder, step.op.name))
    except (errors.NotFoundError, ValueError):
        return 0


def _saver_of(graph: Any, keep: int = 5) -> Any:
    saved = [
        *graph.get_collection(GraphKeys.GLOBAL_VARIABLES),
        *graph.get_collection(GraphKeys.SAVEABLE_OBJECTS),
    ]
    return find("train.Saver")(saved, sharded=True, max_to_keep=keep) if saved else None


class _Loop:
    """The steps of one session of `train`."""

    def __init__(
        self, supervisor: Any, tensors: list, step: Any, monitors: list, feed_fn: Any, last: int | None
    ) -> None:
        self._supervisor, self._tensors, self._step = supervisor, tensors, step
        self._monitors, self._feed_fn, self._last = monitors, feed_fn, last

    def run(self, master: str, log_every: int, fail_on_nan: bool) -> Any:
        """All steps; then a checkpoint, also after a failure, which is raised again."""
        supervisor, loss, failure = self._supervisor, None, None
        session = supervisor.PrepareSession(master=master, start_standard_services=True)
        supervisor.StartQueueRunners(session)
        with session:
            try:
                for loss in self._steps(session, log_every):
                    _check_number(loss, fail_on_nan)
            except errors.OutOfRangeError as e:
                logging.warning("The input of the training has ended: %s.", e)
            except BaseException as e:
                failure = e
            try:
                self._end(session, goes_on=isinstance(failure, errors.AbortedError))
            except BaseException as e:
                if failure is None:
                    raise
                logging.error("Got exception during tf.learn final checkpoint %s.", e)
        if failure is not None:
            raise failure
        return loss

    def _steps(self, session: Any, log_every: int) -> Iterator[Any]:
        """The loss of each step."""
        count = logged = int(session.run(self._step))
        while not self._supervisor.ShouldStop() and (self._last is None or count < self._last):
            started = time.monotonic()
            try:
                feed = self._feed_fn() if self._feed_fn is not None else None
            except StopIteration:
                logging.info("The feeds are exhausted.")
                return
            outputs, should_stop = _run_with_monitors(
                session, count + 1, list(self._tensors), feed, self._monitors
            )
            loss = outputs[self._tensors[1].name]
            yield loss
            if should_stop:
                return
            before, count = count, int(session.run(self._step))
            if count <= before:
                logging.error(
                    "Global step was not incremented by train op at step %s: new step %d", before, count
                )
            if count - logged >= log_every or (self._last is not None and count >= self._last):
                seconds = time.monotonic() - started
                logging.info("training step %d, loss = %.5f (%.3f sec/batch).", count, loss, seconds)
                logged = count

    def _end(self, session: Any, goes_on: bool) -> None:
        supervisor = self._supervisor
        supervisor.Stop(close_summary_writer=False)
        if not supervisor.is_chief:
            return
        count = int(session.run(self._step))
        logging.info("Saving checkpoint for step %d to checkpoint: %s.", count, supervisor.save_path)
        supervisor.saver.save(session, supervisor.save_path, global_step=count)
        for monitor in () if goes_on else self._monitors:
            monitor.end()


def _check_number(loss: Any, fail: bool) -> None:
    if not np.isnan(loss):
        return
    text = "Model diverged with loss = NaN."
    if fail:
        logging.error(text)
        raise NanLossDuringTrainingError
    logging.warning(text)


def _run_with_monitors(session: Any, step: int, tensors: list, feed_dict: Any, monitors: list) -> tuple:
    """Runs tensors and those that monitors ask for; all by name, and whether a monitor wants to stop."""
    for monitor in monitors:
        tensors = tensors + monitor.step_begin(step)
    tensors = list(dict.fromkeys(tensors))
    values = session.run(tensors, feed_dict=feed_dict)
    outputs = {t.name if isinstance(t, Tensor) else t: v for t, v in zip(tensors, values, strict=True)}
    wishes = [monitor.step_end(step, outputs) for monitor in monitors]
    return outputs, any(wishes)


# -- evaluation --------------------------------------------------------------------------------------


def _first(collection: str, make: Callable) -> Any:
    """The first of a collection, which gets one where it is empty."""
    collected = get_collection(collection)
    if not collected:
        result = make()
        if result is not None:
            add_to_collection(collection, result)
        return result
    return collected[0]


def evaluate(
    graph: Any,
    output_dir: str,
    checkpoint_path: str | None,
    eval_dict: dict,
    update_op: Any = None,
    global_step_tensor: Any = None,
    supervisor_master: str = "",
    log_every_steps: int = 10,
    feed_fn: Callable | None = None,
    max_steps: int | None = None,
) -> tuple[Any, int]:
    """Evaluates a checkpoint until the input ends or for `max_steps`: the values of `eval_dict`, and the global step.

    With `update_op` the values are read after that has run for all steps. They are written as summaries too.
    """
    if not output_dir:
        raise ValueError(f"Output directory should be non-empty {output_dir}.")
    with graph.as_default():
        step = find("contrib.framework.assert_or_get_global_step")(graph, global_step_tensor)
        with _restored(checkpoint_path, supervisor_master) as session:
            count = int(session.run(step))
            results = _evaluated(session, eval_dict, update_op, log_every_steps, feed_fn, max_steps)
    _write(output_dir, results, count)
    return results, count


@contextmanager
def _restored(checkpoint: str | None, master: str) -> Iterator[Any]:
    """A session of the default graph with the variables of a checkpoint, and its queue runners."""
    local = lambda: find("group")(find("local_variables_initializer")(), find("tables_initializer")())  # noqa: E731
    saver = _first(GraphKeys.SAVERS, lambda: find("train.Saver")() if find("global_variables")() else None)
    ready = get_collection(GraphKeys.READY_FOR_LOCAL_INIT_OP)
    manager = find("train.SessionManager")(
        local_init_op=_first(GraphKeys.LOCAL_INIT_OP, local),
        ready_op=_first(GraphKeys.READY_OP, find("report_uninitialized_variables")),
        ready_for_local_init_op=ready[0] if ready else None,
    )
    session, initialized = manager.recover_session(master=master, saver=saver, checkpoint_dir=checkpoint)
    with session:
        if not initialized:
            logging.warning("Failed to initialize from %s.", checkpoint)
            session.run(find("global_variables_initializer")())
            if checkpoint and saver is not None:
                saver.restore(session, checkpoint)
            session.run(local())
        with _running(session):
            yield session


@contextmanager
def _running(session: Any) -> Iterator[None]:
    """The queue runners of a session run; behind it they have ended."""
    coordinator = find("train.Coordinator")()
    threads = find("train.start_queue_runners")(session, coordinator)
    try:
        yield
    finally:
        coordinator.request_stop()
        try:
            coordinator.join(threads, stop_grace_period_secs=_STOP_SECONDS)
        except (RuntimeError, errors.CancelledError) as e:
            logging.warning("Coordinator didn't stop cleanly: %s", e)


def _evaluated(
    session: Any, wanted: dict, update: Any, log_every: int, feed_fn: Any, most: int | None
) -> Any:
    results: Any = None
    known, feed = 0, None
    done = 0
    try:
        while most is None or done < most:
            feed = feed_fn() if feed_fn is not None else None
            if update is not None:
                session.run(update, feed_dict=feed)
            else:
                results = session.run(wanted, feed_dict=feed)
            done += 1
            known = done if update is None else known
            if done % log_every == 0:
                results = session.run(wanted, feed_dict=feed) if known != done else results
                known = done
                logging.info("Results after %d steps: %s.", done, _text(results))
    except _ENDS as e:
        logging.info("The input of the evaluation has ended: %s.", e)
    # Values that no update changes any more are read once, at the end.
    return session.run(wanted, feed_dict=feed) if known != done or results is None else results


def _text(results: dict) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sorted(results.items()))


def _write(folder: str, results: dict, step: int) -> None:
    from tensorfleet.base.protos import Summary

    logging.info("Saving evaluation summary for step %d: %s", step, _text(results))
    summary = Summary()
    for name, value in results.items():
        if isinstance(value, (float, np.float32)):
            summary.value.add(tag=name, simple_value=float(value))
        elif value is not None:
            logging.warning("Skipping summary for %s, must be a float or np.float32.", name)
    writer = get_summary_writer(folder)
    writer.add_summary(summary, step)
    writer.flush()


# -- values ------------------------------------------------------------------------------------------


def run_n(
    output_dict: dict, feed_dict: Any = None, restore_checkpoint_path: str | None = None, n: int = 1
) -> list:
    """The values of `output_dict`, `n` times."""
    return run_feeds(output_dict, itertools.repeat(feed_dict, n), restore_checkpoint_path)


def run_feeds(*args: Any, **kwargs: Any) -> list:
    """See `run_feeds_iter`; all values as a list."""
    return list(run_feeds_iter(*args, **kwargs))


def run_feeds_iter(
    output_dict: dict, feed_dicts: Iterable, restore_checkpoint_path: str | None = None
) -> Iterator[Any]:
    """The values of `output_dict` for each of the feeds, with variables of a checkpoint or with new ones."""
    if not output_dict:
        raise ValueError(f"output_dict is invalid: {output_dict}.")
    if not feed_dicts:
        raise ValueError(f"feed_dicts is invalid: {feed_dicts}.")
    graph = find("contrib.framework.get_graph_from_inputs")(list(output_dict.values()))
    with graph.as_default(), find("Session")("") as session:
        saver = _saver_of(graph) if restore_checkpoint_path else None
        if saver is not None:
            logging.info("Loading model from checkpoint: %s.", restore_checkpoint_path)
            saver.restore(session, restore_checkpoint_path)
        elif not restore_checkpoint_path:
            session.run(find("global_variables_initializer")())
        session.run([find("local_variables_initializer")(), find("tables_initializer")()])
        with _running(session):
            for feed in feed_dicts:
                yield session.run(output_dict, feed)


def infer(restore_checkpoint_path: str | None, output_dict: dict, feed_dict: Any = None) -> Any:
    """The values of `output_dict` with the variables of a checkpoint; None: with new ones."""
    return run_feeds(output_dict, [feed_dict], restore_checkpoint_path)[0]
