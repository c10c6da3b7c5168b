"""Exports of a model after each evaluation: `tf.estimator.FinalExporter`, `LatestExporter`, `BestExporter`."""

from __future__ import annotations

import abc
import contextlib
import glob
import os
from collections.abc import Callable
from typing import Any

from tensorfleet.base import errors, logging
from tensorfleet.base.files import isdir, listdir, rmtree
from tensorfleet.base.naming import find
from tensorfleet.base.properties import readonly
from tensorfleet_legacy.internals.util.tf_decorator import fn_args


class Exporter(abc.ABC):
    """Is given every evaluated checkpoint, and writes what it likes of it."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The folder, under `export` in the Estimator's own, that it writes to."""

    @abc.abstractmethod
    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: dict,
        is_the_final_export: bool,
    ) -> Any:
        """Exports the checkpoint to `export_path` or lets it be; gives the path of what was written, or None."""


class _SavedModelExporter(Exporter):
    """Writes SavedModels of checkpoints, and keeps the last few or all."""

    def __init__(
        self,
        name: str,
        function: Callable,
        assets_extra: Any,
        as_text: bool,
        exports_to_keep: int | None = None,
    ) -> None:
        if exports_to_keep is not None and exports_to_keep <= 0:
            raise ValueError(
                f"`exports_to_keep`, if provided, must be a positive number. Got {exports_to_keep}"
            )
        self._exports_to_keep = exports_to_keep
        self._name = name
        self._function = function
        self._assets_extra = assets_extra
        self._as_text = as_text

    name = readonly("_name", "The folder that it writes to.")

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: dict,
        is_the_final_export: bool,
    ) -> Any:
        """Writes the model when it is wanted, and deletes the oldest ones."""
        if not self._wants(estimator, eval_result, is_the_final_export):
            return None
        result = estimator.export_saved_model(
            export_path,
            self._function,
            assets_extra=self._assets_extra,
            as_text=self._as_text,
            checkpoint_path=checkpoint_path,
        )
        keep_last(export_path, self._exports_to_keep)
        return result

    def _wants(self, estimator: Any, eval_result: dict, is_the_final_export: bool) -> bool:
        return True


class FinalExporter(_SavedModelExporter):
    """Writes a SavedModel once, when the training has come to `max_steps`."""

    def __init__(
        self, name: str, serving_input_receiver_fn: Callable, assets_extra: Any = None, as_text: bool = False
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)

    def _wants(self, estimator: Any, eval_result: dict, is_the_final_export: bool) -> bool:
        if is_the_final_export:
            logging.info("Performing the final export in the end of training.")
        return is_the_final_export


class LatestExporter(_SavedModelExporter):
    """Writes a SavedModel after each evaluation and keeps the last few."""

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable,
        assets_extra: Any = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)


def _loss_smaller(best_eval_result: dict, current_eval_result: dict) -> bool:
    """Whether the current loss is the smaller one."""
    for what, result in (("best", best_eval_result), ("current", current_eval_result)):
        if not result or "loss" not in result:
            raise ValueError(f"{what}_eval_result cannot be empty or no loss is found in it.")
    return best_eval_result["loss"] > current_eval_result["loss"]


class BestExporter(_SavedModelExporter):
    """Writes a SavedModel when `compare_fn(best_eval_result, current_eval_result)` says that it is the best so far.

    What was best before a restart is read from the event files of evaluations, `event_file_pattern` under the model's
    folder.
    """

    def __init__(
        self,
        name: str = "best_exporter",
        serving_input_receiver_fn: Any = None,
        event_file_pattern: str | None = "eval/*.tfevents.*",
        compare_fn: Callable[..., bool] = _loss_smaller,
        assets_extra: Any = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)
        _check_comparison(compare_fn)
        self._compare_fn = compare_fn
        self._event_file_pattern = event_file_pattern
        self._model_dir: str | None = None
        self._best: dict | None = None
        self._has_exported = False

    def _wants(self, estimator: Any, eval_result: dict, is_the_final_export: bool) -> bool:
        if self._model_dir != estimator.model_dir and self._event_file_pattern:
            logging.info("Loading best metric from event files.")
            self._model_dir = estimator.model_dir
            self._best = self._best_of_events(os.path.join(self._model_dir, self._event_file_pattern))
        if not self._is_best(eval_result):
            return False
        logging.info("Performing best model export.")
        self._best, self._has_exported = eval_result, True
        return True

    def _is_best(self, result: dict) -> bool:
        if self._best is None:
            return True
        # The events have this evaluation already: the first one of all is equal to itself, not better.
        if not self._has_exported and all(result.get(key) == value for key, value in self._best.items()):
            return True
        return self._compare_fn(best_eval_result=self._best, current_eval_result=result)

    def _best_of_events(self, pattern: str) -> dict | None:
        best = None
        for path in sorted(glob.glob(pattern)):
            for event in find("train.summary_iterator")(path):
                values = event.summary.value
                result = {v.tag: v.simple_value for v in values if v.HasField("simple_value")}
                if result and (best is None or self._compare_fn(best, result)):
                    best = result
        return best


def _check_comparison(function: Any) -> None:
    if function is None:
        raise ValueError("`compare_fn` must not be None.")
    wanted, given = {"best_eval_result", "current_eval_result"}, set(fn_args(function))
    for name in sorted(wanted - given):
        raise ValueError(f"compare_fn ({function}) must include {name} argument.")
    if given - wanted:
        raise ValueError(f"compare_fn ({function}) has following not expected args: {sorted(given - wanted)}")


def keep_last(folder: str, number: int | None) -> None:
    """Deletes all exports but the last ones; they are named by their time."""
    if number is None or not isdir(folder):
        return
    exports = sorted((e for e in listdir(folder) if len(e) == 10 and e.isdigit()), key=int)
    for old in exports[:-number]:
        with contextlib.suppress(errors.OpError):  # another task deletes it too
            rmtree(os.path.join(folder, old))
