"""`tf.train.Server`: one task of a cluster, listening at its address."""

from __future__ import annotations

import atexit
import contextlib
import json
import secrets
import signal
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorfleet.base import counters, errors, logging, settings
from tensorfleet.base.naming import export
from tensorfleet.cluster import messages, process_servers
from tensorfleet.cluster.durability import stale_reads
from tensorfleet.cluster.durability.replica import Replica
from tensorfleet.cluster.durability.role import State
from tensorfleet.cluster.durability.told_places import told_places
from tensorfleet.cluster.inspection import signal_report, topics
from tensorfleet.cluster.master.placer import task_name
from tensorfleet.cluster.membership import address_rewriting, orphan, shutdown
from tensorfleet.cluster.membership.server_def import server_def_of
from tensorfleet.cluster.membership.spec import ClusterSpec
from tensorfleet.cluster.messages import AGAIN, OK, RETURN, RUN, TRACED, VERSIONS, Run
from tensorfleet.cluster.transport import binding, connection, moved_addresses, peers, tls, wire
from tensorfleet.cluster.transport.listener import Listener
from tensorfleet.cluster.transport.token import token
from tensorfleet.cluster.transport.traffic import ServedTraffic
from tensorfleet.cluster.worker.boards import show_board
from tensorfleet.cluster.worker.cores import share_cores
from tensorfleet.cluster.worker.pending_replies import PendingReply, told_versions
from tensorfleet.cluster.worker.short_requests import ShortRequests
from tensorfleet.cluster.worker.stage_tracing import StageTracing
from tensorfleet.cluster.worker.stages import SHORT_SECONDS
from tensorfleet.cluster.worker.worker import Worker
from tensorfleet.runtime import recording
from tensorfleet.runtime.shared_memory import shared_variables
from tensorfleet.runtime.variable_versions import VariableVersions

if TYPE_CHECKING:
    from tensorfleet.base.protos import ConfigProto, ServerDef
    from tensorfleet.cluster.membership.spec import ClusterLike
    from tensorfleet.runtime.resources import ResourceManager

_LEAVING_SECONDS = 1.0  # for the other connections of a client that has gone to close by themselves
_CLIENT_SILENCE_FACTOR = 8  # times the silence allowed to a task: a client may be busy computing
# What a server that does not lead its task refuses.
_FOR_LEADERS = {messages.REGISTER, messages.PUSH, messages.RESET, messages.DESCRIBE}


def serve_on() -> None:
    """Keeps this process as the parameter server it was launched as when its script has ended, until the run is over.

    Others may still need what it holds: a chief saves after it has said that it is done.
    """
    task = settings.SERVES()
    for server in process_servers.servers():
        if task == f"{server.job}/{server.index}":
            server._notices.tell_others()
            server.join()


@export("train.Server", "distribute.Server")
class Server:
    """One task of a cluster. Sessions on its `target`, in any process, can use every task of the cluster.

    `server_or_cluster_def` is a `ClusterSpec` (or what makes one) or a `ServerDef`; `job_name` and `task_index` say
    which task this is, and may be left out when there is only one.
    """

    def __init__(
        self,
        server_or_cluster_def: ServerDef | ClusterLike,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: ConfigProto | None = None,
        start: bool = True,
    ) -> None:
        self._server_def = server_def_of(server_or_cluster_def, job_name, task_index, protocol, config)
        if self._server_def.protocol.partition("+")[0] != "grpc":
            raise errors.NotFoundError(
                None,
                None,
                f"No server factory registered for the given ServerDef: protocol {self._server_def.protocol!r} is not "
                "supported; leave it out.",
            )
        only_serves = address_rewriting.take_task_to_serve(self._server_def)
        self.job, self.index = self._server_def.job_name, self._server_def.task_index
        self.cluster = address_rewriting.here(ClusterSpec(self._server_def.cluster), self.job, self.index)
        self.task = task_name(self.job, self.index)
        self.config = self._server_def.default_session_config
        share_cores(self.cluster, self.job, self.index)
        self.worker = Worker(self.task, self.config)
        #: what makes this task durable, if it is
        self.replica: Replica | None = None
        self.incarnation = secrets.randbits(63)
        self._shorts = ShortRequests(self.worker, self._fail)
        self._stopping = threading.Event()
        self._channels: set[wire.Channel] = set()
        #: by the connection on which a client is watched: the tasks whose servers its process has
        self._clients: dict[wire.Channel, tuple[str, ...]] = {}
        self.served = ServedTraffic(self._channels, self._clients)
        self.joined = False
        self._notices = shutdown.ShutdownNotices(self)
        self._secret = token()
        self._tls = tls.for_server()
        self._sockets = self._bind()
        self._listener: Listener | None = None
        self._target = f"grpc://{self.cluster.task_address(self.job, self.index)}"
        process_servers.add(self)
        self._started = False
        if start and (places := told_places(self.task, self.cluster.task_address(self.job, self.index))):
            self.make_durable(places, State.WAITING)
        if start or only_serves:
            self.start()
        if only_serves:
            self.join()
            shutdown.end_script(0)

    @staticmethod
    def create_local_server(config: ConfigProto | None = None, start: bool = True) -> Server:
        """A server of its own little cluster: one job `local` with one task, at a free port of this machine."""
        return Server({"local": ["localhost:0"]}, protocol="grpc", config=config, start=start)

    @property
    def server_def(self) -> ServerDef:
        """What this server was made from, as a `ServerDef`."""
        return self._server_def

    @property
    def is_started(self) -> bool:
        """Whether it serves, or has served."""
        return self._started

    @property
    def target(self) -> str:
        """What to pass to `tf.Session`."""
        return self._target

    @property
    def resources(self) -> ResourceManager:
        """The variables and other state that live in this task."""
        return self.worker.resources

    def session_config(self, config: ConfigProto | None) -> ConfigProto:
        """The configuration of a session beside this server: its own wishes, this task's devices."""
        from tensorfleet.base.protos import ConfigProto

        used = ConfigProto()
        used.CopyFrom(self.config)
        if config is not None:
            used.MergeFrom(config)
            used.device_filters[:] = config.device_filters
        return used

    # -- listening ------------------------------------------------------------------------------------

    def _bind(self) -> list[socket.socket]:
        address = self.cluster.task_address(self.job, self.index)
        alone = sum(map(self.cluster.num_tasks, self.cluster.jobs)) <= 1
        sockets, address = binding.bind(self.task, address, alone)
        if address != self.cluster.task_address(self.job, self.index):
            self._rename(address)
        return sockets

    def _rename(self, address: str) -> None:
        """Puts the port that the system chose into the cluster."""
        jobs = self.cluster._jobs
        jobs[self.job][self.index] = address
        self._server_def.cluster.CopyFrom(self.cluster.as_cluster_def())

    def start(self) -> None:
        """Begins to serve. A server that was started is left as it is."""
        if self._stopping.is_set():
            raise errors.FailedPreconditionError(None, None, "The server was stopped; make a new one.")
        if self._started:
            return
        self._started = True
        shared_variables.begin()
        peers.serves(self.task)
        signal_report.install()
        atexit.register(self._notices.announce)
        # Only looked up: most programs never import multiprocessing.
        forked = sys.modules.get("multiprocessing.process")
        if forked is not None and forked.parent_process() is not None:
            from multiprocessing.util import Finalize

            # A process of multiprocessing ends by os._exit, which calls no atexit functions.
            Finalize(None, self._notices.announce, exitpriority=0)
        logging.info("Started server with target: %s", self._target)
        self._listener = Listener(
            self._sockets, self._secret, self._welcome, self._serve, _largest_frame(), self._tls, self.task
        )
        self._listener.start()

    def _welcome(self) -> messages.Welcome:
        jobs = {
            job: tasks if isinstance(tasks, list) else {str(i): address for i, address in tasks.items()}
            for job, tasks in self.cluster.as_dict().items()
        }
        replica = self.replica
        durable = () if replica is None else replica.told()
        return messages.Welcome(self.incarnation, self.task, self.job, self.index, jobs, *durable)

    def make_durable(self, places: list[str], state: State) -> None:
        """Has this server lead its task with a standby, or stand by itself, as the guard of the cluster decides."""
        self.replica = self.worker.replica = Replica(self.worker, places, state)

    def _serve(self, channel: wire.Channel, hello: messages.Hello) -> None:
        """Answers one client's messages until it leaves."""
        self._channels.add(channel)
        if self._stopping.is_set():
            self._channels.discard(channel)
            channel.close()
            return
        client = channel.owner = hello.client
        try:
            if hello.control:
                self._clients[channel] = tuple(hello.tasks)
                self._answer_pings(channel)
            else:
                while self._answer(channel, client):
                    pass
        except (OSError, errors.OpError) as e:  # the other side has gone, or talks nonsense
            if isinstance(e, ConnectionResetError) or channel.is_unread():
                self._give_back(channel)
        finally:
            self.served.left(channel)
            if self.replica is not None:
                self.replica.left(channel)
            self._shorts.forget(channel)
            self._clients.pop(channel, None)
            channel.close()
            if hello.control and not self._stopping.is_set():  # or it was this end that closed it
                self._client_gone(client)

    def _client_gone(self, client: str) -> None:
        self.worker.client_gone(client)
        limit = time.monotonic() + _LEAVING_SECONDS
        while others := [c for c in list(self._channels) if c.owner == client]:
            if time.monotonic() > limit:  # they may be waiting for answers to be read
                for other in others:
                    other.shut()
                return
            if self._stopping.wait(0.01):
                return

    @staticmethod
    def _give_back(channel: wire.Channel) -> None:
        """Puts back the elements that were taken from queues for a reply that has not arrived."""
        if channel.handed is not None:
            channel.handed.give_back()
            channel.handed = None

    def _answer_pings(self, channel: wire.Channel) -> None:
        channel.sock.settimeout(peers.silence() * _CLIENT_SILENCE_FACTOR)
        with contextlib.suppress(OSError):
            while channel.receive().kind == messages.PING:
                if self.replica is not None and self.replica.is_cut_off:
                    return
                if self.replica is not None and str(channel.owner).endswith(messages.GUARD):
                    self.replica.freshness.asked(time.monotonic())
                channel.say(messages.Done())

    def _answer(self, channel: wire.Channel, client: str) -> bool:
        """Handles one message and replies."""
        frame = self._shorts.receive(channel)
        began = time.perf_counter()
        # Any other message means that the last reply has arrived, and what it took from queues is gone for good.
        if frame.kind == RETURN:
            self._give_back(channel)
        channel.handed = None
        try:
            if frame.kind == RUN:
                if channel.is_closed():
                    return False  # the client has given up, for example while this process was suspended
                waited = self._run(channel, frame)
                took = time.perf_counter() - began
                channel.busy_seconds += took - waited
                is_short = took < SHORT_SECONDS and self.replica is None
                channel.short_requests = channel.short_requests + 1 if is_short else 0
            elif frame.kind == messages.BOARD:
                show_board(self.worker, channel, frame.read(messages.Board))
            elif frame.kind == messages.INSPECT:
                channel.inspects = True  # the load of a task is not what those cause who look at it
                self._inspect(channel, client, frame.read(messages.Inspect))
            elif frame.kind == messages.REPLICATE:
                part = frame.read(messages.Replicate)
                self._led().take(channel, part, frame.tensors)
            elif frame.kind == messages.READ_VARIABLES:
                wanted = frame.read(messages.ReadVariables)
                channel.say(*stale_reads.read(self._led(), wanted))
            elif frame.kind == messages.STOP:
                self._stop_as_told(channel, frame.read(messages.Stop))
                return False
            else:
                channel.say(self._other(frame, client))
        except ConnectionError:
            self._give_back(channel)
            return False
        except Exception as e:
            self._give_back(channel)
            self._fail(channel, e)
        return True

    def _run(self, channel: wire.Channel, frame: wire.Frame, tracing: StageTracing | None = None) -> float:
        """Runs a stage and answers with its results. Gives the seconds that it has waited for others."""
        session, step, stage, total, timeout, how, oldest = Run.unpack(frame.fields)
        if tracing is None and (how & TRACED or recording.current is not None):
            with StageTracing(self.worker, channel, frame) as tracing:
                return self._run(channel, frame, tracing)
        observer = None if tracing is None else tracing.observer
        asker = PendingReply(channel)
        if how & VERSIONS:
            asker.versions = VariableVersions()
        run = self.worker.run_again if how & AGAIN else self.worker.run
        results = run(session, step, stage, total, timeout, frame.tensors, observer, asker, oldest)
        if not asker.is_answered():
            channel.handed = asker
            if tracing is None:  # most steps are not traced, and need no struct to say so
                channel.send(OK, told_versions(asker.versions), results)
            else:
                tracing.reply(results, asker.versions)
        if asker.lost is not None:
            raise asker.lost
        channel.after = stage
        if not asker.taken:
            channel.handed = None
        return asker.waited_seconds

    def _inspect(self, channel: wire.Channel, client: str, request: messages.Inspect) -> None:
        """Tells about this task."""
        here = connection.is_on_this_machine(channel.sock)
        report = topics.answer(self, client, request.topic, request.options, here)
        text = np.frombuffer(json.dumps(report.content).encode(), np.uint8)
        channel.say(messages.Inspected(), [text, *report.arrays])

    def _fail(self, channel: wire.Channel, error: Exception) -> None:
        known = error if isinstance(error, errors.OpError) else errors.about(None, error)
        # A question that is refused is no fault of the task's.
        if not (channel.inspects or isinstance(known, (errors.OutOfRangeError, errors.CancelledError))):
            counters.last_error.note(known)
        op = known.op.name if known.op is not None else None
        channel.say(messages.Failed(known.error_code, known.message, op))

    def _led(self) -> Replica:
        if self.replica is None:
            raise errors.FailedPreconditionError(
                None, None, f"{self.task} is not durable: it was started without {settings.PLACES.name}."
            )
        return self.replica

    def _other(self, frame: wire.Frame, client: str) -> messages.Answer:
        """Handles every request that does not run a stage, and gives the answer."""
        if self.replica is not None and frame.kind in _FOR_LEADERS and self.replica.stands_by:
            self.replica.need()
        match frame.read(messages.request_of(frame.kind)):
            case messages.Register() as request:
                self.worker.register(client, request, frame.tensors)
            case messages.Push() as request:
                self.worker.arrived(request, frame.tensors)
            case messages.Cancel() as request:
                self.worker.cancel(request)
            case messages.Close() as request:
                self.worker.close_session(request.session, finished=request.finished)
            case messages.Reset() as request:
                self.worker.reset(request.containers, request.master)
            case messages.Bye() as request:
                self._notices.heard(request.task, request.served)
            case messages.Moved() as request:
                moved_addresses.learn(request.addresses)
            case messages.Lead() as request:
                return self._led().lead(request)
            case messages.StandDown() as request:
                return self._led().stand_down(request)
            case messages.Describe():
                return messages.Description(self.worker.devices(), self.joined, self.worker.dropped())
        return messages.Done()  # Ping asks for no more, and Return was heard already

    def clients(self) -> list[tuple[str, ...]]:
        """The processes that use this server, each by the tasks whose servers it has."""
        return list(self._clients.values())

    def awaited(self) -> list[tuple[str, int]]:
        """The tasks of other jobs that have not finished. Parameter servers only serve, as this one does."""
        return [task for task in self._notices.others() if task[0] not in (self.job, "ps")]

    # -- ending ---------------------------------------------------------------------------------------

    def _stop_as_told(self, channel: wire.Channel, request: messages.Stop) -> None:
        if request.task != self.task:
            raise errors.InvalidArgumentError(None, None, f"This is {self.task}, not {request.task!r}.")
        logging.info("%s was told to stop.", self.task)
        channel.say(messages.Done())
        self.end()

    def end(self) -> None:
        """Ends this server as one that has finished: the others are told, and `join` returns."""
        self._notices.announce()

    def join(self) -> None:
        """Waits until the server is to end: by `tf.fleet.stop_server`, at SIGTERM, or after every other task.

        A script for TensorFlow, where this never returns, ends here. So does one whose other tasks never come, or
        never come back, after TENSORFLEET_ORPHAN_SECONDS: with exit code 69.
        """
        self.joined = True
        guard, orphaned = orphan.OrphanGuard(self), None
        previous: Any = None
        main = threading.current_thread() is threading.main_thread()
        departure = shutdown.Departure(settings.NOTICE_SECONDS())
        if main:
            previous = signal.signal(signal.SIGTERM, lambda *_: self._ask_to_leave(departure))
        try:
            while not self._stopping.wait(0.5) and orphaned is None:
                self._notices.look()
                orphaned = guard.look()
                self._leave_if_due(departure)
        finally:
            if main:
                signal.signal(signal.SIGTERM, previous)
        process_servers.end(self)
        self.stop()
        if orphaned is not None:
            logging.error("%s", orphaned)
            if main:
                shutdown.end_script(orphan.EXIT_CODE)
            raise errors.UnavailableError(None, None, orphaned)
        if main and shutdown.script_ends_here():
            shutdown.end_script(0)

    def _ask_to_leave(self, departure: shutdown.Departure) -> None:
        departure.ask(time.monotonic())
        self._leave_if_due(departure)

    def _leave_if_due(self, departure: shutdown.Departure) -> None:
        """Ends a server that was told to, once no task of another job uses it."""
        servers = (f"/job:{self.job}/", "/job:ps/")
        has_workers = any(not task.startswith(servers) for tasks in self.clients() for task in tasks)
        if departure.is_due(has_workers, time.monotonic()):
            self._stopping.set()

    def stop(self) -> None:
        """Stops serving: closes every connection, wakes every wait, frees the state."""
        self._stopping.set()
        peers.serves_no_more(self.task)
        process_servers.remove(self)
        if self._listener is not None:
            self._listener.close()
        else:
            for sock in self._sockets:
                sock.close()
        self._shorts.close()
        for channel in list(self._channels):
            channel.close()
        if self.replica is not None:
            self.replica.close()
        self.worker.close()

    def _abandon_after_fork(self) -> None:
        """Closes everything in a forked process: the server is its parent's."""
        atexit.unregister(self._notices.announce)
        self._stopping = threading.Event()
        self._stopping.set()
        if self._listener is not None:
            self._listener.abandon_after_fork()
            self._listener = None
        for sock in self._sockets:
            sock.close()
        self._shorts.abandon_after_fork()
        for channel in list(self._channels):
            channel.abandon()
        self._channels.clear()

    def __del__(self) -> None:
        if getattr(self, "_sockets", None) and not self._stopping.is_set() and not self._started:
            self.stop()


def _largest_frame() -> int:
    return settings.MAX_FRAME()
