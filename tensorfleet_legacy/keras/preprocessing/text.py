"""`tf.keras.preprocessing.text`: texts as numbers."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

_FILTERS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'


def text_to_word_sequence(
    text: str, filters: str = _FILTERS, lower: bool = True, split: str = " "
) -> list[str]:
    """The words of a text, without the characters in `filters`."""
    text = text.lower() if lower else text
    return [word for word in text.translate({ord(c): split for c in filters}).split(split) if word]


def hashing_trick(
    text: str,
    n: int,
    hash_function: Any = None,
    filters: str = _FILTERS,
    lower: bool = True,
    split: str = " ",
) -> list[int]:
    """A number from 1 to n - 1 for each word, from its hash: Python's, "md5", or any function."""
    function: Callable = hash if hash_function is None else hash_function
    if hash_function == "md5":

        def function(word: str) -> int:
            return int(hashlib.md5(word.encode(), usedforsecurity=False).hexdigest(), 16)

    return [function(w) % (n - 1) + 1 for w in text_to_word_sequence(text, filters, lower, split)]


def one_hot(text: str, n: int, filters: str = _FILTERS, lower: bool = True, split: str = " ") -> list[int]:
    """A number from 1 to n - 1 for each word, from Python's hash."""
    return hashing_trick(text, n, hash, filters, lower, split)


class Tokenizer:
    """Gives words numbers, the most frequent the lowest, and texts as lists of them or as rows."""

    def __init__(
        self,
        num_words: int | None = None,
        filters: str = _FILTERS,
        lower: bool = True,
        split: str = " ",
        char_level: bool = False,
        oov_token: str | None = None,
        document_count: int = 0,
        **kwargs: Any,
    ) -> None:
        if "nb_words" in kwargs:
            num_words = kwargs.pop("nb_words")
        if kwargs:
            raise TypeError(f"Unrecognized keyword arguments: {kwargs}")
        self.num_words, self.filters, self.lower, self.split = num_words, filters, lower, split
        self.char_level, self.oov_token, self.document_count = char_level, oov_token, document_count
        self.word_counts: dict[str, int] = {}
        self.word_docs: dict[str, int] = {}
        self.index_docs: dict[int, int] = {}
        self.word_index: dict[str, int] = {}
        self.index_word: dict[int, str] = {}

    def _words(self, text: Any) -> list:
        if self.char_level or isinstance(text, list):
            if isinstance(text, list):
                return [w.lower() for w in text] if self.lower else text
            return list(text.lower() if self.lower else text)
        return text_to_word_sequence(text, self.filters, self.lower, self.split)

    def fit_on_texts(self, texts: Iterable) -> None:
        """Counts the words of texts and numbers them."""
        counts, documents = Counter(self.word_counts), Counter(self.word_docs)
        for text in texts:
            words = self._words(text)
            counts.update(words)
            documents.update(set(words))
            self.document_count += 1
        self.word_counts, self.word_docs = dict(counts), dict(documents)
        ranked = sorted(counts, key=lambda w: -counts[w])
        if self.oov_token is not None:
            ranked.insert(0, self.oov_token)
        self.word_index = {word: i + 1 for i, word in enumerate(ranked)}
        self.index_word = {i: word for word, i in self.word_index.items()}
        self.index_docs = {self.word_index[w]: n for w, n in documents.items()}

    def fit_on_sequences(self, sequences: Iterable) -> None:
        """Counts the numbers of sequences, for `sequences_to_matrix`."""
        for row in sequences:
            self.document_count += 1
            for number in set(row):
                self.index_docs[number] = self.index_docs.get(number, 0) + 1

    def texts_to_sequences(self, texts: Iterable) -> list[list[int]]:
        """The numbers of the words; unknown words are left out, or are `oov_token`."""
        return list(self.texts_to_sequences_generator(texts))

    def texts_to_sequences_generator(self, texts: Iterable) -> Any:
        """The same, one text after the other."""
        unknown = self.word_index.get(self.oov_token or "") if self.oov_token is not None else None
        for text in texts:
            row = []
            for word in self._words(text):
                number = self.word_index.get(word)
                if number is None or (self.num_words and number >= self.num_words):
                    number = unknown
                if number is not None:
                    row.append(number)
            yield row

    def sequences_to_texts(self, sequences: Iterable) -> list[str]:
        """The words of numbers."""
        return list(self.sequences_to_texts_generator(sequences))

    def sequences_to_texts_generator(self, sequences: Iterable) -> Iterator[str]:
        """The words of numbers, one text after the other."""
        unknown = self.oov_token
        for row in sequences:
            known = lambda i: i in self.index_word and not (self.num_words and i >= self.num_words)  # noqa: E731
            words = [self.index_word[i] if known(i) else unknown for i in row]
            yield " ".join(w for w in words if w is not None)

    def texts_to_matrix(self, texts: Iterable, mode: str = "binary") -> np.ndarray:
        """A row for each text with a column for each word: "binary", "count", "freq" or "tfidf"."""
        return self.sequences_to_matrix(self.texts_to_sequences(texts), mode)

    def sequences_to_matrix(self, sequences: list, mode: str = "binary") -> np.ndarray:
        """The same for numbers."""
        if not self.num_words and not self.word_index:
            raise ValueError("Specify a dimension (`num_words` argument), or fit on some text data first.")
        if mode == "tfidf" and not self.document_count:
            raise ValueError("Fit the Tokenizer on some data before using tfidf mode.")
        if mode not in ("binary", "count", "freq", "tfidf"):
            raise ValueError("Unknown vectorization mode:", mode)
        width = self.num_words or len(self.word_index) + 1
        result = np.zeros((len(sequences), width))
        for i, row in enumerate(sequences):
            for number, count in Counter(n for n in row if n < width).items():
                result[i, number] = self._entry(mode, number, count, len(row))
        return result

    def _entry(self, mode: str, number: int, count: int, length: int) -> float:
        if mode == "binary":
            return 1.0
        if mode == "count":
            return float(count)
        if mode == "freq":
            return count / length
        rarity = np.log(1 + self.document_count / (1 + self.index_docs.get(number, 0)))
        return float((1 + np.log(count)) * rarity)

    def get_config(self) -> dict[str, Any]:
        """The arguments and all counts."""
        plain = ("num_words", "filters", "lower", "split", "char_level", "oov_token", "document_count")
        counted = ("word_counts", "word_docs", "index_docs", "index_word", "word_index")
        by_name = {k: getattr(self, k) for k in plain}
        return {**by_name, **{k: json.dumps(getattr(self, k)) for k in counted}}

    def to_json(self, **kwargs: Any) -> str:
        """The tokenizer as JSON."""
        return json.dumps({"class_name": type(self).__name__, "config": self.get_config()}, **kwargs)


def tokenizer_from_json(json_string: str) -> Tokenizer:
    """A tokenizer from what `to_json` gave."""
    config = json.loads(json_string)["config"]
    counted = {
        k: json.loads(config.pop(k))
        for k in ("word_counts", "word_docs", "index_docs", "index_word", "word_index")
    }
    result = Tokenizer(**config)
    for key, value in counted.items():
        setattr(result, key, {int(k): v for k, v in value.items()} if key.startswith("index_") else value)
    return result
