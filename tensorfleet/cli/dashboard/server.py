"""The page's server: the socket that it listens at, TLS, and uvicorn on it."""

from __future__ import annotations

import errno
import os
import socket
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorfleet.cli.dashboard.access import Access, is_loopback, new_key
from tensorfleet.cluster.transport import tls

if TYPE_CHECKING:
    import uvicorn

    from tensorfleet.cli.dashboard.sources import RunSource

LOOPBACK = "127.0.0.1"
_MAX_CONNECTIONS = 128
_KEEP_ALIVE_SECONDS = 15
_SHUTDOWN_SECONDS = 1
_BACKLOG = 128
_START_SECONDS = 20.0


class PageRefused(Exception):
    """The page cannot be served there; the sentence says why."""


@dataclass(frozen=True, slots=True)
class ListenPlace:
    """Where to listen: a host, and a port or 0 for any free one."""

    host: str = LOOPBACK
    port: int = 0


def place_of(text: str) -> ListenPlace:
    """`PORT` or `HOST:PORT`. Raises ValueError for anything else."""
    host, colon, port = text.rpartition(":")
    host = host.strip("[]") if colon else LOOPBACK
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"{text!r} is not off, PORT or HOST:PORT.")
    return ListenPlace(host, int(port))


@dataclass(frozen=True, slots=True)
class PageSocket:
    """An open socket, and what the page at it is to know."""

    socket: socket.socket
    access: Access
    host: str

    @property
    def address(self) -> str:
        """What to open in a browser, with the key."""
        return f"{self.plain_address}?key={self.access.key}"

    @property
    def plain_address(self) -> str:
        """The address without the key."""
        scheme = "https" if self.access.is_secure else "http"
        shown = socket.getfqdn() if self.host in ("0.0.0.0", "::") else self.host
        return f"{scheme}://{f'[{shown}]' if ':' in shown else shown}:{self.access.port}/"


def listen(place: ListenPlace, key: str | None = None) -> PageSocket:
    """Opens the socket of a page. From now on connections wait for the server. Raises `PageRefused`."""
    is_secure = not is_loopback(place.host)
    if is_secure and tls.folder() is None:
        raise PageRefused(
            f"The page shows logs and values, so it is not served at {place.host} without TLS. Run tensorfleet certs, "
            "set TENSORFLEET_TLS to the folder, or reach a page on loopback through ssh -L."
        )
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((place.host, place.port))
        opened.listen(_BACKLOG)
    except OSError as error:
        opened.close()
        at = f"{place.host}:{place.port}"
        if error.errno == errno.EADDRINUSE:
            raise PageRefused(
                f"Port {place.port} is in use, so there is no page at {at}. Choose another."
            ) from None
        raise PageRefused(f"Cannot serve the page at {at}: {error.strerror or error}.") from None
    except (UnicodeError, TypeError):  # Python raises either for a name that no host can have
        opened.close()
        raise PageRefused(f"Cannot serve the page at {place.host[:80]}: this is not a host name.") from None
    port = opened.getsockname()[1]
    return PageSocket(opened, access_at(place.host, port, key or new_key(), is_secure), place.host)


def access_at(host: str, port: int, key: str, is_secure: bool) -> Access:
    """Who may see the page that listens there."""
    names = (host.lower(), *((socket.gethostname().lower(), socket.getfqdn().lower()) if is_secure else ()))
    return Access(key, port, is_secure, names)


class PageServer:
    """Serves one source at one socket, in a thread of its own."""

    def __init__(self, source: RunSource, page: PageSocket) -> None:
        self._page = page
        self._server = _uvicorn(source, page.access)
        self._thread = threading.Thread(target=self._run, name="page", daemon=True)

    def start(self) -> None:
        """Begins to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Ends it: what is being answered is given a second."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(_START_SECONDS)
        self._page.socket.close()

    def wait(self, seconds: float) -> bool:
        """Waits; gives whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        self._server.run(sockets=[self._page.socket])


def _uvicorn(source: RunSource, access: Access) -> uvicorn.Server:
    import uvicorn

    from tensorfleet.cli.dashboard.app import make_app

    folder = tls.folder() if access.is_secure else None
    config = uvicorn.Config(
        make_app(source, access),
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        ssl_certfile=os.path.join(folder, "server.pem") if folder else None,
        ssl_keyfile=os.path.join(folder, "server.key") if folder else None,
    )
    return uvicorn.Server(config)
