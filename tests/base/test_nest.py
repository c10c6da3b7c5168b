"""`tf.nest` on every kind of structure."""

import collections

import numpy as np
import pytest

import tensorfleet as tf

nest = tf.nest
Pair = collections.namedtuple("Pair", "x y")
STRUCTURE = {"b": 1, "a": [2, (3, Pair(4, 5))]}


def test_dictionaries_are_flattened_by_sorted_keys():
    assert nest.flatten(STRUCTURE) == [2, 3, 4, 5, 1]
    assert nest.flatten(collections.OrderedDict([("z", 1), ("a", 2)])) == [2, 1]


def test_atoms_flatten_to_themselves():
    assert nest.flatten(3) == [3]
    assert nest.flatten("ab") == ["ab"]
    assert nest.flatten(None) == [None]
    assert len(nest.flatten(np.ones(2))) == 1
    assert nest.flatten([]) == []


def test_packing_keeps_types_and_the_order_of_keys():
    packed = nest.pack_sequence_as(STRUCTURE, [1, 2, 3, 4, 5])
    assert packed == {"b": 5, "a": [1, (2, Pair(3, 4))]}
    assert list(packed) == ["b", "a"]
    assert type(packed["a"][1][1]) is Pair
    assert nest.pack_sequence_as(0, [7]) == 7
    result = nest.pack_sequence_as(collections.defaultdict(int, q=1), [4])
    assert result == {"q": 4}
    assert result.default_factory is int


def test_packing_needs_as_many_atoms():
    with pytest.raises(ValueError, match="Structure had 2 elements, but flat_sequence had 1 elements"):
        nest.pack_sequence_as([1, 2], [1])
    with pytest.raises(ValueError, match="The target structure is of type"):
        nest.pack_sequence_as(1, [1, 2])
    with pytest.raises(TypeError, match="incompatible type"):
        nest.pack_sequence_as([1], 3)


def test_mapping_takes_one_atom_of_each():
    assert nest.map_structure(lambda a, b: a + b, {"a": 1, "b": (2, 3)}, {"a": 1, "b": (2, 3)}) == {
        "a": 2,
        "b": (4, 6),
    }
    assert nest.map_structure(lambda a, b: a, [1], (2,), check_types=False) == [1]
    for bad, error in (((3, [1]), TypeError), ((len,), ValueError)):
        with pytest.raises(error):
            nest.map_structure(*bad)
    with pytest.raises(ValueError, match="Only valid keyword arguments"):
        nest.map_structure(lambda a: a, [1], other=1)


@pytest.mark.parametrize(
    "a, b, error, text",
    [
        ([1, 2], [1], ValueError, "same number of elements"),
        ([1, 2], (1, 2), TypeError, "same sequence type"),
        ({"a": 1}, {"b": 1}, ValueError, "same set of keys"),
        (1, [1], ValueError, "is a sequence, while substructure"),
        ([1, [2]], [[1], 2], ValueError, "is a sequence, while substructure"),
        (Pair(1, 2), collections.namedtuple("Other", "x y")(1, 2), TypeError, "same sequence type"),
    ],
)
def test_structures_that_differ(a, b, error, text):
    with pytest.raises(error, match=text):
        nest.assert_same_structure(a, b)


def test_structures_that_are_the_same():
    nest.assert_same_structure([1, (2,)], [3, (4,)])
    nest.assert_same_structure([1, 2], (1, 2), check_types=False)
    nest.assert_same_structure(Pair(1, 2), collections.namedtuple("Pair", "x y")(3, 4))


def test_composites_fall_apart_only_when_asked():
    slices = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([0]))
    assert nest.flatten([slices]) == [slices]
    parts = nest.flatten([slices], expand_composites=True)
    assert len(parts) == 2
    again = nest.pack_sequence_as([slices], parts, expand_composites=True)[0]
    assert again.values is slices.values
    assert again.indices is slices.indices


def test_what_is_nested():
    assert all(map(nest.is_nested, ([1], (), {}, Pair(1, 2), range(2), {}.values())))
    assert not any(map(nest.is_nested, (1, "a", b"a", np.ones(2), {1}, None)))


def test_what_differs_is_told_before_a_count_and_then_both_forms():
    with pytest.raises(
        ValueError, match='"type=list str=.1." is a sequence, while substructure "type=str str=a"'
    ) as e:
        tf.nest.assert_same_structure([[1], 2, 3], ["a", "b"])
    assert str(e.value).endswith("Entire first structure:\n[[.], ., .]\nEntire second structure:\n[., .]")


def test_only_sequences_can_be_packed_and_one_atom_alone():
    with pytest.raises(TypeError, match="flat_sequence must be a sequence"):
        tf.nest.pack_sequence_as([1], "a")
    with pytest.raises(ValueError, match=r"Structure is a scalar but len\(flat_sequence\) == 2 > 1"):
        tf.nest.pack_sequence_as("a", [1, 2])
