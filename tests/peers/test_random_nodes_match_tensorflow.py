"""Nodes of every op with inputs and attributes at random: refused or accepted, and shaped, as by TensorFlow."""

import random
import re

import numpy as np
import pytest

import tensorfleet as tf
from tensorfleet.graph import registry
from tensorfleet.graph.graphdef import op_def
from tensorfleet.graph.raw_ops import _ARGUMENTS

NODES = 12  # of each op
TYPES = ["float32", "int32", "int64", "float64", "string", "bool", "complex64", "uint8"]
# What needs functions, handles or files, and what TensorFlow dies of.
LEFT_OUT = re.compile(
    r".*Dataset|.*Summary|Collective|Fleet|If$|Save|Restore|Placeholder$|PyFunc|Const$|"
    r"(Enter|Exit|Merge|Switch|NextIteration|LoopCond|Ref)|FakeQuantWithMinMaxVarsPerChannelGradient"
)
# Ours refuse more, or tell more of what comes out, or refuse it only when it runs.
OTHERWISE = """
    ApproximateEqual CTCBeamSearchDecoder CTCGreedyDecoder CompareAndBitpack Concat
    Conv3DBackpropFilter Conv3DBackpropInput Dequantize DeserializeSparse DrawBoundingBoxesV2 Einsum
    EmptyTensorList EnsureShape Equal Fact FractionalAvgPoolGrad IRFFT2D
    KmeansPlusPlusInitialization MapUnstageNoKey MatrixDiagPart MatrixSetDiagV2 MatrixSetDiagV3
    MatrixSolveLs MatrixTriangularSolve MaxPool3DGrad MaxPoolGradV2 MirrorPadGrad
    MutableDenseHashTableV2 NearestNeighbors NotEqual NthElement OneHot OrderedMapUnstageNoKey
    ParallelConcat Qr QuantizeV2 QuantizedConcat QuantizedMul ScatterNd ScatterNdNonAliasingAdd
    SdcaOptimizer SdcaOptimizerV2 SparseAdd SparseReduceMax SparseReduceMaxSparse
    SparseReduceSum SparseReduceSumSparse SparseSlice SparseSplit Split SplitV StridedSlice
    StringJoin TensorListFromTensor TensorListReserve TensorListScatterV2 TensorListSplit
    TensorScatterUpdate TopK Transpose UnicodeDecode UnsortedSegmentJoin UpperBound
"""
OPS = sorted(n for n in registry.all_ops() if not LEFT_OUT.match(n) and n not in OTHERWISE.split())


class Unfit(Exception):
    """No node can be made up for this op."""


class Dice:
    """Inputs and attributes for one op."""

    def __init__(self, name):
        self.draw = random.Random(name)
        self.op = op_def(registry.get(name))

    def shape(self):
        if self.draw.random() < 0.08:
            return None
        rank = self.draw.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5])
        return [
            None if self.draw.random() < 0.2 else self.draw.choice([0, 1, 2, 2, 3, 3, 4]) for _ in range(rank)
        ]

    def tensor(self, kind):
        """A placeholder as (type, shape), or a constant."""
        if kind in ("resource", "variant"):
            raise Unfit
        if kind in ("int32", "int64") and self.draw.random() < 0.25:
            if self.draw.random() < 0.25:
                return np.array(self.draw.choice([-1, 0, 1, 2]), kind)
            numbers = [
                self.draw.choice([-1, 0, 1, 1, 2, 3]) for _ in range(self.draw.choice([0, 1, 2, 2, 3, 4]))
            ]
            return np.array(numbers, kind)
        return kind, self.shape()

    def attribute(self, attr):
        draw, kind = self.draw, attr.type
        if kind == "type":
            allowed = [tf.as_dtype(t).name for t in attr.allowed_values.list.type] or TYPES
            return draw.choice(([t for t in allowed if t in TYPES] or allowed)[:6])
        if kind == "string":
            allowed = [s.decode() for s in attr.allowed_values.list.s]
            return draw.choice(allowed or ["a"])
        many = [0, 1, 2, 4, 4, 5]
        result = {
            "int": lambda: draw.choice([-1, 0, 1, 1, 2, 3]),
            "float": lambda: draw.choice([-1.0, 0.0, 0.5, 1.0, 2.0]),
            "bool": lambda: draw.random() < 0.5,
            "shape": self.shape,
            "list(int)": lambda: [draw.choice([-1, 0, 1, 1, 1, 1, 2]) for _ in range(draw.choice(many))],
            "list(type)": lambda: draw.choices(TYPES[:3], k=draw.choice([1, 2])),
            "list(float)": lambda: draw.choices([0.0, 1.0, 2.0], k=draw.choice([0, 1, 2])),
        }.get(kind)
        if result is None:
            raise Unfit
        return result()

    def node(self):
        """The arguments of `tf.raw_ops`: tensors and attributes."""
        given = {a.name: a for a in self.op.attr}
        args = self.op.input_arg
        needed = sorted({n for i in args for n in (i.type_attr, i.type_list_attr, i.number_attr) if n})
        known = {
            n: self.draw.choice([1, 2, 3]) if given[n].type == "int" else self.attribute(given[n])
            for n in needed
        }
        inputs = {}
        for arg in args:
            if arg.is_ref:
                raise Unfit
            kind = known[arg.type_attr] if arg.type_attr else tf.as_dtype(arg.type).name if arg.type else None
            if arg.type_list_attr:
                inputs[arg.name] = [self.tensor(kind) for kind in known[arg.type_list_attr]]
            elif arg.number_attr:
                inputs[arg.name] = [self.tensor(kind) for _ in range(known[arg.number_attr])]
            else:
                inputs[arg.name] = self.tensor(kind)
        chosen = {
            n: self.attribute(a)
            for n, a in given.items()
            if n not in needed and (not a.HasField("default_value") or self.draw.random() < 0.4)
        }
        return inputs, chosen


def outcome(library, name, inputs, attrs):
    """The class of the error, or the types and shapes of what comes out."""
    called = _ARGUMENTS.get(name, {})

    def tensor(given):
        if isinstance(given, list):
            return [tensor(one) for one in given]
        return library.constant(given) if isinstance(given, np.ndarray) else library.placeholder(*given)

    with library.Graph().as_default():
        tensors = {n: tensor(given) for n, given in inputs.items()}
        try:
            result = getattr(library.raw_ops, name)(
                **{called.get(n, n): v for n, v in (tensors | attrs).items()}
            )
        except (TypeError, ValueError, NotImplementedError) as error:
            return type(error).__name__
    flat = result if isinstance(result, (list, tuple)) else [result]
    flat = [t for part in flat for t in (part if isinstance(part, list) else [part])]
    return [(t.dtype.base_dtype.name, str(t.shape).replace("?", "None")) for t in flat if hasattr(t, "shape")]


@pytest.mark.parametrize("name", OPS)
def test_a_node_is_refused_and_shaped_as_by_tensorflow(tensorflow, name):
    if not hasattr(tensorflow.raw_ops, name):
        pytest.skip("TensorFlow no longer has it")
    dice = Dice(name)
    for _ in range(NODES):
        try:
            node = dice.node()
        except Unfit:
            return
        assert outcome(tf, name, *node) == outcome(tensorflow, name, *node), node
