"""Workers of one training without sockets: each computes, brings its gradient and waits, in an order that a test draws."""

from dataclasses import dataclass, field

from tensorfleet.fleet.consistency.machine import Machine
from tensorfleet.fleet.consistency.text import parse_schedule

READING, COMPUTING, HANDING, WAITING, LEADING = "reading", "computing", "handing", "waiting", "leading"


@dataclass
class Worker:
    name: str
    state: str = READING
    seen: int = 0
    steps: int = 0


@dataclass
class Training:
    """A machine with its workers, and what has happened."""

    text: str
    count: int
    machine: Machine = field(init=False)
    workers: dict[str, Worker] = field(init=False)
    updates: int = 0
    gathered: list[tuple[str, int]] = field(default_factory=list)  # worker and the updates it had seen
    #: what each update was made of
    made: list[list[tuple[str, int]]] = field(default_factory=list)
    #: of each gradient its age and its weight
    judged: list[tuple[int, float]] = field(default_factory=list)
    #: how far ahead of the slowest each worker was when it was let go on
    ahead: list[int] = field(default_factory=list)
    now: float = 0.0
    #: whether a worker died before it was known: only time tells that it will not come
    has_killed_a_stranger: bool = False

    def __post_init__(self):
        self.machine = Machine(parse_schedule(self.text), self.count)
        self.workers = {f"w{i}": Worker(f"w{i}") for i in range(self.count)}

    def movable(self):
        return [name for name, w in self.workers.items() if w.state != WAITING]

    def move(self, name):
        """The worker does what comes next for it."""
        self.now += 1
        worker = self.workers[name]
        getattr(self, f"_{worker.state}")(worker)

    def _reading(self, worker):
        worker.seen, worker.state = self.updates, COMPUTING

    def _computing(self, worker):
        age = self.updates - worker.seen
        verdict, released = self.machine.judge(worker.name, worker.name, age, self.updates, self.now)
        self.judged.append((age, verdict.weight))
        worker.state = HANDING
        if verdict.weight and verdict.aggregate:
            self.gathered.append((worker.name, worker.seen))
        elif verdict.weight:
            self.updates += 1
        self._release(released)

    def _handing(self, worker):
        worker.state = WAITING
        worker.steps += 1
        self._release(self.machine.arrive(worker.name, worker.name, self.now))

    def _leading(self, worker):
        self.updates += 1
        self.made.append(self.gathered)
        self.gathered = []
        worker.state = READING
        self._release(self.machine.updated(worker.name, self.now))

    def kill(self, name):
        worker = self.workers.pop(name)
        self.has_killed_a_stranger |= name not in self.machine.steps()
        if worker.state == LEADING:
            self.gathered = []
        # A gradient that was not handed in yet is lost with its worker.
        if worker.state == HANDING:
            self.gathered = [one for one in self.gathered if one[0] != name]
        self._release(self.machine.leave(name, self.now))

    def lose_patience(self):
        """Nothing has happened for so long that workers are given up."""
        self.now += 60.0
        _, released = self.machine.overdue(self.now, 60.0)
        self._release(released)

    def _release(self, released):
        for name, gradients in released:
            worker = self.workers[name]
            assert worker.state == WAITING, "only one that waits is let go on"
            worker.state = LEADING if gradients else READING
            steps = self.machine.steps()
            self.ahead.append(steps[name] - min(steps.values()))
