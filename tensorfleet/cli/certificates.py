"""`tensorfleet certs`: an authority, and the certificates it signs, with the openssl program."""

from __future__ import annotations

import ipaddress
import shutil
import subprocess
import tempfile
from pathlib import Path

_AUTHORITY_DAYS, _DAYS = 3650, 825
_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


def make_certificates(folder: Path, hosts: list[str]) -> list[Path]:
    """Makes the files that TENSORFLEET_TLS can name; an authority that is there already signs again."""
    if shutil.which("openssl") is None:
        raise OSError(
            "The openssl program is not installed. Install it with `apt install openssl`, `dnf install openssl` or "
            "`brew install openssl`, or create ca.pem, server.pem, server.key, client.pem and client.key yourself."
        )
    names = ",".join(dict.fromkeys(_name(host) for host in (*hosts, "localhost", "127.0.0.1", "::1")))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    authority = folder / "ca.pem"
    if not (folder / "ca.key").exists():
        request = [
            "req",
            "-x509",
            *_KEY,
            "-keyout",
            "ca.key",
            "-out",
            "ca.pem",
            "-days",
            str(_AUTHORITY_DAYS),
        ]
        uses = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash"
        _openssl(folder, [*request, "-subj", "/CN=TensorFleet authority"], uses)
    server = f"subjectAltName={names}\nextendedKeyUsage=serverAuth,clientAuth"
    sign(folder, "server", server)
    sign(folder, "client", "extendedKeyUsage=clientAuth")
    return [authority, *(folder / f"{who}.{kind}" for who in ("server", "client") for kind in ("pem", "key"))]


def _name(host: str) -> str:
    try:
        return f"IP:{ipaddress.ip_address(host.strip('[]'))}"
    except ValueError:
        if not host or not all(c.isalnum() or c in "-._*" for c in host):
            raise ValueError(
                f"{host!r} is neither a host name nor an address. Give for example ps0.example or 10.0.0.7."
            ) from None
        return f"DNS:{host}"


def sign(folder: Path, who: str, extensions: str, days: int = _DAYS) -> None:
    """Makes WHO.key, and WHO.pem signed by the folder's authority."""
    key, request, made = f"{who}.key", f"{who}.csr", f"{who}.pem"
    _openssl(folder, ["req", *_KEY, "-keyout", key, "-out", request, "-subj", f"/CN=TensorFleet {who}"], "")
    command = ["x509", "-req", "-in", request, "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"]
    uses = f"basicConstraints=critical,CA:FALSE\nauthorityKeyIdentifier=keyid\n{extensions}"
    _openssl(folder, [*command, "-out", made, "-days", str(days)], uses)
    (folder / request).unlink()


def _openssl(folder: Path, command: list[str], extensions: str) -> None:
    """Runs openssl in the folder; what it writes only its owner can read."""
    with tempfile.NamedTemporaryFile("w", suffix=".cnf") as config:
        config.write(f"[req]\ndistinguished_name=dn\n[dn]\n[extra]\n{extensions}\n")
        config.flush()
        if command[0] == "req":
            command = [*command, "-config", config.name, *(["-extensions", "extra"] if extensions else [])]
        else:
            command = [*command, "-extfile", config.name, "-extensions", "extra"]
        done = subprocess.run(
            ["openssl", *command],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=60,
            umask=0o077,
        )
    if done.returncode:
        raise OSError(f"openssl {command[0]} failed in {folder}: {done.stderr.strip()}")
