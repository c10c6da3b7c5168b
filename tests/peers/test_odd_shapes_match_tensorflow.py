"""Every op's examples again, with dimensions unknown until the step runs, with no rows, with other types."""

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.graph import registry
from tensorfleet.graph.apply import apply_op
from tensorfleet.ops.samples import case
from tensorfleet.testing.cases import all_cases, feed_for, placeholders_for
from tests.peers.test_ops_match_tensorflow import GONE, assert_close, import_into

CASES = [c for c in all_cases() if not c[0].startswith("Fleet") and c[0] not in GONE]
# What TensorFlow leaves undefined (vectors up to a sign, memory it never wrote), or writes in several ways.
UNDEFINED = {"Svd", "SelfAdjointEigV2", "BlockLSTM", "DecodeJSONExample", "Fingerprint", "SerializeTensor"}
UNDEFINED |= {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "DepthwiseConv2dNativeBackpropFilter"}
# TensorFlow wants to know these shapes beforehand; we do not.
WANTS_SHAPES = {"BatchToSpaceND", "SpaceToBatchND", "ParallelConcat", "MatrixSetDiagV2", "MatrixSetDiagV3"}
WANTS_SHAPES |= {
    "ExtractVolumePatches",
    "FusedPadConv2D",
    "FusedResizeAndPadConv2D",
}  # of which it infers a wrong rank
# TensorFlow fails on, or gives anything for, an input without rows where there is nothing wrong with it.
NO_ROWS_FAIL = {
    "GRUBlockCell",
    "LSTMBlockCell",
    "MaxPool3DGradGrad",
    "MaxPoolWithArgmax",
    "MirrorPadGrad",
    "Reverse",
}
# What these give for nothing is defined; others leave memory as they found it.
REDUCTIONS = {"Sum", "Prod", "Max", "Min", "All", "Any", "L2Loss", "ArgMax", "ArgMin", "Bincount", "AddN"}
REDUCTIONS |= {"MatMul", "BatchMatMul", "BatchMatMulV2", "SegmentSum", "UnsortedSegmentSum", "ReduceJoin"}
NO_ROWS_FAIL |= {
    "StringNGrams",
    "UnravelIndex",
    "Mean",
    "InplaceAdd",
    "InplaceSub",
    "InplaceUpdate",
    "SparseAdd",
}


def parametrized(chosen, ids=None):
    named = [f"{name}-{i}" for name, i, _ in chosen]
    return pytest.mark.parametrize(("name", "index", "sample"), chosen, ids=ids or named)


class Both:
    """One op on the same inputs in both libraries."""

    def __init__(self, tensorflow, name, sample, unknown=False):
        self.tensorflow = tensorflow
        graph = tf.Graph()
        with graph.as_default():
            inputs = placeholders_for(name, sample, unknown)
            self.op = apply_op(name, *inputs, **sample.attrs)
        self.feed = feed_for(inputs, sample)
        self.graph, self.theirs = graph, import_into(tensorflow, graph)
        self.their_op = self.theirs.get_operation_by_name(self.op.name)

    def expected(self):
        """TensorFlow's values, or None where it has none."""
        # Copies: what TensorFlow does in place it does to an array that is fed, if that is aligned.
        feed = {self.theirs.get_tensor_by_name(t.name): np.array(v) for t, v in self.feed.items()}
        with self.tensorflow.Session(graph=self.theirs) as session:
            try:
                return session.run(self.their_op.outputs, feed)
            except self.tensorflow.errors.OpError:
                return None

    def check(self, values=True):
        expected = self.expected()
        if expected is None:
            return
        with np.errstate(all="ignore"), tf.Session(graph=self.graph) as session:
            ours = session.run(self.op.outputs, self.feed)
        for a, b in zip(ours, expected, strict=True):
            if values:
                assert_close(a, b)
            else:
                assert np.shape(a) == np.shape(b) and np.asarray(a).dtype == np.asarray(b).dtype


@parametrized([c for c in CASES if c[0] not in UNDEFINED | WANTS_SHAPES])
def test_dimensions_unknown_beforehand(tensorflow, name, index, sample):
    both = Both(tensorflow, name, sample, unknown=True)
    both.check()
    for ours, theirs in zip(both.op.outputs, both.their_op.outputs, strict=True):
        if theirs.shape.rank is None:
            continue
        if ours.shape.rank is None:
            # TensorFlow knows of shapes that do not broadcast that it would fail (or not)
            assert name in ("Equal", "NotEqual", "ReduceJoin"), f"TensorFlow knows {theirs.shape}"
            continue
        for a, b in zip(ours.shape.as_list(), theirs.shape.as_list(), strict=True):
            assert b is None or a == b, f"TensorFlow knows {theirs.shape}, we {ours.shape}"


def without_rows(name, sample):
    """The example with nothing along the first axis of its first array, and of those as long; or None."""
    spec = registry.get(name)
    arrays = [np.asarray(v) for x in sample.inputs for v in (x if isinstance(x, list) else [x])]
    first = next((a for a in arrays if a.ndim), None)
    if first is None or not first.shape[0]:
        return None

    def cut(position, value):
        a = np.asarray(value)
        fixed = position in spec.static or a.ndim == 0 or a.shape[0] != first.shape[0]
        return a if fixed else a[:0]

    inputs = [
        [cut(i, v) for v in x] if isinstance(x, list) else cut(i, x) for i, x in enumerate(sample.inputs)
    ]
    return case(*inputs, **sample.attrs)


@parametrized([c for c in CASES if c[0] not in UNDEFINED | NO_ROWS_FAIL])
def test_no_rows(tensorflow, name, index, sample):
    empty = without_rows(name, sample)
    if empty is None:
        return
    try:
        both = Both(tensorflow, name, empty)
    except (ValueError, TypeError, tf.errors.OpError):
        return  # not a shape that the op can have
    both.check(values=name in REDUCTIONS)


def in_type(name, sample, kind):
    """The example with its main inputs in another type, or None."""
    spec = registry.get(name)
    attr = next((a.type_attr for a in spec.inputs if a.type_attr and not a.is_ref), None)
    if attr is None:
        return None
    allowed = spec.attrs[attr].allowed
    mine = [i for i, a in enumerate(spec.inputs) if a.type_attr == attr]
    arrays = [
        np.asarray(v)
        for i in mine
        for v in (sample.inputs[i] if spec.inputs[i].number_attr else [sample.inputs[i]])
    ]
    if (allowed is not None and kind not in allowed) or any(a.dtype.kind != "f" for a in arrays):
        return None
    if not arrays or any(isinstance(sample.inputs[i], list) for i in mine):
        return None
    number = kind.as_numpy_dtype
    inputs = [np.asarray(x).astype(number) if i in mine else x for i, x in enumerate(sample.inputs)]
    attrs = {k: (kind if k == attr else v) for k, v in sample.attrs.items()}
    return case(*inputs, **attrs)


# Numbers that the other types cannot hold, or hold to fewer digits; rows written twice, in any order.
NO_OTHER_TYPES = {
    "EuclideanNorm",
    "FusedResizeAndPadConv2D",
    "Round",
    "HistogramSummary",
    "InplaceAdd",
    "InplaceSub",
    "ResizeBicubicGrad",
}
FIRST = [c for c in CASES if c[1] == 0 and c[0] not in UNDEFINED | NO_OTHER_TYPES]


@pytest.mark.parametrize("kind", [tf.float64, tf.float32, tf.float16], ids=lambda k: k.name)
@parametrized(FIRST)
def test_other_types(tensorflow, name, index, sample, kind):
    changed = in_type(name, sample, kind)
    if changed is None:
        return
    try:
        both = Both(tensorflow, name, changed)
    except (ValueError, TypeError):
        return  # not a type that goes with the others
    both.check()
