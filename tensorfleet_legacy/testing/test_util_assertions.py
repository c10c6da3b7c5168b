"""Assertions of `tf.test.TestCase` about arrays, protos, devices and errors."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from absl.testing import absltest

from tensorfleet.base import dtypes, errors
from tensorfleet.base.devices import canonical_name
from tensorfleet.base.platform.compat import as_text
from tensorfleet.graph.operation import Tensor
from tensorfleet.ops.ragged.ragged_tensor import RaggedTensor
from tensorfleet.ops.ragged.value import RaggedTensorValue


class Assertions(absltest.TestCase):
    """Assertions about what a graph gives. Tensors are evaluated first."""

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors, run in the default session."""
        raise AssertionError("TestCase defines it")

    def _array(self, a: Any) -> np.ndarray:
        if isinstance(a, np.ndarray):
            return a
        if isinstance(a, Tensor) or hasattr(a, "_as_graph_element"):
            a = self.evaluate(a)
        try:
            return np.asarray(a)
        except ValueError:  # lists of different lengths, which numpy once made arrays of lists
            return np.asarray(a, dtype=object)

    def _GetNdArray(self, a: Any) -> np.ndarray:
        """Makes an array, for TensorFlow's own tests."""
        return self._array(a)

    def _rows(self, a: Any) -> Any:
        """A ragged tensor, or what stands for one, as nested lists."""
        value = self.evaluate(a) if isinstance(a, (Tensor, RaggedTensor)) else a
        if isinstance(value, RaggedTensorValue):
            return value.to_list()
        return (
            [self._rows(x) for x in value] if isinstance(value, (list, tuple)) else np.asarray(value).tolist()
        )

    # -- closeness --

    def assertNear(self, f1: Any, f2: Any, err: float, msg: str | None = None) -> None:
        """Two numbers differ by at most `err`."""
        one, two = (np.asarray(f).item() for f in (f1, f2))
        self.assertTrue(
            one == two or math.fabs(one - two) <= err,
            f"{one:f} != {two:f} +/- {err:f} (difference: {one - two:g})" + (f" ({msg})" if msg else ""),
        )

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: str | None = None) -> None:
        """Two sequences of numbers differ by at most `err` everywhere."""
        self.assertEqual(len(farray1), len(farray2), msg=msg)
        for f1, f2 in zip(farray1, farray2, strict=True):
            self.assertNear(float(f1), float(f2), err, msg=msg)

    def _NDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float) -> bool:
        return bool(np.linalg.norm(ndarray1 - ndarray2) < err)

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: str | None = None) -> None:
        """The distance between two arrays is below `err`."""
        self.assertTrue(self._NDArrayNear(ndarray1, ndarray2, err), msg=msg)

    def assertAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Two structures of numbers are alike, within `atol + rtol * |b|`."""
        self._assert_close(a, b, rtol, atol, "", msg)

    def _assert_close(self, a: Any, b: Any, rtol: float, atol: float, path: str, msg: str | None) -> None:
        if any(isinstance(x, (RaggedTensor, RaggedTensorValue)) for x in (a, b)):
            a, b = self._rows(a), self._rows(b)
        if hasattr(a, "_asdict"):
            a = a._asdict()
        if hasattr(b, "_asdict"):
            b = b._asdict()
        if isinstance(a, Mapping) != isinstance(b, Mapping):
            raise ValueError(f"Can't compare dict to non-dict, a{path} vs b{path}. {msg or ''}")
        if isinstance(a, Mapping):
            text = (
                f"mismatched keys: a{path} has keys {a.keys()}, but b{path} has keys {b.keys()}. {msg or ''}"
            )
            self.assertCountEqual(a.keys(), b.keys(), text)
            for key in a:
                self._assert_close(a[key], b[key], rtol, atol, f"{path}[{key}]", msg)
        elif isinstance(a, (list, tuple)) and not _is_rectangular(a):
            self.assertEqual(len(a), len(b), f"Mismatched length: a{path} and b{path}. {msg or ''}")
            for i, (x, y) in enumerate(zip(a, b, strict=True)):
                self._assert_close(x, y, rtol, atol, f"{path}[{i}]", msg)
        else:
            self._assert_array_close(a, b, rtol, atol, path, msg)

    def _assert_array_close(
        self, a: Any, b: Any, rtol: float, atol: float, path: str, msg: str | None
    ) -> None:
        a, b = self._array(a), self._array(b)
        text = f"Shape mismatch: expected {a.shape}, got {b.shape} with contents {b}."
        self.assertEqual(a.shape, b.shape, text)
        if np.allclose(a, b, rtol=rtol, atol=atol):
            return
        with np.errstate(invalid="ignore"):
            wrong = np.abs(a - b) > atol + rtol * np.abs(b)
            wrong |= np.isnan(a) != np.isnan(b)
        lines = [
            f"Mismatched value: a{path} is different from b{path}. {msg or ''}",
            f"not close where = {np.nonzero(np.atleast_1d(wrong))}",
            f"not close lhs = {a[wrong]}",
            f"not close rhs = {b[wrong]}",
            f"not close dif = {np.abs(a - b)[wrong]}",
            f"not close tol = {(atol + rtol * np.abs(b))[wrong]}",
            f"dtype = {a.dtype}, shape = {a.shape}",
        ]
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg="\n".join(lines), equal_nan=True)

    def assertAllCloseAccordingToType(
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: str | None = None,
    ) -> None:
        """Like `assertAllClose`, with tolerances that fit the coarser of the two types."""
        a, b = self._array(a), self._array(b)
        limits = {
            dtypes.float32: (float_rtol, float_atol),
            dtypes.complex64: (float_rtol, float_atol),
            dtypes.float16: (half_rtol, half_atol),
            dtypes.bfloat16: (bfloat16_rtol, bfloat16_atol),
        }
        for kind, (r, t) in limits.items():
            if np.dtype(kind.as_numpy_dtype) in (a.dtype, b.dtype):
                rtol, atol = max(rtol, r), max(atol, t)
        self.assertAllClose(a, b, rtol=rtol, atol=atol, msg=msg)

    def assertNotAllClose(self, a: Any, b: Any, **kwargs: Any) -> None:
        """`assertAllClose` would fail."""
        try:
            self.assertAllClose(a, b, **kwargs)
        except AssertionError:
            return
        raise AssertionError("The two values are close at all elements.")

    # -- equality and order --

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Two arrays, or ragged tensors, have the same shape and elements; NaN equals NaN."""
        if any(isinstance(x, (RaggedTensor, RaggedTensorValue)) for x in (a, b)):
            self.assertEqual(self._rows(a), self._rows(b), msg)
            return
        a, b = self._array(a), self._array(b)
        text = f"Shape mismatch: expected {a.shape}, got {b.shape}. Contents: {b!r}. {msg or ''}"
        self.assertEqual(a.shape, b.shape, text)
        same = a == b
        if a.dtype.kind in "fc" and b.dtype.kind in "fc":
            same = same | (np.isnan(a) & np.isnan(b))
        if not np.all(same):
            wrong = ~np.asarray(same)
            raise AssertionError(
                f"Arrays are not equal. {msg or ''}\nnot equal where = {np.nonzero(np.atleast_1d(wrong))}\n"
                f"not equal lhs = {a[wrong]!r}\nnot equal rhs = {b[wrong]!r}"
            )

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """`assertAllEqual` would fail."""
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        raise AssertionError(f"The two values are equal at all elements. {msg or ''}")

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """Every element is greater than a number."""
        self.assertGreater(np.min(self._array(a)), comparison_target)

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """Every element is less than a number."""
        self.assertLess(np.max(self._array(a)), comparison_target)

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """Every element is at least a number."""
        self.assertGreaterEqual(np.min(self._array(a)), comparison_target)

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """Every element is at most a number."""
        self.assertLessEqual(np.max(self._array(a)), comparison_target)

    def assertAllInRange(
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """Every element is between two numbers."""
        target = self._array(target)
        if target.dtype.kind not in "iuf":
            raise AssertionError(f"The value of {target} does not have an ordered numeric type.")
        below = target <= lower_bound if open_lower_bound else target < lower_bound
        above = target >= upper_bound if open_upper_bound else target > upper_bound
        wrong = below | above | (np.isnan(target) if target.dtype.kind == "f" else False)
        if np.any(wrong):
            bounds = f"{'(' if open_lower_bound else '['}{lower_bound}, {upper_bound}{')' if open_upper_bound else ']'}"
            raise AssertionError(
                f"{np.sum(wrong)} of the {target.size} element(s) are outside the range {bounds}. "
                f"Subscript(s) and value(s) of the offending elements:\n{_places(target, wrong)}"
            )

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        """Every element is one of a set."""
        extra = np.setdiff1d(self._array(target), list(expected_set))
        if extra.size:
            raise AssertionError(f"{extra.size} unique element(s) are not in the set {expected_set}: {extra}")

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """The elements are of a numpy type."""
        dtype = target.dtype if hasattr(target, "dtype") else self._array(target).dtype
        result = dtype.as_numpy_dtype if isinstance(dtype, dtypes.DType) else dtype
        self.assertEqual(np.dtype(result), np.dtype(dtypes.as_dtype(expected_dtype).as_numpy_dtype))

    def assertShapeEqual(self, np_array: Any, tf_tensor: Any, msg: str | None = None) -> None:
        """An array and a tensor have the same shape."""
        if not isinstance(np_array, (np.ndarray, np.generic)):
            raise TypeError("np_array must be a Numpy ndarray or Numpy scalar")
        if not isinstance(tf_tensor, Tensor):
            raise TypeError("tf_tensor must be a Tensor")
        self.assertAllEqual(np_array.shape, tf_tensor.get_shape().as_list(), msg=msg)

    # -- protos, devices, errors --

    def assertProtoEquals(
        self, expected_message_maybe_ascii: Any, message: Any, msg: str | None = None
    ) -> None:
        """Two messages are equal; the first may be given as text."""
        from google.protobuf import text_format

        expected = expected_message_maybe_ascii
        if isinstance(expected, (str, bytes)):
            expected = text_format.Parse(as_text(expected), type(message)())
        elif type(expected) is not type(message):
            raise AssertionError(
                f"Can't compare protos of type {type(expected)} and {type(message)}. {msg or ''}"
            )
        self.assertMultiLineEqual(str(expected), str(message), msg=msg)

    def assertProtoEqualsVersion(
        self,
        expected: Any,
        actual: Any,
        producer: int = 134,
        min_consumer: int = 0,
        msg: str | None = None,
    ) -> None:
        """Like `assertProtoEquals` for a GraphDef given as text, whose version is added."""
        version = f"versions {{ producer: {producer} min_consumer: {min_consumer} }};"
        self.assertProtoEquals(f"{version}\n{expected}", actual, msg=msg)

    def assertStartsWith(self, actual: Any, expected_start: Any, msg: str | None = None) -> None:
        """A text starts with another."""
        if not actual.startswith(expected_start):
            self.fail(f"{actual!r} does not start with {expected_start!r}. {msg or ''}")

    def assertDeviceEqual(self, device1: Any, device2: Any, msg: str | None = None) -> None:
        """Two device names mean the same."""
        one, two = canonical_name(device1), canonical_name(device2)
        self.assertEqual(one, two, f"Devices {one} and {two} are not equal. {msg or ''}")

    @contextmanager
    def assertRaisesWithPredicateMatch(  # type: ignore[override]
        self, exception_type: Any, expected_err_re_or_predicate: Any
    ) -> Iterator[None]:
        """The block raises an error whose text matches a pattern, or which a function accepts."""
        try:
            yield
        except Exception as e:
            if not isinstance(e, exception_type) or not _accepts(expected_err_re_or_predicate, e):
                raise AssertionError(f"Exception of type {type(e)}: {e}") from e
            return
        self.fail(f"{getattr(exception_type, '__name__', exception_type)} not raised")

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:
        """The block raises an OpError whose text matches."""
        return self.assertRaisesWithPredicateMatch(errors.OpError, expected_err_re_or_predicate)


def _accepts(pattern: str | Callable, error: Exception) -> bool:
    if callable(pattern):
        return bool(pattern(error))
    lines, op = [str(error)], getattr(error, "op", None)
    while op is not None:  # the operation that failed, and those it was made for
        lines.append(f"Caused by: {op.name}")
        op = op._original_op
    return re.search(pattern, "\n".join(lines)) is not None


def _places(values: np.ndarray, wrong: np.ndarray, most: int = 10) -> str:
    """Where an array's elements are wrong, and what they are there; of many the first ones."""
    lines = [f"{place} : {values[tuple(place)]}" for place in np.argwhere(wrong)]
    return "\n".join([*lines[:most], "..."] if len(lines) > most else lines)


def _is_rectangular(values: Any) -> bool:
    """Whether a list is numbers throughout, rather than a structure of arrays and dictionaries."""
    try:
        return np.asarray(values).dtype != object
    except (ValueError, NotImplementedError):  # of unlike lengths, or tensors
        return False
