"""Certificates of an authority of its own, and the files with which clients find and trust the stand-in."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Certificates:
    """PEM files: the authority's certificate, the server's, and the server's key."""

    authority: Path
    server: Path
    key: Path


def make_certificates(directory: Path) -> Certificates:
    """An authority, and a certificate of it for loopback and for the names that pods use."""
    authority, server, request = (directory / name for name in ("ca.crt", "server.crt", "server.csr"))
    authority_key, key, extensions = (directory / name for name in ("ca.key", "server.key", "extensions"))
    extensions.write_text(
        "subjectAltName = IP:127.0.0.1, DNS:localhost, DNS:kubernetes.default.svc\n"
        "basicConstraints = critical, CA:FALSE\n"
        "extendedKeyUsage = serverAuth\n"
        "authorityKeyIdentifier = keyid\n"
    )
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    _openssl(
        "req", "-x509", *new_key, "-subj", "/CN=stand-in authority", "-days", "2",
        "-addext", "keyUsage = critical, keyCertSign, cRLSign", "-keyout", authority_key, "-out", authority,
    )  # fmt: skip
    _openssl("req", *new_key, "-subj", "/CN=kube-apiserver", "-keyout", key, "-out", request)
    _openssl(
        "x509", "-req", "-in", request, "-CA", authority, "-CAkey", authority_key, "-CAcreateserial",
        "-days", "2", "-extfile", extensions, "-out", server,
    )  # fmt: skip
    return Certificates(authority, server, key)


def write_kubeconfig(path: Path, url: str, authority: Path, user: str, token: str) -> None:
    """A kubeconfig with one context; JSON is YAML, too."""
    name = "stand-in"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority": str(authority)}}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
    }
    _replace(path, json.dumps(config, indent=1))


def write_service_account(directory: Path, authority: Path, token: str, namespace: str) -> None:
    """The files that Kubernetes mounts at /var/run/secrets/kubernetes.io/serviceaccount."""
    directory.mkdir(exist_ok=True)
    _replace(directory / "token", token)
    _replace(directory / "ca.crt", authority.read_text())
    _replace(directory / "namespace", namespace)


def _replace(path: Path, text: str) -> None:
    """At once, as whoever reads it does so at any time."""
    new = path.with_name(f".{path.name}.new")
    new.touch(mode=0o600)
    new.write_text(text)
    new.replace(path)


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)
