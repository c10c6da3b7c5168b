"""Checkpoints of an Estimator that are read, and SavedModels that are written of them."""

from __future__ import annotations

import os
import time
from typing import Any

from tensorfleet.api.saved_model import names
from tensorfleet.api.saved_model.builder import SavedModelBuilder
from tensorfleet.api.train.checkpoint_reader import load_checkpoint
from tensorfleet.api.train.checkpoint_state import latest_checkpoint
from tensorfleet.api.train.saver import Saver
from tensorfleet.api.train.scaffold import Scaffold
from tensorfleet.api.train.waiting import StallTimer
from tensorfleet.base import errors, logging, settings
from tensorfleet.base.files import copy, exists, file_path, makedirs, rename
from tensorfleet.graph.graph import Graph
from tensorfleet.graph.scopes import GraphKeys, get_collection, set_random_seed
from tensorfleet.session.session import Session
from tensorfleet_legacy.estimator.export_output import outputs_for_mode, signatures
from tensorfleet_legacy.estimator.model_fn import ModeKeys

# The graph of the mode that comes first is saved with its variables: one that trains has the most.
_TAGS = {ModeKeys.TRAIN: "train", ModeKeys.EVAL: "eval", ModeKeys.PREDICT: names.SERVING}
_MAX_ATTEMPTS = 10


def global_step_in(folder: str) -> int:
    """The global step of the latest checkpoint of a folder; 0 when there is none."""
    path = latest_checkpoint(folder)
    if not path:
        return 0
    reader = load_checkpoint(path)
    return int(reader.get_tensor(GraphKeys.GLOBAL_STEP)) if reader.has_tensor(GraphKeys.GLOBAL_STEP) else 0


def for_checkpoints() -> StallTimer:
    """For checkpoints that the chief writes."""
    return StallTimer(
        settings.CHECKPOINT_SECONDS,
        "See whether the chief still trains, and start it again if it does not",
    )


def timestamped_folder(base: str) -> str:
    """A folder that does not exist yet, named by the time in seconds."""
    for _ in range(_MAX_ATTEMPTS):
        result = os.path.join(base, str(int(time.time())))
        if not exists(result):
            return result
        time.sleep(1)  # the name has the seconds only
    raise RuntimeError(f"Failed to obtain a unique export directory name after {_MAX_ATTEMPTS} attempts.")


def export(
    estimator: Any, base: Any, functions: dict, assets: dict | None, as_text: bool, path: str, strip: bool
) -> bytes:
    """Writes a SavedModel of a checkpoint, complete under another name before it gets its own."""
    modes = [mode for mode in _TAGS if functions.get(mode)]
    if not modes:
        raise ValueError(f"No valid modes for exporting found. Got {list(functions)}.")
    target = timestamped_folder(file_path(base))
    temporary = os.path.join(os.path.dirname(target), f"temp-{os.path.basename(target)}")
    builder = SavedModelBuilder(temporary)
    for i, mode in enumerate(modes):
        _add_graph(estimator, builder, mode, functions[mode], path, with_variables=i == 0, strip=strip)
    builder.save(as_text)
    for relative, source in (assets or {}).items():
        copied = os.path.join(temporary, "assets.extra", relative)
        makedirs(os.path.dirname(copied))
        copy(source, copied)
    rename(temporary, target)
    return os.fsencode(target)


def _add_graph(
    estimator: Any,
    builder: SavedModelBuilder,
    mode: str,
    function: Any,
    path: str,
    with_variables: bool,
    strip: bool,
) -> None:
    with Graph().as_default() as graph:
        estimator._create_and_assert_global_step(graph)
        set_random_seed(estimator.config.tf_random_seed)
        receiver = function()
        labels = getattr(receiver, "labels", None)
        spec = estimator._call_model_fn(receiver.features, labels, mode, estimator.config)
        outputs = spec.export_outputs
        if mode != ModeKeys.PREDICT:
            outputs = outputs_for_mode(
                mode, None, spec.predictions or None, spec.loss, spec.eval_metric_ops or None
            )
        others = getattr(receiver, "receiver_tensors_alternatives", None)
        serving = mode == ModeKeys.PREDICT
        result = signatures(receiver.receiver_tensors, outputs, others, serving)
        _tell_signatures(result, serving)
        init_op = spec.scaffold.local_init_op
        if init_op is None:
            init_op = Scaffold.default_local_init_op()
        saver = spec.scaffold.saver or Saver(sharded=True)
        options: dict[str, Any] = {
            "tags": [_TAGS[mode]],
            "signature_def_map": result,
            "assets_collection": get_collection(GraphKeys.ASSET_FILEPATHS),
            "main_op": init_op,
            "saver": saver,
            "strip_default_attrs": strip,
        }
        if not with_variables:
            builder.add_meta_graph(**options)
            return
        with Session(config=estimator._session_config) as session:
            _restore(saver, session, path, mode)
            builder.add_meta_graph_and_variables(session, **options)


def _restore(saver: Saver, session: Session, path: str, mode: str) -> None:
    try:
        saver.restore(session, path)
    except errors.NotFoundError as e:
        raise ValueError(
            "Could not load all requested variables from checkpoint. Please make sure your model_fn does not expect "
            f"variables that were not saved in the checkpoint.\n\nEncountered error with mode `{mode}` while restoring "
            f"checkpoint from: `{path}`. {e}"
        ) from e


def _tell_signatures(made: dict, serving: bool) -> None:
    for name, signature in made.items():
        logging.info("Signature %s of the exported model: %s", name, signature.method_name)
    if serving and names.DEFAULT_SIGNATURE not in made:
        logging.warning("Export includes no default signature!")
