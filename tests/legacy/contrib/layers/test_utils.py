"""What networks written with slim take from `tensorflow.contrib.layers.python.layers.utils`."""

import pytest

import tensorfleet as tf

utils = tf.contrib.layers.python.layers.utils


def test_a_condition_that_is_known_takes_one_side_only():
    for pred in (True, 1, tf.constant(True)):
        assert utils.smart_cond(pred, lambda: "yes", lambda: "no") == "yes"
    assert utils.static_cond(False, lambda: "yes", lambda: "no") == "no"
    with pytest.raises(TypeError, match="fn2 must be callable"):
        utils.static_cond(True, lambda: 1, 2)


def test_a_condition_that_is_fed_is_decided_in_the_run():
    training = tf.placeholder(tf.bool, [])
    chosen = utils.smart_cond(training, lambda: tf.constant(1), lambda: tf.constant(2))
    with tf.Session() as sess:
        assert [sess.run(chosen, {training: value}) for value in (True, False)] == [1, 2]


def test_values_are_known_of_constants_and_not_of_variables():
    assert utils.constant_value(3) == 3
    assert utils.constant_value(tf.constant([1, 2])).tolist() == [1, 2]
    assert utils.constant_value(tf.Variable(1.0)) is None
    assert utils.constant_value(tf.placeholder(tf.float32)) is None
    with pytest.raises(ValueError, match="wrong type"):
        utils.constant_value(tf.constant(1), dtype=tf.float32)
    with pytest.raises(ValueError, match="cannot be None"):
        utils.constant_value(None)


def test_sizes_of_axes_must_be_known():
    shape = tf.TensorShape([None, 3, 8, 16])
    assert utils.last_dimension(shape, min_rank=4) == utils.channel_dimension(shape, "channels_last") == 16
    assert utils.channel_dimension(shape, "channels_first") == 3
    with pytest.raises(ValueError, match="at least 5 not: 4"):
        utils.last_dimension(shape, min_rank=5)
    with pytest.raises(ValueError, match="must be known but is None"):
        utils.last_dimension(tf.TensorShape([2, None]))


def test_one_number_stands_for_several():
    assert utils.n_positive_integers(3, 2) == (2, 2, 2)
    assert utils.n_positive_integers(2, tf.TensorShape([4, 5])) == (4, 5)
    assert utils.two_element_tuple(7) == (7, 7)
    assert utils.two_element_tuple([1, 2]) == (1, 2)
    for wrong in (0, [1, 2, 3], tf.TensorShape([None, 2])):
        with pytest.raises(ValueError, match="positive integer"):
            utils.n_positive_integers(2, wrong)
    with pytest.raises(ValueError, match="n must be a positive integer"):
        utils.n_positive_integers(0, 1)
    with pytest.raises(ValueError, match="2 elements"):
        utils.two_element_tuple([1])


def test_outputs_are_found_by_all_their_aliases():
    first, second = tf.constant(1, name="first"), tf.constant(2, name="second")
    utils.collect_named_outputs("ends", "block/a/", first)
    utils.collect_named_outputs("ends", "block/b", first)
    assert utils.gather_tensors_aliases([first, second]) == ["block/a", "block/b", "second"]
    assert list(utils.convert_collection_to_dict("ends", clear_collection=True)) == ["block/a", "block/b"]
    assert tf.get_collection("ends") == []


def test_collections_are_given_for_all_variables_or_for_each():
    assert utils.get_variable_collections(["all"], "weights") == ["all"]
    assert utils.get_variable_collections({"biases": ["b"]}, "weights") is None
