"""`tensorfleet explain` and `tensorfleet doctor`."""

from cryptography import x509
from typer.testing import CliRunner

from tensorfleet.cli import doctor, explain_passes
from tensorfleet.cli.command import app
from tensorfleet.cli.engines import kubernetes_doctor
from tensorfleet.passes import pipeline
from tensorfleet.passes.plan import PartKind
from tests.support.launching import run

SCRIPT = """
import tensorflow as tf
tf.app.flags.DEFINE_string("ps_hosts", "", "")
tf.app.flags.DEFINE_string("worker_hosts", "", "")
tf.app.flags.DEFINE_string("job_name", "", "")
tf.app.flags.DEFINE_integer("task_index", 0, "")
FLAGS = tf.app.flags.FLAGS
cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
server = tf.train.Server(cluster, FLAGS.job_name, FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(cluster=cluster)):
    w = tf.Variable(1.0, name="w")
    y = tf.square(w, name="y")
try:
    with tf.train.MonitoredTrainingSession(server.target) as sess:
        sess.run(y)
except Exception:
    print("nobody stops this")
print("never trained")
"""


def test_explain_shows_where_operations_go_and_runs_none(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    done = run(tmp_path, "explain", "train.py")
    assert done.code == 0, done.stderr
    rows = {line.split()[0]: line.split()[1:3] for line in done.stdout.splitlines()}
    assert rows["w"] == ["VariableV2", "/job:ps/task:0/device:CPU:0"]
    assert rows["y"] == ["Square", "/job:worker/task:0/device:CPU:0"]
    assert "never trained" not in done.stdout


def test_explain_of_a_script_without_a_cluster(tmp_path):
    (tmp_path / "train.py").write_text(
        "import sys, tensorflow as tf\nsess = tf.InteractiveSession()\nx = tf.constant(1.0, name=sys.argv[1])\n"
        "sess.run(x)\nprint('never run')\n"
    )
    done = run(tmp_path, "explain", "train.py", "--", "hello")
    assert done.code == 0, done.stderr
    assert done.stdout.splitlines()[1].split() == ["hello", "Const", "/device:CPU:0", "default"]


def rows_of_passes(text):
    """The lines of the table of passes: name, operations before and after, words."""
    lines = [line.split(maxsplit=3) for line in text.splitlines()[2:]]
    assert lines[0] == ["pass", "before", "after", "what it did"]
    return {name: (int(before), int(after), words) for name, before, after, words in lines[1:]}


def test_explain_shows_what_each_pass_does_to_the_training_step(tmp_path):
    (tmp_path / "train.py").write_text(
        "import tensorflow as tf\n"
        "x = tf.placeholder(tf.float32, [None, 3])\n"
        "w = tf.Variable(tf.zeros([3, 1]))\n"
        "loss = tf.reduce_sum(tf.matmul(x, w) * tf.constant(2.0))\n"
        "train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)\n"
        "with tf.Session() as sess:\n"
        "    sess.run(tf.global_variables_initializer())\n"
        "    print('never run')\n"
    )
    done = run(tmp_path, "explain", "--passes", "train.py")
    assert done.code == 0, done.stderr
    assert done.stdout.splitlines()[0] == "The training step (GradientDescent):"
    rows = rows_of_passes(done.stdout)
    assert list(rows) == [one.name for one in pipeline.LOCAL]
    before, after, words = rows["prune"]
    assert after < before and words == f"kept {after} of {before} operations"
    before, after, words = rows["fold"]
    assert words == f"folded {before - after} constants"
    assert rows["control"][2] == "nothing to do" and rows["fuse"][2] == "1 segment"
    assert "never run" not in done.stdout


def test_explain_shows_the_passes_of_the_first_run_where_nothing_is_trained(tmp_path):
    (tmp_path / "count.py").write_text(
        "import tensorflow as tf\n"
        "n = tf.while_loop(lambda i: i < 5, lambda i: i + 1, [tf.placeholder_with_default(0, [])])\n"
        "words = tf.as_string(n)\n"
        "tf.Session().run(words)\n"
    )
    done = run(tmp_path, "explain", "--passes", "count.py")
    assert done.code == 0, done.stderr
    assert done.stdout.splitlines()[0] == "The first run of a session:"
    rows = rows_of_passes(done.stdout)
    assert rows["control"][2].startswith("made 1 loop of ")
    assert rows["loops"][2].startswith("planned 1 loop: ")
    assert rows["fuse"][2].endswith("1 host op, 1 loop")


def test_explain_shows_the_passes_of_a_cluster(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    done = run(tmp_path, "explain", "--passes", "train.py")
    assert done.code == 0, done.stderr
    rows = rows_of_passes(done.stdout)
    assert list(rows) == [one.name for one in pipeline.CLUSTER]
    assert rows["place"][2] == "placed on 2 devices" and "stages on 2 tasks" in rows["partition"][2]


def test_explain_has_words_for_every_pass():
    assert {one.name for one in (*pipeline.LOCAL, *pipeline.CLUSTER)} == set(explain_passes._WORDS)
    assert set(explain_passes._PARTS) == set(PartKind) - {PartKind.ALONE, PartKind.VARYING}


def test_the_doctor_has_a_verdict_per_line(tmp_path):
    done = run(tmp_path, "doctor")
    assert done.code == 0, done.stdout
    by_name = {line.split()[1]: line.split()[0] for line in done.stdout.splitlines()}
    for part in ("Python", "jax", "devices", "ports", "token", "clock", "bandwidth", "round"):
        assert by_name[part] in ("ok", "warning")


def test_the_doctor_finds_a_token_that_others_can_read(tmp_path, monkeypatch):
    path = tmp_path / "token"
    path.write_text("secret")
    path.chmod(0o644)
    monkeypatch.delenv("TENSORFLEET_TOKEN", raising=False)
    monkeypatch.setenv("TENSORFLEET_TOKEN_FILE", str(path))
    (finding,) = doctor._token()
    assert finding.verdict == "bad" and finding.advice == f"chmod 600 {path}"
    path.chmod(0o600)
    assert next(doctor._token()).verdict == "ok"
    path.unlink()
    assert next(doctor._token()).verdict == "bad"


def test_a_check_that_fails_is_a_finding(monkeypatch):
    def broken():
        raise OSError("no such thing")
        yield

    (finding,) = doctor._guarded(broken)
    assert (finding.verdict, finding.found) == ("bad", "OSError: no such thing")


def test_certificates_are_made_and_made_again_by_the_same_authority(tmp_path):
    result = run(tmp_path, "certs", "certs", "ps0.example", "10.0.0.7")
    assert result.code == 0, result.stderr
    assert "TENSORFLEET_TLS=certs" in result.stdout
    authority, server = (tmp_path / "certs" / "ca.pem").read_text(), tmp_path / "certs" / "server.pem"
    names = x509.load_pem_x509_certificate(server.read_bytes()).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert names.value.get_values_for_type(x509.DNSName) == ["ps0.example", "localhost"]
    assert [str(a) for a in names.value.get_values_for_type(x509.IPAddress)] == [
        "10.0.0.7",
        "127.0.0.1",
        "::1",
    ]
    assert all(p.stat().st_mode & 0o077 == 0 for p in (tmp_path / "certs").iterdir())
    first = server.read_text()
    assert run(tmp_path, "certs", "certs", "ps1.example").code == 0
    assert server.read_text() != first and (tmp_path / "certs" / "ca.pem").read_text() == authority
    bad = run(tmp_path, "certs", "certs", "not a host")
    assert bad.code == 1 and "neither a host name nor an address" in bad.stderr


def test_certificates_without_the_cryptography_package_name_the_extra_to_install(tmp_path):
    (tmp_path / "cryptography.py").write_text("raise ModuleNotFoundError('hidden')")
    done = run(tmp_path, "certs", "certs", PYTHONPATH=str(tmp_path))
    assert done.code == 1 and "cryptography package is not installed" in done.stderr
    assert "pip install 'tensorfleet[certs]'" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "certs").exists()


def test_the_doctor_looks_into_the_namespace_that_a_run_would_use(monkeypatch):
    asked = []
    monkeypatch.setattr(kubernetes_doctor, "check", lambda *where: asked.append(where) or iter(()))
    arguments = ["doctor", "--on", "kubernetes", "--address", "mine", "--namespace", "ml"]
    CliRunner().invoke(app, arguments)
    assert asked == [("mine", "ml")]


def test_only_kubernetes_has_a_namespace_to_check():
    done = CliRunner().invoke(app, ["doctor", "--on", "ray", "--namespace", "ml"], env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert "Only Kubernetes has namespaces. Add --on kubernetes." in done.output
