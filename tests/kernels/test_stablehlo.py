"""StableHLO from elsewhere: what computes is read, and all else is refused before XLA sees it."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import tensorfleet as tf
from tensorfleet.kernels.stablehlo import read_program, write_program


def exported(function, *shapes) -> bytes:
    with jax.enable_x64(False):
        given = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
        return write_program(
            export.export(jax.jit(function), platforms=("cpu",))(*given).mlir_module_serialized
        )


def main(body: str, result: str = "%a", more: str = "") -> bytes:
    """A program that takes and gives a vector."""
    return (
        f"module {{ func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {{\n{body}\n"
        f"return {result} : tensor<4xf32> }}\n{more} }}"
    ).encode()


def test_a_program_is_described_by_its_types():
    program = read_program(exported(lambda x, w: jnp.tanh(x @ w), (2, 3), (3, 5)))
    assert program.arguments == (((2, 3), "f32"), ((3, 5), "f32"))
    assert program.results == (((2, 5), "f32"),)
    assert program.has_products and program.batches == 0


def test_sizes_that_only_a_run_knows_are_none():
    shape = export.symbolic_shape("b, 3")
    assert read_program(exported(jnp.sin, shape)).results == (((None, 3), "f32"),)


@pytest.mark.parametrize(
    "function", [jnp.linalg.cholesky, jnp.linalg.qr, jnp.linalg.svd, jnp.linalg.eigh, jnp.linalg.inv]
)
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3)])
def test_the_usual_routines_of_lapack_may_be_called(function, shape):
    assert (read_program(exported(function, shape)).batches > 0) == (len(shape) == 3)


def test_matrices_need_not_be_square():
    assert read_program(exported(jnp.linalg.qr, (2, 5, 3))).batches
    assert read_program(exported(lambda a: jnp.linalg.svd(a, full_matrices=False), (3, 5))).batches == 0


HOSTILE = {
    "a callback": (
        lambda: main(
            "%0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%a) : (tensor<4xf32>) -> tensor<4xf32>"
        ),
        "calls the function 'xla_ffi_python_cpu_callback' .* Python callbacks .* cannot be exported",
    ),
    "any function of the process": (
        lambda: main("%0 = stablehlo.custom_call @system(%a) : (tensor<4xf32>) -> tensor<4xf32>"),
        "calls the function 'system' of the process that runs it",
    ),
    "a result smaller than the routine writes": (
        lambda: main(
            "%m = stablehlo.constant dense<1.0> : tensor<64x64xf32>\n"
            "%0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%m) : (tensor<64x64xf32>) -> (tensor<1x1xf32>, tensor<i32>)"
        ),
        "calls 'lapack_spotrf_ffi' with arrays .* which do not fit",
    ),
    "a routine without its mode": (
        lambda: main(
            "%m = stablehlo.constant dense<1.0> : tensor<2x2xf32>\n"
            "%0:5 = stablehlo.custom_call @lapack_sgesdd_ffi(%m) : (tensor<2x2xf32>) -> "
            "(tensor<2x2xf32>, tensor<2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<i32>)"
        ),
        "calls 'lapack_sgesdd_ffi' with arrays .* which do not fit",
    ),
    "an endless wait": (
        lambda: main(
            "%t = stablehlo.create_token : !stablehlo.token\n"
            '%0:2 = "stablehlo.infeed"(%t) {layout = [[0]]} : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)'
        ),
        "has stablehlo.create_token, which exchanges values with the host",
    ),
    "a collective": (
        lambda: main(
            '%0 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : '
            "tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<8xf32>"
        ),
        "has stablehlo.all_gather, which exchanges values",
    ),
    "a function that calls itself": (
        lambda: main("%0 = func.call @main(%a) : (tensor<4xf32>) -> tensor<4xf32>", "%0"),
        "has a function that calls itself: 'main'",
    ),
    "two functions that call each other": (
        lambda: main(
            "%0 = func.call @f(%a) : (tensor<4xf32>) -> tensor<4xf32>",
            "%0",
            "func.func private @f(%a: tensor<4xf32>) -> tensor<4xf32> "
            "{ %0 = func.call @g(%a) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> } "
            "func.func private @g(%a: tensor<4xf32>) -> tensor<4xf32> "
            "{ %0 = func.call @f(%a) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> }",
        ),
        "has a function that calls itself: 'f'",
    ),
    "a function from outside": (
        lambda: main("", more="func.func private @elsewhere(tensor<4xf32>) -> tensor<4xf32>"),
        "calls 'elsewhere', which is not part of it",
    ),
    "no entry": (
        lambda: (
            b"module { func.func public @f(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> } }"
        ),
        "has no function 'main'",
    ),
    "something that is no array": (
        lambda: (
            b"module { func.func public @main(%t: !stablehlo.token) -> !stablehlo.token { return %t : !stablehlo.token } }"
        ),
        "takes or gives a !stablehlo.token, which is no array",
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_program_is_refused(what):
    make, words = HOSTILE[what]
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        read_program(make())


MALFORMED = {
    "nothing": (b"", "has no function 'main'"),
    "no text": (b"ML\xefR", "it is no text"),
    "another language": (b"print('hello')", "cannot be read: .* Export it again"),
    "an unknown operation": (main('"evil.run"() : () -> ()'), "unregistered dialect"),
    "an operation of another dialect": (
        main("%0 = arith.constant 1 : i32"),
        "has the operation arith.constant, which is not of StableHLO",
    ),
    "types that do not fit": (main("%0 = stablehlo.add %a, %b : tensor<4xf32>"), "undeclared SSA value"),
    "brackets without end": (main("(" * 100_000), "its brackets are 100003 deep, and at most 100 may be"),
    "names that double": (b"#a = [1, 1]\n#b = [#a, #a]\nmodule {}", "it has names for attributes or types"),
    "resources outside": (b"module {} {-# dialect_resources: {} #-}", "or resources outside of it"),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_program_is_refused(what, capfd):
    content, words = MALFORMED[what]
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        read_program(content)
    assert capfd.readouterr() == ("", "")  # MLIR would print its own words


_MUTATED = """
import random, sys
import tensorfleet as tf
from tensorfleet.kernels.stablehlo import read_program
good = sys.stdin.read()
tokens = "0 -1 7 64 99999999999999999999 f32 i7 tensor< > ( ) { } [ ] % ^ @ # ! : , = -> ? x stablehlo.add dense<".split()
random.seed(int(sys.argv[1]))
outcomes = {"read": 0, "refused": 0}
for _ in range(600):
    bad = list(good)
    for _ in range(random.choice([1, 1, 2, 4])):
        at, kind = random.randrange(len(bad)), random.randrange(4)
        if kind == 0:
            bad[at] = chr(random.randrange(256))
        elif kind == 1:
            bad[at : at + random.randrange(4)] = random.choice(tokens)
        elif kind == 2:
            source = random.randrange(len(bad))
            bad[at:at] = bad[source : source + random.randrange(60)]
        else:
            del bad[at : at + random.randrange(60)]
    try:
        read_program("".join(bad).encode("latin-1"))
        outcomes["read"] += 1
    except tf.errors.InvalidArgumentError:
        outcomes["refused"] += 1
print(outcomes["read"], outcomes["refused"])
"""


@pytest.mark.parametrize("seed", range(3))
def test_a_changed_program_is_refused_or_read_and_never_ends_the_process(seed):
    def function(x, w):
        total, _ = jax.lax.scan(lambda c, y: (c + jnp.sum(y), c), jnp.float32(0), x)
        return jnp.linalg.cholesky(jnp.tanh(x @ w) @ jnp.ones((5, 2))), total, jax.lax.top_k(w, 2)

    program = exported(function, (2, 3), (3, 5))
    command = [sys.executable, "-c", _MUTATED, str(seed)]
    done = subprocess.run(command, input=program, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    read, refused = map(int, done.stdout.split())
    assert read + refused == 600 and refused > 100
