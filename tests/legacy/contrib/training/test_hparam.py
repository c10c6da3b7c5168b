"""HParams: named hyperparameters that keep their types."""

import pytest

import tensorfleet as tf


def hparams():
    return tf.contrib.training.HParams(rate=0.5, layers=3, sizes=[1, 2, 3], name="net", flag=False)


def test_parameters_are_attributes():
    h = hparams()
    assert (h.rate, h.layers, h.sizes, h.name, h.flag) == (0.5, 3, [1, 2, 3], "net", False)
    assert "rate" in h and "other" not in h
    assert h.values() == dict(rate=0.5, layers=3, sizes=[1, 2, 3], name="net", flag=False)
    assert h.get("rate") == 0.5 and h.get("other", 7) == 7


def test_text_changes_them():
    h = hparams().parse("rate=2,layers=4,sizes=[5,6],name=big net,flag=true")
    assert (h.rate, h.layers, h.sizes, h.name, h.flag) == (2.0, 4, [5, 6], "big net", True)
    assert isinstance(h.rate, float)
    assert h.parse("sizes[1]=9").sizes == [5, 9]
    assert h.parse_json('{"rate": 3, "sizes": [1]}').rate == 3.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("unknown=3", "Unknown hyperparameter type for unknown"),
        ("layers=1.5", "Could not parse hparam 'layers' of type 'int'"),
        ("flag=maybe", "Could not parse hparam 'flag'"),
        ("layers=1,layers=2", "Multiple assignments to variable 'layers'"),
        ("layers", "Malformed hyperparameter value"),
        ("layers=[1]", "Must not pass a list for single-valued parameter: layers"),
        ("sizes=1", "Must pass a list for multi-valued parameter: sizes."),
    ],
)
def test_wrong_text_is_refused(text, message):
    with pytest.raises(ValueError, match=message.replace("[", r"\[")):
        hparams().parse(text)


def test_types_are_kept():
    h = hparams()
    h.set_hparam("rate", 3)
    assert isinstance(h.rate, float)
    for name, value in (("layers", 1.5), ("name", 3), ("flag", 1), ("layers", True)):
        with pytest.raises(ValueError, match="Could not cast hparam"):
            h.set_hparam(name, value)


def test_names_are_given_once():
    h = hparams()
    with pytest.raises(ValueError, match="Hyperparameter name is reserved: rate"):
        h.add_hparam("rate", 1)
    with pytest.raises(ValueError, match="cannot be empty: none"):
        h.add_hparam("none", [])
    h.del_hparam("rate")
    h.add_hparam("rate", "fast")
    assert h.to_json(sort_keys=True).startswith('{"flag": false, "layers": 3')
