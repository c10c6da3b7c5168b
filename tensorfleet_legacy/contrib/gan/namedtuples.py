"""The tuples that the steps of training a generator and a discriminator pass to each other."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NamedTuple

GANModel = namedtuple(
    "GANModel",
    (
        "generator_inputs",
        "generated_data",
        "generator_variables",
        "generator_scope",
        "generator_fn",
        "real_data",
        "discriminator_real_outputs",
        "discriminator_gen_outputs",
        "discriminator_variables",
        "discriminator_scope",
        "discriminator_fn",
    ),
)


def _with_more(name: str, fields: tuple[str, ...]) -> Any:
    return namedtuple(name, fields)


InfoGANModel = _with_more(
    "InfoGANModel",
    (*GANModel._fields, "structured_generator_inputs", "predicted_distributions", "discriminator_and_aux_fn"),
)
ACGANModel = _with_more(
    "ACGANModel",
    (
        *GANModel._fields,
        "one_hot_labels",
        "discriminator_real_classification_logits",
        "discriminator_gen_classification_logits",
    ),
)
CycleGANModel = namedtuple("CycleGANModel", ("model_x2y", "model_y2x", "reconstructed_x", "reconstructed_y"))
StarGANModel = namedtuple(
    "StarGANModel",
    (
        "input_data",
        "input_data_domain_label",
        "generated_data",
        "generated_data_domain_target",
        "reconstructed_data",
        "discriminator_input_data_source_predication",
        "discriminator_generated_data_source_predication",
        "discriminator_input_data_domain_predication",
        "discriminator_generated_data_domain_predication",
        "generator_variables",
        "generator_scope",
        "generator_fn",
        "discriminator_variables",
        "discriminator_scope",
        "discriminator_fn",
    ),
)
GANLoss = namedtuple("GANLoss", ("generator_loss", "discriminator_loss"))
CycleGANLoss = namedtuple("CycleGANLoss", ("loss_x2y", "loss_y2x"))
GANTrainSteps = namedtuple("GANTrainSteps", ("generator_train_steps", "discriminator_train_steps"))


class GANTrainOps(NamedTuple):
    """The training operations: one for each side, one that counts steps, and hooks of synchronized optimizers."""

    generator_train_op: Any
    discriminator_train_op: Any
    global_step_inc_op: Any
    train_hooks: Any = ()
