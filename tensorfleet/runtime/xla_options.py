"""How XLA is told to compile for the CPU: what helps large arrays costs small ones more than it saves."""

from __future__ import annotations

from typing import Any

# XLA would drop our barriers before it fuses.
_KEEP_BARRIERS = "cse_barrier_expander"
# A loop over an array of this many elements takes about as long as waking the threads to share it.
_WORTH_DIVIDING = 1 << 19
_DIVIDE_LOOPS = "cpu-parallel-task-assigner"
# Small products are faster in Eigen than in the library that XLA otherwise hands them to.
_OWN_PRODUCTS = {"xla_cpu_experimental_ynn_fusion_type": ""}

_unknown: set[str] = set()  # options that this version of XLA does not have


def compile_for_cpu(lowered: Any, barriers: int, largest: int) -> Any:
    """Compiles a lowered program that has so many barriers and goes through arrays of so many elements."""
    skipped = [_KEEP_BARRIERS] if barriers else []
    options: dict[str, str] = {}
    if largest < _WORTH_DIVIDING:
        skipped.append(_DIVIDE_LOOPS)
        options |= {name: value for name, value in _OWN_PRODUCTS.items() if name not in _unknown}
    if skipped:
        options["xla_disable_hlo_passes"] = ",".join(skipped)  # names that XLA does not know change nothing
    try:
        return lowered.compile(options or None)
    except Exception as e:
        if not any(name in str(e) for name in _OWN_PRODUCTS.keys() & options.keys()):
            raise
        _unknown.update(_OWN_PRODUCTS)
        return compile_for_cpu(lowered, barriers, largest)
