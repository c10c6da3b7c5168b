import pytest


@pytest.fixture
def report(script, tmp_path, monkeypatch):
    module = script("report")
    monkeypatch.setattr(module, "RESULTS", tmp_path / "bench")
    return module


def row_of(report, theirs, ours, **more):
    row = report.Row("work", "a step", **more)
    row.seen["tensorflow"] += theirs
    row.seen["tensorfleet"] += ours
    return row


def test_ratio_is_the_median_of_the_rounds_and_not_of_the_times(report):
    row = row_of(report, [2.0, 8.0, 3.0], [1.0, 2.0, 3.0])
    assert row.ratios() == [2.0, 4.0, 1.0]
    assert row.ratio() == 2.0
    assert row.quartiles() == (1.5, 3.0)
    assert row.spread() == "1.50-3.00"


def test_two_rounds_have_no_quartiles(report):
    assert row_of(report, [2.0, 2.0], [1.0, 1.0]).spread() == ""


def test_ratio_of_memory_is_above_one_if_ours_is_smaller(report):
    row = row_of(report, [3e8], [1e8], unit="bytes", floor=1.54)
    assert row.cells()[:4] == ["work", "300 MB", "100 MB", "3.00"]
    assert row.met and not row.is_lost()


def test_row_without_values_of_a_library_is_neither_met_nor_lost(report):
    row = row_of(report, [], [1.0], floor=1.0)
    assert not row.met
    assert not row.is_lost()
    assert "failed" in row.cells()


def test_share_of_a_step_is_never_lost(report):
    row = row_of(report, [1.1], [1.5], unit="added")
    assert not row.is_lost()
    assert row.cells()[1:4] == ["+10 %", "+50 %", ""]


def test_processor_times_are_compared_round_by_round(report):
    row = row_of(report, [1.0], [1.0])
    assert row.by_processors() == ""
    row.busy["tensorflow"] += [2.0, 9.0, 4.0]
    row.busy["tensorfleet"] += [1.0, 3.0, 4.0]
    assert row.by_processors() == "2.00"


def test_columns_that_nobody_fills_are_left_out(report):
    assert report.grid(["work", "empty", "ratio"], [["a", "", "1.00"]], markdown=True).splitlines() == [
        "| work | ratio |",
        "|---|--:|",
        "| a | 1.00 |",
    ]


def test_peers_table_has_only_works_that_a_peer_has(report):
    row, other = row_of(report, [2.0], [1.0]), row_of(report, [2.0], [1.0])
    row.seen["jax"].append(0.5)
    other.name = "other"
    text = report.peers_table([row, other], ["torch", "jax"], markdown=True)
    assert "| work | 1.00 s | 500.00 ms | 0.50 |" in text
    assert "other" not in text


def test_sizes_table_shows_the_ratio_at_each_size(report):
    rows = [
        row_of(report, [r], [1.0], size=size) for size, r in (("half", 3.0), ("full", 2.0), ("double", 1.0))
    ]
    alone = report.Row("alone", "a step")
    text = report.sizes_table([*rows, alone], ["tensorflow"], markdown=True)
    assert text.splitlines()[-1] == "| work | 3.00 | 2.00 | 1.00 |"


def test_losses_name_the_library_and_the_size(report):
    row = row_of(report, [0.5], [1.0], size="half")
    assert (
        report.losses([row], ["tensorflow", "jax"])
        == "Behind TensorFlow: work half 0.50.\nBehind JAX: nothing."
    )


def test_saved_rows_come_back_and_those_not_measured_again_stay(report):
    first, second = row_of(report, [2.0], [1.0]), row_of(report, [4.0], [1.0], size="half")
    report.save("run", [first, second], "then")
    report.save("run", [row_of(report, [3.0], [1.0])], "now")
    found = {row.size: row for row in report.load(report.RESULTS / "run.json")}
    assert found["full"].ratio() == 3.0
    assert found["full"].conditions == "now"
    assert found["half"].ratio() == 4.0
    assert found["half"].conditions == "then"


def test_table_goes_between_its_markers(report, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "draw", lambda: None)
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- t -->\nold\n<!-- /t -->\nb\n")
    report.write_between("t", "new", page)
    assert page.read_text() == "a\n<!-- t -->\nnew\n<!-- /t -->\nb\n"
    with pytest.raises(SystemExit, match="has no <!-- u -->"):
        report.write_between("u", "new", page)
