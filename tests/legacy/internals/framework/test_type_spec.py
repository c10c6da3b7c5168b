"""Specs of values of one's own, and of tensors between bounds."""

import copy

import numpy as np
import pytest

import tensorfleet as tf


class Pair(tf.python.framework.composite_tensor.CompositeTensor):
    """Two values, and a word about them."""

    def __init__(self, first, second, word=None):
        self.first, self.second, self.word = first, second, word

    @property
    def _type_spec(self):
        return PairSpec(
            [tf.python.framework.type_spec.type_spec_from_value(v) for v in self.both()], self.word
        )

    def both(self):
        return [self.first, self.second]


class PairSpec(tf.TypeSpec):
    """The specs of both values."""

    def __init__(self, specs, word=None):
        self._specs, self._word = tuple(specs), word

    value_type = property(lambda self: Pair)
    _component_specs = property(lambda self: list(self._specs))

    def _serialize(self):
        return self._specs, self._word

    def _to_components(self, value):
        return value.both()

    def _from_components(self, components):
        return Pair(*components, self._word)


def test_values_of_ones_own_are_taken_apart_and_put_together():
    nest = tf.python.util.nest
    given = {"a": Pair(tf.constant(1), tf.constant(2.0), "x")}
    assert len(nest.flatten(given)) == 1
    assert nest.flatten(given, expand_composites=True) == given["a"].both()
    assert list(nest.yield_flat_paths(given, expand_composites=True)) == [("a", "Pair", 0), ("a", "Pair", 1)]
    result = nest.map_structure(lambda t: t + t, given, expand_composites=True)
    assert result["a"].word == "x" and result["a"].second.op.type == "AddV2"
    nest.assert_same_structure(given, result, expand_composites=True)
    with pytest.raises(ValueError, match="Incompatible CompositeTensor TypeSpecs"):
        nest.assert_same_structure(given, {"a": Pair(1, 2, "y")}, expand_composites=True)


def test_specs_of_ones_own_are_compared_and_joined():
    shape = tf.TensorSpec([2, 3]), tf.TensorSpec([None, 3])
    narrow, wide = PairSpec([shape[0], shape[0]]), PairSpec([shape[1], shape[1]])
    assert wide.is_compatible_with(narrow) and wide != narrow and hash(wide) == hash(PairSpec([shape[1]] * 2))
    assert PairSpec([shape[0]] * 2, "x") != narrow and not narrow.is_compatible_with(
        PairSpec([shape[0]] * 2, "x")
    )
    assert narrow._flat_tensor_specs == [shape[0], shape[0]]


def test_tensors_between_bounds():
    spec = tf.python.framework.tensor_spec.BoundedTensorSpec((1, 2, 3), tf.float32, 0, (5, 5, 5), "b")
    assert spec.minimum.dtype == np.float32 and spec.maximum.tolist() == [5, 5, 5]
    assert spec == type(spec)((1, 2, 3), tf.float32, 0.0, [5, 5, 5], "b") and spec != tf.TensorSpec(
        (1, 2, 3), name="b"
    )
    assert copy.deepcopy(spec) == spec
    assert type(spec).from_spec(tf.TensorSpec([2], tf.uint8)).maximum == 255
    with pytest.raises(ValueError, match="minimum is not compatible with shape"):
        type(spec)((1, 2), tf.int32, [1, 2, 3], 5)
    with pytest.raises(ValueError, match="must be provided"):
        type(spec)((1, 2), tf.int32, None, 5)


def test_converters_of_ones_own_give_specs():
    type_spec = tf.python.framework.type_spec
    kind = type("Kind", (), {})
    with pytest.raises(TypeError, match="Could not build a TypeSpec"):
        type_spec.type_spec_from_value(kind())
    type_spec.register_type_spec_from_value_converter(kind, lambda _: tf.TensorSpec([7]))
    assert type_spec.type_spec_from_value(kind()) == tf.TensorSpec([7])
    assert type_spec.type_spec_from_value([1, 2]) == tf.TensorSpec([2], tf.int32)
