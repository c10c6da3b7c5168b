"""`tf.estimator.WarmStartSettings`: which variables begin with the values of which checkpoint."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from tensorfleet.api.saved_model import names
from tensorfleet.api.train.warm_start import warm_start
from tensorfleet.base import logging
from tensorfleet.base.files import exists


class _Settings(NamedTuple):
    ckpt_to_initialize_from: str
    vars_to_warm_start: Any
    var_name_to_vocab_info: dict
    var_name_to_prev_var_name: dict


class WarmStartSettings(_Settings):
    """The arguments of `tf.train.warm_start` for an Estimator without a checkpoint of its own."""

    def __new__(
        cls,
        ckpt_to_initialize_from: str,
        vars_to_warm_start: Any = ".*",
        var_name_to_vocab_info: dict | None = None,
        var_name_to_prev_var_name: dict | None = None,
    ) -> WarmStartSettings:
        if not ckpt_to_initialize_from:
            raise ValueError("`ckpt_to_initialize_from` MUST be set in WarmStartSettings")
        return super().__new__(
            cls,
            ckpt_to_initialize_from,
            vars_to_warm_start,
            var_name_to_vocab_info or {},
            var_name_to_prev_var_name or {},
        )


def settings_of(given: Any) -> WarmStartSettings | None:
    """The settings, also of the path of a checkpoint, of its folder or of a SavedModel."""
    if given is None:
        return None
    if isinstance(given, (str, bytes, os.PathLike)):
        path = os.fsdecode(given)
        variables = os.path.join(path, names.VARIABLES_DIRECTORY, names.VARIABLES_FILE)
        if exists(f"{variables}.index"):
            logging.info("Warm-starting from a SavedModel")
            path = variables
        return WarmStartSettings(path)
    if isinstance(given, WarmStartSettings):
        return given
    raise ValueError(f"warm_start_from must be a string or a WarmStartSettings, instead got {type(given)}")


def maybe_warm_start(settings: WarmStartSettings | None) -> None:
    """Makes the graph's variables begin as the settings say."""
    if settings is not None:
        logging.info("Warm-starting with WarmStartSettings: %s", settings)
        warm_start(*settings)
