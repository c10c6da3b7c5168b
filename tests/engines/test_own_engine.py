"""The engine of one's own in examples/, with a real mpirun."""

import shutil
import signal
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tensorfleet.cli.engines import registry
from tensorfleet.cli.engines.base import EngineError, RunOptions
from tests.support.launching import launched, run

pytestmark = pytest.mark.engines

EXAMPLES = Path(__file__).parents[2] / "examples"
RUN = (
    "run",
    "--on",
    "mpi",
    "--dashboard",
    "off",
    "--ps",
    "1",
    "--workers",
    "2",
    str(EXAMPLES / "mnist_replica.py"),
)


@pytest.fixture
def environment(tmp_path):
    """A package with the entry point, as another distribution would install it."""
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed: run tools/engines.sh")
    installed = tmp_path / "site" / "mpi_engine-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: mpi-engine\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[tensorfleet.engines]\nmpi = mpi_engine:MpiEngine\n")
    return {
        "PYTHONPATH": f"{installed.parent}:{EXAMPLES / 'engines'}",
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        # Open MPI refuses root, as whom CI may run, unless it is told twice.
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }


def test_a_training_by_mpirun_reaches_its_target(environment, tmp_path):
    done = run(tmp_path, *RUN, **environment)
    assert done.code == 0, done.stdout + done.stderr
    assert "Final validation accuracy 0.9" in done.stdout


def test_an_interrupted_run_by_mpirun_leaves_nothing(environment, tmp_path):
    with launched(tmp_path, *RUN, **environment) as running:
        running.read_until("global step")
        running.process.send_signal(signal.SIGINT)
        assert running.end().code == 130


def test_a_killed_launcher_leaves_no_task_of_mpirun(environment, tmp_path):
    with launched(tmp_path, *RUN, **environment) as running:
        running.read_until("global step")
        running.process.kill()


def test_an_unknown_engine_is_named_with_those_that_there_are(monkeypatch):
    entry = EntryPoint("mpi", "mpi_engine:MpiEngine", registry.ENTRY_POINTS)
    monkeypatch.setattr(registry, "entry_points", lambda group, name=None: [entry] * (name in (None, "mpi")))
    assert "mpi" in registry.names()
    with pytest.raises(EngineError, match="No engine is named 'mpii'. Did you mean mpi"):
        registry.make_engine("mpii", RunOptions("x", Path("x.py")))
