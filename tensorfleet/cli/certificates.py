"""`tensorfleet certs`: an authority, and the certificates it signs."""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError as error:
    raise ImportError(
        "The cryptography package is not installed. Install it with `pip install 'tensorfleet[certs]'`, or create "
        "ca.pem, server.pem, server.key, client.pem and client.key yourself."
    ) from error

_AUTHORITY_DAYS, _DAYS = 3650, 825
_CLOCK_SKEW = datetime.timedelta(days=1)  # a machine whose clock is late accepts new certificates
_USES = {
    "server": ExtendedKeyUsageOID.SERVER_AUTH,
    "client": ExtendedKeyUsageOID.CLIENT_AUTH,
}


def make_certificates(folder: Path, hosts: list[str]) -> list[Path]:
    """Makes the files that TENSORFLEET_TLS can name; an authority that is there already signs again."""
    names = list(dict.fromkeys((*hosts, "localhost", "127.0.0.1", "::1")))
    for name in names:
        _general_name(name)  # refused before anything is written
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (folder / "ca.key").exists():
        _make_authority(folder)
    sign(folder, "server", names, ["server", "client"])
    sign(folder, "client", [], ["client"])
    files = [folder / f"{who}.{kind}" for who in ("server", "client") for kind in ("pem", "key")]
    return [folder / "ca.pem", *files]


def sign(folder: Path, who: str, hosts: Sequence[str], uses: Sequence[str], days: int = _DAYS) -> None:
    """Makes WHO.key, and WHO.pem signed by the folder's authority. Uses are "server" and "client"."""
    issuer = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
    authority = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
    if not isinstance(authority, ec.EllipticCurvePrivateKey):
        raise ValueError(
            f"{folder / 'ca.key'} is not a key that `tensorfleet certs` has made. Give another folder."
        )
    key = _new_key()
    builder = _builder(f"TensorFleet {who}", key, issuer.subject, days)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    identifier = x509.SubjectKeyIdentifier.from_public_key(authority.public_key())
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False
    )
    builder = builder.add_extension(x509.ExtendedKeyUsage([_USES[use] for use in uses]), critical=False)
    if hosts:
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    _write(folder, who, key, builder.sign(authority, hashes.SHA256()))


def _make_authority(folder: Path) -> None:
    key = _new_key()
    name = "TensorFleet authority"
    builder = _builder(name, key, _named(name), _AUTHORITY_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(_only_signs(), critical=True)
    builder = builder.add_extension(
        x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
    )
    _write(folder, "ca", key, builder.sign(key, hashes.SHA256()))


def _builder(
    name: str, key: ec.EllipticCurvePrivateKey, issuer: x509.Name, days: int
) -> x509.CertificateBuilder:
    """A certificate without extensions, valid from now for so many days."""
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _only_signs() -> x509.KeyUsage:
    return x509.KeyUsage(
        key_cert_sign=True,
        crl_sign=True,
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        if not host or not host.isascii() or not all(c.isalnum() or c in "-._*" for c in host):
            raise ValueError(
                f"{host!r} is neither a host name nor an address. Give for example ps0.example or 10.0.0.7."
            ) from None
        return x509.DNSName(host)


def _write(folder: Path, who: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
    """Writes WHO.key and WHO.pem, which only their owner can read."""
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    for path, content in (
        (folder / f"{who}.key", private),
        (folder / f"{who}.pem", certificate.public_bytes(serialization.Encoding.PEM)),
    ):
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
