"""Variables that start from a checkpoint made with another vocabulary."""

import numpy as np
import pytest

import tensorfleet as tf

OLD = ["apple", "banana", "guava", "orange"]
NEW = ["orange", "guava", "banana", "kiwi"]
TABLE = np.arange(8, dtype=np.float32).reshape(4, 2)


@pytest.fixture
def saved(tmp_path):
    for name, words in (("old", OLD), ("new", NEW)):
        (tmp_path / name).write_text("\n".join(words) + "\n")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("table", initializer=tf.constant(TABLE))
        tf.get_variable("across", initializer=tf.constant(TABLE.T))
        tf.get_variable("bias", initializer=[1.0, 2.0])
        tf.get_variable("steps", initializer=7, trainable=False)
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, str(tmp_path / "model"))


def info(saved, **options):
    folder = saved.rsplit("/", 1)[0]
    given = {"old_vocab": f"{folder}/old", **options}
    return tf.train.VocabInfo(f"{folder}/new", len(NEW), 1, **given)


def zeros(name, shape, **options):
    return tf.get_variable(name, shape, initializer=tf.zeros_initializer(), **options)


def started(fetches):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches)


def test_trainable_variables_start_from_the_checkpoint(saved):
    bias, steps = zeros("bias", [2]), zeros("steps", [], dtype=tf.int32, trainable=False)
    tf.train.warm_start(saved)
    assert [v.tolist() for v in started([bias, steps])] == [[1.0, 2.0], 0]


def test_a_list_of_patterns_is_for_all_variables_and_names_may_have_changed(saved):
    steps = zeros("counter", [], dtype=tf.int32, trainable=False)
    tf.train.warm_start(saved, ["count.*"], var_name_to_prev_var_name={"counter": "steps"})
    assert started(steps) == 7


@pytest.mark.parametrize("use_resource", [False, True])
def test_rows_follow_their_words(saved, use_resource):
    table = zeros("table", [5, 2], use_resource=use_resource)
    backup = info(saved, backup_initializer=tf.constant_initializer(9.0))
    tf.train.warm_start(saved, None, {"table": backup})
    np.testing.assert_array_equal(started(table), [[6, 7], [4, 5], [2, 3], [9, 9], [9, 9]])


def test_columns_do_too_and_new_ones_are_zero(saved):
    across = zeros("across", [2, 5])
    tf.train.warm_start(saved, "nothing", {"across": info(saved, axis=1)})
    np.testing.assert_array_equal(started(across), [[6, 4, 2, 0, 0], [7, 5, 3, 0, 0]])


def test_only_the_first_old_words_count(saved):
    table = zeros("table", [5, 2])
    tf.train.warm_start(saved, None, {"table": info(saved, old_vocab_size=2)})
    np.testing.assert_array_equal(started(table), [[0, 0], [0, 0], [2, 3], [0, 0], [0, 0]])


def test_the_parts_of_a_table_start_with_their_rows(saved):
    table = zeros("table", [5, 2], partitioner=tf.fixed_size_partitioner(3))
    tf.train.warm_start(saved, None, {"table": info(saved)})
    np.testing.assert_array_equal(
        started(tf.convert_to_tensor(table)), [[6, 7], [4, 5], [2, 3], [0, 0], [0, 0]]
    )


def test_names_that_are_not_used_are_errors(saved):
    zeros("bias", [2])
    with pytest.raises(ValueError, match="var_name_to_prev_var_name that were not used: \\['bais'\\]"):
        tf.train.warm_start(saved, var_name_to_prev_var_name={"bais": "bias"})
    with pytest.raises(ValueError, match="var_name_to_vocab_info that were not used"):
        tf.train.warm_start(saved, var_name_to_vocab_info={"tabel": info(saved)})
    with pytest.raises(ValueError, match="must be all `Variable` or all `str`"):
        tf.train.warm_start(saved, ["bias", 3])


def test_initializers_map_rows_and_columns_of_a_checkpoint_part_by_part(saved):
    folder = saved.rsplit("/", 1)[0]
    words = {"new_row_vocab_file": f"{folder}/new", "old_row_vocab_file": f"{folder}/old"}
    wider = tf.contrib.framework.load_and_remap_matrix_initializer(
        saved,
        "table",
        len(NEW),
        2,
        num_row_oov_buckets=2,
        num_col_oov_buckets=1,
        initializer=lambda shape, dtype=None, partition_info=None: tf.fill(shape, 7.0),
        **words,
    )
    table = tf.get_variable("wide", [6, 3], initializer=wider, partitioner=tf.fixed_size_partitioner(2))
    expected = np.full([6, 3], 7.0)
    expected[:3, :2] = TABLE[[3, 2, 1]]
    np.testing.assert_array_equal(started(table.as_tensor()), expected)
    with pytest.raises(ValueError, match="give both files or none"):
        tf.contrib.framework.load_and_remap_matrix_initializer(
            saved, "table", 4, 2, new_col_vocab_file="new"
        )([4, 2])


def test_a_row_of_a_checkpoint_goes_to_one_place_only(saved):
    twice = tf.raw_ops.LoadAndRemapMatrix(
        ckpt_path=saved,
        old_tensor_name="table",
        row_remapping=[1, 0, 1],
        col_remapping=np.zeros(0, np.int64),
        initializing_values=np.zeros(0, np.float32),
        num_rows=3,
        num_cols=2,
    )
    with tf.Session() as session, pytest.raises(tf.errors.UnimplementedError, match="both new ID 0 and 2"):
        session.run(twice)


def test_a_checkpoint_of_objects_serves_programs_that_know_names(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=[1.0, 2.0])
        session.run(tf.global_variables_initializer())
        path = tf.train.Checkpoint(inner=v).save(str(tmp_path / "objects"), session)
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=[0.0, 0.0])
        saver = tf.train.Saver()
        for _ in range(2):
            saver.restore(session, path)
            assert list(session.run(v)) == [1.0, 2.0]
        tf.train.warm_start(path)
        assert list(started(v)) == [1.0, 2.0]
        missing = tf.train.Saver([tf.get_variable("other", initializer=0.0)])
        with pytest.raises(tf.errors.NotFoundError, match="not in the checkpoint: other"):
            missing.restore(session, path)
