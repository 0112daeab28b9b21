#!/usr/bin/env python3
"""Checks what a wheel requires of the target machine: tests/python/check_wheel.py WHEEL; --self-test checks a bad one.

Programs and libraries in the wheel may depend only on the C library (ALLOWED) with symbols of glibc 2.28 or earlier,
and have no rpath. This includes the CUDA module, which opens the driver, nvJPEG and CUPTI at run time. The helper
program must be executable, the tags correct, and no file missing. Prints one line per file."""
import os
import re
import stat
import subprocess
import sys
import tempfile
import zipfile

ALLOWED = re.compile(r"lib(c|m|dl|pthread|rt)\.so\.\d+|ld-linux-x86-64\.so\.2")
GLIBC = (2, 28)
TAG = f"cp311-abi3-manylinux_{GLIBC[0]}_{GLIBC[1]}_x86_64"
FILES = {"weir/__init__.py", "weir/__init__.pyi", "weir/py.typed", "weir/_weir.abi3.so", "weir/weir-hdf5",
         "weir/libweir_watch.so", "weir/examples/imitate_episodes.py", "weir/examples/act_policy.py"}
PROGRAM = re.compile(r"weir_loader-[\d.]+\.data/scripts/weir")


def readelf(path, *options):
    return subprocess.run(["readelf", "-W", *options, path], capture_output=True, text=True, check=True).stdout


def numbers(text):
    return tuple(int(part) for part in text.split("."))


def check_elf(path):
    """(facts, faults) of a program or library."""
    dynamic = readelf(path, "-d")
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    faults = [f"needs {name}" for name in needed if not ALLOWED.fullmatch(name)]
    faults += [f"looks for libraries in folders: {line.strip()}" for line in dynamic.splitlines()
               if re.search(r"\((RPATH|RUNPATH)\)", line)]
    if "(TEXTREL)" in dynamic:
        faults.append("has text relocations")
    highest = {}
    needs = readelf(path, "-V").partition("Version needs")[2]
    for name, version in re.findall(r"Name: ([A-Z]+)_([\d.]+)", needs):
        highest[name] = max(highest.get(name, (0,)), numbers(version))
    for name, version in highest.items():
        most = GLIBC if name == "GLIBC" else (0,)
        if version > most:
            faults.append(f"needs {name}_{'.'.join(map(str, version))}; at most {'.'.join(map(str, most))} is allowed")
    libc = ".".join(map(str, highest.get("GLIBC", (0,))))
    return f"GLIBC_{libc}, {' '.join(sorted(needed))}", faults


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def check_tags(wheel, names, archive):
    record = next(name for name in names if name.endswith(".dist-info/WHEEL"))
    tags = re.findall(r"^Tag: (.*)$", archive.read(record).decode(), re.M)
    name = "-".join(os.path.basename(wheel)[:-len(".whl")].split("-")[-3:])
    return [f"its tag is {tag}, not {TAG}" for tag in {name, *tags} if tag != TAG]


def check_metadata(names, archive):
    text = archive.read(next(name for name in names if name.endswith(".dist-info/METADATA"))).decode()
    return [f"its metadata has no line {line}" for line in ("Name: weir-loader", "Requires-Python: >=3.11")
            if line not in text.splitlines()]


def check(wheel):
    """Prints the wheel's contents and faults; returns the number of faults."""
    faults, total = [], 0
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        names = set(archive.namelist())
        faults += [f"{name} is not in it" for name in sorted(FILES - names)]
        if not any(map(PROGRAM.fullmatch, names)):
            faults.append("the program weir is not in it")
        faults += check_tags(wheel, names, archive) + check_metadata(names, archive)
        for info in archive.infolist():
            path = archive.extract(info, folder)
            total += info.file_size
            if not is_elf(path):
                continue
            facts, wrong = check_elf(path)
            print(f"{info.filename}: {info.file_size / 1e6:.1f} MB, {facts}")
            faults += [f"{info.filename}: {fault}" for fault in wrong]
            if info.filename.endswith(("weir-hdf5", "scripts/weir")) and not info.external_attr >> 16 & stat.S_IXUSR:
                faults.append(f"{info.filename}: not executable")
    print(f"{os.path.basename(wheel)}: {os.path.getsize(wheel) / 1e6:.1f} MB, {total / 1e6:.1f} MB installed")
    for fault in faults:
        print(f"FAIL: {fault}")
    return len(faults)


def self_test():
    """A wheel with the wrong tags, whose program needs zlib, has an rpath and is not executable."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a")
        with open(path + ".c", "w") as file:
            file.write("const char *zlibVersion(void);\nint main(void) { return !zlibVersion(); }\n")
        subprocess.run(["cc", "-o", path, path + ".c", "-lz", "-Wl,-rpath,/usr/lib"], check=True)
        wheel = os.path.join(folder, "weir_loader-0-cp311-abi3-linux_x86_64.whl")
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("weir_loader-0.dist-info/WHEEL", "Tag: cp311-abi3-any\n")
            archive.writestr("weir_loader-0.dist-info/METADATA", "Name: weir\n")
            with open(path, "rb") as file:
                archive.writestr("weir/weir-hdf5", file.read())
        found = check(wheel)
    # 7 missing files, the program, 2 tags, 2 lines of metadata, library, rpath, glibc, mode
    if found != 16:
        print(f"{found} faults, not 16")
    return found == 16


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(0 if self_test() else 1)
    if len(sys.argv) != 2:
        print("usage: check_wheel.py WHEEL", file=sys.stderr)
        sys.exit(2)
    sys.exit(1 if check(sys.argv[1]) else 0)
