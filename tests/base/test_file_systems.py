"""Files behind URLs: everything that reads or writes files takes them, through fsspec."""

import errno
import gzip
import subprocess
import sys
import uuid

import fsspec
import pytest

import tensorfleet as tf
from tensorfleet.base.file_systems import file_system, scheme_of


@pytest.fixture(params=["memory", "file"])
def root(request, tmp_path):
    """A directory of its own in a store, or on this machine by URL."""
    if request.param == "file":
        yield f"file://{tmp_path}"
        return
    place = f"memory://{uuid.uuid4().hex}"
    tf.gfile.MakeDirs(place)
    yield place
    fsspec.filesystem("memory").rm(place, recursive=True)


def written(path, content):
    with tf.gfile.GFile(path, "wb") as file:
        file.write(content)
    return path


def content_of(path):
    with tf.gfile.GFile(path, "rb") as file:
        return file.read()


def names(paths):
    return sorted(path.rpartition("/")[2] for path in paths)


def test_a_file_is_written_read_and_appended_to(root):
    path = written(f"{root}/a.txt", b"one\ntwo\n")
    with tf.gfile.GFile(path, "a") as file:
        file.write("three\n")
    with tf.gfile.GFile(path) as file:
        assert list(file) == ["one\n", "two\n", "three\n"]
        file.seek(4)
        assert (file.readline(), file.tell(), file.size()) == ("two\n", 8, 14)
    assert tf.gfile.Stat(path).length == 14 and not tf.gfile.Stat(path).is_directory


def test_what_was_flushed_can_be_read_before_the_file_is_closed(root):
    with tf.gfile.GFile(f"{root}/log", "w") as file:
        file.write("first")
        file.flush()
        assert content_of(f"{root}/log") == b"first"
        file.write(" second")
    assert content_of(f"{root}/log") == b"first second"


def test_directories_are_made_listed_walked_and_removed(root):
    tf.gfile.MakeDirs(f"{root}/a/b")
    written(f"{root}/a/b/deep", b"1")
    written(f"{root}/a/top", b"2")
    assert tf.gfile.IsDirectory(f"{root}/a") and not tf.gfile.IsDirectory(f"{root}/a/top")
    assert names(tf.gfile.ListDirectory(f"{root}/a")) == ["b", "top"]
    walked = {
        folder.rpartition("/")[2]: (folders, files) for folder, folders, files in tf.gfile.Walk(f"{root}/a")
    }
    assert walked == {"a": (["b"], ["top"]), "b": ([], ["deep"])}
    tf.gfile.DeleteRecursively(f"{root}/a")
    assert not tf.gfile.Exists(f"{root}/a/b/deep")


def test_paths_that_match_a_pattern_can_be_opened(root):
    for name in ("b.txt", "a.txt", "c.csv"):
        written(f"{root}/{name}", name.encode())
    glob = tf.gfile.Glob(f"{root}/*.txt")
    assert [content_of(path) for path in glob] == [b"a.txt", b"b.txt"]
    assert all(scheme_of(path) == scheme_of(root).replace("file", "") for path in glob)


def test_files_are_copied_and_renamed_and_never_over_another_unasked(root):
    first, second = written(f"{root}/first", b"1"), written(f"{root}/second", b"2")
    for operation in (tf.gfile.Copy, tf.gfile.Rename):
        with pytest.raises(tf.errors.AlreadyExistsError):
            operation(first, second)
    tf.gfile.Copy(first, second, overwrite=True)
    assert content_of(second) == b"1"
    tf.gfile.Rename(second, f"{root}/third")
    assert not tf.gfile.Exists(second) and content_of(f"{root}/third") == b"1"


def test_files_are_copied_from_one_file_system_to_another_and_not_renamed(root, tmp_path):
    other = str(tmp_path / "here") if "memory" in root else f"memory://{uuid.uuid4().hex}"
    tf.gfile.Copy(written(f"{root}/there", b"content"), other)
    assert content_of(other) == b"content"
    with pytest.raises(tf.errors.UnimplementedError, match="in two file systems"):
        tf.gfile.Rename(other, f"{root}/again")
    tf.gfile.Remove(other)


def test_missing_files_are_not_found(root):
    for operation in (tf.gfile.Remove, tf.gfile.Stat, tf.gfile.ListDirectory, content_of):
        with pytest.raises(tf.errors.NotFoundError):
            operation(f"{root}/nothing")
    with pytest.raises(tf.errors.NotFoundError):
        tf.gfile.Copy(f"{root}/nothing", f"{root}/somewhere")
    assert not tf.gfile.Exists(f"{root}/nothing") and tf.gfile.Glob(f"{root}/nothing*") == []


def test_checkpoints_are_saved_listed_restored_and_deleted(root, session):
    w = tf.Variable([1.0, 2.0], name="w")
    saver = tf.train.Saver(max_to_keep=2)
    session.run(w.initializer)
    for step in range(4):
        path = saver.save(session, f"{root}/model", global_step=step)
    assert path == f"{root}/model-3" and tf.train.latest_checkpoint(root) == path
    assert names(tf.gfile.Glob(f"{root}/*.index")) == ["model-2.index", "model-3.index"]
    session.run(w.assign([0.0, 0.0]))
    saver.restore(session, tf.train.latest_checkpoint(root))
    assert session.run(w).tolist() == [1.0, 2.0]
    assert dict(tf.train.list_variables(path)) == {"w": [2]}


def test_a_checkpoint_saved_again_under_its_name_is_replaced(root, session):
    w = tf.Variable(1.0, name="w")
    saver = tf.train.Saver(sharded=True)
    session.run(w.initializer)
    for value in (1.0, 2.0, 3.0):
        session.run(w.assign(value))
        saver.save(session, f"{root}/model", write_meta_graph=False)
    assert names(tf.gfile.Glob(f"{root}/model*")) == ["model.data-00000-of-00001", "model.index"]
    session.run(w.assign(0.0))
    saver.restore(session, f"{root}/model")
    assert session.run(w) == 3.0


def test_training_goes_on_from_a_checkpoint_directory(root):
    def train(last):
        with tf.Graph().as_default():
            step = tf.train.get_or_create_global_step()
            more = tf.assign_add(step, 1)
            hook = tf.train.StopAtStepHook(last_step=last)
            with tf.train.MonitoredTrainingSession(checkpoint_dir=f"{root}/run", hooks=[hook]) as sess:
                first = sess.run(step)
                while not sess.should_stop():
                    sess.run(more)
        return first

    assert (train(3), train(5)) == (0, 3)


def test_records_are_written_and_read_by_datasets_and_readers(root, session):
    path = f"{root}/data.tfrecord"
    with tf.python_io.TFRecordWriter(path, tf.io.TFRecordOptions(compression_type="GZIP")) as writer:
        for i in range(3):
            writer.write(b"record %d" % i)
    records = tf.data.TFRecordDataset(path, "GZIP").batch(3).make_one_shot_iterator().get_next()
    assert session.run(records).tolist() == [b"record 0", b"record 1", b"record 2"]
    lines = tf.data.TextLineDataset(written(f"{root}/lines", b"a\nb\n")).batch(2)
    assert session.run(lines.make_one_shot_iterator().get_next()).tolist() == [b"a", b"b"]


def test_datasets_are_cached_there(root, session):
    numbers = tf.data.Dataset.range(3).cache(f"{root}/cache/numbers").batch(3).repeat(2)
    for _ in ("written", "read"):
        batch = numbers.make_one_shot_iterator().get_next()
        assert [session.run(batch).tolist() for _ in range(2)] == [[0, 1, 2]] * 2
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(batch)
    assert names(tf.gfile.Glob(f"{root}/cache/*")) == ["numbers.records"]


def test_estimators_train_export_and_go_on_there(root):
    def model(features, labels, mode):
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        loss = tf.square(w - 1.0)
        step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(0.5).minimize(loss, step)
        return tf.estimator.EstimatorSpec(
            mode,
            {"w": w},
            loss,
            train,
            export_outputs={
                "serving_default": tf.estimator.export.PredictOutput({"w": w + 0 * features["x"]})
            },
        )

    def data():
        return tf.data.Dataset.from_tensors(({"x": [1.0]}, [1.0])).repeat()

    for steps in (2, 4):
        estimator = tf.estimator.Estimator(model, f"{root}/run")
        estimator.train(data, max_steps=steps)
        assert estimator.get_variable_value("global_step") == steps
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.placeholder(tf.float32, [1])})
    folder = estimator.export_saved_model(f"{root}/export", receiver)
    assert tf.saved_model.maybe_saved_model_directory(folder)


def test_files_are_read_and_written_by_operations(root, session):
    session.run(tf.write_file(f"{root}/new/file", b"content"))
    assert session.run(tf.read_file(f"{root}/new/file")) == b"content"
    result = session.run(tf.matching_files(f"{root}/new/*"))
    assert names(path.decode() for path in result) == ["file"]


def test_vocabularies_are_read_by_tables(root, session):
    path = written(f"{root}/words", b"zero\none\n")
    table = tf.contrib.lookup.index_table_from_file(path)
    session.run(tf.tables_initializer())
    assert session.run(table.lookup(tf.constant(["one", "none"]))).tolist() == [1, -1]


def test_summaries_can_be_read_after_a_flush(root):
    with tf.summary.FileWriter(f"{root}/logs") as writer:
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=2.0)]), 7)
        writer.flush()
        (path,) = tf.gfile.Glob(f"{root}/logs/*")
        assert [event.step for event in tf.train.summary_iterator(path)] == [0, 7]


def test_models_are_exported_and_loaded(root, session):
    x = tf.placeholder(tf.float32, [])
    w = tf.Variable(3.0)
    session.run(w.initializer)
    asset = written(f"{root}/asset", b"words")
    tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, tf.constant(asset))
    builder = tf.saved_model.Builder(f"{root}/export")
    signature = tf.saved_model.predict_signature_def({"x": x}, {"y": x * w})
    builder.add_meta_graph_and_variables(
        session,
        ["serve"],
        {"serving_default": signature},
        assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
    )
    builder.save()
    assert content_of(f"{root}/export/assets/asset") == b"words"
    with tf.Session(graph=tf.Graph()) as other:
        loaded = tf.saved_model.load(other, ["serve"], f"{root}/export").signature_def["serving_default"]
        assert other.run(loaded.outputs["y"].name, {loaded.inputs["x"].name: 2.0}) == 6.0


def test_columns_of_packed_csv_files_are_found(root, session):
    path = written(f"{root}/data.csv.gz", gzip.compress(b"a,b\n1,x\n"))
    data = tf.data.experimental.make_csv_dataset(path, 1, compression_type="GZIP", num_epochs=1)
    row = session.run(data.make_one_shot_iterator().get_next())
    assert (row["a"].tolist(), row["b"].tolist()) == ([1], [b"x"])


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("gs://bucket/x", "pip install gcsfs"),
        ("s3://bucket/x", "pip install s3fs"),
        ("lakefs://x/y", "lakefs-spec"),
        ("nonsense://x", "Protocol not known: nonsense. Copy it to a local or mounted path"),
    ],
)
def test_a_missing_driver_is_named_with_the_package_to_install(url, advice, monkeypatch):
    for module in ("gcsfs", "s3fs", "lakefs_spec"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        tf.errors.UnimplementedError, match=f"File system scheme '{scheme_of(url)}'"
    ) as raised:
        tf.gfile.Exists(url)
    assert advice in raised.value.message and url in raised.value.message


def test_without_fsspec_the_extra_to_install_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(tf.errors.UnimplementedError, match=r"pip install 'tensorfleet\[remote\]' gcsfs"):
        tf.gfile.Exists("gs://bucket/x")


def test_failures_of_drivers_are_tensorflows_errors(monkeypatch):
    class NetworkError(Exception):
        """What a library below a driver raises."""

    def fails(kind):
        def info(self, path, **kwargs):
            raise kind("the store says no\nwith a long trace")

        monkeypatch.setattr("fsspec.implementations.memory.MemoryFileSystem.info", info)

    for kind, expected in (
        (NetworkError, tf.errors.UnknownError),
        (PermissionError, tf.errors.PermissionDeniedError),
    ):
        fails(kind)
        with pytest.raises(expected, match="memory://x") as raised:
            tf.gfile.Stat("memory://x")
        assert "trace" not in raised.value.message


def test_urls_within_urls_are_paths_of_this_machine():
    """fsspec would take apart `simplecache::s3://...`, by which one URL opens another."""
    with pytest.raises(OSError) as raised:
        file_system("simplecache::memory://x").open("simplecache::memory://x", "rb")
    assert raised.value.errno == errno.ENOENT


def test_fsspec_is_imported_only_for_urls():
    program = "import sys, tensorfleet as tf; tf.gfile.Exists('/tmp'); print('fsspec' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "False"
