"""Every registered op against TensorFlow: declaration, value, static shape and gradient.

TensorFlow runs the very graph we export, so each comparison also proves that it can read it.
"""

import warnings

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.graph import registry
from tensorfleet.graph.apply import apply_op
from tensorfleet.graph.graphdef import op_def
from tensorfleet.testing.cases import all_cases, feed_for, placeholders_for

# What 1.15 has and TensorFlow no longer.
GONE = {"BipartiteMatch", "CompareAndBitpack", "ImageConnectedComponents"}
CASES = [case for case in all_cases() if case[0] not in GONE]
IDS = [f"{name}-{i}" for name, i, _ in CASES]
TOLERANCE = {2: 2e-2, 4: 3e-5, 8: 1e-9}


def known_to(tensorflow, name):
    from tensorflow.python.framework import op_def_registry

    return op_def_registry.get(name)


@pytest.mark.parametrize("name", sorted(registry.all_ops().keys() - GONE))
def test_declaration_is_tensorflows(tensorflow, name):
    theirs = known_to(tensorflow, name)
    if theirs is None:
        assert name.startswith("Fleet"), f"{name} is unknown to TensorFlow and not marked as ours"
        return
    ours = op_def(registry.get(name))
    for part in ("input_arg", "output_arg"):
        mine = [
            (a.name, a.type, a.type_attr, a.number_attr, a.type_list_attr, a.is_ref)
            for a in getattr(ours, part)
        ]
        other = [
            (a.name, a.type, a.type_attr, a.number_attr, a.type_list_attr, a.is_ref)
            for a in getattr(theirs, part)
        ]
        assert mine == other
    defaults = {a.name: (a.type, default_of(a)) for a in ours.attr}
    expected = {a.name: (a.type, default_of(a)) for a in theirs.attr}
    later = {"incompatible_shape_error", "grad_a", "grad_b", "debug_name", "bad_indices_policy"}
    assert defaults == {k: v for k, v in expected.items() if k in defaults or k not in later}


def default_of(attr):
    """The default of an attribute, in a form to compare: a tensor can be written in several ways."""
    value = attr.default_value
    return tf.make_ndarray(value.tensor).tolist() if value.HasField("tensor") else value.SerializeToString()


def import_into(tensorflow, graph):
    """Our graph inside TensorFlow."""
    proto = tensorflow.GraphDef.FromString(graph.as_graph_def().SerializeToString())
    theirs = tensorflow.Graph()
    with theirs.as_default():
        tensorflow.import_graph_def(proto, name="")
    return theirs


def assert_close(ours, theirs):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    if ours.dtype.kind in "OSU":
        assert ours.tolist() == theirs.tolist()
        return
    assert ours.dtype == theirs.dtype
    if ours.dtype.kind in "biu":
        np.testing.assert_array_equal(ours, theirs)
        return
    size = ours.dtype.itemsize // (2 if ours.dtype.kind == "c" else 1)
    tolerance = TOLERANCE[size]
    wide = np.complex128 if ours.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(ours.astype(wide), theirs.astype(wide), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("name", "index", "sample"), CASES, ids=IDS)
def test_value_and_gradient_are_tensorflows(tensorflow, name, index, sample):
    if name.startswith("Fleet"):
        pytest.skip("TensorFlow has no such op")
    graph = tf.Graph()
    with graph.as_default():
        inputs = placeholders_for(name, sample)
        op = apply_op(name, *inputs, **sample.attrs)
    feed = feed_for(inputs, sample)
    theirs = import_into(tensorflow, graph)
    their_op = theirs.get_operation_by_name(op.name)
    their_feed = {theirs.get_tensor_by_name(t.name): v for t, v in feed.items()}
    with tf.Session(graph=graph) as mine, tensorflow.Session(graph=theirs) as session:
        ours = mine.run(op.outputs, feed)
        try:
            expected = session.run(their_op.outputs, their_feed)
        except (tensorflow.errors.UnimplementedError, tensorflow.errors.InvalidArgumentError) as e:
            if "only supports" in str(e) or "No OpKernel" in str(e) or "supported" in str(e):
                pytest.skip("TensorFlow has no CPU kernel for this")
            raise
        if name.startswith("FusedBatchNorm") and not sample.attrs.get("is_training", True):
            ours, expected = ours[:3], expected[:3]  # the reserved outputs mean nothing then
        if name in ("Svd", "SelfAdjointEigV2"):
            ours, expected = ours[:1], expected[:1]  # vectors are known up to their sign only
        if name == "BlockLSTM":  # what lies beyond the longest sequence is left as it was found
            longest = int(sample.inputs[0])
            ours, expected = [a[:longest] for a in ours], [b[:longest] for b in expected]
        if name == "DecodeJSONExample":  # the same messages; whether numbers are packed is open
            ours, expected = (
                [np.array([str(tf.train.Example.FromString(m)) for m in v]) for v in both]
                for both in (ours, expected)
            )
        for a, b in zip(ours, expected, strict=True):
            assert_close(a, b)
        for a, b in zip(op.outputs, their_op.outputs, strict=True):
            if b.shape.rank is not None and b.shape.is_fully_defined():
                assert a.shape.as_list() == b.shape.as_list(), "TensorFlow knows more of the shape"
        if sample.grad and name != "BlockLSTM":  # TensorFlow's counts only what comes through cs and h
            compare_gradients(tensorflow, mine, session, op, feed, their_feed)


def compare_gradients(tensorflow, mine, session, op, feed, their_feed):
    floating = ("float16", "bfloat16", "float32", "float64")
    xs = [t for t in op.inputs if t.dtype.name in floating and t.op.type == "Placeholder"]
    ys = [t for t in op.outputs if t.dtype.name in floating]
    if not xs or not ys:
        return
    random = np.random.RandomState(1)
    weights = [
        np.asarray(random.rand(*np.shape(v))).astype(t.dtype.as_numpy_dtype)
        for t, v in zip(ys, mine.run(ys, feed), strict=True)
    ]
    their_xs = [session.graph.get_tensor_by_name(t.name) for t in xs]
    their_ys = [session.graph.get_tensor_by_name(t.name) for t in ys]
    with session.graph.as_default():
        try:
            theirs = tensorflow.gradients(their_ys, their_xs, [tensorflow.constant(w) for w in weights])
        except (LookupError, TypeError, ValueError):
            return  # TensorFlow cannot differentiate it; ours may
        theirs = [None if g is None else tensorflow.convert_to_tensor(g) for g in theirs]
    with op.graph.as_default(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = tf.gradients(ys, xs, [tf.constant(w) for w in weights])
        ours = [None if g is None else tf.convert_to_tensor(g) for g in ours]
    for a, b in zip(ours, theirs, strict=True):
        assert (a is None) == (b is None)
        if a is None:
            continue
        try:
            expected = session.run(b, their_feed)
        except tensorflow.errors.InvalidArgumentError as e:
            assert "No OpKernel" in str(e)  # TensorFlow cannot run its own gradient here
        else:
            assert_close(mine.run(a, feed), expected)
