"""`tf.contrib.gan`: the losses of models."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tensorfleet.api.losses.losses import Reduction
from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import control_dependencies, name_scope
from tensorfleet_legacy.contrib.gan import losses, tuple_losses
from tensorfleet_legacy.contrib.gan.namedtuples import (
    ACGANModel,
    CycleGANLoss,
    CycleGANModel,
    GANLoss,
    InfoGANModel,
)


def _checked(weight: Any, name: str) -> Any:
    """A weight that is not negative."""
    if isinstance(weight, Tensor):
        weight.shape.assert_is_compatible_with([])
        with control_dependencies([find("assert_greater_equal")(weight, 0.0)]):
            return find("identity")(weight)
    if weight is not None and weight < 0:
        raise ValueError(f"`{name}` must be greater than 0. Instead, was {weight}")
    return weight


def _counts(weight: Any) -> bool:
    return weight is not None and (isinstance(weight, Tensor) or weight > 0)


def _pooled(model: Any, tensor_pool_fn: Callable) -> Any:
    """A model whose generated data, for the discriminator, are taken from a pool of earlier ones."""
    inputs, generated = tensor_pool_fn((model.generator_inputs, model.generated_data))
    changed = {"generator_inputs": inputs, "generated_data": generated}
    with find("variable_scope")(model.discriminator_scope, reuse=True):
        if isinstance(model, InfoGANModel):
            said, predicted = model.discriminator_and_aux_fn(generated, inputs)
            changed["predicted_distributions"] = predicted
        elif isinstance(model, ACGANModel):
            said, classes = model.discriminator_fn(generated, inputs)
            changed["discriminator_gen_classification_logits"] = classes
        else:
            said = model.discriminator_fn(generated, inputs)
    return model._replace(discriminator_gen_outputs=said, **changed)


def _called(loss_fn: Callable, model: Any, options: dict) -> Tensor:
    """A loss with those of the options that it takes."""
    asked = inspect.signature(loss_fn).parameters
    takes_all = any(p.kind is p.VAR_KEYWORD for p in asked.values())
    return loss_fn(model, **{k: v for k, v in options.items() if takes_all or k in asked})


def gan_loss(
    model: Any,
    generator_loss_fn: Callable = tuple_losses.wasserstein_generator_loss,
    discriminator_loss_fn: Callable = tuple_losses.wasserstein_discriminator_loss,
    gradient_penalty_weight: Any = None,
    gradient_penalty_epsilon: float = 1e-10,
    gradient_penalty_target: float = 1.0,
    gradient_penalty_one_sided: bool = False,
    mutual_information_penalty_weight: Any = None,
    aux_cond_generator_weight: Any = None,
    aux_cond_discriminator_weight: Any = None,
    tensor_pool_fn: Callable | None = None,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    add_summaries: bool = True,
) -> GANLoss:
    """The losses of both sides of a model, with penalties and regularization."""
    slope = _checked(gradient_penalty_weight, "gradient_penalty_weight")
    information = _checked(mutual_information_penalty_weight, "infogan_weight")
    ac_generator = _checked(aux_cond_generator_weight, "aux_cond_generator_weight")
    ac_discriminator = _checked(aux_cond_discriminator_weight, "aux_cond_discriminator_weight")
    if _counts(information) and not isinstance(model, InfoGANModel):
        raise ValueError(
            "When `mutual_information_penalty_weight` is provided, `model` must be an `InfoGANModel`. Instead, "
            f"was {type(model)}."
        )
    if (_counts(ac_generator) or _counts(ac_discriminator)) and not isinstance(model, ACGANModel):
        raise ValueError(
            "When `aux_cond_generator_weight` or `aux_cond_discriminator_weight` is provided, `model` must be an "
            f"`ACGANModel`. Instead, was {type(model)}."
        )
    pooled = _pooled(model, tensor_pool_fn) if tensor_pool_fn else model
    options = {"reduction": reduction, "add_summaries": add_summaries}
    generator = _called(generator_loss_fn, model, options)
    discriminator = _called(discriminator_loss_fn, pooled, options)
    if _counts(slope):
        discriminator = discriminator + slope * tuple_losses.wasserstein_gradient_penalty(
            pooled,
            epsilon=gradient_penalty_epsilon,
            target=gradient_penalty_target,
            one_sided=gradient_penalty_one_sided,
            **options,
        )
    if _counts(information):
        of_generator = tuple_losses.mutual_information_penalty(model, **options)
        of_pooled = of_generator
        if tensor_pool_fn is not None:
            of_pooled = tuple_losses.mutual_information_penalty(pooled, **options)
        generator = generator + information * of_generator
        discriminator = discriminator + information * of_pooled
    if _counts(ac_generator):
        generator = generator + ac_generator * tuple_losses.acgan_generator_loss(model, **options)
    if _counts(ac_discriminator):
        classes = tuple_losses.acgan_discriminator_loss(pooled, **options)
        discriminator = discriminator + ac_discriminator * classes
    return GANLoss(
        generator + _regularization(model.generator_scope),
        discriminator + _regularization(model.discriminator_scope),
    )


def _regularization(scope: Any) -> Any:
    return find("losses.get_regularization_loss")(scope.name) if scope else 0


def cyclegan_loss(
    model: CycleGANModel,
    generator_loss_fn: Callable = tuple_losses.least_squares_generator_loss,
    discriminator_loss_fn: Callable = tuple_losses.least_squares_discriminator_loss,
    cycle_consistency_loss_fn: Callable = tuple_losses.cycle_consistency_loss,
    cycle_consistency_loss_weight: Any = 10.0,
    **kwargs: Any,
) -> CycleGANLoss:
    """The losses of both models; what changes on the way there and back is part of both generators'."""
    if not isinstance(model, CycleGANModel):
        raise ValueError(f"`model` must be a `CycleGANModel`. Instead, was {type(model)}.")
    changed = cycle_consistency_loss_fn(model, add_summaries=kwargs.get("add_summaries", True))
    beside = _checked(cycle_consistency_loss_weight, "cycle_consistency_loss_weight") * changed
    results = []
    for name, part in (("cyclegan_loss_x2y", model.model_x2y), ("cyclegan_loss_y2x", model.model_y2x)):
        with name_scope(name):
            loss = gan_loss(part, generator_loss_fn, discriminator_loss_fn, **kwargs)
            results.append(loss._replace(generator_loss=loss.generator_loss + beside))
    return CycleGANLoss(*results)


def stargan_loss(
    model: Any,
    generator_loss_fn: Callable = tuple_losses.stargan_generator_loss_wrapper(  # noqa: B008
        losses.wasserstein_generator_loss
    ),
    discriminator_loss_fn: Callable = tuple_losses.stargan_discriminator_loss_wrapper(  # noqa: B008
        losses.wasserstein_discriminator_loss
    ),
    gradient_penalty_weight: Any = 10.0,
    gradient_penalty_epsilon: float = 1e-10,
    gradient_penalty_target: float = 1.0,
    gradient_penalty_one_sided: bool = False,
    reconstruction_loss_fn: Callable = find("losses.absolute_difference"),  # noqa: B008
    reconstruction_loss_weight: Any = 10.0,
    classification_loss_fn: Callable = find("losses.softmax_cross_entropy"),  # noqa: B008
    classification_loss_weight: Any = 1.0,
    classification_one_hot: bool = True,
    add_summaries: bool = True,
) -> GANLoss:
    """The losses of a model of several domains."""

    def of_domains(labels: Any, logits: Any, name: str) -> Tensor:
        with name_scope(name, values=(labels, logits)):
            loss = classification_loss_fn(onehot_labels=labels, logits=logits)
            loss = loss if classification_one_hot else find("reduce_sum")(loss, 1)
            loss = find("reduce_mean")(loss)
            if add_summaries:
                find("summary.scalar")(name, loss)
            return loss

    generator = generator_loss_fn(model, add_summaries=add_summaries)
    discriminator = discriminator_loss_fn(model, add_summaries=add_summaries)
    if _counts(gradient_penalty_weight):
        penalty = tuple_losses.stargan_gradient_penalty_wrapper(losses.wasserstein_gradient_penalty)
        discriminator = discriminator + gradient_penalty_weight * penalty(
            model,
            epsilon=gradient_penalty_epsilon,
            target=gradient_penalty_target,
            one_sided=gradient_penalty_one_sided,
            add_summaries=add_summaries,
        )
    changed = reconstruction_loss_fn(model.input_data, model.reconstructed_data)
    if add_summaries:
        find("summary.scalar")("reconstruction_loss", changed)
    of_generated = of_domains(
        model.generated_data_domain_target,
        model.discriminator_generated_data_domain_predication,
        "generator_classification_loss",
    )
    of_real = of_domains(
        model.input_data_domain_label,
        model.discriminator_input_data_domain_predication,
        "discriminator_classification_loss",
    )
    return GANLoss(
        generator + changed * reconstruction_loss_weight + of_generated * classification_loss_weight,
        discriminator + of_real * classification_loss_weight,
    )
