"""Python functions as operations of compiled programs."""

import ctypes
import itertools
import threading

import numpy as np
import pytest

from tensorfleet.kernels import xla_calls
from tensorfleet.runtime.devices import load_jax

_numbers = itertools.count()


@pytest.fixture
def called():
    """A program that calls a function on an array and gives the array that the function has written."""
    jax, jnp = load_jax()

    def program(function, attribute="some text"):
        name = f"test_xla_calls_{next(_numbers)}"
        xla_calls.register(name, function)
        result = jax.ShapeDtypeStruct((4,), jnp.float32)
        return jax.jit(lambda x: jax.ffi.ffi_call(name, result)(x, attribute=attribute) + 1)

    yield program
    xla_calls._interrupts.clear()


def floats(address):
    return np.ctypeslib.as_array((ctypes.c_float * 4).from_address(address))


X = np.arange(4, dtype=np.float32)


def test_a_function_reads_operands_and_writes_results_in_place(called):
    seen = []

    def double(call):
        seen.append(call.attribute)
        floats(call.results[0])[:] = 2 * floats(call.operands[0])

    np.testing.assert_array_equal(called(double, "the geometry")(X), 2 * X + 1)
    assert seen == [b"the geometry"]


def test_an_error_of_the_function_is_the_error_of_the_program(called):
    def fail(_):
        raise ValueError("no such shape")

    with pytest.raises(Exception, match="ValueError: no such shape"):
        called(fail)(X).block_until_ready()


def test_an_interrupted_function_begins_again_and_the_interrupt_is_raised_after_the_program(called):
    tries = []

    def interrupted(call):
        tries.append(1)
        if len(tries) == 1:
            raise KeyboardInterrupt
        floats(call.results[0])[:] = floats(call.operands[0])

    np.testing.assert_array_equal(called(interrupted)(X), X + 1)
    assert len(tries) == 2
    with pytest.raises(KeyboardInterrupt):
        xla_calls.raise_interrupts()
    xla_calls.raise_interrupts()  # only once


def test_parts_run_on_other_threads_too_and_all_are_done_before_the_call_ends(called):
    threads, both = set(), threading.Barrier(2)

    def divided(call):
        def double(start, stop):
            both.wait(60)  # two threads have begun: neither waits for the other to end
            threads.add(threading.get_ident())
            floats(call.results[0])[2 * start : 2 * stop] = 2 * floats(call.operands[0])[2 * start : 2 * stop]

        call.in_parts(double, 2)

    np.testing.assert_array_equal(called(divided)(X), 2 * X + 1)
    assert len(threads) == 2


def test_an_error_of_a_part_is_the_error_of_the_program(called):
    def divided(call):
        def fail(start, stop):
            raise ValueError(f"part {start}")

        call.in_parts(fail, 3)

    with pytest.raises(Exception, match="ValueError: part 0"):
        called(divided)(X).block_until_ready()
