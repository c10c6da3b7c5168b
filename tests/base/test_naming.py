"""The public names are TensorFlow 1.15's: the same kinds, arguments in the same order, the same defaults."""

import ast
import functools
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

import tensorfleet as tf
from tensorfleet.api.summary import old_names
from tensorfleet.base import naming as api
from tensorfleet_legacy.internals import names_before_1_0 as renamed
from tests.support.signatures import difference, kind_of, problems_of_members, read_table
from tests.support.sources import ROOT, name_of, sources

# Names of ours alone; those TensorFlow 1.15 kept outside its public API; what the table leaves out.
OURS = ("fleet.", "python.", "core.", "contrib.", "examples.", "keras.", "distributions.", "xla.", "models.")
OURS += ("linalg.LinearOperator", "autograph.", "user_ops.", "pywrap_tensorflow.")
UNLISTED = {"__version__", "__git_version__", "__compiler_version__", "compat.v1"}
UNLISTED |= {"tpu", "tpu.CrossShardOptimizer", "tpu.bfloat16_scope", "tpu.core"}  # work without a TPU
OURS += ("compat.v2.",)  # its names are those of version 2
UNLISTED |= {"compat.v2"}
UNLISTED |= {"config.list_physical_devices"}  # its name since 2.1
UNLISTED |= {"data.experimental.AutoShardPolicy"}  # since 2.1, and used by scripts of 1.15 all the same
# Where we differ on purpose. An entry that is no longer needed fails the test.
DIFFERENT = {
    "Operation.__init__": "operations are made by the graph, from the op table",
    "SparseTensor.__init__": "takes `shape` too, the name of `dense_shape` before 1.0",
    "train.SyncReplicasOptimizer.__init__": "takes `replica_id` too, which scripts from before 1.0 give",
    "train.Saver.__init__": "takes `incremental` too, which is ours: checkpoints of what has changed",
    "train.Coordinator.stop_on_exception": "the arguments of a decorated method are known here",
    "train.Supervisor.managed_session": "the arguments of a decorated method are known here",
}


@functools.cache
def table() -> dict[str, tuple[str, ...]]:
    """name -> (kind, argument, argument=default, ...) of TensorFlow 1.15."""
    return read_table("api_1.15.tsv")


@functools.cache
def offered() -> dict[str, Any]:
    """Every name a user finds under `tf.`, modules included."""
    result = dict(api.exported())
    for name in list(result):
        *path, _ = name.split(".")
        for i in range(1, len(path) + 1):
            result.setdefault(".".join(path[:i]), functools.reduce(getattr, path[:i], tf))
    return result


def members_of(name: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    prefix = f"{name}."
    for full, row in table().items():
        if full.startswith(prefix) and "." not in full[len(prefix) :]:
            yield full[len(prefix) :], row


def classes() -> Iterator[tuple[str, type]]:
    """Each class, under the first of its names."""
    seen = set()
    for name, value in offered().items():
        if table().get(name, ("",))[0] == "class" and value not in seen:
            seen.add(value)
            yield name, value


def test_every_public_name_is_one_of_tensorflow():
    known = {*table(), *UNLISTED, *renamed.NAMES, *old_names.NAMES}
    assert [n for n in offered() if n not in known and not f"{n}.".startswith(OURS)] == []


def test_names_are_of_the_same_kind():
    wrong = []
    for name, value in offered().items():
        theirs = table().get(name, ("",))[0].replace("proto", "class")
        if theirs not in ("", "member", kind_of(value)):  # a member may be anything
            wrong.append(f"{name} is a {kind_of(value)}, in 1.15 a {theirs}")
    assert wrong == []


def test_functions_take_the_same_arguments():
    wrong = []
    for name, value in offered().items():
        kind, *args = table().get(name, ("",))
        if kind == "function" and (problem := difference(value, tuple(args))):
            wrong.append(f"{name} {problem}")
    assert wrong == []


def test_classes_have_the_same_methods():
    result = dict(p for name, cls in classes() for p in problems_of_members(name, cls, members_of(name)))
    assert {n: p for n, p in result.items() if n not in DIFFERENT} == {}
    assert [n for n in DIFFERENT if n not in result] == [], "these are as in TensorFlow now"


def test_a_wrong_argument_list_is_noticed():
    def tanh(x: Any, name: str = "tanh") -> None: ...

    assert difference(tanh, ("x", "name=None"))
    assert difference(tanh, ("x",))
    assert difference(tanh, ("y", "name=tanh"))
    assert difference(tanh, ("x", "name=tanh")) is None


# Where TensorFlow raises NotImplementedError itself: what a subclass must define, what has no meaning.
UNIMPLEMENTED = {
    "tensorfleet/ops/sparse/elements.py",  # gradients that TensorFlow refuses in these words
    "tensorfleet/ops/sparse/math.py",
    "tensorfleet_legacy/contrib/opt/external_optimizer.py",  # what an optimizer of one's own defines
    "tensorfleet_legacy/distributions/distribution.py",  # a distribution without an entropy, mode, ...
    "tensorfleet_legacy/distributions/bijector_impl.py",  # a bijector without an inverse, or with two
    "tensorfleet_legacy/distributions/kullback_leibler.py",
    "tensorfleet_legacy/distributions/bijectors/masked_autoregressive.py",  # networks for events of unknown size, which TensorFlow refuses in these words
    "tensorfleet_legacy/keras/mixed_precision/loss_scale_optimizer.py",  # what TensorFlow says of an optimizer of a scaled loss
    "tensorfleet_legacy/contrib/checkpoint/containers.py",  # what TensorFlow says of something else than an array
    "tensorfleet_legacy/estimator/head/base_head.py",  # what a head of one's own defines
    "tensorfleet_legacy/distributions/transformed_distribution.py",  # moments that a bijector makes unknown
    "tensorfleet_legacy/internals/keras/generic_utils.py",  # paddings that TensorFlow refuses in these words
    "tensorfleet_legacy/internals/distribute/values.py",  # what a step of one's own does
    "tensorfleet_legacy/linear_operators/linear_operator.py",  # what a kind of one's own defines, and what is not square or is singular
    "tensorfleet/graph/operation.py",  # numpy asks a tensor for an array
    "tensorfleet_legacy/internals/tpu/tpu_function.py",  # a context inside another, which TensorFlow refuses in these words
    "tensorfleet/api/train/optimizer.py",  # the methods of an optimizer of one's own
    "tensorfleet/api/train/optimizers.py",
    "tensorfleet/graph/infer.py",  # ops that newer graphs may not have
    "tensorfleet/api/variables/partitioned.py",  # a partitioned variable as a reference
    "tensorfleet/api/variables/variable.py",  # a copy of a variable, which TensorFlow refuses in these words
}


def test_nothing_public_is_a_stub():
    raising = {
        name_of(path)
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Raise) and "NotImplementedError" in ast.unparse(node)
    }
    assert raising == UNIMPLEMENTED


def test_no_file_has_the_name_of_what_is_loaded_when_first_used():
    # Whoever imports such a module first puts it in the place of the name.
    assert not [name for name in api._LAZY if (ROOT / f"tensorfleet/{name.replace('.', '/')}.py").exists()]


def test_public_functions_can_be_pickled():
    for function in (
        tf.exp,
        tf.nn.relu,
        tf.nn.leaky_relu,
        tf.reduce_sum,
        tf.add,
        tf.layers.dense,
        tf.strings.lower,
    ):
        assert pickle.loads(pickle.dumps(function)) is function


@pytest.fixture
def names() -> Iterator[None]:
    """Takes back what a test publishes."""
    tables = (api._NAMES, api._LAZY, api._BORROWS, api._FINDERS, api._LISTED)
    before = [dict(table) for table in tables]
    yield
    for table, kept in zip(tables, before, strict=True):
        table.clear()
        table.update(kept)


@pytest.mark.parametrize("publish_again", [api.publish, api.publish_lazily])
@pytest.mark.parametrize("first", [api.publish, api.publish_lazily])
def test_a_name_is_published_once(names, first, publish_again):
    first(len, "fleet.a_new_name")
    with pytest.raises(ValueError, match=r"tf\.fleet\.a_new_name is published twice\. Delete one"):
        publish_again(len, "fleet.a_new_name")


@pytest.mark.parametrize("publish_module", [api.publish_module, lambda name: api.publish_finder(name, len)])
def test_a_module_is_published_once(names, publish_module):
    publish_module("python.a_new_module")
    with pytest.raises(ValueError, match=r"tf\.python\.a_new_module is published twice"):
        publish_module("python.a_new_module")


def test_a_table_of_homes_has_each_name_once():
    assert api.homes([("a", 1), ("b", 2)]) == {"a": 1, "b": 2}
    with pytest.raises(ValueError, match=r"tf\.a is published twice"):
        api.homes([("a", 1), ("a", 2)])
