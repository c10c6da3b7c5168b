"""The cluster's token: a secret that both ends of every connection prove before anything else is read.

It comes from `tf.fleet.secure(token=...)`, from TENSORFLEET_TOKEN, or from the file that TENSORFLEET_TOKEN_FILE names.
Without any of them, tasks of one user on one machine share a file that only that user can read, made when first needed.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import stat

from tensorfleet.base import errors, logging, settings
from tensorfleet.base.naming import export

_TOKEN_BYTES = 32
_MIN_CHARACTERS = 16  # characters: whoever can connect can try out tokens as fast as a computer counts
_warned: set[bytes] = set()  # what was warned of, as a digest


class Settings:
    """What `tf.fleet.secure` has set in this process; None leaves it to the environment."""

    token: str | bytes | None = None
    tls: str | None = None
    mutual: bool | None = None


secured = Settings()


@export("fleet.secure")
def secure(
    token: str | bytes | None = None, tls: str | os.PathLike[str] | None = None, mutual: bool | None = None
) -> None:
    """Sets how servers and sessions made from now on in this process protect their connections.

    `token` is the cluster's secret, the same in every task; `tls` a folder of certificates as `tensorfleet certs` makes
    it; `mutual` says whether servers ask for a certificate too. What is None comes from the environment
    (TENSORFLEET_TOKEN or TENSORFLEET_TOKEN_FILE, TENSORFLEET_TLS, TENSORFLEET_TLS_MUTUAL).
    """
    secured.token, secured.mutual = token, mutual
    secured.tls = None if tls is None else os.fspath(tls)


def configured() -> bool:
    """Whether the user has chosen a token, rather than getting this machine's own."""
    return bool(secured.token or settings.TOKEN() or settings.TOKEN_FILE())


def token() -> bytes:
    """The token of this process's cluster."""
    given = secured.token or os.environ.get(settings.TOKEN.name)
    if given:
        secret = (given if isinstance(given, bytes) else given.encode()).strip()  # as from a file
        if not secret:
            raise errors.FailedPreconditionError(
                None, None, "The cluster token is blank. Set TENSORFLEET_TOKEN to a secret."
            )
        return _checked(secret)
    path = settings.TOKEN_FILE()
    return _checked(_given(path)) if path else _own()


def _checked(secret: bytes) -> bytes:
    """A token that the user has chosen, with a warning if it can be guessed."""
    digest = hashlib.sha256(secret).digest()
    if len(secret) < _MIN_CHARACTERS and digest not in _warned:
        _warned.add(digest)
        logging.warning(
            "The cluster token has only %d characters, and can be guessed by trying: whoever guesses it can run any graph in "
            "the cluster. Use %d or more, for example what `openssl rand -hex 32` prints.",
            len(secret),
            _MIN_CHARACTERS,
        )
    return secret


def default_path() -> str:
    """Where this machine's own token is kept."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(home, "tensorfleet", "token")


def _own() -> bytes:
    path = default_path()
    with contextlib.suppress(FileNotFoundError):
        return _read(path)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        temporary = f"{path}.{os.getpid()}.{secrets.token_hex(4)}"
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as f:
            f.write(secrets.token_hex(_TOKEN_BYTES))
        try:
            os.link(temporary, path)  # whole or not at all, and never over another's
        except FileExistsError:
            pass  # another task was quicker: its token counts
        finally:
            os.unlink(temporary)
    except OSError as e:
        raise errors.FailedPreconditionError(
            None,
            None,
            f"The cluster token could not be written to {path}: {e.strerror}. Set TENSORFLEET_TOKEN to a secret of "
            "your own on every task.",
        ) from e
    return _read(path)


def _given(path: str) -> bytes:
    """The token in the file that the user has named."""
    try:
        return _read(path)
    except OSError as e:
        raise errors.FailedPreconditionError(
            None,
            None,
            f"The cluster token cannot be read from {path}, which TENSORFLEET_TOKEN_FILE names: {e.strerror}.",
        ) from None


def _read(path: str) -> bytes:
    """The token in a file, or in the one that a link leads to."""
    # Not blocking: a pipe of this name would wait for a writer. Mode and content are of one open file.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as f:
        mode = os.fstat(f.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise errors.FailedPreconditionError(
                None, None, f"The cluster token must be in a file; {path} is none."
            )
        if stat.S_IMODE(mode) & 0o077:
            raise errors.PermissionDeniedError(
                None, None, f"Others can read the cluster token in {path}. Run: chmod 600 {path}"
            )
        result = f.read().strip()
    if not result:
        raise errors.FailedPreconditionError(
            None, None, f"The cluster token file {path} is empty. Remove it and start again."
        )
    return result


def proof(secret: bytes, who: bytes, *nonces: bytes) -> bytes:
    """What shows that `who` knows the secret, without showing the secret."""
    return hmac.new(secret, who + b"".join(nonces), hashlib.sha256).digest()


def same(a: bytes, b: bytes) -> bool:
    """Compares two proofs in constant time."""
    return hmac.compare_digest(a, b)
