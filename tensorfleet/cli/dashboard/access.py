"""Who may see the page: its key, the Host and Origin headers. Decides only; nothing here opens a socket."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

_KEY_BYTES = 24
_BEARER = "bearer "
#: Sent with every answer. No answer may be framed, guessed at or kept by a cache, and no page of ours loads anything
#: from elsewhere.
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'; object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


def new_key() -> str:
    """A key for one run's page."""
    return secrets.token_urlsafe(_KEY_BYTES)


@dataclass(frozen=True, slots=True)
class Access:
    """What one page asks of those who want to see it."""

    key: str
    port: int
    is_secure: bool = False  # TLS
    #: names under which the page may be asked for, besides `localhost` and addresses in numbers
    names: tuple[str, ...] = ()

    @property
    def cookie(self) -> str:
        """The name of the cookie. Browsers send cookies to all ports of a host: each page has its own."""
        return f"tensorfleet_{self.port}"

    def knows(self, key: str | None) -> bool:
        """Whether this is the key. The time that it takes tells nothing about the key."""
        return key is not None and hmac.compare_digest(key.encode(), self.key.encode())

    def may_enter(self, cookies: Mapping[str, str], authorization: str | None) -> bool:
        """Whether a request carries the key, as a browser does (a cookie) or as Prometheus does (`Bearer KEY`)."""
        return self.knows(cookies.get(self.cookie)) or self.has_bearer(authorization)

    def has_bearer(self, authorization: str | None) -> bool:
        """Whether a request carries the key as `Authorization: Bearer KEY`."""
        given = authorization or ""
        return given[: len(_BEARER)].lower() == _BEARER and self.knows(given[len(_BEARER) :].strip())

    def is_own_host(self, host: str | None) -> bool:
        """Whether a Host header may be ours.

        A foreign site can let its own name lead to 127.0.0.1 (DNS rebinding), and the browser then takes our answers
        for that site's. It cannot do so with `localhost` or with an address in numbers. Ports are not compared: a
        tunnel through ssh has another one.
        """
        if host is not None and not set(host).isdisjoint("/?#@\\"):
            return False  # more than a name and a port
        try:
            name = urlsplit(f"//{host}").hostname if host else None
        except ValueError:
            return False
        if not name:
            return False
        if name == "localhost" or name in self.names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def is_own_origin(self, host: str | None, headers: Mapping[str, str]) -> bool:
        """Whether the page itself sends a POST, and not another site in the same browser."""
        if self.has_bearer(headers.get("authorization")):
            return True  # a browser adds no such header by itself
        origin = headers.get("origin")
        if origin is None:
            return headers.get("sec-fetch-site") == "same-origin"
        return origin == f"{'https' if self.is_secure else 'http'}://{host}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
