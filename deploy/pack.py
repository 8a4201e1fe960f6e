"""Packs release artifacts whose bytes depend only on the packed files and SOURCE_DATE_EPOCH.

script/release calls it. It needs only Python's standard library.

    pack.py sbom TARGET [DEB...] > sbom.json
    pack.py tar FOLDER PREFIX FILE.tar.gz
    pack.py wheel FOLDER FILE.whl
    pack.py image ROOT CONFIG.json ARCHITECTURE NAME:TAG FILE.tar
"""

import base64
import gzip
import hashlib
import io
import json
import os
import platform
import subprocess
import sys
import tarfile
import time
import uuid
import zipfile
from pathlib import Path
from urllib.parse import quote

EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
CREATED = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH))
# The owner of /data in the image.
IMAGE_USER = 65532


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def archive(folder: Path, prefix: str, owner_of_data: int = 0) -> bytes:
    """A tar of the folder, sorted, with fixed times and owners."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in files(folder):
            name = path.relative_to(folder).as_posix()
            entry = tar.gettarinfo(str(path), prefix + name)
            entry.mtime = EPOCH
            entry.uname = entry.gname = ""
            entry.uid = entry.gid = owner_of_data if name == "data" else 0
            if entry.isreg():
                with path.open("rb") as content:
                    tar.addfile(entry, content)
            else:
                tar.addfile(entry)
    return out.getvalue()


def compressed(data: bytes) -> bytes:
    return gzip.compress(data, 9, mtime=EPOCH)


def wheel(folder: Path, out: Path) -> None:
    """A wheel of the folder, with its RECORD (PEP 427)."""
    info = next(folder.glob("*.dist-info"))
    record = []
    moment = time.gmtime(max(EPOCH, 315532800))[:6]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as made:

        def add(name: str, data: bytes, mode: int) -> None:
            entry = zipfile.ZipInfo(name, moment)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            made.writestr(entry, data)

        for path in files(folder):
            if path.is_file():
                name, data = path.relative_to(folder).as_posix(), path.read_bytes()
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                record.append(f"{name},sha256={digest},{len(data)}\n")
                add(name, data, 0o755 if path.stat().st_mode & 0o100 else 0o644)
        name = f"{info.name}/RECORD"
        add(name, "".join([*record, f"{name},,\n"]).encode(), 0o644)


def image(root: Path, config: dict, architecture: str, tag: str, out: Path) -> None:
    """An image of one layer: an OCI layout that `docker load` also reads, by its manifest.json."""
    layer = archive(root, "", IMAGE_USER)
    diff = "sha256:" + hashlib.sha256(layer).hexdigest()
    blobs: dict[str, bytes] = {}

    def blob(media: str, data: bytes) -> dict:
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(data)}

    packed = blob("application/vnd.oci.image.layer.v1.tar+gzip", compressed(layer))
    about = {
        "created": CREATED,
        "architecture": architecture,
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [diff]},
        "history": [{"created": CREATED, "created_by": "script/release"}],
    }
    kind = "application/vnd.oci.image.config.v1+json"
    described = blob(kind, json.dumps(about, sort_keys=True).encode())
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": described,
        "layers": [packed],
    }
    listed = blob(manifest["mediaType"], json.dumps(manifest, sort_keys=True).encode())
    listed["annotations"] = {"org.opencontainers.image.ref.name": tag}
    path = {item["digest"]: "blobs/sha256/" + item["digest"][7:] for item in (described, packed)}
    docker = {"Config": path[described["digest"]], "RepoTags": [tag], "Layers": [path[packed["digest"]]]}
    blobs["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [listed]}).encode()
    blobs["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
    blobs["manifest.json"] = json.dumps([docker]).encode()
    with tarfile.open(out, "w", format=tarfile.GNU_FORMAT) as tar:
        for name in sorted(blobs):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(blobs[name]), EPOCH
            tar.addfile(entry, io.BytesIO(blobs[name]))


def run(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def crates(target: str) -> tuple[str, list[dict], list[dict]]:
    """The crates that are linked into the binary, with what each depends on."""
    found = json.loads(run("cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={target}"))
    packages = {package["id"]: package for package in found["packages"]}
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    root = next(i for i, package in packages.items() if package["name"] == "agent-authority")

    def is_macro(node: str) -> bool:
        return any("proc-macro" in made["kind"] for made in packages[node]["targets"])

    def below(node: str) -> list[str]:
        normal = [d for d in nodes[node]["deps"] if any(kind["kind"] is None for kind in d["dep_kinds"])]
        # Macros run in the compiler.
        return sorted(d["pkg"] for d in normal if not is_macro(d["pkg"]))

    linked, waiting = set(), [root]
    while waiting:
        node = waiting.pop()
        if node not in linked:
            linked.add(node)
            waiting.extend(below(node))

    def purl(node: str) -> str:
        return f"pkg:cargo/{packages[node]['name']}@{packages[node]['version']}"

    components, dependencies = [], []
    for node in sorted(linked, key=purl):
        package = packages[node]
        licence = (package["license"] or "NOASSERTION").replace("/", " OR ")
        component = {
            "type": "application" if node == root else "library",
            "bom-ref": purl(node),
            "name": package["name"],
            "version": package["version"],
            "purl": purl(node),
            "licenses": [{"expression": licence}],
        }
        components.append(component)
        dependencies.append({"ref": purl(node), "dependsOn": [purl(d) for d in below(node)]})
    return purl(root), components, dependencies


def deb(name: str) -> dict:
    """A package of this machine whose files are in the image."""
    version, arch = run("dpkg-query", "--show", "--showformat=${Version} ${Architecture}", name).split()
    system = platform.freedesktop_os_release()
    # Scanners look for vulnerabilities in the list of this distribution and release. Debian's testing has no number.
    release = system.get("VERSION_ID") or system.get("VERSION_CODENAME", "")
    distro = f"{system['ID']}-{release}".rstrip("-")
    path = f"{system['ID']}/{quote(name.partition(':')[0])}@{quote(version, safe=':')}"
    source = f"pkg:deb/{path}?arch={arch}&distro={distro}"
    return {"type": "library", "bom-ref": source, "name": name, "version": version, "purl": source}


def sbom(target: str, debs: list[str]) -> dict:
    """A CycloneDX 1.6 document of the binary, and of the distribution's packages beside it."""
    root, components, dependencies = crates(target)
    subject = next(component for component in components if component["bom-ref"] == root)
    others = [component for component in components if component is not subject]
    content = json.dumps([others, debs], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, root + target + content)}",
        "version": 1,
        "metadata": {"timestamp": CREATED, "component": subject},
        "components": others + [deb(name) for name in debs],
        "dependencies": dependencies,
    }


def main(command: str, *args: str) -> None:
    if command == "sbom":
        json.dump(sbom(args[0], list(args[1:])), sys.stdout, indent=1)
    elif command == "tar":
        Path(args[2]).write_bytes(compressed(archive(Path(args[0]), args[1])))
    elif command == "wheel":
        wheel(Path(args[0]), Path(args[1]))
    elif command == "image":
        image(Path(args[0]), json.loads(Path(args[1]).read_text()), args[2], args[3], Path(args[4]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*(sys.argv[1:] or [""]))
