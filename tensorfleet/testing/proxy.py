"""A network with faults: a proxy before a task that cuts, delays, throttles, corrupts and partitions its traffic.

    with Proxy("localhost:2222", seed=7) as network:
        ...                                   # clients use network.address in place of localhost:2222
        network.delay(0.2)                    # each way
        network.partition("to the server")    # what clients send vanishes; what the server sends arrives
        network.heal()
        network.cut()                         # every connection is reset

What it does is decided by its seed and printed as it happens, so that a run can be repeated.
"""

from __future__ import annotations

import contextlib
import queue
import random
import socket
import struct
import threading
import time
from typing import Literal

_PIECE_BYTES = 1 << 16
_MAX_HELD_PIECES = 64  # pieces of one connection, one way
_POLL_SECONDS = 0.05  # seconds between looks at what has changed

Way = Literal["to the server", "to the client", "both"]


class _Faults:
    """The faults of the bytes that go one way."""

    def __init__(self) -> None:
        self.delay = 0.0
        self.rate = 0.0  # bytes per second, 0 for no limit
        self.corrupt = 0.0  # chance that a piece has a byte changed
        self.reset = 0.0  # chance that a piece resets its connection
        self.blocked = False


class Proxy:
    """Listens at `address` and forwards to the task at `target`, with the faults that are set."""

    def __init__(self, target: str, seed: int = 0, name: str | None = None, quiet: bool = False) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self.name = name or target
        self.seed = seed
        self._quiet = quiet
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._ways = {"to the server": _Faults(), "to the client": _Faults()}
        self._pairs: set[_Pair] = set()
        self._passed = dict.fromkeys(self._ways, 0)
        self._closed = threading.Event()
        self._listener = socket.create_server(("localhost", 0), backlog=128)
        self._listener.settimeout(_POLL_SECONDS * 4)
        self.address = f"localhost:{self._listener.getsockname()[1]}"
        self._say(f"listens at {self.address}, seed {seed}")
        threading.Thread(target=self._accept, name="tensorfleet-proxy", daemon=True).start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- faults ---------------------------------------------------------------------------------------

    def delay(self, seconds: float, way: Way = "both") -> None:
        """Everything arrives so much later."""
        self._set("delay", seconds, way, f"delays what goes {way} by {seconds} s")

    def throttle(self, bytes_per_second: float, way: Way = "both") -> None:
        """No more than so many bytes a second go through a connection; 0 takes the limit away."""
        self._set("rate", bytes_per_second, way, f"throttles {way} to {bytes_per_second} bytes/s")

    def corrupt(self, chance: float, way: Way = "both") -> None:
        """Of the pieces that arrive (up to 64 KB each) this part has one byte changed."""
        self._set("corrupt", chance, way, f"corrupts {way} with chance {chance}")

    def reset_at_random(self, chance: float, way: Way = "both") -> None:
        """A piece that arrives resets its connection with this chance."""
        self._set("reset", chance, way, f"resets {way} with chance {chance}")

    def partition(self, way: Way = "both") -> None:
        """Drops all traffic silently: connections stay open, and new ones get no answer."""
        self._set("blocked", True, way, f"lets nothing through, {way}")

    def heal(self) -> None:
        """Removes all faults. Bytes that were held back arrive."""
        with self._lock:
            for way in self._ways:
                self._ways[way].__init__()  # type: ignore[misc]
        self._say("is healed")

    def cut(self) -> None:
        """Resets every connection there is; new ones are possible."""
        with self._lock:
            pairs = list(self._pairs)
        self._say(f"cuts {len(pairs)} connections")
        for pair in pairs:
            pair.reset()

    def _set(self, fault: str, value: float, way: str, what: str) -> None:
        with self._lock:
            for name, faults in self._ways.items():
                if way in (name, "both"):
                    setattr(faults, fault, value)
        self._say(what)

    def close(self) -> None:
        """Closes every connection and stops listening."""
        self._closed.set()
        with self._lock:
            pairs = list(self._pairs)
        for pair in pairs:
            pair.reset()
        self._listener.close()

    def _say(self, what: str) -> None:
        if not self._quiet:
            print(f"[network of {self.name}] {what}", flush=True)

    def passed(self, way: Way = "both") -> int:
        """How many bytes have arrived so far, of all connections."""
        with self._lock:
            return sum(count for name, count in self._passed.items() if way in (name, "both"))

    # -- passing on -----------------------------------------------------------------------------------

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._target, timeout=10)
        except OSError:
            client.close()
            return
        pair = _Pair(client, server)
        with self._lock:
            self._pairs.add(pair)
        threads = []
        for way, source, sink in (("to the server", client, server), ("to the client", server, client)):
            held: queue.Queue[tuple[float, bytes]] = queue.Queue(_MAX_HELD_PIECES)
            threads.append(threading.Thread(target=self._take, args=(pair, source, held), daemon=True))
            threads.append(threading.Thread(target=self._give, args=(pair, way, sink, held), daemon=True))
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(1.0)
                if self._closed.is_set():
                    pair.reset()
        with self._lock:
            self._pairs.discard(pair)
        pair.close()

    def _take(self, pair: _Pair, source: socket.socket, held: queue.Queue[tuple[float, bytes]]) -> None:
        """Reads the bytes of one side, and notes when they came. When many are held back, the sender has to wait."""
        data = b"-"
        try:
            while data:
                data = source.recv(_PIECE_BYTES)
                came = time.monotonic()
                while not pair.over.is_set():
                    with contextlib.suppress(queue.Full):
                        held.put((came, data), timeout=_POLL_SECONDS)
                        break
        except OSError:
            pair.reset()

    def _give(
        self, pair: _Pair, way: str, sink: socket.socket, held: queue.Queue[tuple[float, bytes]]
    ) -> None:
        """Passes it on to the other side, with the faults of the moment."""
        faults = self._ways[way]
        try:
            while not pair.over.is_set():
                with contextlib.suppress(queue.Empty):
                    came, data = held.get(timeout=_POLL_SECONDS)
                    if self._hold(pair, faults, came, len(data)):
                        return
                    if not data:
                        sink.shutdown(socket.SHUT_WR)
                        return
                    # Counted first: whoever has got an answer finds it counted.
                    with self._lock:
                        self._passed[way] += len(data)
                    sink.sendall(self._changed(pair, faults, way, data))
        except OSError:
            pair.reset()

    def _changed(self, pair: _Pair, faults: _Faults, way: str, data: bytes) -> bytes:
        with self._lock:
            lost = bool(faults.reset) and self._random.random() < faults.reset
            if faults.corrupt and self._random.random() < faults.corrupt:
                data = self._altered(data)
        if lost:
            self._say(f"resets a connection, {way}")
            raise ConnectionError("reset")
        return data

    def _altered(self, data: bytes) -> bytes:
        altered = bytearray(data)
        at = self._random.randrange(len(altered))
        altered[at] ^= 1 << self._random.randrange(8)
        return bytes(altered)

    def _hold(self, pair: _Pair, faults: _Faults, came: float, size: int) -> bool:
        """Keeps a piece for as long as the faults of the moment ask; whether the connection is over by then."""
        until = max(came + faults.delay, time.monotonic() + size / faults.rate if faults.rate else 0.0)
        while not pair.over.is_set() and (faults.blocked or time.monotonic() < until):
            left = until - time.monotonic()
            pair.over.wait(_POLL_SECONDS if faults.blocked else min(max(left, 0.0), _POLL_SECONDS))
        return pair.over.is_set()


class _Pair:
    """The two connections that one connection through the proxy is."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self._ends = (client, server)
        self.over = threading.Event()
        for sock in self._ends:
            sock.settimeout(None)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def reset(self) -> None:
        """Ends both at once, without the goodbyes of TCP."""
        if self.over.is_set():
            return
        self.over.set()
        for sock in self._ends:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                sock.shutdown(socket.SHUT_RD)  # wakes whoever reads from it
            sock.close()

    def close(self) -> None:
        """Closes all sockets that are still open."""
        self.over.set()
        for sock in self._ends:
            sock.close()
