"""A real private Slurm on this machine: its own munged, one controller, and two nodes, n1 and n2.

    python -m tests.engines.slurm_cluster FOLDER

It prints "ready", takes commands as lines ("kill n2", "start n2"), answers each with a line, and ends the cluster with
its standard input: also when the tests are killed.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from tests.support.launching import launched

SECONDS = 60
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "salloc", "sbatch", "scontrol")
NODES = ("n1", "n2")
CPUS = 4
_MARK = "TENSORFLEET_TEST_SLURM"
# More CPUs and less memory than there may be here: nothing depends on the machine.
_CONFIG = """
ClusterName=private
SlurmctldHost=localhost(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={ports[0]}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
StateSaveLocation={folder}/state
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/%n.log
SlurmdSpoolDir={folder}/%n
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=100
SlurmdParameters=config_overrides
SchedulerParameters=bf_interval=1
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
GresTypes=gpu
ReturnToService=2
SlurmdTimeout=6
KillWait=4
JobRequeue=1
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[1]} CPUs={cpus} RealMemory=4000 Gres=gpu:2
NodeName=n2 NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[2]} CPUs={cpus} RealMemory=4000 Gres=gpu:2
PartitionName=main Nodes=n1,n2 Default=YES PriorityTier=1 State=UP
PartitionName=urgent Nodes=n1,n2 PriorityTier=9 State=UP
"""


#: a script for TensorFlow whose workers add to one variable on the ps until it is large
TRAIN = """
import os, sys, time
import tensorflow as tf
tf.app.flags.DEFINE_string("ps_hosts", "", "")
tf.app.flags.DEFINE_string("worker_hosts", "", "")
tf.app.flags.DEFINE_string("job_name", "", "")
tf.app.flags.DEFINE_integer("task_index", 0, "")
tf.app.flags.DEFINE_float("until", 20.0, "")
tf.app.flags.DEFINE_string("train_dir", None, "")
FLAGS = tf.app.flags.FLAGS
cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
print("on", os.environ["SLURMD_NODENAME"], flush=True)
if FLAGS.job_name == "ps":
    server.join()
else:
    with tf.device("/job:ps/task:0"):
        step = tf.train.get_or_create_global_step()
        more = tf.assign_add(step, 1)
    with tf.train.MonitoredTrainingSession(
        server.target, is_chief=FLAGS.task_index == 0, checkpoint_dir=FLAGS.train_dir, save_checkpoint_secs=1
    ) as sess:
        print("began at", sess.run(step), flush=True)
        while not sess.should_stop() and sess.run(more) < FLAGS.until:
            time.sleep(0.02)
    print("trained", flush=True)
"""
#: as many additions as never come
FOREVER = "--until=1e9"


def is_installed() -> bool:
    """Whether this machine has what the cluster needs."""
    return all(shutil.which(name, path=_path()) for name in PROGRAMS)


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


class SlurmCluster:
    """The cluster, from the outside."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": _path()}
        # Only n1 has what is in here: n2 has a folder of its own under that name.
        self.own_folder = self.folder / "own"
        self.own_folder.mkdir()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.engines.slurm_cluster", str(self.folder)],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PATH": _path(), _MARK: self.folder.name},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer()
        wait_until(lambda: self.tell("sinfo", "-h", "-o", "%T") == "idle", "idle nodes", self.explain)

    def tell(self, *command: str) -> str:
        """What a command of Slurm's prints."""
        done = subprocess.run(
            command, env={**os.environ, **self.environment}, capture_output=True, text=True, timeout=SECONDS
        )
        return done.stdout.strip()

    def jobs(self) -> str:
        """What is in the queue, with its state."""
        return self.tell("squeue", "--noheader", "--states=all", "--format=%i %T")

    def busy(self) -> str:
        """The jobs that are waiting or running."""
        return self.tell("squeue", "--noheader", "--format=%i %T")

    def numbers(self) -> set[str]:
        """Those of the jobs that are waiting or running."""
        return set(self.tell("squeue", "--noheader", "--format=%A").split())

    def kill_node(self, name: str) -> None:
        """Ends a node as a machine ends that loses its power."""
        self._ask(f"kill {name}")

    def start_node(self, name: str) -> None:
        """Brings it back."""
        self._ask(f"start {name}")
        wait_until(lambda: "idle" in self.tell("sinfo", "-h", "-n", name, "-o", "%T"), f"{name} to be idle")

    @contextlib.contextmanager
    def allocation(self, *options: str, parts: int = 1) -> Iterator[dict[str, str]]:
        """An allocation of the user's: the variables that a shell of salloc's would have."""
        done = subprocess.run(
            ["salloc", "--no-shell", *options],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert "Granted job allocation" in done.stderr, done.stderr
        job = int(done.stderr.split("Granted job allocation ")[1].split()[0])
        parted = {f"SLURM_JOB_ID_HET_GROUP_{n}": str(job + n) for n in range(parts)} if parts > 1 else {}
        try:
            yield {"SLURM_JOB_ID": str(job), **({"SLURM_HET_SIZE": str(parts)} if parted else {}), **parted}
        finally:
            self.tell("scancel", str(job))
            own = {str(job + n) for n in range(parts)}
            wait_until(lambda: not own & self.numbers(), "the end of the allocation", self.jobs)

    def explain(self) -> str:
        """The ends of all logs."""
        logs = [
            f"{path.name}: {path.read_text(errors='replace')[-1500:]}" for path in self.folder.glob("*.log")
        ]
        return "\n".join([self.tell("sinfo", "-N", "-l"), self.jobs(), *logs])

    def close(self) -> None:
        """Ends every process of the cluster, and removes its folder."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(SECONDS)
        self._process.stdout.close()
        left = _processes_of(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        assert not left, f"processes of Slurm's are left: {left}"

    def _ask(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        self._answer()

    def _answer(self) -> None:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], SECONDS)[0]:
            raise AssertionError(f"no answer of the cluster's:\n{self.explain()}")
        assert self._process.stdout.readline(), f"the cluster has ended:\n{self.explain()}"


@contextlib.contextmanager
def slurm_cluster() -> Iterator[SlurmCluster]:
    """A cluster; at the end of the block nothing of it is left."""
    cluster = SlurmCluster()
    try:
        yield cluster
    finally:
        cluster.close()


def wait_until(condition: Callable[[], object], what: str, explain: Callable[[], object] = str) -> None:
    """Waits for something, with a deadline."""
    limit = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > limit:
            raise AssertionError(f"timed out waiting for {what}: {explain()}")
        time.sleep(0.05)


@contextlib.contextmanager
def started(cluster, project, *arguments, **environment):
    """A run on the cluster; at the end of the block neither tasks nor jobs of its own are left."""
    before = set(cluster.busy().splitlines())
    with launched(project, "run", "--on", "slurm", *arguments, **cluster.environment, **environment) as run:
        yield run
    wait_until(lambda: set(cluster.busy().splitlines()) <= before, "the end of the run's jobs", cluster.jobs)
    wait_until(lambda: not _steps(cluster), "the end of all steps", lambda: _steps(cluster))


def _steps(cluster):
    """The steps that Slurm knows, but for those of a node that is down: it has not told their end."""
    down = {
        line.split()[0] for line in cluster.tell("sinfo", "-hN", "-o", "%N %T").splitlines() if "down" in line
    }
    steps = cluster.tell("squeue", "--steps", "--noheader", "--format=%N %i %j").splitlines()
    return [step for step in steps if step.split()[0] not in down]


# -- the process that owns the cluster ---------------------------------------------------------------


class _Owner:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._daemons: list[subprocess.Popen[bytes]] = []
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}

    def begin(self) -> None:
        folder = self._folder
        ports = _free_ports(3)
        folder.chmod(0o755)
        for name in ("state", *NODES):
            (folder / name).mkdir()
        (folder / "slurm.conf").write_text(
            _CONFIG.format(folder=folder, user=getpass.getuser(), ports=ports, cpus=CPUS)
        )
        (folder / "gres.conf").write_text(f"AutoDetect=off\nName=gpu File={folder}/gpu[0-1]\n")
        for number in range(2):
            (folder / f"gpu{number}").touch()
        key = folder / "munge.key"
        key.write_bytes(os.urandom(64))
        key.chmod(0o400)
        self._start("munged", "--foreground", "--force", f"--key-file={key}", *self._munge_files())
        wait_until((folder / "munge.socket").exists, "munged", self._errors)
        self._start("slurmctld", "-D", "-f", str(folder / "slurm.conf"))
        for name in NODES:
            self.start(name)

    def start(self, name: str) -> None:
        """A node. The second one has a folder of its own where the first has the cluster's."""
        command = ["slurmd", "-D", "-N", name, "-f", str(self._folder / "slurm.conf")]
        if name == NODES[1] and os.geteuid() == 0:
            inside = f'mount -t tmpfs none {self._folder}/own && exec "$@"'
            command = ["unshare", "--mount", "sh", "-c", inside, "sh", *command]
        self._nodes[name] = self._start(*command)

    def kill(self, name: str) -> None:
        """Everything of Slurm's that runs on a node; what its tasks do about that is theirs."""
        self._nodes[name].kill()
        self._nodes[name].wait(SECONDS)
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.name().startswith("slurmstepd") and _logs_to(
                    process, f"{self._folder}/{name}.log"
                ):
                    process.kill()

    def end(self) -> None:
        """Everything, without asking."""
        subprocess.run(
            ["scancel", "--full", "--user", getpass.getuser()], timeout=SECONDS, capture_output=True
        )
        limit = time.monotonic() + 15
        while (
            time.monotonic() < limit
            and subprocess.run(["squeue", "--noheader"], capture_output=True, timeout=SECONDS).stdout.strip()
        ):
            time.sleep(0.1)
        for daemon in reversed(self._daemons):
            with contextlib.suppress(ProcessLookupError):
                daemon.send_signal(signal.SIGTERM)
        for daemon in reversed(self._daemons):
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait(SECONDS)
        for process in _processes_of(self._folder):
            with contextlib.suppress(psutil.Error):
                process.kill()
                process.wait(10)

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        with (self._folder / f"{command[0]}.out.log").open("ab") as output:
            daemon = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=self._folder
            )
        self._daemons.append(daemon)
        return daemon

    def _munge_files(self) -> list[str]:
        names = {
            "socket": "munge.socket",
            "pid-file": "munged.pid",
            "log-file": "munged.log",
            "seed-file": "munge.seed",
        }
        return [f"--{option}={self._folder / name}" for option, name in names.items()]

    def _errors(self) -> str:
        return "\n".join(path.read_text() for path in self._folder.glob("*.out.log"))


def _processes_of(folder: Path) -> list[psutil.Process]:
    """What logs into the cluster's folder: the steps too, which are no children of anybody here."""
    result = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            name = process.name()
            if name.startswith(("slurm", "munged")) and _logs_to(process, str(folder)):
                result.append(process)
    return result


def _logs_to(process: psutil.Process, prefix: str) -> bool:
    links = Path(f"/proc/{process.pid}/fd").iterdir()
    return any(os.readlink(link).startswith(prefix) for link in links)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]


def main() -> None:
    """Runs a cluster until standard input ends."""
    folder = Path(sys.argv[1])
    os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
    owner = _Owner(folder)
    try:
        owner.begin()
        print("ready", flush=True)
        for line in sys.stdin:
            command, name = line.split()
            (owner.kill if command == "kill" else owner.start)(name)
            print("done", flush=True)
    finally:
        owner.end()


if __name__ == "__main__":
    main()
