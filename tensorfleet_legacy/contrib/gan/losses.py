"""`tf.contrib.gan.losses.wargs`: losses of generators and discriminators, of what a discriminator says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.api.losses.losses import Reduction
from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import GraphKeys, name_scope

_MEAN, _LOSSES = Reduction.SUM_BY_NONZERO_WEIGHTS, GraphKeys.LOSSES


def _float(values: Any) -> Tensor:
    return find("cast")(values, dtypes.float32)


def _weighted(losses: Any, weights: Any, scope: Any, reduction: str, collection: Any = None) -> Tensor:
    return find("losses.compute_weighted_loss")(losses, weights, scope, collection, reduction)


def _told(add_summaries: bool, label: str, loss: Tensor) -> Tensor:
    if add_summaries:
        find("summary.scalar")(label, loss)
    return loss


def _of_both(kind: str, real: Tensor, generated: Tensor, loss: Tensor, collection: Any, told: bool) -> Tensor:
    """The loss of a discriminator on real and on generated data, kept and summarized."""
    find("losses.add_loss")(loss, collection)
    _told(told, f"discriminator_gen_{kind}_loss", generated)
    _told(told, f"discriminator_real_{kind}_loss", real)
    return _told(told, f"discriminator_{kind}_loss", loss)


def _pair(real: Any, generated: Any) -> tuple[Tensor, Tensor]:
    real, generated = _float(real), _float(generated)
    real.shape.assert_is_compatible_with(generated.shape)
    return real, generated


def wasserstein_generator_loss(
    discriminator_gen_outputs: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """Minus what the discriminator says of generated data (Arjovsky et al. 2017)."""
    with name_scope(scope, "generator_wasserstein_loss", (discriminator_gen_outputs, weights)) as inner:
        loss = _weighted(-_float(discriminator_gen_outputs), weights, inner, reduction, loss_collection)
        return _told(add_summaries, "generator_wass_loss", loss)


wasserstein_hinge_generator_loss = wasserstein_generator_loss


def wasserstein_discriminator_loss(
    discriminator_real_outputs: Any,
    discriminator_gen_outputs: Any,
    real_weights: Any = 1.0,
    generated_weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """The discriminator's mean output for generated data, minus that for real data."""
    with name_scope(scope, "discriminator_wasserstein_loss") as inner:
        real, generated = _pair(discriminator_real_outputs, discriminator_gen_outputs)
        of_generated = _weighted(generated, generated_weights, inner, reduction)
        of_real = _weighted(real, real_weights, inner, reduction)
        loss = of_generated - of_real
        return _of_both("wass", of_real, of_generated, loss, loss_collection, add_summaries)


def wasserstein_hinge_discriminator_loss(
    discriminator_real_outputs: Any,
    discriminator_gen_outputs: Any,
    real_weights: Any = 1.0,
    generated_weights: Any = 1.0,
    real_hinge: float = 1.0,
    generated_hinge: float = 1.0,
    scope: str | None = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """How far the discriminator falls short of the hinges on both sides."""
    with name_scope(scope, "discriminator_wasserstein_loss") as inner:
        real, generated = _pair(discriminator_real_outputs, discriminator_gen_outputs)
        relu = find("nn.relu")
        of_real = _weighted(relu(real_hinge - real), real_weights, inner, reduction)
        of_generated = _weighted(relu(generated_hinge + generated), generated_weights, inner, reduction)
        loss = of_generated + of_real
        return _of_both("wass_hinge", of_real, of_generated, loss, loss_collection, add_summaries)


def acgan_discriminator_loss(
    discriminator_real_classification_logits: Any,
    discriminator_gen_classification_logits: Any,
    one_hot_labels: Any,
    label_smoothing: float = 0.0,
    real_weights: Any = 1.0,
    generated_weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """How badly the discriminator tells the classes of real and of generated data (Odena et al. 2017)."""
    with name_scope(scope, "acgan_discriminator_loss") as inner:
        entropy = find("losses.softmax_cross_entropy")
        of_generated = entropy(
            one_hot_labels,
            discriminator_gen_classification_logits,
            generated_weights,
            scope=inner,
            loss_collection=None,
            reduction=reduction,
        )
        of_real = entropy(
            one_hot_labels,
            discriminator_real_classification_logits,
            real_weights,
            label_smoothing,
            inner,
            None,
            reduction,
        )
        loss = of_generated + of_real
        return _of_both("ac", of_real, of_generated, loss, loss_collection, add_summaries)


def acgan_generator_loss(
    discriminator_gen_classification_logits: Any,
    one_hot_labels: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """How badly the discriminator tells the classes of generated data."""
    with name_scope(scope, "acgan_generator_loss") as inner:
        loss = find("losses.softmax_cross_entropy")(
            one_hot_labels,
            discriminator_gen_classification_logits,
            weights,
            scope=inner,
            loss_collection=loss_collection,
            reduction=reduction,
        )
        return _told(add_summaries, "generator_ac_loss", loss)


def wasserstein_gradient_penalty(
    real_data: Any,
    generated_data: Any,
    generator_inputs: Any,
    discriminator_fn: Callable,
    discriminator_scope: Any,
    epsilon: float = 1e-10,
    target: float = 1.0,
    one_sided: bool = False,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """How far the discriminator's slope, between real and generated data, is from the target (Gulrajani et al. 2017)."""
    with name_scope(scope, "wasserstein_gradient_penalty", (real_data, generated_data)) as inner:
        real, generated = to_tensor(real_data), to_tensor(generated_data)
        for label, value in (("real_data", real), ("generated_data", generated)):
            if value.shape.ndims is None:
                raise ValueError(f"`{label}` can't have unknown rank.")
        batch = generated.shape.as_list()[0] or real.shape.as_list()[0] or find("shape")(generated)[0]
        places = find("random_uniform")([batch, *[1] * (len(real.shape) - 1)])
        between = real + places * (generated - real)
        reused = find("variable_scope")(discriminator_scope, "gpenalty_dscope", reuse=find("AUTO_REUSE"))
        with name_scope(None), reused:
            said = discriminator_fn(between, generator_inputs)
        said = said[0] if isinstance(said, tuple) else said
        slope = find("gradients")(said, between)[0]
        squares = find("reduce_sum")(find("square")(slope), list(range(1, len(real.shape))))
        off = find("sqrt")(squares + epsilon) / target - 1.0
        off = find("maximum")(0.0, off) if one_sided else off
        penalty = _weighted(find("square")(off), weights, inner, reduction, loss_collection)
        return _told(add_summaries, "gradient_penalty_loss", penalty)


def minimax_discriminator_loss(
    discriminator_real_outputs: Any,
    discriminator_gen_outputs: Any,
    label_smoothing: float = 0.25,
    real_weights: Any = 1.0,
    generated_weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """The cross entropy of telling real from generated data (Goodfellow et al. 2014)."""
    with name_scope(scope, "discriminator_minimax_loss") as inner:
        entropy = find("losses.sigmoid_cross_entropy")
        real, generated = to_tensor(discriminator_real_outputs), to_tensor(discriminator_gen_outputs)
        ones, zeros = find("ones_like")(real), find("zeros_like")(generated)
        of_real = entropy(ones, real, real_weights, label_smoothing, inner, None, reduction)
        of_generated = entropy(zeros, generated, generated_weights, 0, inner, None, reduction)
        loss = of_real + of_generated
        return _of_both("minimax", of_real, of_generated, loss, loss_collection, add_summaries)


def minimax_generator_loss(
    discriminator_gen_outputs: Any,
    label_smoothing: float = 0.0,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """Minus the discriminator's loss."""
    with name_scope(scope, "generator_minimax_loss") as inner:
        ones = find("ones_like")(discriminator_gen_outputs)
        loss = -minimax_discriminator_loss(
            ones,
            discriminator_gen_outputs,
            label_smoothing,
            weights,
            weights,
            inner,
            loss_collection,
            reduction,
        )
    return _told(add_summaries, "generator_minimax_loss", loss)


def modified_discriminator_loss(
    discriminator_real_outputs: Any,
    discriminator_gen_outputs: Any,
    label_smoothing: float = 0.25,
    real_weights: Any = 1.0,
    generated_weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """The same as the minimax loss."""
    scope = scope or "discriminator_modified_loss"
    return minimax_discriminator_loss(**locals())


def modified_generator_loss(
    discriminator_gen_outputs: Any,
    label_smoothing: float = 0.0,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """The cross entropy of generated data being taken for real."""
    with name_scope(scope, "generator_modified_loss", [discriminator_gen_outputs]) as inner:
        said = to_tensor(discriminator_gen_outputs)
        loss = find("losses.sigmoid_cross_entropy")(
            find("ones_like")(said), said, weights, label_smoothing, inner, loss_collection, reduction
        )
        return _told(add_summaries, "generator_modified_loss", loss)


def least_squares_generator_loss(
    discriminator_gen_outputs: Any,
    real_label: float = 1,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """Half the squared distance of what the discriminator says from the label of real data (Mao et al. 2017)."""
    with name_scope(scope, "lsq_generator_loss", (discriminator_gen_outputs, real_label)) as inner:
        squares = find("square")(_float(discriminator_gen_outputs) - real_label) / 2.0
        loss = _weighted(squares, weights, inner, reduction, loss_collection)
    return _told(add_summaries, "generator_lsq_loss", loss)


def least_squares_discriminator_loss(
    discriminator_real_outputs: Any,
    discriminator_gen_outputs: Any,
    real_label: float = 1,
    fake_label: float = 0,
    real_weights: Any = 1.0,
    generated_weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """Half the squared distances from both labels."""
    with name_scope(scope, "lsq_discriminator_loss", (discriminator_gen_outputs, real_label)) as inner:
        real, generated = _pair(discriminator_real_outputs, discriminator_gen_outputs)
        square = find("square")
        of_real = _weighted(square(real - real_label) / 2.0, real_weights, inner, reduction)
        of_generated = _weighted(square(generated - fake_label) / 2.0, generated_weights, inner, reduction)
        loss = of_real + of_generated
        return _of_both("lsq", of_real, of_generated, loss, loss_collection, add_summaries)


def mutual_information_penalty(
    structured_generator_inputs: Any,
    predicted_distributions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = _LOSSES,
    reduction: str = _MEAN,
    add_summaries: bool = False,
) -> Tensor:
    """How unlikely the structured noise is by what the discriminator predicts of it (Chen et al. 2016)."""
    if not isinstance(predicted_distributions, (list, tuple)):
        raise ValueError("`distributions` must be a list or tuple.")
    if len(structured_generator_inputs) != len(predicted_distributions):
        raise ValueError(
            f"`structured_generator_inputs` length {len(structured_generator_inputs)} must be the same as "
            f"`predicted_distributions` length {len(predicted_distributions)}."
        )
    with name_scope(scope, "mutual_information_loss") as inner:
        pairs = zip(predicted_distributions, structured_generator_inputs, strict=True)
        logs = [find("reduce_mean")(distribution.log_prob(noise)) for distribution, noise in pairs]
        loss = -1 * _weighted(logs, weights, inner, reduction, loss_collection)
        return _told(add_summaries, "mutual_information_penalty", loss)


def _norm(gradients: list) -> Any:
    """The norm of all gradients, without squares that overflow."""
    known = [g for g in gradients if g is not None]
    if not known:
        return 0.0
    largest = find("reduce_max")([find("reduce_max")(find("abs")(g)) for g in known])
    return largest * find("global_norm")([g / largest for g in known])


def combine_adversarial_loss(
    main_loss: Any,
    adversarial_loss: Any,
    weight_factor: Any = None,
    gradient_ratio: Any = None,
    gradient_ratio_epsilon: float = 1e-6,
    variables: Any = None,
    scalar_summaries: bool = True,
    gradient_summaries: bool = True,
    scope: str | None = None,
) -> Tensor:
    """A loss with an adversarial one beside it: by a factor, or so that their gradients are in a ratio."""
    if weight_factor is None and gradient_ratio is None:
        raise ValueError("`weight_factor` and `gradient_ratio` cannot both be `None.`")
    if weight_factor is not None and gradient_ratio is not None:
        raise ValueError("`weight_factor` and `gradient_ratio` cannot both be specified.")
    variables = find("trainable_variables")() if variables is None else variables
    with name_scope(scope, "adversarial_loss", [main_loss, adversarial_loss]):
        _told(scalar_summaries, "main_loss", main_loss)
        _told(scalar_summaries, "adversarial_loss", adversarial_loss)
        if gradient_summaries or gradient_ratio is not None:
            main, other = (_norm(find("gradients")(x, variables)) for x in (main_loss, adversarial_loss))
            _told(gradient_summaries, "main_loss_gradients", main)
            _told(gradient_summaries, "adversarial_loss_gradients", other)
        weight = gradient_ratio if weight_factor is None else weight_factor
        if not isinstance(weight, Tensor) and weight == 0:
            return main_loss
        if weight_factor is not None:
            return (
                main_loss
                + find("stop_gradient")(to_tensor(weight_factor, main_loss.dtype)) * adversarial_loss
            )
        factor = main / (other + gradient_ratio_epsilon) / gradient_ratio
        _told(True, "adversarial_coefficient", factor)
        return main_loss + find("stop_gradient")(factor) * adversarial_loss


def cycle_consistency_loss(
    data_x: Any,
    reconstructed_data_x: Any,
    data_y: Any,
    reconstructed_data_y: Any,
    scope: str | None = None,
    add_summaries: bool = False,
) -> Tensor:
    """How far data are changed by going to the other kind and back, on both sides."""
    with name_scope(scope, "cycle_consistency_loss"):
        away = find("losses.absolute_difference")
        of_x, of_y = away(data_x, reconstructed_data_x), away(data_y, reconstructed_data_y)
        _told(add_summaries, "cycle_consistency_loss_x2x", of_x)
        _told(add_summaries, "cycle_consistency_loss_y2y", of_y)
        return _told(add_summaries, "cycle_consistency_loss", (of_x + of_y) / 2.0)
