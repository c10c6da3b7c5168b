"""Functions that take what they took in TensorFlow 1's days."""

import csv
import json
import random

import numpy as np
import pytest

from tensorfleet.cli.scripts import alias


@pytest.fixture(autouse=True)
def then():
    before = np.fromstring, np.array, json.loads, random.sample, csv.reader
    alias.install()
    yield
    alias.uninstall()
    assert (np.fromstring, np.array, json.loads, random.sample, csv.reader) == before


def test_an_array_is_read_from_bytes_and_can_be_changed():
    pixels = np.fromstring(b"\x01\x02", np.uint8)
    pixels[0] = 7
    assert pixels.tolist() == [7, 2] and np.fromstring("ab", np.uint8).tolist() == [97, 98]
    assert np.fromstring("1 2", int, sep=" ").tolist() == [1, 2]


def test_rows_of_different_lengths_are_an_error_for_all_but_scripts():
    with pytest.raises(ValueError, match="inhomogeneous"):
        np.array([[1, 2], [3]])


def test_json_may_be_told_an_encoding():
    assert json.loads("[1]", encoding="utf-8") == [1] and json.dumps([1], encoding="utf-8") == "[1]"


def test_elements_of_sets_are_drawn_and_lists_shuffled_by_a_function():
    assert sorted(random.sample({1, 2, 3}, 3)) == [1, 2, 3] and len(random.sample([1, 2], 1)) == 1
    cards = [1, 2, 3]
    random.shuffle(cards, lambda: 0.0)
    assert cards == [2, 3, 1]
    random.shuffle(cards)
    assert sorted(cards) == [1, 2, 3]


def test_tables_are_in_files_of_text_and_in_binary_ones(tmp_path):
    for mode in ("", "b"):
        with open(tmp_path / "table.csv", "w" + mode) as file:
            writer = csv.DictWriter(file, ["name", "loss"], delimiter=";", lineterminator="\n")
            writer.writeheader()
            writer.writerow({"name": "a", "loss": 0.5})
        with open(tmp_path / "table.csv", "r" + mode) as file:
            assert list(csv.DictReader(file, delimiter=";")) == [{"name": "a", "loss": "0.5"}]
        with open(tmp_path / "table.csv", "r" + mode) as file:
            assert list(csv.reader(file, delimiter=";")) == [["name", "loss"], ["a", "0.5"]]


@pytest.mark.parametrize("no_number", [np.nan, "nan"])
def test_arrays_are_printed_whole_where_no_number_says_when_not_to(no_number):
    with np.printoptions(threshold=no_number):
        assert "..." not in str(np.arange(2000))
    assert "..." in str(np.arange(2000))
    assert "..." not in np.array2string(np.arange(2000), threshold=no_number)
