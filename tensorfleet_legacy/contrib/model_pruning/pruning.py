"""Masks of weights, and when they are made anew (Zhu and Gupta 2017)."""

from __future__ import annotations

import re
from typing import Any

from tensorfleet.api.variables.scope import variable_scope
from tensorfleet.base import dtypes, logging
from tensorfleet.base.naming import find
from tensorfleet.graph.operation import Operation, Tensor
from tensorfleet.graph.scopes import add_to_collection, control_dependencies, get_collection, name_scope

_MASKS, _THRESHOLDS = "masks", "thresholds"
_MASKED, _WEIGHTS = "masked_weights", "kernel"
MASKED_NAME = "masked_weight"


def register(weights: Any, mask: Any, threshold: Any) -> Tensor:
    """The weights under a mask, known to `Pruning`."""
    masked = find("multiply")(mask, weights, name=MASKED_NAME)
    if not any(mask is known for known in get_collection(_MASKS)):
        for key, value in ((_THRESHOLDS, threshold), (_MASKS, mask), (_MASKED, masked), (_WEIGHTS, weights)):
            add_to_collection(key, value)
    return masked


def apply_mask(x: Any, scope: Any = "") -> Tensor:
    """Weights under a mask of their own, which is all ones at first."""
    with variable_scope(scope):
        get, kind = find("get_variable"), x.dtype.base_dtype
        mask = get("mask", x.shape, kind, find("ones_initializer")(), trainable=False)
        threshold = get("threshold", [], kind, find("zeros_initializer")(), trainable=False)
        return register(x, mask, threshold)


def get_masked_weights() -> list:
    """All weights under masks."""
    return get_collection(_MASKED)


def get_masks() -> list:
    """All masks."""
    return get_collection(_MASKS)


def get_thresholds() -> list:
    """The thresholds that weights were compared with when their masks were made."""
    return get_collection(_THRESHOLDS)


def get_weights() -> list:
    """All weights that have masks."""
    return get_collection(_WEIGHTS)


def get_weight_sparsity() -> list[Tensor]:
    """The share of masked weights, of each mask."""
    return [find("nn.zero_fraction")(mask) for mask in get_masks()]


def get_pruning_hparams() -> Any:
    """The parameters of pruning, with their usual values."""
    return find("contrib.training.HParams")(
        name="model_pruning",
        begin_pruning_step=0,
        end_pruning_step=-1,
        weight_sparsity_map=[""],
        block_dims_map=[""],
        threshold_decay=0.0,
        pruning_frequency=10,
        nbins=256,
        block_height=1,
        block_width=1,
        block_pooling_function="AVG",
        initial_sparsity=0.0,
        target_sparsity=0.5,
        sparsity_function_begin_step=0,
        sparsity_function_end_step=100,
        sparsity_function_exponent=3.0,
        use_tpu=False,
    )


def _check(spec: Any) -> None:
    if spec.begin_pruning_step < 0:
        raise ValueError("Illegal value for begin_pruning_step")
    if spec.end_pruning_step != -1 and spec.begin_pruning_step >= spec.end_pruning_step:
        raise ValueError(
            f"Pruning must begin before it can end. begin_step={spec.begin_pruning_step}, end_step="
            f"{spec.end_pruning_step}. Set end_pruning_step to -1 if pruning is required till training stops"
        )
    if spec.sparsity_function_begin_step < 0:
        raise ValueError("Illegal value for sparsity_function_begin_step")
    if spec.sparsity_function_begin_step >= spec.sparsity_function_end_step:
        raise ValueError("Sparsity function requires begin_step < end_step")
    for label in ("threshold_decay", "initial_sparsity", "target_sparsity"):
        if not 0.0 <= getattr(spec, label) < 1.0:
            raise ValueError(f"{label} must be in range [0,1)")


def _named(texts: list[str], what: str) -> list[tuple[re.Pattern, str]]:
    """Values by patterns of names, from texts such as "conv1:0.5"."""
    result = []
    for text in filter(None, texts):
        pattern, colon, value = text.rpartition(":")
        if not colon:
            raise ValueError(f"{what} has {text!r}: write name:value.")
        result.append((re.compile(pattern), value))
    return result


def _one(named: list[tuple[re.Pattern, str]], name: str, what: str) -> str | None:
    values = [value for pattern, value in named if pattern.search(name)]
    if len(values) > 1:
        raise ValueError(f"Multiple matches in {what} for weight {name}")
    return values[0] if values else None


class Pruning:
    """An operation that updates the masks of all weights, so that more and more weights are masked."""

    def __init__(self, spec: Any = None, global_step: Any = None, sparsity: Any = None) -> None:
        self._spec = spec or get_pruning_hparams()
        _check(self._spec)
        step = find("train.get_global_step")() if global_step is None else global_step
        self._global_step = find("cast")(step, dtypes.int32)
        self._sparsity = self._scheduled() if sparsity is None else sparsity
        with variable_scope(self._spec.name, reuse=find("AUTO_REUSE")):
            zero = find("zeros_initializer")()
            self._last_update_step = find("get_variable")(
                "last_mask_update_step", [], dtypes.int32, zero, trainable=False
            )
        self._blocks = _named(self._spec.block_dims_map, "block_dims_map")
        self._sparsities = _named(self._spec.weight_sparsity_map, "weight_sparsity_map")
        if any(float(value) >= 1.0 for _, value in self._sparsities):
            raise ValueError("Weight sparsity can not exceed 1.0")
        self._assign_ops: list[Operation] = []

    def _scheduled(self) -> Tensor:
        spec = self._spec
        with name_scope(spec.name):
            begin, end = spec.sparsity_function_begin_step, spec.sparsity_function_end_step
            done = find("cast")(self._global_step - begin, dtypes.float32) / float(end - begin)
            left = find("pow")(1.0 - find("clip_by_value")(done, 0.0, 1.0), spec.sparsity_function_exponent)
            change = spec.initial_sparsity - spec.target_sparsity
            return find("add")(change * left, spec.target_sparsity, name="sparsity")

    def _wanted(self, name: str) -> Any:
        own = _one(self._sparsities, name, "weight_sparsity_map")
        return self._sparsity if own is None else self._sparsity * (float(own) / self._spec.target_sparsity)

    def _update_mask(self, weights: Any, threshold: Any, name: str = "") -> tuple[Tensor, Tensor]:
        """The threshold below which a share of the weights lies, and the mask of those that do not."""
        sizes = find("abs")(find("convert_to_tensor")(weights))
        with name_scope(f"{name or weights.op.name}_pruning_ops"):
            total = find("size")(sizes)
            kept = find("cast")(total, dtypes.float32) * (1.0 - self._wanted(name or weights.op.name))
            ordered, _ = find("nn.top_k")(find("reshape")(sizes, [-1]), total)
            place = find("cast")(find("round")(kept), dtypes.int32) - 1
            decay = self._spec.threshold_decay
            smooth = find("gather")(ordered, place) * (1.0 - decay) + threshold * decay
            return smooth, find("cast")(sizes >= smooth, dtypes.float32)

    def _maybe_update_block_mask(self, weights: Any, threshold: Any) -> tuple[Tensor, Tensor]:
        """Like `_update_mask`, where the weights of a block of a matrix are masked together."""
        name = weights.op.name
        text = _one(self._blocks, name, "block_dims_map")
        block = [self._spec.block_height, self._spec.block_width]
        if text is not None:
            block = [int(size) for size in text.split("x")]
            if len(block) != 2:
                raise ValueError(f"Expected 2 values for block dim for {name}, got {text.split('x')}")
        matrix = find("squeeze")(find("convert_to_tensor")(weights))
        if matrix.shape.ndims != 2 or block == [1, 1]:
            return self._update_mask(weights, threshold)
        kind = self._spec.block_pooling_function
        if kind not in ("AVG", "MAX"):
            raise ValueError(f"Unknown pooling function for block sparsity: {kind}")
        height, width = matrix.shape.as_list()
        block = [size if b == -1 else b for b, size in zip(block, (height, width), strict=True)]
        image = find("reshape")(find("abs")(matrix), [1, height, width, 1])
        pooled = find("nn.pool")(image, block, kind, "SAME", strides=block)[0, :, :, 0]
        smooth, mask = self._update_mask(pooled, threshold, name)
        whole = find("repeat")(find("repeat")(mask, block[0], 0), block[1], 1)[:height, :width]
        return smooth, find("reshape")(whole, find("shape")(weights))

    def mask_update_op(self) -> Operation:
        """An operation that makes all masks anew."""
        with name_scope(self._spec.name):
            if not self._assign_ops:
                for mask, weights, threshold in zip(
                    get_masks(), get_weights(), get_thresholds(), strict=True
                ):
                    smooth, new = self._maybe_update_block_mask(weights, threshold)
                    self._assign_ops += [threshold.assign(smooth).op, mask.assign(new).op]
            step = find("assign")(
                self._last_update_step, self._global_step, name="last_mask_update_step_assign"
            )
            with control_dependencies([step, *self._assign_ops]):
                logging.info("Updating masks.")
                return find("no_op")("mask_update")

    def conditional_mask_update_op(self) -> Any:
        """An operation that makes all masks anew when it is time to."""
        spec, step, both = self._spec, self._global_step, find("logical_and")
        with name_scope(spec.name):
            begun = step >= spec.begin_pruning_step
            within = begun if spec.end_pruning_step < 0 else both(begun, step <= spec.end_pruning_step)
            due = both(within, self._last_update_step + spec.pruning_frequency <= step)
        return find("cond")(due, self.mask_update_op, find("no_op"))

    def add_pruning_summaries(self) -> None:
        """Summaries of how much is masked."""
        with name_scope(f"{self._spec.name}_summaries"):
            scalar = find("summary.scalar")
            scalar("sparsity", self._sparsity)
            scalar("last_mask_update_step", self._last_update_step)
            for mask, threshold in zip(get_masks(), get_thresholds(), strict=True):
                scalar(f"{mask.op.name}/sparsity", find("nn.zero_fraction")(mask))
                scalar(f"{threshold.op.name}/threshold", threshold)

    def print_hparams(self) -> None:
        """Logs the parameters."""
        logging.info(self._spec.to_json())
