"""Statistics of arrays: ranges, and the numbers that are none."""

from __future__ import annotations

from typing import Any

import numpy as np


def statistics(value: Any) -> dict[str, Any]:
    """Type, shape, range, mean, standard deviation, and how many zeros, NaNs and infinities there are, as plain data.

    The range, the mean and the deviation are those of the finite numbers; None where there are none.
    """
    array = np.asarray(value)
    result: dict[str, Any] = {"dtype": array.dtype.name, "shape": list(array.shape), "size": array.size}
    if array.dtype.kind in "OSU":
        return {**result, "dtype": "string"}
    numbers = array.astype(np.float64) if array.dtype.kind not in "fc" else array
    finite = np.isfinite(numbers)
    result["nans"] = int(np.count_nonzero(np.isnan(numbers)))
    result["infinities"] = int(array.size - np.count_nonzero(finite)) - result["nans"]
    result["zeros"] = int(np.count_nonzero(array == 0))
    kept = numbers[finite] if not finite.all() else numbers
    if array.dtype.kind == "c":
        kept = np.abs(kept)
    kept = kept.astype(np.float64)
    with np.errstate(all="ignore"):
        for name, of in (("min", np.min), ("max", np.max), ("mean", np.mean), ("std", np.std)):
            result[name] = float(of(kept)) if kept.size else None
    return result


def has_bad(value: Any) -> bool:
    """Whether a value has a NaN or an infinity in it."""
    array = np.asarray(value) if value is not None else None
    if array is None or array.dtype.kind in "OSUbiu":
        return False
    try:
        return not bool(np.isfinite(array).all())
    except TypeError:  # a type that has no such numbers
        return False


def in_words(stats: dict[str, Any]) -> str:
    """Statistics in one line."""
    shape = "x".join(map(str, stats["shape"])) or "scalar"
    if "nans" not in stats:
        return f"{stats['dtype']} {shape}"
    parts = [f"{stats['dtype']} {shape}"]
    parts += [
        f"{name} {stats[name]:.6g}" for name in ("min", "max", "mean", "std") if stats[name] is not None
    ]
    parts += [f"{stats[name]} {name}" for name in ("nans", "infinities", "zeros")]
    return ", ".join(parts)
