import tensorfleet as tf
from tensorfleet_legacy.testing import reader_dataset_ops_test_base as reader_datasets


def case(base):
    class Case(base):
        def runTest(self):
            pass

    result = Case()
    result.setUp()
    return result


def test_records_of_one_length_are_read_without_header_and_footer():
    test = case(reader_datasets.FixedLengthRecordDatasetTestBase)
    files = test._createFiles()
    dataset = tf.data.FixedLengthRecordDataset(files, 3, 5, 2)
    expected = [test._record(f, r) for f in range(2) for r in range(7)]
    test.assertDatasetProduces(dataset, expected)


def test_lines_are_read_whatever_ends_them():
    test = case(reader_datasets.TextLineDatasetTestBase)
    files = test._createFiles(2, 3, crlf=True, compression_type="GZIP")
    expected = [test._lineText(f, line) for f in range(2) for line in range(3)]
    test.assertDatasetProduces(tf.data.TextLineDataset(files, "GZIP"), expected)


def test_batches_of_records_are_those_expected():
    test = case(reader_datasets.TFRecordDatasetTestBase)
    dataset = tf.data.TFRecordDataset(test.test_filenames).repeat(2).batch(4)
    outputs = test.getNext(dataset)
    test._verify_records(outputs, 4, None, 2, 1, False, False)


def test_batches_of_examples_are_those_expected():
    test = case(reader_datasets.MakeBatchedFeaturesDatasetTestBase)
    test.outputs = test.getNext(
        test.make_batch_feature(test.test_filenames, num_epochs=2, batch_size=3, label_key="label")
    )
    test.verify_records(3, num_epochs=2, label_key_provided=True, interleave_cycle_length=1)
    assert test._sum_keywords(2) == 21
