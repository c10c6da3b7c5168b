"""`tensorflow.models.rnn.ptb.reader`: the words of the Penn Treebank as numbers, in batches of pieces that follow each other."""

from __future__ import annotations

import collections
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tensorfleet.base.naming import export, find

_PLACE = "models.rnn.ptb.reader"


@export(f"{_PLACE}._read_words")  # scripts take it for files of their own
def _read_words(filename: str) -> list[str]:
    """The words of a file; `<eos>` stands for the end of a line."""
    with open(filename, encoding="utf-8") as file:
        return file.read().replace("\n", " <eos> ").split()


@export(f"{_PLACE}._build_vocab")  # scripts take it for files of their own
def _build_vocab(filename: str) -> dict[str, int]:
    """Numbers for the words of a file, the most frequent first, equally frequent ones by the alphabet."""
    counted = collections.Counter(_read_words(filename))
    ordered = sorted(counted, key=lambda word: (-counted[word], word))
    return {word: number for number, word in enumerate(ordered)}


@export(f"{_PLACE}._file_to_word_ids")  # scripts take it for files of their own
def _file_to_word_ids(filename: str, word_to_id: dict[str, int]) -> list[int]:
    return [word_to_id[word] for word in _read_words(filename) if word in word_to_id]


@export(f"{_PLACE}.ptb_raw_data")
def ptb_raw_data(data_path: str) -> tuple[list[int], list[int], list[int], int]:
    """The texts to train on, to validate with and to test with as numbers, and how many words there are."""
    paths = [os.path.join(data_path, f"ptb.{part}.txt") for part in ("train", "valid", "test")]
    numbers = _build_vocab(paths[0])
    train, valid, test = (_file_to_word_ids(path, numbers) for path in paths)
    return train, valid, test, len(numbers)


def _pieces(count: int, batch_size: int, num_steps: int) -> int:
    """How many pieces each of the rows of a batch is cut into."""
    result = (count // batch_size - 1) // num_steps
    if result <= 0:
        raise ValueError("epoch_size == 0, decrease batch_size or num_steps")
    return result


@export(f"{_PLACE}.ptb_iterator")
def ptb_iterator(raw_data: Sequence[int], batch_size: int, num_steps: int) -> Iterator[tuple]:
    """Batches of words and of the words that follow them, as arrays of [batch_size, num_steps]."""
    data = np.array(raw_data, np.int32)
    length = len(data) // batch_size
    rows = data[: batch_size * length].reshape(batch_size, length)
    for i in range(_pieces(len(data), batch_size, num_steps)):
        start, end = i * num_steps, (i + 1) * num_steps
        yield rows[:, start:end], rows[:, start + 1 : end + 1]


@export(f"{_PLACE}.ptb_producer")
def ptb_producer(raw_data: Any, batch_size: int, num_steps: int, name: str | None = None) -> tuple:
    """Tensors with the next batch of words and that of the words that follow them; a queue counts the pieces."""
    with find("name_scope")(name, "PTBProducer", [raw_data, batch_size, num_steps]):
        data = find("convert_to_tensor")(raw_data, name="raw_data", dtype=find("int32"))
        size = find("size")(data)
        length = size // batch_size
        rows = find("reshape")(data[: batch_size * length], [batch_size, length])
        pieces = (length - 1) // num_steps
        message = "epoch_size == 0, decrease batch_size or num_steps"
        with find("control_dependencies")([find("assert_positive")(pieces, message=message)]):
            pieces = find("identity")(pieces, name="epoch_size")
        i = find("train.range_input_producer")(pieces, shuffle=False).dequeue()
        return tuple(_piece(rows, i * num_steps + after, batch_size, num_steps) for after in (0, 1))


def _piece(rows: Any, start: Any, batch_size: int, num_steps: int) -> Any:
    piece = find("strided_slice")(rows, [0, start], [batch_size, start + num_steps])
    piece.set_shape([batch_size, num_steps])
    return piece
