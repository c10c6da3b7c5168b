"""`tf.contrib.learn`: examples read in batches from files, texts as rows of word numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from tensorfleet.base.arguments import with_defaults
from tensorfleet.base.naming import find
from tensorfleet_legacy.estimator import numpy_io as input_functions

_CAPITALS = r"[A-Z][A-Z]+(?![a-z])"
_PART_OF_CAMEL_CASE = r"[A-Z][a-z]+(?=[A-Z])"
_PLAIN = r"[\w'-]+"
_WORD = re.compile("|".join([_CAPITALS, _PART_OF_CAMEL_CASE, _PLAIN]))
_UNKNOWN = "<UNK>"


def read_batch_features(
    file_pattern: Any,
    batch_size: int,
    features: dict,
    reader: Any,
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    feature_queue_capacity: int = 100,
    reader_num_threads: int = 1,
    num_enqueue_threads: int = 2,
    parse_fn: Callable | None = None,
    name: str | None = None,
    read_batch_size: int | None = None,
) -> dict:
    """The features of serialized `tf.Example`s from files, a batch at a time, over queues.

    `reader` makes a reader, such as `tf.TFRecordReader`. The last batch may be smaller.
    """
    with find("name_scope")(name, "read_batch_features", []):
        patterns = [file_pattern] if isinstance(file_pattern, str) else list(file_pattern)
        files = sorted(path for pattern in patterns for path in find("gfile.Glob")(pattern))
        if not files:
            raise ValueError(f"No files match {file_pattern}.")
        names = find("train.string_input_producer")(files, num_epochs=num_epochs, shuffle=randomize_input)
        several = read_batch_size is not None and read_batch_size > 1
        examples = [_read(reader, names, parse_fn, read_batch_size) for _ in range(reader_num_threads)]
        smaller = num_epochs is not None
        if randomize_input:
            batch = find("train.shuffle_batch_join")(
                examples,
                batch_size,
                capacity=queue_capacity,
                min_after_dequeue=max(1, min(queue_capacity // 2, queue_capacity - batch_size)),
                allow_smaller_final_batch=smaller,
                enqueue_many=several,
            )
        else:
            batch = find("train.batch_join")(
                examples,
                batch_size,
                capacity=queue_capacity,
                enqueue_many=several,
                allow_smaller_final_batch=smaller,
            )
        return find("io.parse_example")(batch, features)


def _read(reader: Any, names: Any, parse_fn: Callable | None, count: int | None) -> list:
    several = count is not None and count > 1
    value = reader().read_up_to(names, count)[1] if several else reader().read(names)[1]
    return [value if parse_fn is None else parse_fn(value)]


def infer_real_valued_columns_from_input(x: Any) -> list:
    """The column of an array of numbers, named "", as wide as its rows; one for each array of a dictionary."""
    column = find("contrib.layers.real_valued_column")
    if isinstance(x, dict):
        return [column(name, dimension=_width(value)) for name, value in sorted(x.items())]
    return [column("", dimension=_width(x))]


def _width(x: Any) -> int:
    shape = np.shape(x)
    return int(np.prod(shape[1:])) if len(shape) > 1 else 1


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """The words of each text."""
    for text in iterator:
        yield _WORD.findall(text)


class CategoricalVocabulary:
    """Words with numbers; 0 is for those that are not known."""

    def __init__(self, unknown_token: str = _UNKNOWN, support_reverse: bool = True) -> None:
        self._unknown_token = unknown_token
        self._mapping: dict[str, int] = {unknown_token: 0}
        self._reverse_mapping = [unknown_token]
        self._freq: dict[str, int] = {}
        self._frozen = False

    def __len__(self) -> int:
        return len(self._mapping)

    def freeze(self, freeze: bool = True) -> None:
        """New words get no number from now on."""
        self._frozen = freeze

    def get(self, category: str) -> int:
        """The number of a word, a new one for a new word."""
        if category not in self._mapping:
            if self._frozen:
                return 0
            self._mapping[category] = len(self._mapping)
            self._reverse_mapping.append(category)
        return self._mapping[category]

    def add(self, category: str, count: int = 1) -> None:
        """Counts a word."""
        if self.get(category) > 0:
            self._freq[category] = self._freq.get(category, 0) + count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Forgets words that are too rare or, with a maximum, too frequent; the frequent ones get the first numbers."""
        kept = sorted(sorted(self._freq.items()), key=lambda item: item[1], reverse=True)
        kept = [
            (word, n) for word, n in kept if n > min_frequency and (max_frequency <= 0 or n < max_frequency)
        ]
        self._reverse_mapping = [self._unknown_token, *(word for word, _ in kept)]
        self._mapping = {word: i for i, word in enumerate(self._reverse_mapping)}
        self._freq = dict(kept)

    def reverse(self, class_id: int) -> str:
        """The word of a number."""
        return self._reverse_mapping[class_id]


class VocabularyProcessor:
    """Texts as rows of word numbers, all of `max_document_length`: cut, or filled up with zeros."""

    def __init__(
        self,
        max_document_length: int,
        min_frequency: int = 0,
        vocabulary: CategoricalVocabulary | None = None,
        tokenizer_fn: Callable | None = None,
    ) -> None:
        self.max_document_length = max_document_length
        self.min_frequency = min_frequency
        self.vocabulary_ = vocabulary or CategoricalVocabulary()
        self._tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents: Iterable[str], unused_y: Any = None) -> VocabularyProcessor:
        """Learns the words."""
        for words in self._tokenizer(raw_documents):
            for word in words:
                self.vocabulary_.add(word)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(self, raw_documents: Iterable[str], unused_y: Any = None) -> Iterator[np.ndarray]:
        """Learns the words, and gives each text's row."""
        documents = list(raw_documents)
        return self.fit(documents).transform(documents)

    def transform(self, raw_documents: Iterable[str]) -> Iterator[np.ndarray]:
        """Gives each text's row."""
        for words in self._tokenizer(raw_documents):
            row = np.zeros(self.max_document_length, np.int64)
            numbers = [self.vocabulary_.get(word) for word in words[: self.max_document_length]]
            row[: len(numbers)] = numbers
            yield row

    def reverse(self, documents: Iterable[Any]) -> Iterator[str]:
        """The texts of rows, as far as the words are known."""
        for row in documents:
            yield " ".join(self.vocabulary_.reverse(int(number)) for number in row)

    def save(self, filename: str) -> None:
        """Writes the words to a file, as text that `restore` reads; a tokenizer of one's own is not in it."""
        held = self.vocabulary_
        by_name = {
            "max_document_length": self.max_document_length,
            "min_frequency": self.min_frequency,
            "words": held._reverse_mapping,
            "counts": held._freq,
            "frozen": held._frozen,
        }
        with find("gfile.Open")(filename, "w") as file:
            file.write(json.dumps(by_name))

    @classmethod
    def restore(cls, filename: str) -> VocabularyProcessor:
        """The saved processor; ValueError for a pickle file that TensorFlow wrote."""
        with find("gfile.Open")(filename, "rb") as file:
            content = file.read()
        try:
            loaded = json.loads(content)
        except ValueError:
            raise ValueError(
                f"{filename} holds no vocabulary that was saved here. TensorFlow saved it as a pickle, which can run "
                "code when it is read: make it anew with fit and save."
            ) from None
        vocabulary = CategoricalVocabulary(loaded["words"][0])
        vocabulary._reverse_mapping = loaded["words"]
        vocabulary._mapping = {word: number for number, word in enumerate(loaded["words"])}
        vocabulary._freq, vocabulary._frozen = loaded["counts"], loaded["frozen"]
        return cls(loaded["max_document_length"], loaded["min_frequency"], vocabulary)


class ByteProcessor:
    """Texts as rows of bytes, all of `max_document_length`: cut, or filled up with zeros."""

    def __init__(self, max_document_length: int) -> None:
        self.max_document_length = max_document_length

    def fit(self, x: Any) -> None:
        """There is nothing to learn."""

    def fit_transform(self, x: Iterable[Any]) -> Iterator[np.ndarray]:
        """`transform`."""
        return self.transform(x)

    def transform(self, x: Iterable[Any]) -> Iterator[np.ndarray]:
        """Gives each text's row."""
        for document in x:
            held = document.encode() if isinstance(document, str) else document
            row = np.frombuffer(held[: self.max_document_length], np.uint8)
            yield np.pad(row, (0, self.max_document_length - len(row)))

    def reverse(self, x: Iterable[Any]) -> Iterator[str]:
        """The texts of rows; "" for what is no UTF-8."""
        for row in x:
            try:
                yield np.trim_zeros(np.asarray(row).astype(np.uint8), "b").tobytes().decode()
            except UnicodeDecodeError:
                yield ""


# The input functions of `tf.estimator.inputs`, in any order unless told otherwise.
numpy_input_fn = with_defaults(input_functions.numpy_input_fn, shuffle=True)
pandas_input_fn = with_defaults(input_functions.pandas_input_fn, shuffle=True)
