"""Files that are there as a whole or not at all."""

import os

import numpy as np
import pytest

from tensorfleet.io import bundle, whole_files
from tensorfleet.io.bundle_reader import BundleReader


def test_large_tensors_are_on_their_way_to_disk_while_others_are_written(tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(bundle, "start_to_disk", lambda file, start, size: begun.append((start, size)))
    large = np.ones(bundle._LARGE // 4, np.float32)
    prefix = os.path.join(tmp_path, "model")
    with bundle.BundleWriter(prefix) as writer:
        writer.add("a", large)
        writer.add("b", np.ones(3, np.float32))
        writer.add("c", large)
    assert begun == [(0, large.nbytes), (large.nbytes + 12, large.nbytes)]
    np.testing.assert_array_equal(BundleReader(prefix).read("c"), large)


@pytest.mark.parametrize("missing", [False, True])
def test_a_system_that_cannot_begin_early_writes_all_the_same(tmp_path, monkeypatch, missing):
    if missing:
        monkeypatch.setattr(whole_files, "_sync_file_range", lambda: None)
    path = tmp_path / "file"
    with whole_files.whole_file(str(path)) as f:
        f.write(b"text")
        f.flush()
        whole_files.start_to_disk(f, 0, 4)
        whole_files.start_to_disk(f, -5, 4)  # refused by the system, which nobody hears of
    assert path.read_bytes() == b"text"
