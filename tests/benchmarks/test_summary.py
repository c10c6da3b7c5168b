import copy

import pytest


@pytest.fixture
def rows(script):
    """A slow row, one within the spread, a fast one that costs more, and a share."""
    row_of = script("report").Row
    made = []
    for name, theirs, unit in (
        ("slow", [0.4, 0.5, 0.6], "seconds"),
        ("close", [0.9, 0.98, 1.2], "seconds"),
        ("fast", [2.0, 2.0, 2.0], "seconds"),
        ("share", [0.1, 0.1, 0.1], "added"),
    ):
        row = row_of(name, "a step", unit=unit)
        row.seen["tensorflow"] += theirs
        row.seen["tensorfleet"] += [1.0, 1.0, 1.0]
        made.append(("run", row))
    made[2][1].busy["tensorflow"].append(1.0)
    made[2][1].busy["tensorfleet"].append(2.0)
    return made


def test_list_has_what_is_lost_the_worst_first(script, rows):
    text = script("summary").summary(rows)
    assert text.startswith("Behind TensorFlow: 2 of 3 rows.")
    assert text.index("slow") < text.index("close")
    assert "share" not in text


def test_loss_within_the_spread_of_the_rounds_is_marked(script, rows):
    lines = {line.split()[0]: line for line in script("summary").summary(rows).splitlines() if line}
    assert "within the spread of the rounds" in lines["close"]
    assert "within" not in lines["slow"]


def test_rows_that_cost_more_processor_time_are_named(script, rows):
    assert "with more processor time: fast 0.50." in script("summary").summary(rows)


def test_libraries_that_were_not_measured_are_not_mentioned(script, rows):
    assert "PyTorch" not in script("summary").summary(rows)
    rows[0][1].seen["torch"] += [2.0, 2.0, 2.0]
    assert "Behind PyTorch: 0 of 1 rows." in script("summary").summary(rows)


def test_equal_ratios_of_two_rows_are_no_error(script, rows):
    again = [(name, copy.copy(row)) for name, row in rows]
    for _, row in again:
        row.size = "half"
    assert "4 of 6 rows" in script("summary").summary(rows + again)


def test_file_that_cannot_be_read_is_told_and_left_out(script, rows, tmp_path, monkeypatch, capsys):
    report, summary = script("report"), script("summary")
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(summary, "RESULTS", tmp_path)
    report.save("cluster", [row for _, row in rows], "2026-11-18, here")
    (tmp_path / "ops.json").write_text("{")
    assert summary.main() == 0
    shown = capsys.readouterr()
    assert "Behind TensorFlow: 2 of 3 rows." in shown.out
    assert "ops.json cannot be read" in shown.err


def test_nothing_measured_is_no_error(script, tmp_path, monkeypatch, capsys):
    summary = script("summary")
    monkeypatch.setattr(summary, "RESULTS", tmp_path / "nowhere")
    assert summary.main() == 0
    assert "No results yet" in capsys.readouterr().out
