"""`tf.contrib.gan.losses`: the same losses, of a model."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tensorfleet.graph.operation import Tensor
from tensorfleet_legacy.contrib.gan import losses
from tensorfleet_legacy.contrib.gan.namedtuples import CycleGANModel, GANLoss


def _of_model(loss: Callable) -> Callable:
    """A loss that takes from a model what the model has."""
    own = inspect.signature(loss).parameters

    def made(gan_model: Any, **kwargs: Any) -> Tensor:
        twice = set(gan_model._fields) & set(kwargs)
        if twice:
            raise ValueError(
                f"The following args are present in both the tuple and keyword args for {loss.__name__}: {twice}"
            )
        known = {name: getattr(gan_model, name) for name in own if name in gan_model._fields}
        for name, p in own.items():
            if p.default is p.empty and name not in known and name not in kwargs:
                raise ValueError(f"`{name}` must be supplied to {loss.__name__} loss function.")
        return loss(**{**kwargs, **known})

    made.__name__ = made.__qualname__ = loss.__name__
    made.__doc__ = f"The loss `wargs.{loss.__name__}` of a model."
    return made


wasserstein_generator_loss = _of_model(losses.wasserstein_generator_loss)
wasserstein_discriminator_loss = _of_model(losses.wasserstein_discriminator_loss)
wasserstein_hinge_generator_loss = _of_model(losses.wasserstein_hinge_generator_loss)
wasserstein_hinge_discriminator_loss = _of_model(losses.wasserstein_hinge_discriminator_loss)
wasserstein_gradient_penalty = _of_model(losses.wasserstein_gradient_penalty)
acgan_discriminator_loss = _of_model(losses.acgan_discriminator_loss)
acgan_generator_loss = _of_model(losses.acgan_generator_loss)
minimax_discriminator_loss = _of_model(losses.minimax_discriminator_loss)
minimax_generator_loss = _of_model(losses.minimax_generator_loss)
modified_discriminator_loss = _of_model(losses.modified_discriminator_loss)
modified_generator_loss = _of_model(losses.modified_generator_loss)
least_squares_generator_loss = _of_model(losses.least_squares_generator_loss)
least_squares_discriminator_loss = _of_model(losses.least_squares_discriminator_loss)
mutual_information_penalty = _of_model(losses.mutual_information_penalty)


def combine_adversarial_loss(
    gan_loss: GANLoss,
    gan_model: Any,
    non_adversarial_loss: Any,
    weight_factor: Any = None,
    gradient_ratio: Any = None,
    gradient_ratio_epsilon: float = 1e-6,
    scalar_summaries: bool = True,
    gradient_summaries: bool = True,
) -> GANLoss:
    """The losses with another one beside the generator's."""
    combined = losses.combine_adversarial_loss(
        non_adversarial_loss,
        gan_loss.generator_loss,
        weight_factor,
        gradient_ratio,
        gradient_ratio_epsilon,
        gan_model.generator_variables,
        scalar_summaries,
        gradient_summaries,
    )
    return gan_loss._replace(generator_loss=combined)


def cycle_consistency_loss(
    cyclegan_model: CycleGANModel, scope: str | None = None, add_summaries: bool = False
) -> Tensor:
    """How far data are changed by going to the other kind and back."""
    if not isinstance(cyclegan_model, CycleGANModel):
        raise ValueError(f"`cyclegan_model` must be a `CycleGANModel`. Instead, was {type(cyclegan_model)}.")
    return losses.cycle_consistency_loss(
        cyclegan_model.model_x2y.generator_inputs,
        cyclegan_model.reconstructed_x,
        cyclegan_model.model_y2x.generator_inputs,
        cyclegan_model.reconstructed_y,
        scope,
        add_summaries,
    )


def stargan_generator_loss_wrapper(loss_fn: Callable) -> Callable:
    """A generator's loss, of a `StarGANModel`."""

    def made(stargan_model: Any, **kwargs: Any) -> Tensor:
        return loss_fn(stargan_model.discriminator_generated_data_source_predication, **kwargs)

    return made


def stargan_discriminator_loss_wrapper(loss_fn: Callable) -> Callable:
    """A discriminator's loss, of a `StarGANModel`."""

    def made(stargan_model: Any, **kwargs: Any) -> Tensor:
        return loss_fn(
            stargan_model.discriminator_input_data_source_predication,
            stargan_model.discriminator_generated_data_source_predication,
            **kwargs,
        )

    return made


def stargan_gradient_penalty_wrapper(loss_fn: Callable) -> Callable:
    """A penalty of the discriminator's slope, of a `StarGANModel`."""

    def made(stargan_model: Any, **kwargs: Any) -> Tensor:
        return loss_fn(
            real_data=stargan_model.input_data,
            generated_data=stargan_model.generated_data,
            generator_inputs=stargan_model.input_data_domain_label.shape.as_list()[-1],
            discriminator_fn=stargan_model.discriminator_fn,
            discriminator_scope=stargan_model.discriminator_scope,
            **kwargs,
        )

    return made
