"""`tf.contrib.gan.eval`: images side by side, and summaries of models."""

from __future__ import annotations

import math
from typing import Any

from tensorfleet.base.naming import find
from tensorfleet.graph.convert import to_tensor
from tensorfleet.graph.operation import Tensor
from tensorfleet.graph.scopes import name_scope
from tensorfleet_legacy.contrib.gan.namedtuples import CycleGANModel


def image_grid(
    input_tensor: Any, grid_shape: Any, image_shape: Any = (32, 32), num_channels: int = 3
) -> Tensor:
    """The images of a batch as one image with rows and columns of them."""
    images = to_tensor(input_tensor)
    (rows, columns), (height, width) = grid_shape, image_shape
    count = images.shape.as_list()[0]
    if rows * columns != count:
        raise ValueError(f"Grid shape {grid_shape} incompatible with minibatch size {count}.")
    if images.shape.ndims not in (2, 4):
        raise ValueError("Unrecognized input tensor format.")
    own = [height * width * num_channels] if images.shape.ndims == 2 else [height, width, num_channels]
    if images.shape.as_list()[1:] != own:
        raise ValueError("Image shape and number of channels incompatible with input tensor.")
    parts = find("reshape")(images, [rows, columns, height, width, num_channels])
    turned = find("transpose")(parts, [0, 2, 1, 3, 4])
    return find("reshape")(turned, [1, rows * height, columns * width, num_channels])


def image_reshaper(images: Any, num_cols: int | None = None) -> Tensor:
    """A list of images as one image; places that are left are black."""
    each = find("unstack")(images) if isinstance(images, Tensor) else list(images)
    for image in each:
        image.shape.assert_has_rank(3)
    columns = num_cols or math.ceil(math.sqrt(len(each)))
    each += [find("zeros_like")(each[-1])] * (-len(each) % columns)
    rows = [find("concat")(each[i : i + columns], 1) for i in range(0, len(each), columns)]
    return find("expand_dims")(find("concat")(rows, 0), 0)


def _check_images(*values: Any) -> None:
    for value in values:
        value.shape.assert_has_rank(4)
        value.shape[1:].assert_is_fully_defined()


def add_gan_model_image_summaries(gan_model: Any, grid_size: int = 4, model_summaries: bool = True) -> None:
    """Summaries of real and of generated images."""
    if isinstance(gan_model, CycleGANModel):
        raise ValueError(
            "`add_gan_model_image_summaries` does not take CycleGANModels. Please use "
            "`add_cyclegan_image_summaries` instead."
        )
    _check_images(gan_model.real_data, gan_model.generated_data)
    for label in ("real_data", "generated_data"):
        images = getattr(gan_model, label)[: grid_size**2]
        height, width, channels = images.shape.as_list()[1:]
        grid = image_grid(images, (grid_size, grid_size), (height, width), channels)
        find("summary.image")(label, grid, max_outputs=1)
    if model_summaries:
        add_gan_model_summaries(gan_model)


def add_image_comparison_summaries(
    gan_model: Any, num_comparisons: int = 2, display_diffs: bool = False
) -> None:
    """A summary of inputs, generated and real images below each other."""
    parts = [gan_model.generator_inputs, gan_model.generated_data, gan_model.real_data]
    _check_images(*parts)
    some = [part[:num_comparisons] for part in parts]
    if display_diffs:
        generated, real = (find("cast")(x, "float32") for x in some[1:])
        some.append(find("abs")(generated - real))
    shown = [image for part in some for image in find("unstack")(part, num=num_comparisons)]
    find("summary.image")("image_comparison", image_reshaper(shown, num_comparisons), max_outputs=1)


def add_cyclegan_image_summaries(cyclegan_model: CycleGANModel) -> None:
    """Summaries of images, what is made of them, and what that becomes again."""
    if not isinstance(cyclegan_model, CycleGANModel):
        raise ValueError(f"`cyclegan_model` was not a CycleGANModel. Instead, was {type(cyclegan_model)}")
    for way, model, again in (
        ("x2y", cyclegan_model.model_x2y, cyclegan_model.reconstructed_x),
        ("y2x", cyclegan_model.model_y2x, cyclegan_model.reconstructed_y),
    ):
        parts = [model.generator_inputs, model.generated_data, again]
        _check_images(*parts)
        with name_scope(f"{way}_image_comparison_summaries"):
            shown = image_reshaper([part[0] for part in parts], len(parts))
            find("summary.image")("image_comparison", shown, max_outputs=1)


def _for_both(gan_model: Any, what: str, add: Any) -> bool:
    """Summaries of both models of a cycle; whether it was one."""
    if not isinstance(gan_model, CycleGANModel):
        return False
    for way, model in (("x2y", gan_model.model_x2y), ("y2x", gan_model.model_y2x)):
        with name_scope(f"cyclegan_{way}_{what}"):
            add(model)
    return True


def add_gan_model_summaries(gan_model: Any) -> None:
    """Histograms of the variables of a model."""
    if _for_both(gan_model, "summaries", add_gan_model_summaries):
        return
    for side in ("generator_variables", "discriminator_variables"):
        with name_scope(side):
            for variable in getattr(gan_model, side):
                find("summary.histogram")(variable.op.name, variable)


def add_regularization_loss_summaries(gan_model: Any) -> None:
    """Summaries of the regularization of both sides."""
    if _for_both(gan_model, "regularization_loss_summaries", add_regularization_loss_summaries):
        return
    for side in ("generator", "discriminator"):
        scope = getattr(gan_model, f"{side}_scope")
        if scope:
            loss = find("losses.get_regularization_loss")(scope.name)
            find("summary.scalar")(f"{side}_regularization_loss", loss)
