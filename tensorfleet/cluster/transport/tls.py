"""TLS for connections between machines: which certificates, and what is asked of the other side.

It is on when TENSORFLEET_TLS names a folder as `tensorfleet certs` makes it (or `tf.fleet.secure(tls=...)` does):

    ca.pem                    who signs: every certificate is checked against it
    server.pem, server.key    what a task shows, with the names of its hosts
    client.pem, client.key    what a program that has no server shows, when servers ask for it

With TENSORFLEET_TLS_MUTUAL=1 a server lets in only those who show a certificate too. The token is proved inside.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from tensorfleet.base import errors, settings
from tensorfleet.cluster.transport import token

if TYPE_CHECKING:
    import ssl

# What OpenSSL says to an answer that is not TLS; which of them depends on the bytes and on its version.
_NOT_TLS = {
    "WRONG_VERSION_NUMBER",
    "HTTP_REQUEST",
    "HTTPS_PROXY_REQUEST",
    "PACKET_LENGTH_TOO_LONG",
    "RECORD_LAYER_FAILURE",
    "UNEXPECTED_MESSAGE",
    "UNKNOWN_PROTOCOL",
}
_contexts: dict[tuple[str, bool], ssl.SSLContext] = {}


def folder() -> str | None:
    """Where the certificates are, when TLS is on."""
    return token.secured.tls or settings.TLS() or None


def is_mutual() -> bool:
    """Whether those who connect must show a certificate too."""
    if token.secured.mutual is not None:
        return token.secured.mutual
    return settings.TLS_MUTUAL()


def for_server() -> ssl.SSLContext | None:
    """What a server speaks TLS with; None when it does not."""
    at = folder()
    if at is None:
        return None
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION  # it would cost the server more than who asks for it
    _load(context, at, "server")
    if is_mutual():
        context.verify_mode = ssl.CERT_REQUIRED
        _trust(context, at)
    return context


def for_client() -> ssl.SSLContext | None:
    """What a connection to another task speaks TLS with; None when it does not."""
    at = folder()
    if at is None:
        return None
    import ssl

    key = (at, is_mutual())
    result = _contexts.get(key)
    if result is None:
        result = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # checks the certificate and the host's name
        _trust(result, at)
        if is_mutual():
            _load(result, at, "client" if os.path.exists(os.path.join(at, "client.pem")) else "server")
        _contexts[key] = result
    return result


def _load(context: ssl.SSLContext, at: str, who: str) -> None:
    certificate, key = os.path.join(at, f"{who}.pem"), os.path.join(at, f"{who}.key")
    try:
        if stat.S_IMODE(os.stat(key).st_mode) & 0o077:
            raise errors.PermissionDeniedError(
                None, None, f"Others can read the private key in {key}. Run: chmod 600 {key}"
            )
        context.load_cert_chain(certificate, key)
    except OSError as e:
        raise _unusable(f"{certificate} and {key}", e) from None


def _trust(context: ssl.SSLContext, at: str) -> None:
    authority = os.path.join(at, "ca.pem")
    try:
        context.load_verify_locations(authority)
    except OSError as e:
        raise _unusable(authority, e) from None


def _unusable(what: str, error: OSError) -> errors.OpError:
    return errors.FailedPreconditionError(
        None,
        None,
        f"TLS is asked for, but {what} cannot be used: {error.strerror or error}. Make them with `tensorfleet certs DIR "
        "HOST...` and set TENSORFLEET_TLS=DIR.",
    )


def is_refusal(error: OSError) -> bool:
    """Whether a connection failed over certificates, rather than because the other side has gone."""
    if folder() is None:
        return False
    import ssl

    return isinstance(error, ssl.SSLError) and not isinstance(
        error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)
    )


def is_plain_text(error: ssl.SSLError) -> bool:
    """Whether a handshake failed because the other side does not speak TLS."""
    return error.reason in _NOT_TLS


def refused(address: str, error: OSError) -> errors.OpError:
    """The error for a connection that failed over certificates."""
    why = getattr(error, "verify_message", None) or getattr(error, "reason", None) or str(error)
    return errors.UnauthenticatedError(
        None,
        None,
        f"No TLS connection to {address}: {why}. Every task and client needs certificates of the same authority, the "
        "server's with the name it is reached by: `tensorfleet certs DIR HOST...`, then TENSORFLEET_TLS=DIR for each.",
    )
