"""Small programs run by both libraries: the same values, or the same kind of error with the same phrase."""

import numpy as np
import pytest

import tensorfleet


def outcome(tf, program):
    """(value, None) or (None, error) of a function of the library that gives fetches."""
    try:
        with tf.Graph().as_default() as graph:
            fetches = program(tf)
            with tf.Session(graph=graph) as session:
                session.run(tf.tables_initializer() if hasattr(tf, "tables_initializer") else tf.no_op())
                return session.run(fetches), None
    except Exception as e:
        return None, e


def same(ours, theirs):
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        for key in theirs:
            same(ours[key], theirs[key])
        return
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b)
        return
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert ours.dtype.kind == theirs.dtype.kind or {ours.dtype.kind, theirs.dtype.kind} <= set("OSU")
    if theirs.dtype.kind in "OSU":
        assert ours.tolist() == theirs.tolist()
    elif theirs.dtype.kind in "fc":
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    else:
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


def agree(tensorflow, program):
    """Both libraries give the same values."""
    ours, our_error = outcome(tensorfleet, program)
    theirs, their_error = outcome(tensorflow, program)
    if their_error is not None:
        raise their_error
    if our_error is not None:
        raise our_error
    same(ours, theirs)


def refuse_alike(tensorflow, program, phrase):
    """Both libraries raise the same class of error, with a phrase in common."""
    _, ours = outcome(tensorfleet, program)
    _, theirs = outcome(tensorflow, program)
    assert ours is not None and theirs is not None
    assert type(ours).__name__ == type(theirs).__name__
    assert phrase in str(theirs), f"TensorFlow says: {theirs}"
    assert phrase in str(ours), f"we say: {ours}"


def walk(programs):
    """Parametrizes a test over a table of named programs."""
    return pytest.mark.parametrize("program", programs.values(), ids=programs.keys())


def walk_errors(programs):
    """Parametrizes a test over a table of (program, phrase)."""
    return pytest.mark.parametrize(("program", "phrase"), programs.values(), ids=programs.keys())
