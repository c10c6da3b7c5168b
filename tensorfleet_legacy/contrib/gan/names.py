"""`tf.contrib.gan`: generators and discriminators trained against each other. Read when a name is first used."""

from __future__ import annotations

from tensorfleet.base.naming import publish_module
from tensorfleet_legacy.lazy_names import publish_from

_LOSSES = """
    acgan_discriminator_loss acgan_generator_loss combine_adversarial_loss cycle_consistency_loss
    least_squares_discriminator_loss least_squares_generator_loss minimax_discriminator_loss minimax_generator_loss
    modified_discriminator_loss modified_generator_loss mutual_information_penalty wasserstein_discriminator_loss
    wasserstein_generator_loss wasserstein_gradient_penalty wasserstein_hinge_discriminator_loss
    wasserstein_hinge_generator_loss
"""
# The modules here, the places of their names under `tf.contrib.gan`, and the names.
_PARTS = (
    (
        "namedtuples",
        "",
        "ACGANModel CycleGANLoss CycleGANModel GANLoss GANModel GANTrainOps GANTrainSteps InfoGANModel StarGANModel",
    ),
    ("train_models", "", "acgan_model cyclegan_model gan_model infogan_model stargan_model"),
    ("train_losses", "", "cyclegan_loss gan_loss stargan_loss"),
    (
        "train",
        "",
        "RunTrainOpsHook gan_train gan_train_ops get_joint_train_hooks get_sequential_train_hooks get_sequential_train_steps",
    ),
    ("losses", "losses.wargs.", _LOSSES),
    (
        "tuple_losses",
        "losses.",
        f"{_LOSSES} stargan_discriminator_loss_wrapper stargan_generator_loss_wrapper stargan_gradient_penalty_wrapper",
    ),
    (
        "features",
        "features.",
        "VBN clip_discriminator_weights clip_variables condition_tensor condition_tensor_from_onehot tensor_pool",
    ),
    (
        "spectral_normalization",
        "features.",
        """
        compute_spectral_norm spectral_norm_regularizer spectral_normalization_custom_getter spectral_normalize
        """,
    ),
    (
        "classifier_metrics",
        "eval.",
        """
        classifier_score classifier_score_from_logits diagonal_only_frechet_classifier_distance_from_activations
        frechet_classifier_distance frechet_classifier_distance_from_activations kernel_classifier_distance
        kernel_classifier_distance_and_std kernel_classifier_distance_and_std_from_activations
        kernel_classifier_distance_from_activations mean_only_frechet_classifier_distance_from_activations
        preprocess_image
        """,
    ),
    (
        "summaries",
        "eval.",
        """
        add_cyclegan_image_summaries add_gan_model_image_summaries add_gan_model_summaries
        add_image_comparison_summaries add_regularization_loss_summaries image_grid image_reshaper
        """,
    ),
    ("gan_estimator", "estimator.", "GANEstimator SummaryType"),
)
for _module, _place, _names in _PARTS:
    publish_from(f"contrib.gan.{_module}", _names, f"contrib.gan.{_place}".rstrip("."))
# Where scripts import the same from inside.
for _place in ("namedtuples", "train"):
    publish_module(f"contrib.gan.python.{_place}", "contrib.gan")
for _place in ("losses", "features", "eval", "estimator"):
    publish_module(f"contrib.gan.python.{_place}", f"contrib.gan.{_place}")
