"""`tf.contrib.gan`: operations that train both sides, and the loop around them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api.train.session_run_hook import SessionRunHook
from tensorfleet.base.naming import find
from tensorfleet.graph.scopes import GraphKeys, get_collection, name_scope
from tensorfleet_legacy.contrib.gan.namedtuples import CycleGANModel, GANTrainOps, GANTrainSteps
from tensorfleet_legacy.contrib.layers.optimizers import create_train_op

_ONE_EACH = GANTrainSteps(1, 1)


def _updates(kwargs: dict, scopes: tuple[str, str], check: bool) -> list[list]:
    """The update operations of each side."""
    asked = kwargs.pop("update_ops", None)
    asked = get_collection(GraphKeys.UPDATE_OPS) if asked is None else list(asked)
    items = [get_collection(GraphKeys.UPDATE_OPS, scope) for scope in scopes]
    used = {id(op) for side in items for op in side}
    left = [op for op in asked if id(op) not in used]
    if check and left:
        raise ValueError(f"There are unused update ops: {left}")
    wanted = {id(op) for op in asked}
    return [[op for op in side if id(op) in wanted] for side in items]


def gan_train_ops(
    model: Any,
    loss: Any,
    generator_optimizer: Any,
    discriminator_optimizer: Any,
    check_for_unused_update_ops: bool = True,
    is_chief: bool = True,
    **kwargs: Any,
) -> GANTrainOps:
    """An operation that trains the generator, one that trains the discriminator, and one that counts steps."""
    step = find("train.get_or_create_global_step")()
    optimizers = generator_optimizer, discriminator_optimizer
    if isinstance(model, CycleGANModel):
        each = []
        for name, part, losses in (
            ("cyclegan_x2y_train", model.model_x2y, loss.loss_x2y),
            ("cyclegan_y2x_train", model.model_y2x, loss.loss_y2x),
        ):
            with name_scope(name):
                each.append(
                    gan_train_ops(part, losses, *optimizers, check_for_unused_update_ops, is_chief, **kwargs)
                )
        generators, discriminators = zip(*(ops[:2] for ops in each), strict=True)
        return GANTrainOps(generators, discriminators, step.assign_add(1))
    scopes = model.generator_scope.name, model.discriminator_scope.name
    updates = _updates(kwargs, scopes, check_for_unused_update_ops)
    result, hooks = [], []
    sides = (
        ("generator", loss.generator_loss, model.generator_variables),
        ("discriminator", loss.discriminator_loss, model.discriminator_variables),
    )
    for (side, value, variables), optimizer, own in zip(sides, optimizers, updates, strict=True):
        counter = None
        if isinstance(optimizer, find("train.SyncReplicasOptimizer")):
            counter = find("get_variable")(
                f"dummy_global_step_{side}",
                [],
                step.dtype.base_dtype,
                find("zeros_initializer")(),
                trainable=False,
                collections=[GraphKeys.GLOBAL_VARIABLES],
            )
            own = [*own, counter.assign(step)]
            hooks.append(optimizer.make_session_run_hook(is_chief))
        with name_scope(f"{side}_train"):
            result.append(
                create_train_op(
                    value,
                    optimizer,
                    variables_to_train=variables,
                    global_step=counter,
                    update_ops=own,
                    **kwargs,
                )
            )
    generator, discriminator = result
    return GANTrainOps(generator, discriminator, step.assign_add(1), hooks)


class RunTrainOpsHook(SessionRunHook):
    """Runs operations so many times before each step."""

    def __init__(self, train_ops: Any, train_steps: int) -> None:
        self._train_ops = list(train_ops) if isinstance(train_ops, (list, tuple)) else [train_ops]
        self._train_steps = train_steps

    def before_run(self, run_context: Any) -> None:
        for _ in range(self._train_steps):
            run_context.session.run(self._train_ops)


def get_sequential_train_hooks(train_steps: GANTrainSteps = _ONE_EACH) -> Callable:
    """A function that gives hooks: first the generator's steps, then the discriminator's."""

    def hooks(train_ops: GANTrainOps) -> list:
        return [
            RunTrainOpsHook(train_ops.generator_train_op, train_steps.generator_train_steps),
            RunTrainOpsHook(train_ops.discriminator_train_op, train_steps.discriminator_train_steps),
            *train_ops.train_hooks,
        ]

    return hooks


def get_joint_train_hooks(train_steps: GANTrainSteps = _ONE_EACH) -> Callable:
    """A function that gives hooks: as many steps of both at once as there are, then what is left of either."""
    both = min(train_steps)

    def hooks(train_ops: GANTrainOps) -> list:
        generator, discriminator = train_ops.generator_train_op, train_ops.discriminator_train_op
        return [
            RunTrainOpsHook([generator, discriminator], both),
            RunTrainOpsHook(generator, train_steps.generator_train_steps - both),
            RunTrainOpsHook(discriminator, train_steps.discriminator_train_steps - both),
            *train_ops.train_hooks,
        ]

    return hooks


def gan_train(
    train_ops: GANTrainOps,
    logdir: str | None,
    get_hooks_fn: Callable = get_sequential_train_hooks(),  # noqa: B008
    master: str = "",
    is_chief: bool = True,
    scaffold: Any = None,
    hooks: Any = None,
    chief_only_hooks: Any = None,
    save_checkpoint_secs: Any = 600,
    save_summaries_steps: Any = 100,
    config: Any = None,
) -> Any:
    """Trains until a hook says to stop; gives the last global step."""
    if logdir is None and is_chief:
        for label, value in (
            ("save_summaries_steps", save_summaries_steps),
            ("save_checkpoint_secs", save_checkpoint_secs),
        ):
            if value:
                raise ValueError(f"logdir cannot be None when {label} is not None")
    step = None
    with find("train.MonitoredTrainingSession")(
        master=master,
        is_chief=is_chief,
        checkpoint_dir=logdir,
        scaffold=scaffold,
        hooks=[*(hooks or []), *get_hooks_fn(train_ops)],
        chief_only_hooks=chief_only_hooks,
        save_checkpoint_secs=save_checkpoint_secs,
        save_summaries_steps=save_summaries_steps,
        config=config,
    ) as session:
        while not session.should_stop():
            step = session.run(train_ops.global_step_inc_op)
    return step


def get_sequential_train_steps(train_steps: GANTrainSteps = _ONE_EACH) -> Callable:
    """A `train_step_fn` for `slim.learning.train`: first the generator's steps, then the discriminator's."""

    def steps(sess: Any, train_ops: GANTrainOps, global_step: Any, train_step_kwargs: dict) -> tuple:
        train_step = find("contrib.slim.learning.train_step")
        given = {key: value for key, value in train_step_kwargs.items() if key != "should_stop"}
        total = 0.0
        for op, count in zip(train_ops[:2], train_steps, strict=True):
            for _ in range(count):
                total += train_step(sess, op, global_step, given)[0]
        sess.run(train_ops.global_step_inc_op)
        should_stop = train_step_kwargs.get("should_stop")
        return total, False if should_stop is None else sess.run(should_stop)

    return steps
