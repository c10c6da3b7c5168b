"""Which GPUs a process uses and how much of their memory: `gpu_options` of a ConfigProto, and `tf.config`.

JAX reads such options once, when it starts its devices. So they are collected here first, and the first session decides:
GPU 0 is the same card for a whole process, as in TensorFlow.
"""

from __future__ import annotations

import glob
import math
import os
import re
import warnings
from typing import TYPE_CHECKING, NamedTuple

from tensorfleet.base import errors

if TYPE_CHECKING:
    from types import ModuleType

    from jax import Device

    from tensorfleet.base.protos import GPUOptions

_MEMORY = "XLA_PYTHON_CLIENT_MEM_FRACTION"
_NEW_MEMORY = "XLA_CLIENT_MEM_FRACTION"  # JAX refuses to have both
_PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"


class GpuSettings(NamedTuple):
    """What was asked for. `visible` has the numbers of cards in the order in which they become GPU 0, 1, ..."""

    fraction: float = 0.0
    growth: bool = False
    visible: tuple[int, ...] | None = None


class _GpuState:
    """The options of this process, and whether JAX has its devices already."""

    def __init__(self) -> None:
        self.options = GpuSettings()
        self.started = False
        self.warned: set[str] = set()


_state = _GpuState()


def has_driver() -> bool:
    """Whether the system has GPUs that JAX may know of."""
    return os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/kfd")


def is_started() -> bool:
    """Whether JAX has its devices already, so that options come too late."""
    return _state.started


def card_count() -> int | None:
    """How many cards CUDA would find, without starting anything; None where that cannot be told."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return 0 if visible.strip() in ("", "-1") else len(visible.split(","))
    cards = [path for path in glob.glob("/dev/nvidia*") if re.fullmatch(r"/dev/nvidia\d+", path)]
    return len(cards) or None


def read_options(options: GPUOptions) -> GpuSettings:
    """The options of a `GPUOptions` message; InvalidArgumentError for values that mean nothing."""
    fraction = options.per_process_gpu_memory_fraction
    if math.isnan(fraction) or not 0.0 <= fraction <= 1.0:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"gpu_options.per_process_gpu_memory_fraction is {fraction:g}, but must be between 0 and 1: the part of a "
            "GPU's memory that this process may take.",
        )
    return GpuSettings(fraction, options.allow_growth, _read_cards(options.visible_device_list))


def _read_cards(text: str) -> tuple[int, ...] | None:
    if not text:
        return None
    cards: list[int] = []
    for entry in text.split(","):
        if not entry.strip().isdecimal():
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Could not parse entry in 'visible_device_list': '{entry}'. visible_device_list = {text}. List the "
                "numbers of GPUs, separated by commas.",
            )
        if int(entry) in cards:
            raise errors.AlreadyExistsError(
                None, None, f"visible_device_list contained a duplicate entry: {text}. List each GPU once."
            )
        cards.append(int(entry))
    return tuple(cards)


def choose(options: GpuSettings) -> None:
    """Has JAX start with these options. Once it has started, says which of them come too late."""
    if not has_driver():
        return
    _check_cards(options.visible)
    if _state.started:
        if options.visible is not None:
            _same_cards(_state.options.visible, options.visible)
        _warn_if_late(options)
        return
    chosen = _state.options
    _state.options = GpuSettings(
        chosen.fraction or options.fraction,
        chosen.growth or options.growth,
        chosen.visible if options.visible is None else _same_cards(chosen.visible, options.visible),
    )


def _check_cards(visible: tuple[int, ...] | None) -> None:
    count = card_count() if visible else None
    for card in visible or ():
        if count is not None and count <= card:
            raise _invalid_card(card, count)


def _invalid_card(card: int, count: int) -> errors.OpError:
    return errors.InvalidArgumentError(
        None,
        None,
        f"'visible_device_list' listed an invalid Device id '{card}' but visible device count is {count}. GPUs are "
        "counted from 0, after CUDA_VISIBLE_DEVICES.",
    )


def _same_cards(before: tuple[int, ...] | None, now: tuple[int, ...]) -> tuple[int, ...]:
    """The cards to use; AlreadyExistsError if a number would mean another card than it does already."""
    if before is None and not _state.started:
        return now
    for i, card in enumerate(now):
        used = i if before is None else before[i] if i < len(before) else card
        if used != card:
            raise errors.AlreadyExistsError(
                None,
                None,
                f"TensorFlow device (GPU:{i}) is being mapped to multiple devices ({card} now, and {used} previously), "
                "which is not supported. This may be the result of providing different GPU configurations "
                "(ConfigProto.gpu_options, for example different visible_device_list) when creating multiple Sessions in "
                "the same process. Use the same visible_device_list in all of them, or separate processes.",
            )
    return now if before is None or len(now) > len(before) else before


def _warn_if_late(options: GpuSettings) -> None:
    wanted = {"per_process_gpu_memory_fraction": options.fraction, "allow_growth": options.growth}
    used = {"per_process_gpu_memory_fraction": _state.options.fraction, "allow_growth": _state.options.growth}
    for name, value in wanted.items():
        if value and value != used[name] and name not in _state.warned:
            _state.warned.add(name)
            warnings.warn(
                f"gpu_options.{name}={value} has no effect: JAX has started its devices with "
                f"{used[name] or 'its default'} already. Give it to the first session, before JAX is used for anything "
                "else.",
                stacklevel=7,
            )


def environment() -> dict[str, str]:
    """The variables that JAX is to start its devices with. What the user has set is left as it is."""
    variables: dict[str, str] = {}
    if _state.options.fraction and _MEMORY not in os.environ and _NEW_MEMORY not in os.environ:
        variables[_MEMORY] = f"{_state.options.fraction:.3f}"
    if _state.options.growth and _PREALLOCATE not in os.environ:
        variables[_PREALLOCATE] = "false"
    return variables


def starting(jax: ModuleType) -> None:
    """Called before JAX starts its devices: has it leave the memory of other cards alone."""
    if _state.options.visible is not None:
        listed = ",".join(map(str, sorted(_state.options.visible)))
        jax.config.update("jax_cuda_visible_devices", listed)
        jax.config.update("jax_rocm_visible_devices", listed)


def started(before_us: bool) -> None:
    """Called when JAX has its devices; `before_us` if somebody else had started them, with options of their own."""
    _state.started = True
    if before_us:
        options, _state.options = _state.options, GpuSettings(visible=_state.options.visible)
        if has_driver():
            _warn_if_late(options)


def cards(jax: ModuleType) -> list[Device]:
    """JAX's devices in the order of this process's GPUs."""
    try:
        devices: list[Device] = jax.devices("gpu")
    except RuntimeError:
        return []
    if _state.options.visible is None:
        return devices
    by_number = {device.local_hardware_id: device for device in devices}
    for card in _state.options.visible:
        if card not in by_number:
            raise _invalid_card(card, len(devices))
    return [by_number[card] for card in _state.options.visible]
