"""Where a result can be written is known before the work for it begins."""

from tensorfleet.cli.writable import why_not_writable


def test_a_file_that_can_be_written(tmp_path):
    assert why_not_writable(tmp_path / "trace.json") is None
    (tmp_path / "trace.json").write_text("old")
    assert why_not_writable(tmp_path / "trace.json") is None


def test_a_folder_is_no_file(tmp_path):
    assert "it is a folder" in why_not_writable(tmp_path)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    assert f"there is no folder {tmp_path / 'no'}" in why_not_writable(tmp_path / "no" / "trace.json")
