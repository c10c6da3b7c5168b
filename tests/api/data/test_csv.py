"""Records of CSV files: where they end, what is wrong with them, and what is found out of files."""

import gzip

import pytest

import tensorfleet as tf
from tests.support import sessions

experimental = tf.data.experimental


def all_of(dataset):
    element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        return sessions.all_of(session, element)


def rows(path, text, defaults, **options):
    path.write_bytes(text)
    return experimental.CsvDataset(str(path), defaults, **options)


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("last", [True, False], ids=["ended", "open"])
def test_records_end_with_any_line_end_outside_of_quotes(tmp_path, end, last):
    lines = [b'"\n\n","\r\r","a""b"', b'"0",1,2', b'"","",x']
    dataset = rows(tmp_path / "a", end.join(lines) + (end if last else b""), [["NA"]] * 3)
    assert all_of(dataset) == [(b"\n\n", b"\r\r", b'a"b'), (b"0", b"1", b"2"), (b"NA", b"NA", b"x")]


def test_long_files_of_quoted_fields_are_read_in_pieces(tmp_path):
    line = b'"' + b"long\r\n" * 1000 + b'",2\r\n'
    result = all_of(rows(tmp_path / "a", line * 100, [tf.string, tf.int32]))
    assert result == [(b"long\r\n" * 1000, 2)] * 100


def test_a_bad_quote_spoils_its_own_record_only(tmp_path):
    dataset = rows(tmp_path / "a", b'1,2"3,4\na,b,c"d\n9,8"7,6,5\ne,f,g\n', [[""]] * 3)
    assert all_of(dataset.apply(experimental.ignore_errors())) == [(b"e", b"f", b"g")]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b'1"2,3', "Unquoted fields cannot have quotes inside"),
        (b'"1"2,3', "Quote inside a string has to be escaped by another quote"),
        (b'1,"2', "Reached end of file without closing quoted field in record"),
        (b"1,2,3", "Expect 2 fields but have more in record"),
        (b"\n", "Expect 2 fields but have 1 in record"),
        (b",2", "Field 0 is required but missing in record!"),
    ],
)
def test_what_is_wrong_with_a_record_is_told_as_in_tensorflow(tmp_path, text, told):
    with pytest.raises(tf.errors.InvalidArgumentError, match=told):
        all_of(rows(tmp_path / "a", text, [tf.string, tf.string]))


def test_bad_settings_are_refused(tmp_path):
    with pytest.raises(tf.errors.InvalidArgumentError, match="Can't read header of file"):
        all_of(rows(tmp_path / "a", b"", [tf.int32], header=True))
    with pytest.raises(tf.errors.InvalidArgumentError, match="buffer_size should be positive"):
        all_of(rows(tmp_path / "a", b"1", [tf.int32], buffer_size=0))
    with pytest.raises(ValueError, match="Shape must be at most rank 1 but is rank 2"):
        rows(tmp_path / "a", b"1", [tf.constant([[0]])])


def test_an_empty_line_is_one_empty_field(tmp_path):
    assert all_of(rows(tmp_path / "a", b"1\n\n3\n", [[7]])) == [(1,), (7,), (3,)]


def test_names_and_types_are_found_in_packed_files(tmp_path):
    with gzip.open(tmp_path / "a", "wb") as file:
        file.write(b"x,y\n1,a\n")
    pattern = str(tmp_path / "a")
    dataset = experimental.make_csv_dataset(pattern, 1, num_epochs=1, compression_type="GZIP")
    (batch,) = all_of(dataset)
    assert {k: v.tolist() for k, v in batch.items()} == {"x": [1], "y": [b"a"]}
    with pytest.raises(ValueError, match="is not supported for probing columns"):
        experimental.make_csv_dataset(pattern, 1, compression_type="ZLIB")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"column_names": ["x", "y", "z"]}, "CSV row has different number of fields than expected"),
        ({"select_columns": ["w"]}, "Value 'w' specified in select_columns not a valid column"),
        ({"select_columns": [2]}, "Column index 2 specified in select_columns out of valid range"),
        ({"select_columns": [0, "x"]}, "select_columns contains duplicate columns"),
        ({"select_columns": [0], "column_defaults": [0, 0]}, "must have same length"),
    ],
)
def test_columns_that_do_not_fit_are_refused(tmp_path, options, told):
    (tmp_path / "a").write_text("x,y\n1,2\n")
    with pytest.raises(ValueError, match=told):
        experimental.make_csv_dataset(str(tmp_path / "a"), 1, **options)


def test_headers_must_agree(tmp_path):
    (tmp_path / "a").write_text("x,y\n1,2\n")
    (tmp_path / "b").write_text("x,z\n1,2\n")
    with pytest.raises(ValueError, match="Files have different column names in the header row"):
        experimental.make_csv_dataset(str(tmp_path / "*"), 1)
    (tmp_path / "b").write_text("")
    with pytest.raises(ValueError, match="Empty file"):
        experimental.make_csv_dataset(str(tmp_path / "*"), 1)


def test_a_reader_of_queues_is_no_reader_of_datasets(tmp_path):
    with pytest.raises(TypeError, match="`tf.ReaderBase` subclasses are not supported"):
        experimental.make_batched_features_dataset(str(tmp_path / "*"), 1, {}, reader=tf.TFRecordReader)
