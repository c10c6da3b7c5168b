"""Saving where iterators are in their datasets, beside or among the variables of a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorfleet.api.data.iterator import GLOBAL_ITERATORS
from tensorfleet.api.train.checkpoint_state import latest_checkpoint
from tensorfleet.api.train.hooks_saving import CheckpointSaverHook
from tensorfleet.api.train.saveables import SaveableObject, SaveSpec
from tensorfleet.api.train.saver import Saver
from tensorfleet.api.train.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from tensorfleet.base.naming import export
from tensorfleet.graph.apply import apply, apply_op
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import colocate_with, control_dependencies, get_collection

if TYPE_CHECKING:
    from tensorfleet.api.train.coordinator import Coordinator
    from tensorfleet.api.train.types import GlobalStep, PathLike
    from tensorfleet.session.session import BaseSession


@export("python.data.ops.iterator_ops._IteratorSaveable")
class IteratorSaveable(SaveableObject):
    """The place of an iterator in its dataset; of one whose initializer is given, also of one that is not initialized."""

    def __init__(
        self, iterator_resource: Tensor, name: str | None = None, *, initializer: Operation | None = None
    ) -> None:
        with colocate_with(iterator_resource):
            state = apply("SerializeIterator", iterator_resource)
        self._initializer = initializer
        name = name or iterator_resource.name
        super().__init__(iterator_resource, [SaveSpec(state, "", f"{name}-state")], name)

    def restore(self, restored_tensors: list[Tensor], restored_shapes: list[Any] | None) -> Operation:
        """Goes to the place; an iterator whose initializer needs nothing fed is initialized first."""
        first = (
            [self._initializer] if self._initializer is not None and not _is_fed(self._initializer) else []
        )
        with colocate_with(self.op), control_dependencies(first):
            return apply_op("DeserializeIterator", self.op, restored_tensors[0])


def _is_fed(op: Operation) -> bool:
    """Whether an operation needs a placeholder."""
    stack, seen = [op], {op}
    while stack:
        at = stack.pop()
        if at.type.startswith("Placeholder") and at.type != "PlaceholderWithDefault":
            return True
        before = [*(t.op for t in at.inputs), *at.control_inputs]
        stack += [o for o in before if o not in seen]
        seen.update(before)
    return False


def _initializer_of(resource: Tensor) -> Operation | None:
    initializers = [op for op in resource.consumers() if op.type == "MakeIterator"]
    return initializers[0] if len(initializers) == 1 else None


@export("data.experimental.make_saveable_from_iterator", "contrib.data.make_saveable_from_iterator")
def make_saveable_from_iterator(iterator: Any) -> SaveableObject:
    """A saveable with which `tf.train.Saver` keeps the place of an iterator.

    Add it to `tf.GraphKeys.SAVEABLE_OBJECTS`, or give it to the Saver.
    """
    return IteratorSaveable(iterator._iterator_resource, initializer=iterator._initializer)


@export("data.experimental.CheckpointInputPipelineHook", "contrib.data.CheckpointInputPipelineHook")
class CheckpointInputPipelineHook(SessionRunHook):
    """Saves where all iterators of the graph are, in checkpoints of their own next to the model's, and restores it.

    `estimator` tells where and how often: its `model_dir`, and of its `config` `save_checkpoints_secs`,
    `save_checkpoints_steps`, `num_worker_replicas`, `task_type` and `task_id`.
    """

    def __init__(self, estimator: Any) -> None:
        config = getattr(estimator, "config", None) or estimator._config
        name = "input"
        if getattr(config, "num_worker_replicas", 1) > 1:
            name = f"input_{config.task_type}_{config.task_id}"
        self._folder, self._state_name = estimator.model_dir, f"checkpoint_{name}"
        self._hook = CheckpointSaverHook(
            estimator.model_dir,
            save_secs=config.save_checkpoints_secs,
            save_steps=config.save_checkpoints_steps,
            checkpoint_basename=f"{name}.ckpt",
        )

    def begin(self) -> None:
        """Finds the iterators."""
        saveables = [
            IteratorSaveable(t, initializer=_initializer_of(t)) for t in get_collection(GLOBAL_ITERATORS)
        ]
        if not saveables:
            raise ValueError("CheckpointInputPipelineHook found no iterator in the graph.")
        self._saver = _Saver(self._state_name, saveables)
        self._hook._saver = self._saver
        self._hook.begin()

    def after_create_session(self, session: BaseSession, coord: Coordinator) -> None:
        """Restores the last state, or saves the first. A session that is made again restores too."""
        path = latest_checkpoint(self._folder, self._state_name)
        if path is not None:
            self._saver.restore(session, path)
        else:
            self._hook.after_create_session(session, coord)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Asks for the step."""
        return self._hook.before_run(run_context)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Saves when it is due."""
        self._hook.after_run(run_context, run_values)

    def end(self, session: BaseSession) -> None:
        """Saves the last state."""
        self._hook.end(session)


class _Saver(Saver):
    """A saver that keeps its list of checkpoints apart from the model's."""

    def __init__(self, state_name: str, saveables: Sequence[SaveableObject]) -> None:
        self._state_name = state_name
        super().__init__(saveables, sharded=True)

    def save(
        self,
        sess: BaseSession,
        save_path: PathLike,
        global_step: int | GlobalStep | None = None,
        *given: object,
        **options: object,
    ) -> str | None:
        """Saves without the graph, which the model's checkpoints have."""
        name = self._state_name
        return super().save(sess, save_path, global_step, latest_filename=name, write_meta_graph=False)
