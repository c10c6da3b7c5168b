"""`tf.contrib.layers.optimize_loss` and `tf.contrib.training`: training operations, hyper-parameters, summaries."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.base.naming import export, find, publish
from tensorfleet.graph.indexed_slices import IndexedSlices
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, control_dependencies, get_collection, name_scope

OPTIMIZER_CLS_NAMES: dict[str, Callable] = {
    "Adagrad": find("train.AdagradOptimizer"),
    "Adam": find("train.AdamOptimizer"),
    "Ftrl": find("train.FtrlOptimizer"),
    "Momentum": lambda learning_rate: find("train.MomentumOptimizer")(learning_rate, momentum=0.9),
    "RMSProp": find("train.RMSPropOptimizer"),
    "SGD": find("train.GradientDescentOptimizer"),
}
publish(OPTIMIZER_CLS_NAMES, "contrib.layers.OPTIMIZER_CLS_NAMES")
OPTIMIZER_SUMMARIES = ["learning_rate", "loss", "gradients", "gradient_norm", "global_gradient_norm"]
publish(OPTIMIZER_SUMMARIES, "contrib.layers.OPTIMIZER_SUMMARIES")
_USE_GLOBAL_STEP = 0


@export("contrib.layers.optimize_loss")
def optimize_loss(
    loss: Any,
    global_step: Any,
    learning_rate: Any,
    optimizer: Any,
    gradient_noise_scale: float | None = None,
    gradient_multipliers: Any = None,
    clip_gradients: Any = None,
    learning_rate_decay_fn: Callable | None = None,
    update_ops: Any = None,
    variables: Any = None,
    name: str | None = None,
    summaries: Sequence[str] | None = None,
    colocate_gradients_with_ops: bool = False,
    increment_global_step: bool = True,
) -> Tensor:
    """A tensor with the loss that, when computed, makes one step of training.

    The optimizer is a name ("SGD", "Adam", "Adagrad", "RMSProp", "Momentum", "Ftrl"), a class, an object, or a
    function of the learning rate.
    """
    loss = find("convert_to_tensor")(loss)
    if not loss.shape.is_compatible_with([]):
        raise ValueError(f"Expected scalar shape for the loss, saw shape: {loss.shape}.")
    for summary in summaries or ():
        if summary not in OPTIMIZER_SUMMARIES:
            raise ValueError(
                f"Summaries should be one of [{', '.join(OPTIMIZER_SUMMARIES)}], you provided {summary}."
            )
    if global_step is None:
        global_step = find("train.get_global_step")()
    else:
        find("train.assert_global_step")(global_step)
    with variable_scope(name, "OptimizeLoss", [loss, global_step]):
        updates = list(get_collection(GraphKeys.UPDATE_OPS) if update_ops is None else update_ops)
        if updates:
            loss = _after(updates, loss)
        shown = ["loss", "learning_rate", "global_gradient_norm"] if summaries is None else summaries
        rate = _rate(learning_rate, learning_rate_decay_fn, global_step)
        result = _optimizer(optimizer, rate)
        grads = result.compute_gradients(
            loss,
            variables if variables is not None else find("trainable_variables")(),
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        if gradient_noise_scale is not None:
            grads = _noisy(grads, gradient_noise_scale)
        if gradient_multipliers is not None:
            scaled = multiply_gradients([(g, v) for g, v in grads if g is not None], gradient_multipliers)
            grads = scaled + [(g, v) for g, v in grads if g is None]
        if "global_gradient_norm" in shown:
            find("summary.scalar")("global_norm/gradient_norm", _norm(grads))
        if clip_gradients is not None:
            grads = clip_gradients(grads) if callable(clip_gradients) else _clipped(grads, clip_gradients)
        if "learning_rate" in shown and rate is not None:
            find("summary.scalar")("learning_rate", rate)
        if "loss" in shown:
            find("summary.scalar")("loss", loss)
        _summarize(grads, shown, clip_gradients is not None)
        apply = result.apply_gradients(
            grads, global_step=global_step if increment_global_step else None, name="train"
        )
        return _after([apply], loss)


def _norm(grads: list) -> Tensor:
    return find("global_norm")([g for g, _ in grads])


def _noisy(grads: list, scale: Any) -> list:
    """Gradients with normal noise added to each, cut off at two standard deviations."""

    def noisy(gradient: Any) -> Any:
        values = gradient.dense_shape if isinstance(gradient, IndexedSlices) else gradient.shape
        return gradient + find("truncated_normal")(values) * scale

    return [(g if g is None else noisy(g), v) for g, v in grads]


def _summarize(grads: list, shown: Sequence[str], clipped: bool) -> None:
    for grad, var in grads:
        values = grad.values if isinstance(grad, IndexedSlices) else grad
        name = var.name.replace(":", "_")
        if values is not None and "gradients" in shown:
            find("summary.histogram")(f"gradients/{name}", values)
        if values is not None and "gradient_norm" in shown:
            find("summary.scalar")(f"gradient_norm/{name}", find("global_norm")([values]))
    if clipped and {"global_gradient_norm", "gradient_norm"} & set(shown):
        find("summary.scalar")("global_norm/clipped_gradient_norm", _norm(grads))


def _after(operations: list, value: Any) -> Tensor:
    with control_dependencies(operations):
        return find("identity")(value)


def _rate(rate: Any, decay: Callable | None, global_step: Any) -> Any:
    if rate is None:
        return None
    if isinstance(rate, float):
        if rate < 0.0:
            raise ValueError(f"Invalid learning_rate {rate}.")
        start = find("constant_initializer")(rate)
        rate = find("get_variable")("learning_rate", [], trainable=False, initializer=start)
    elif not isinstance(rate, Tensor) or rate.shape.ndims != 0:
        raise ValueError(f"Learning rate should be 0d Tensor or float. Got {rate} of type {type(rate)}")
    if decay is not None:
        if global_step is None:
            raise ValueError("global_step is required for learning_rate_decay_fn.")
        rate = decay(rate, global_step)
    return rate


def _optimizer(given: Any, rate: Any) -> Any:
    if isinstance(given, str):
        if given not in OPTIMIZER_CLS_NAMES:
            raise ValueError(
                f"Optimizer name should be one of [{', '.join(OPTIMIZER_CLS_NAMES)}], you provided {given}."
            )
        if rate is None:
            raise ValueError(
                f"Learning rate is None, but should be specified if optimizer is string ({given})."
            )
        return OPTIMIZER_CLS_NAMES[given](learning_rate=rate)
    if isinstance(given, type) and issubclass(given, find("train.Optimizer")):
        if rate is None:
            raise ValueError(
                f"Learning rate is None, but should be specified if optimizer is class ({given})."
            )
        return given(learning_rate=rate)
    if callable(given) and not isinstance(given, type):
        given = given(rate) if rate is not None else given()
    if not isinstance(given, find("train.Optimizer")):
        raise ValueError(
            "Unrecognized optimizer: should be string, subclass of Optimizer, instance of subclass of Optimizer or "
            f"function with one argument. Got {given!s}."
        )
    return given


def _clipped(grads: list, norm: Any) -> list:
    values, variables = zip(*grads, strict=True)
    clipped, _ = find("clip_by_global_norm")(list(values), norm)
    return list(zip(clipped, variables, strict=True))


@export("contrib.layers.adaptive_clipping_fn")
def adaptive_clipping_fn(
    std_factor: float = 2.0,
    decay: float = 0.95,
    static_max_norm: float | None = None,
    global_step: Any = None,
    report_summary: bool = False,
    epsilon: float = 1e-8,
    name: str | None = None,
) -> Callable[[list], list]:
    """For `clip_gradients`: cuts gradients whose norm is far above what the norms were so far.

    Far is `std_factor` standard deviations of the norm's logarithm above its mean; what is cut gets the mean norm.
    """

    def clip(grads_and_vars: list) -> list:
        norm = _norm(grads_and_vars)
        most, mean = _usual_norm(norm, std_factor, decay, global_step, epsilon, name)
        if report_summary:
            find("summary.scalar")("global_norm/adaptive_max_gradient_norm", most)
        usual = find("exp")(mean)
        if static_max_norm is not None:
            most, usual = find("minimum")(most, static_max_norm), find("minimum")(usual, static_max_norm)
        factor = find("where")(norm < most, find("ones_like")(norm), usual / norm)
        return [(g if g is None else find("scalar_mul")(factor, g), v) for g, v in grads_and_vars]

    return clip


def _usual_norm(
    norm: Tensor, deviations: float, decay: Any, global_step: Any, epsilon: float, name: str | None
) -> tuple[Tensor, Tensor]:
    """The largest norm that is not far above the others, and the mean of the norms' logarithms."""
    with variable_scope(name, "AdaptiveMaxNorm", [norm]):
        logarithm = find("log")(norm + epsilon)

        def moving(name: str, value: Tensor) -> Tensor:
            average = find("get_variable")(
                name, shape=value.shape, initializer=find("zeros_initializer")(), trainable=False
            )
            keep = decay
            if global_step is not None:  # the first steps count for more
                count = find("cast")(global_step, value.dtype)
                keep = find("minimum")(decay, count / (count + 1.0))
            return find("assign_sub")(average, (1.0 - keep) * (average - value))

        mean = moving("mean", logarithm)
        variance = moving("sq_mean", find("square")(logarithm)) - find("square")(mean)
        deviation = find("sqrt")(find("maximum")(epsilon, variance))
        return find("exp")(mean + deviations * deviation), mean


@export("contrib.training.multiply_gradients", "contrib.slim.learning.multiply_gradients")
def multiply_gradients(grads_and_vars: list, gradient_multipliers: dict) -> list:
    """Gradients scaled by a factor for their variable (or its name)."""
    if not isinstance(grads_and_vars, list):
        raise ValueError("`grads_and_vars` must be a list.")
    if not gradient_multipliers:
        raise ValueError("`gradient_multipliers` is empty.")
    if not isinstance(gradient_multipliers, dict):
        raise ValueError("`gradient_multipliers` must be a dict.")
    scaled = []
    for grad, var in grads_and_vars:
        key = var if any(var is k for k in gradient_multipliers) else var.op.name
        if key in gradient_multipliers:
            if grad is None:
                raise ValueError("Requested multiple of `None` gradient.")
            factor = gradient_multipliers[key]
            factor = find("cast")(factor, grad.dtype)
            if isinstance(grad, IndexedSlices):
                grad = IndexedSlices(grad.values * factor, grad.indices, grad.dense_shape)
            else:
                grad = grad * factor
        scaled.append((grad, var))
    return scaled


@export("contrib.training.clip_gradient_norms", "contrib.slim.learning.clip_gradient_norms")
def clip_gradient_norms(gradients_to_variables: list, max_norm: float) -> list:
    """Each gradient cut to a norm by itself."""
    clipped = []
    for grad, var in gradients_to_variables:
        if isinstance(grad, IndexedSlices):
            grad = IndexedSlices(find("clip_by_norm")(grad.values, max_norm), grad.indices, grad.dense_shape)
        elif grad is not None:
            grad = find("clip_by_norm")(grad, max_norm)
        clipped.append((grad, var))
    return clipped


@export("contrib.training.clip_gradient_norms_fn")
def clip_gradient_norms_fn(max_norm: float) -> Callable[[list], list]:
    """A function for `transform_grads_fn` that clips each gradient to a norm by itself."""
    return functools.partial(clip_gradient_norms, max_norm=max_norm)


@export("contrib.training.add_gradients_summaries", "contrib.slim.learning.add_gradients_summaries")
def add_gradients_summaries(grads_and_vars: list) -> list:
    """Histograms and norms of gradients."""
    result = []
    for grad, var in grads_and_vars:
        if grad is None:
            find("logging.info")("Var %s has no gradient", var.op.name)
            continue
        values = grad.values if isinstance(grad, IndexedSlices) else grad
        result.append(find("summary.histogram")(var.op.name + "_gradient", values))
        result.append(find("summary.scalar")(var.op.name + "_gradient_norm", find("global_norm")([values])))
    return result


@export("contrib.training.create_train_op")
def create_train_op(
    total_loss: Any,
    optimizer: Any,
    global_step: Any = _USE_GLOBAL_STEP,
    update_ops: Any = None,
    variables_to_train: Any = None,
    transform_grads_fn: Callable | None = None,
    summarize_gradients: bool = False,
    gate_gradients: int = 1,
    aggregation_method: Any = None,
    colocate_gradients_with_ops: bool = False,
    check_numerics: bool = True,
) -> Tensor:
    """A tensor with the loss that, when computed, makes one step of training."""
    if global_step is _USE_GLOBAL_STEP:
        global_step = find("train.get_or_create_global_step")()
    wanted = set(get_collection(GraphKeys.UPDATE_OPS))
    updates = list(wanted if update_ops is None else update_ops)
    if not wanted.issubset(updates):
        find("logging.warning")(
            "update_ops in create_train_op does not contain all the update_ops in GraphKeys.UPDATE_OPS"
        )
    if updates:
        with control_dependencies(updates):
            barrier = find("no_op")(name="update_barrier")
        total_loss = _after([barrier], total_loss)
    variables = variables_to_train if variables_to_train is not None else find("trainable_variables")()
    if not variables:
        raise ValueError("No variables to optimize")
    grads = optimizer.compute_gradients(
        total_loss,
        variables,
        gate_gradients=gate_gradients,
        aggregation_method=aggregation_method,
        colocate_gradients_with_ops=colocate_gradients_with_ops,
    )
    if transform_grads_fn is not None:
        grads = transform_grads_fn(grads)
    if summarize_gradients:
        with name_scope("summarize_grads"):
            add_gradients_summaries(grads)
    grad_updates = optimizer.apply_gradients(grads, global_step=global_step)
    with name_scope("train_op"):
        if check_numerics:
            total_loss = find("check_numerics")(total_loss, "LossTensor is inf or nan")
        train = _after([grad_updates], total_loss)
    known = get_collection(GraphKeys.TRAIN_OP)
    if not any(train is op for op in known):
        find("add_to_collection")(GraphKeys.TRAIN_OP, train)
    return train


@export("contrib.training.train")
def train(
    train_op: Any,
    logdir: str,
    master: str = "",
    is_chief: bool = True,
    scaffold: Any = None,
    hooks: Any = None,
    chief_only_hooks: Any = None,
    save_checkpoint_secs: int = 600,
    save_summaries_steps: int = 100,
    config: Any = None,
    max_wait_secs: int = 7200,
    run_metadata: Any = None,
) -> Any:
    """Runs a training operation until a hook says stop; the last loss."""
    if logdir is None and is_chief and save_summaries_steps:
        raise ValueError("logdir cannot be None when save_summaries_steps is not 0/None")
    with find("train.MonitoredTrainingSession")(
        master=master,
        is_chief=is_chief,
        checkpoint_dir=logdir,
        scaffold=scaffold,
        hooks=hooks,
        chief_only_hooks=chief_only_hooks,
        save_checkpoint_secs=save_checkpoint_secs,
        save_summaries_steps=save_summaries_steps,
        config=config,
        max_wait_secs=max_wait_secs,
    ) as session:
        loss = None
        while not session.should_stop():
            loss = session.run(train_op, run_metadata=run_metadata)
    return loss


@export("contrib.layers.summarize_tensor")
def summarize_tensor(tensor: Any, tag: str | None = None) -> Any:
    """A scalar or a histogram, by the tensor's rank; None for those without a summary."""
    name = tag or f"{tensor.op.name}_summary"
    if tensor.dtype.is_floating or tensor.dtype.is_integer:
        kind = "summary.scalar" if tensor.shape.ndims == 0 else "summary.histogram"
        return find(kind)(name, tensor)
    return None


@export("contrib.layers.summarize_activation")
def summarize_activation(op: Any) -> Any:
    """A histogram of an activation, and for the kinds of ReLU how much of what they get they cut off."""
    name, kind = op.op.name, op.op.type
    cut = {"zeros": find("less")} if kind in ("Relu", "Softplus", "Relu6") else {}
    cut |= {"sixes": find("greater")} if kind == "Relu6" else {}
    for what, beyond in cut.items():
        given = op.op.inputs[0]
        limit = find("cast")(6.0 if what == "sixes" else 0.0, given.dtype)
        find("summary.scalar")(f"{name}/{what}", find("reduce_mean")(find("to_float")(beyond(given, limit))))
    return find("summary.histogram")(f"{name}/activation", op)


@export("contrib.layers.summarize_tensors")
def summarize_tensors(tensors: Any, summarizer: Callable = summarize_tensor) -> list:
    """Summaries of several tensors."""
    return [summarizer(tensor) for tensor in tensors]


@export("contrib.layers.summarize_collection")
def summarize_collection(
    collection: str, name_filter: str | None = None, summarizer: Callable = summarize_tensor
) -> list:
    """Summaries of a collection's tensors, those whose names match."""
    tensors = get_collection(collection)
    return [summarizer(t) for t in tensors if name_filter is None or re.match(name_filter, t.op.name)]


@export("contrib.layers.summarize_activations")
def summarize_activations(
    name_filter: str | None = None, summarizer: Callable = summarize_activation
) -> list:
    """Summaries of the graph's activations."""
    return summarize_collection(GraphKeys.ACTIVATIONS, name_filter, summarizer)
