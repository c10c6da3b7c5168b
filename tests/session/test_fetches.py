"""What comes back for structures that are fetched."""

import collections

import tensorfleet as tf


def test_a_dictionary_with_defaults_is_fetched_as_one(session):
    wanted = collections.defaultdict(list, a=tf.constant(1))
    result = session.run(wanted)
    assert result == {"a": 1} and result.default_factory is list
