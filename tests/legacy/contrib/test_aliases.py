"""Parts of `tf.contrib`, and names from before 1.0, that are other modules' in another place."""

import importlib

import pytest

import tensorfleet as tf


def test_parts_that_scripts_import_and_do_not_use_are_there_and_say_what_is_missing():
    assert tf.contrib.bigtable.__name__.endswith("contrib.bigtable")
    with pytest.raises(AttributeError, match="'tf.contrib.bigtable' has no attribute 'BigtableClient'"):
        tf.contrib.bigtable.BigtableClient()


def test_recurrent_networks_are_where_they_were_before_one():
    assert tf.models.rnn.rnn_cell.BasicLSTMCell is tf.nn.rnn_cell.BasicLSTMCell
    assert tf.python.ops.seq2seq.rnn_decoder is tf.contrib.legacy_seq2seq.rnn_decoder
    assert tf.models.rnn.seq2seq.sequence_loss is tf.contrib.legacy_seq2seq.sequence_loss


def test_small_names_of_contrib():
    assert tf.contrib.util.constant_value(tf.constant([1, 2])).tolist() == [1, 2]
    with tf.contrib.compiler.jit.experimental_jit_scope():
        tf.constant(1)


def test_names_of_before_stand_for_what_has_another_name_now():
    D = tf.contrib.distribute
    assert D.DistributionStrategy is tf.distribute.Strategy
    assert D.get_distribution_strategy is tf.distribute.get_strategy
    assert tf.contrib.checkpoint.CheckpointManager is tf.train.CheckpointManager
    assert tf.contrib.hooks.ProfilerHook is tf.train.ProfilerHook


def test_strings_are_found_in_a_list_and_in_a_file(session, tmp_path):
    (tmp_path / "words").write_text("a\nb\n")
    by_list = tf.contrib.lookup.string_to_index_table_from_tensor(["a", "b"], default_value=7)
    by_file = tf.contrib.lookup.string_to_index_table_from_file(str(tmp_path / "words"))
    session.run(tf.tables_initializer())
    words = tf.constant(["b", "x"])
    assert [v.tolist() for v in session.run([by_list.lookup(words), by_file.lookup(words)])] == [
        [1, 7],
        [1, -1],
    ]


def test_a_monitor_runs_steps(session):
    class Step:
        def __init__(self):
            self.count = tf.get_variable("count", initializer=0)

        def initialize(self):
            return tf.no_op()

        def __call__(self):
            return self.count.assign_add(1)

    step = Step()
    tf.contrib.distribute.Monitor(step, session).run_steps(3)
    assert session.run(step.count) == 3
    with pytest.raises(ValueError, match="Should provide a `session`"):
        tf.contrib.distribute.Monitor(step)


@pytest.mark.parametrize(
    "inside, name, public",
    [
        ("distributions.python.ops.mvn_diag", "MultivariateNormalDiag", "distributions"),
        ("distributions.python.ops.bijectors.softplus", "Softplus", "distributions.bijectors"),
        ("losses.python.metric_learning.metric_loss_ops", "npairs_loss", "losses.metric_learning"),
        (
            "cluster_resolver.python.training.slurm_cluster_resolver",
            "SlurmClusterResolver",
            "cluster_resolver",
        ),
        ("opt.python.training.shampoo", "ShampooOptimizer", "opt"),
        ("layers.python.layers.target_column", "regression_target", "layers"),
    ],
)
def test_parts_are_found_where_their_own_tests_import_them(inside, name, public):
    def at(path):
        place = tf.contrib
        for part in path.split("."):
            place = getattr(place, part)
        return getattr(place, name)

    assert at(inside) is at(public)


@pytest.mark.parametrize(
    ("inner", "public", "name"),
    [
        ("crf.python.ops.crf", "crf", "crf_decode"),
        ("integrate.python.ops.odes", "integrate", "odeint"),
        ("resampler.python.ops.resampler_ops", "resampler", "resampler"),
        ("bayesflow.python.ops.monte_carlo_impl", "bayesflow.monte_carlo", "expectation"),
        ("copy_graph.python.util.copy_elements", "copy_graph", "copy_op_to_graph"),
        ("predictor.predictor_factories", "predictor", "from_saved_model"),
    ],
)
def test_names_of_a_part_are_found_in_the_modules_inside_of_it(inner, public, name):
    home = importlib.import_module(f"tensorfleet.contrib.{inner}")
    assert getattr(home, name) is getattr(importlib.import_module(f"tensorfleet.contrib.{public}"), name)
