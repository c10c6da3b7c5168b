"""`tf.contrib.gan.estimator`: a generator and a discriminator as an estimator."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import Any

from tensorfleet.base.naming import find
from tensorfleet.graph.scopes import name_scope
from tensorfleet_legacy.contrib.gan import summaries as pictures
from tensorfleet_legacy.contrib.gan.train import gan_train_ops, get_sequential_train_hooks
from tensorfleet_legacy.contrib.gan.train_losses import gan_loss
from tensorfleet_legacy.contrib.gan.train_models import _tensors, gan_model
from tensorfleet_legacy.estimator.estimator import Estimator
from tensorfleet_legacy.estimator.model_fn import EstimatorSpec, ModeKeys
from tensorfleet_legacy.internals.util.tf_decorator import fn_args


class SummaryType(enum.IntEnum):
    """The kinds of summaries of a model."""

    NONE = 0
    VARIABLES = 1
    IMAGES = 2
    IMAGE_COMPARISON = 3


_SUMMARIES: dict[int, Callable] = {
    SummaryType.VARIABLES: pictures.add_gan_model_summaries,
    SummaryType.IMAGES: pictures.add_gan_model_image_summaries,
    SummaryType.IMAGE_COMPARISON: pictures.add_image_comparison_summaries,
}


def _with_mode(function: Callable, mode: str) -> Callable:
    return functools.partial(function, mode=mode) if "mode" in fn_args(function) else function


class GANEstimator(Estimator):
    """Features are the generator's inputs, labels are real data."""

    def __init__(
        self,
        model_dir: Any = None,
        generator_fn: Any = None,
        discriminator_fn: Any = None,
        generator_loss_fn: Any = None,
        discriminator_loss_fn: Any = None,
        generator_optimizer: Any = None,
        discriminator_optimizer: Any = None,
        get_hooks_fn: Callable | None = None,
        get_eval_metric_ops_fn: Callable | None = None,
        add_summaries: Any = None,
        use_loss_summaries: bool = True,
        config: Any = None,
        warm_start_from: Any = None,
        is_chief: bool = True,
    ) -> None:
        for label, value in (
            ("generator_loss_fn", generator_loss_fn),
            ("discriminator_loss_fn", discriminator_loss_fn),
        ):
            if not callable(value):
                raise ValueError(f"{label} must be callable.")
        if use_loss_summaries not in (True, False, None):
            raise ValueError("use_loss_summaries must be True, False or None.")
        if get_hooks_fn is not None and not callable(get_hooks_fn):
            raise TypeError("get_hooks_fn must be callable.")
        shown = add_summaries if isinstance(add_summaries, (list, tuple)) else [add_summaries]
        kinds = [kind for kind in shown if kind]

        def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
            generate = _with_mode(generator_fn, mode)
            if mode == ModeKeys.PREDICT:
                if labels is not None:
                    raise ValueError(
                        f"`labels` must be `None` when mode is `predict`. Instead, found {labels}"
                    )
                with find("variable_scope")("Generator"):
                    return EstimatorSpec(mode, generate(_tensors(features)))
            discriminate = _with_mode(discriminator_fn, mode)
            model = gan_model(generate, discriminate, labels, features, check_shapes=False)
            for kind in kinds:
                _SUMMARIES[kind](model)
            loss = gan_loss(
                model, generator_loss_fn, discriminator_loss_fn, add_summaries=bool(use_loss_summaries)
            )
            if mode == ModeKeys.EVAL:
                return _evaluated(model, loss, get_eval_metric_ops_fn)
            first, second = (
                o() if callable(o) else o for o in (generator_optimizer, discriminator_optimizer)
            )
            train_ops = gan_train_ops(model, loss, first, second, is_chief=is_chief)
            hooks = (get_hooks_fn or get_sequential_train_hooks())(train_ops)
            return EstimatorSpec(
                mode,
                loss=loss.discriminator_loss,
                train_op=train_ops.global_step_inc_op,
                training_hooks=hooks,
            )

        Estimator.__init__(self, model_fn, model_dir, config, warm_start_from=warm_start_from)


def _evaluated(model: Any, loss: Any, more: Callable | None) -> EstimatorSpec:
    with name_scope("metrics"):
        mean = find("metrics.mean")
        metrics = {name: mean(getattr(loss, name)) for name in ("generator_loss", "discriminator_loss")}
        own = {} if more is None else more(model)
        if not isinstance(own, dict):
            raise TypeError(f"get_eval_metric_ops_fn must return a dict, received: {own}")
    return EstimatorSpec(
        ModeKeys.EVAL, model.generated_data, loss.discriminator_loss, eval_metric_ops={**metrics, **own}
    )
