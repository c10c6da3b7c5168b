"""`tf.contrib.gan`: models of a generator and a discriminator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorfleet.base import dtypes
from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.scopes import GraphKeys, get_collection, name_scope
from tensorfleet_legacy.contrib.gan.namedtuples import (
    ACGANModel,
    CycleGANModel,
    GANModel,
    InfoGANModel,
    StarGANModel,
)


def _tensors(values: Any) -> Any:
    """Values as tensors: one, a list of them, or a dictionary."""
    if isinstance(values, (list, tuple)):
        return [to_tensor(x) for x in values]
    if isinstance(values, dict):
        return {key: to_tensor(x) for key, x in values.items()}
    return to_tensor(values)


def _trained(scope: Any) -> list:
    return get_collection(GraphKeys.TRAINABLE_VARIABLES, f"{scope.name}/")


def _check_shapes(generated: Any, real: Any) -> None:
    if not generated.shape.is_compatible_with(real.shape):
        raise ValueError(
            f"Generator output shape ({generated.shape}) must be the same shape as real data ({real.shape})."
        )


def gan_model(
    generator_fn: Callable,
    discriminator_fn: Callable,
    real_data: Any,
    generator_inputs: Any,
    generator_scope: str = "Generator",
    discriminator_scope: str = "Discriminator",
    check_shapes: bool = True,
) -> GANModel:
    """A generator of inputs, and a discriminator of real and generated data, `discriminator_fn(data, inputs)`."""
    scope, again = find("variable_scope"), find("AUTO_REUSE")
    with scope(generator_scope, reuse=again) as of_generator:
        inputs = _tensors(generator_inputs)
        generated = generator_fn(inputs)
    with scope(discriminator_scope, reuse=again) as of_discriminator:
        said_of_generated = discriminator_fn(generated, inputs)
    with scope(of_discriminator, reuse=True):
        real = _tensors(real_data)
        said_of_real = discriminator_fn(real, inputs)
    if check_shapes:
        _check_shapes(generated, real)
    return GANModel(
        inputs,
        generated,
        _trained(of_generator),
        of_generator,
        generator_fn,
        real,
        said_of_real,
        said_of_generated,
        _trained(of_discriminator),
        of_discriminator,
        discriminator_fn,
    )


def infogan_model(
    generator_fn: Callable,
    discriminator_fn: Callable,
    real_data: Any,
    unstructured_generator_inputs: Any,
    structured_generator_inputs: Any,
    generator_scope: str = "Generator",
    discriminator_scope: str = "Discriminator",
) -> InfoGANModel:
    """A model whose discriminator also predicts distributions of the structured inputs."""
    structured = _tensors(structured_generator_inputs)
    inputs = [*_tensors(unstructured_generator_inputs), *structured]
    results: list = []

    def discriminate(data: Any, given: Any) -> Any:
        said, distributions = discriminator_fn(data, given)
        results.append(distributions)
        return said

    model = gan_model(
        generator_fn, discriminate, real_data, inputs, generator_scope, discriminator_scope, True
    )
    predicted = results[0]
    if not isinstance(predicted, (list, tuple)):
        raise ValueError(f"`predicted_distributions` must be a list. Instead, found {type(predicted)}.")
    if len(predicted) != len(structured):
        raise ValueError(
            f"Length of `predicted_distributions` {len(predicted)} must be the same as the length of structured "
            f"noise {len(structured)}."
        )
    plain = model._replace(discriminator_fn=lambda data, given: discriminator_fn(data, given)[0])
    return InfoGANModel(*plain, structured, predicted, discriminator_fn)


def _classes(outputs: Any) -> tuple[Any, Any]:
    if not isinstance(outputs, (list, tuple)) or len(outputs) != 2:
        raise TypeError(
            "A discriminator function for ACGAN must output a tuple consisting of (discrimination logits, "
            "classification logits)."
        )
    return outputs[0], outputs[1]


def acgan_model(
    generator_fn: Callable,
    discriminator_fn: Callable,
    real_data: Any,
    generator_inputs: Any,
    one_hot_labels: Any,
    generator_scope: str = "Generator",
    discriminator_scope: str = "Discriminator",
    check_shapes: bool = True,
) -> ACGANModel:
    """A model whose discriminator also tells classes: `discriminator_fn` gives (logits, logits of classes)."""
    scope = find("variable_scope")
    with scope(generator_scope) as of_generator:
        inputs = _tensors(generator_inputs)
        generated = generator_fn(inputs)
    with scope(discriminator_scope) as of_discriminator, name_scope(f"{of_discriminator.name}/generated/"):
        said_of_generated, classes_of_generated = _classes(discriminator_fn(generated, inputs))
    with scope(of_discriminator, reuse=True), name_scope(f"{of_discriminator.name}/real/"):
        real = to_tensor(real_data)
        said_of_real, classes_of_real = _classes(discriminator_fn(real, inputs))
    if check_shapes:
        _check_shapes(generated, real)
    return ACGANModel(
        inputs,
        generated,
        _trained(of_generator),
        of_generator,
        generator_fn,
        real,
        said_of_real,
        said_of_generated,
        _trained(of_discriminator),
        of_discriminator,
        discriminator_fn,
        one_hot_labels,
        classes_of_real,
        classes_of_generated,
    )


def cyclegan_model(
    generator_fn: Callable,
    discriminator_fn: Callable,
    data_x: Any,
    data_y: Any,
    generator_scope: str = "Generator",
    discriminator_scope: str = "Discriminator",
    model_x2y_scope: str = "ModelX2Y",
    model_y2x_scope: str = "ModelY2X",
    check_shapes: bool = True,
) -> CycleGANModel:
    """Two models, from one kind of data to another and back (Zhu et al. 2017)."""
    scope, models = find("variable_scope"), []
    for name, source, target in ((model_x2y_scope, data_x, data_y), (model_y2x_scope, data_y, data_x)):
        with scope(name):
            models.append(
                gan_model(
                    generator_fn,
                    discriminator_fn,
                    target,
                    source,
                    generator_scope,
                    discriminator_scope,
                    check_shapes,
                )
            )
    there, back = models
    with scope(back.generator_scope, reuse=True):
        again_x = back.generator_fn(there.generated_data)
    with scope(there.generator_scope, reuse=True):
        again_y = there.generator_fn(back.generated_data)
    return CycleGANModel(there, back, again_x, again_y)


def stargan_model(
    generator_fn: Callable,
    discriminator_fn: Callable,
    input_data: Any,
    input_data_domain_label: Any,
    generator_scope: str = "Generator",
    discriminator_scope: str = "Discriminator",
) -> StarGANModel:
    """One generator between several domains (Choi et al. 2018): `generator_fn(data, one_hot_domain)`."""
    data, labels = _tensors(input_data), _tensors(input_data_domain_label)
    data = find("concat")(data, 0) if isinstance(data, list) else data
    labels = find("concat")(labels, 0) if isinstance(labels, list) else labels
    labels.shape.assert_has_rank(2)
    labels.shape.assert_is_fully_defined()
    batch, domains = labels.shape.as_list()
    scope = find("variable_scope")
    with scope(generator_scope) as of_generator:
        drawn = find("random_uniform")([batch], 0, domains, dtypes.int32)
        wanted = find("one_hot")(drawn, domains)
        generated = generator_fn(data, wanted)
    with scope(of_generator, reuse=True):
        again = generator_fn(generated, labels)
    with scope(discriminator_scope) as of_discriminator:
        generated_source, generated_domain = discriminator_fn(generated, domains)
    with scope(of_discriminator, reuse=True):
        source, domain = discriminator_fn(data, domains)
    return StarGANModel(
        data,
        labels,
        generated,
        wanted,
        again,
        source,
        generated_source,
        domain,
        generated_domain,
        _trained(of_generator),
        of_generator,
        generator_fn,
        _trained(of_discriminator),
        of_discriminator,
        discriminator_fn,
    )
