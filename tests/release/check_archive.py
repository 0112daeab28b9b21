#!/usr/bin/env python3
"""Checks the files of a release: tests/release/check_archive.py ARCHIVE SPDX WHEEL.

Programs and the CUDA module need only the C library (the wheel's check), no file names the folder it was built in, every
library has its licence text, and the SPDX document is valid (spdx-tools, if installed), complete and about these files."""
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))
import check_wheel  # noqa: E402  pylint: disable=wrong-import-position

WANTED = {"bin/weir", "bin/weir-hdf5", "share/man/man1/weir.1", "share/bash-completion/completions/weir",
          "share/zsh/site-functions/_weir", "python/weir/__init__.py", "python/weir/libweir_watch.so", "README.md", "CHANGELOG.md", "LICENSE"}
ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..")).encode()


def check_file(name, path):
    facts, faults = check_wheel.check_elf(path)
    print(f"{name}: {os.path.getsize(path) / 1e6:.1f} MB, {facts}")
    with open(path, "rb") as file:
        data = file.read()
    if ROOT in data:
        faults.append("names the folder it was built in")
    return [f"{name}: {fault}" for fault in faults], hashlib.sha256(data).hexdigest()


def check_spdx(path, digests, licenses):
    with open(path) as file:
        document = json.load(file)
    faults = []
    listed = {file["fileName"].removeprefix("./"): file["checksums"][1]["checksumValue"] for file in document["files"]}
    for name, digest in digests.items():
        if listed.get(name) != digest:
            faults.append(f"{path}: {name} is {'another file' if name in listed else 'missing'}")
    linked = {relation["relatedSpdxElement"] for relation in document["relationships"]
              if relation["relationshipType"] == "STATIC_LINK"}
    packages = {package["SPDXID"]: package for package in document["packages"]}
    faults += [f"{path}: {name} has no package" for name in linked - set(packages)]
    faults += [f"no licence text of {packages[name]['name']}" for name in linked & set(packages)
               if packages[name]["name"] not in licenses]
    faults += [f"{path}: {package['name']} has no supplier" for package in document["packages"] if not package.get("supplier")]
    faults += [f"licenses/ lacks {text}, a licence of {package['name']}" for package in document["packages"]
               for licence, text in (("LGPL-2.1", "LGPL-2.1"), ("GPL-3.0", "GPL-3"))
               if package["licenseDeclared"].startswith(licence) and text not in licenses]
    if not {"SPDXRef-Package-hdf5", "SPDXRef-Package-libjpeg-turbo", "SPDXRef-Package-zlib"} <= linked:
        faults.append(f"{path}: libraries are missing: {sorted(linked)}")
    try:
        done = subprocess.run([os.path.join("build", "release-venv", "bin", "pyspdxtools"), "-i", path],
                              capture_output=True, text=True, check=False)
    except OSError:
        print("spdx-tools: not installed; the document's form was not checked")
        return faults
    print(f"spdx-tools: {'valid' if done.returncode == 0 else 'invalid'}")
    if done.returncode != 0:
        faults.append(f"{path}: {done.stderr.strip()}")
    return faults


def main(archive, spdx, wheel):
    faults, digests, licenses = [], {}, set()
    with tarfile.open(archive) as tar, tempfile.TemporaryDirectory() as folder:
        for member in tar.getmembers():
            if member.isdir():
                continue
            name = member.name.partition("/")[2]
            if name.startswith("licenses/"):
                licenses.add(name.removeprefix("licenses/"))
            if not member.isreg() or (member.uid, member.gid) != (0, 0) or not re.fullmatch(r"[\w./+-]+", name):
                faults.append(f"{member.name}: not a plain file of root's")
                continue
            tar.extract(member, folder)
            path = os.path.join(folder, member.name)
            WANTED.discard(name)
            if check_wheel.is_elf(path):
                more, digests[name] = check_file(name, path)
                faults += more
    faults += [f"{archive}: {name} is missing" for name in sorted(WANTED)]
    with zipfile.ZipFile(wheel) as zipped, tempfile.TemporaryDirectory() as folder:
        for name in (name for name in zipped.namelist() if not name.endswith("/")):
            path = zipped.extract(name, folder)
            if check_wheel.is_elf(path):
                name = "wheel/" + re.sub(r"^[^/]*\.data/", "", name)
                more, digests[name] = check_file(name, path)
                faults += more
    faults += check_spdx(spdx, digests, licenses)
    for fault in faults:
        print(f"FAIL: {fault}")
    print(f"{os.path.basename(archive)}: {os.path.getsize(archive) / 1e6:.1f} MB, "
          f"{os.path.basename(wheel)}: {os.path.getsize(wheel) / 1e6:.1f} MB, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        print("usage: check_archive.py ARCHIVE SPDX WHEEL", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(*sys.argv[1:]))
