"""Ops by name, and the sample ops that TensorFlow's tests build graphs of."""

import pytest
from tensorfleet.python.framework import op_def_library, op_def_registry, test_ops
from tensorfleet.python.ops import array_ops

import tensorfleet as tf

apply_op = op_def_library.OpDefLibrary().apply_op


def test_an_op_is_applied_by_name():
    out = apply_op("Simple", a=3, name="one")
    assert (out.op.type, out.op.name, out.dtype) == ("Simple", "one", tf.float32)
    assert out.op.inputs[0].op.name == "one/a"
    assert test_ops.int_output().dtype == tf.int32
    assert len(apply_op("NIntsOut", N=2)) == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="No OpKernel"), tf.Session() as s:
        s.run(out)


@pytest.mark.parametrize(
    ("op", "keywords", "error", "text"),
    [
        ("Missing", {}, RuntimeError, "Unrecognized Op name Missing"),
        ("Simple", {}, TypeError, "No argument for input a"),
        ("Simple", {"a": 1, "more": 2}, TypeError, "unexpected keyword arguments: more"),
        (
            "Simple",
            {"a": "text"},
            TypeError,
            "Expected int32 passed to parameter 'a' of op 'Simple', got 'text' of type",
        ),
        ("Polymorphic", {"a": 1, "T": tf.int32}, TypeError, "inferred attr 'T'"),
        ("Attr", {}, TypeError, "No argument for attr a"),
        ("Attr", {"a": "x"}, TypeError, "Expected int for argument 'a' not 'x'."),
        ("AttrBool", {"a": 0}, TypeError, "Expected bool for argument 'a' not 0."),
        ("AttrMin", {"a": 2}, ValueError, "Attr 'a' of 'AttrMin' Op passed 2 less than minimum 5."),
        ("AttrListMin", {"a": [1]}, ValueError, "passed list of length 1 less than minimum 2."),
        ("AttrBoolList", {"a": 0}, TypeError, "Expected list for attr a"),
        ("AttrEnum", {"a": "pears"}, ValueError, 'passed string \'pears\' not in: "apples", "oranges".'),
        (
            "AttrShape",
            {"a": 5.5},
            TypeError,
            "Don't know how to convert 5.5 to a TensorShapeProto for argument 'a'",
        ),
        ("NIntsIn", {"a": [1]}, ValueError, "with length 1 shorter than minimum length 2."),
        ("NIntsIn", {"a": 1}, TypeError, "Expected list for 'a' argument to 'NIntsIn' Op, not 1."),
    ],
)
def test_what_does_not_fit_is_told(op, keywords, error, text):
    with pytest.raises(error) as caught:
        apply_op(op, **keywords)
    assert text in str(caught.value)


def test_definitions_of_ops():
    assert op_def_registry.get("MatMul").input_arg[0].name == "a"
    assert op_def_registry.get("NoSuchOp") is None
    assert "Add" in op_def_registry.get_registered_ops()


def test_modules_of_ops_have_what_is_generated_too():
    assert array_ops.prevent_gradient([1.0]).op.type == "PreventGradient"
    assert array_ops.gather is tf.gather
