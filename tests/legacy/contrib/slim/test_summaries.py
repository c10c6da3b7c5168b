"""slim.summaries: summaries named after their tensors."""

import tensorfleet as tf

S = tf.contrib.slim.summaries


def test_summaries_are_named_after_their_tensors():
    x = tf.constant([[0.0, 1.0]], name="x")
    (histogram,) = S.add_histogram_summaries([x], prefix="before")
    (share,) = S.add_zero_fraction_summaries([x])
    pictures = S.add_image_summaries([tf.zeros([1, 2, 2, 1], name="pictures")])
    names = [s.op.name for s in (histogram, share, *pictures)]
    assert names == ["before/x", "x/Fraction_of_Zero_Values", "pictures_1"]
    assert tf.get_collection(tf.GraphKeys.SUMMARIES) == [histogram, share, *pictures]


def test_a_summary_that_is_printed_takes_the_place_of_the_other():
    (printed,) = S.add_scalar_summaries([tf.constant(1.0, name="loss")], print_summary=True)
    assert printed.op.type == "Print"
    assert tf.get_collection(tf.GraphKeys.SUMMARIES) == [printed]
