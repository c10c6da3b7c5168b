"""Irises, and files that are fetched."""

import types
from pathlib import Path

import pytest

import tensorfleet as tf
from tensorfleet_legacy.contrib.learn import datasets as fetched_sets

D = tf.contrib.learn.datasets


def test_irises_are_there():
    irises = D.load_dataset("iris")
    assert irises.data.shape == (150, 4)
    assert [int((irises.target == kind).sum()) for kind in range(3)] == [50, 50, 50]
    assert irises.data[0].tolist() == [5.1, 3.5, 1.4, 0.2]
    assert D.load_iris is D.base.load_iris
    with pytest.raises(ValueError, match="not found: boston"):
        D.load_dataset("boston")


def test_what_timed_out_is_tried_again_after_longer_waits(monkeypatch):
    waits, answers = [], [OSError(110, "timed out")] * 5 + [("file", None)]
    clock = types.SimpleNamespace(sleep=waits.append)
    monkeypatch.setattr(tf.contrib.learn.python.learn.datasets.base, "time", clock)

    def answer(url, filename):
        result = answers.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(fetched_sets.urllib.request, "urlretrieve", answer)
    assert D.base.urlretrieve_with_retry("http://nowhere")[0] == "file"
    assert all(abs(wait - wanted) <= wanted / 4 for wait, wanted in zip(waits, (1, 2, 4, 8, 16), strict=True))
    answers.append(OSError(2, "no such file"))
    with pytest.raises(OSError, match="no such file"):
        D.base.urlretrieve_with_retry("http://nowhere")


def test_a_file_is_fetched_once(monkeypatch, tmp_path, capsys):
    (tmp_path / "far").write_text("data")
    monkeypatch.setattr(
        fetched_sets.urllib.request, "urlretrieve", lambda url, name: (str(tmp_path / "far"), None)
    )
    for _ in range(2):
        path = D.base.maybe_download("near", str(tmp_path / "here"), "http://nowhere")
    assert Path(path).read_text() == "data"
    assert capsys.readouterr().out == "Successfully downloaded near 4 bytes.\n"


@pytest.mark.parametrize(
    ("options", "text"), [({"factor": 0.5}, "factor must be"), ({"jitter": 1}, "jitter must be")]
)
def test_waits_must_grow(options, text):
    with pytest.raises(ValueError, match=text):
        D.base.retry(1, 2, **options)
