#!/usr/bin/env python3
"""Compares Weir's LMDB support with python-lmdb: python-lmdb reads copies by `weir convert` key by key, and `weir run`
reads what python-lmdb writes. Usage: WEIR_PROGRAM=build/release/weir tests/datasets/compare_lmdb.py"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import h5py
    import lmdb
    import numpy
except ImportError as missing:
    print(f"skipped: no module {missing.name} (python3-lmdb, python3-h5py, python3-numpy)")
    sys.exit(77)

WEIR = os.environ["WEIR_PROGRAM"]
FORMATS = {  # images, state, actions
    "act": ("observations/images/{}", "observations/qpos", "action"),
    "act-jpeg": ("observations/images/{}", "observations/qpos", "action"),
    "astrobench": ("observations/{}", "observations/joint_pos", "action/joint_positions"),
}
failures = 0


def check(what, holds):
    global failures
    if not holds:
        print("FAILED:", what)
        failures += 1


def weir(*arguments):
    done = subprocess.run([WEIR, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"weir {' '.join(arguments)}: {done.stderr}")


def sums(data):
    out = data + ".sums"
    weir("run", data, "--no-shuffle", "--batch-size", "4", "--num-workers", "2", "--num-epochs", "1", "--train-split", "1",
         "--checksums", out)
    with open(out, "rb") as f:
        return f.read()


def episodes(source):
    found = []
    for folder, _, names in sorted(os.walk(source)):
        found += [os.path.join(folder, name) for name in sorted(names) if name.endswith((".hdf5", ".h5"))]
    return found


def image_of(row, codec):
    """An image's bytes in the source, without the row's padding."""
    row = numpy.asarray(row).tobytes()
    return row[:row.rindex(b"\xff\xd9") + 2] if codec == "jpeg" else row


def read_copy(name, copy, source):
    with lmdb.open(copy, readonly=True, lock=False) as env, env.begin() as txn:
        left = {bytes(key): bytes(value) for key, value in txn.cursor()}
        dataset = json.loads(left.pop(b"dataset"))
        images, qpos, action = FORMATS[name]
        check(f"{name}: version and number of episodes", (dataset["version"], dataset["episodes"]) == (1, len(episodes(source))))
        for e, path in enumerate(episodes(source)):
            with h5py.File(path) as file:
                steps = len(file[qpos])
                for key, numbers in (("qpos", file[qpos][()]), ("action", file[action][()])):
                    got = numpy.frombuffer(left.pop(b"e%08d/%s" % (e, key.encode())), dataset[key]["dtype"])
                    check(f"{name}: {key} of {path}", numpy.array_equal(got.reshape(steps, dataset[key]["dim"]), numbers))
                check(f"{name}: steps of {path}", json.loads(left.pop(b"e%08d/episode" % e))["steps"] == steps)
                for camera in dataset["cameras"]:
                    key = images.format(camera["name"])
                    for t in range(steps):
                        value = left.pop(b"e%08d/%08d/%s" % (e, t, camera["name"].encode()))
                        check(f"{name}: {key}[{t}] of {path}", value == image_of(file[key][t], camera["codec"]))
        check(f"{name}: the copy has no other keys: {sorted(left)[:3]}", not left)


def write_anew(copy, path, **options):
    """Rewrites all keys of a copy in another order, with other options of LMDB."""
    with lmdb.open(copy, readonly=True, lock=False) as source, source.begin() as txn:
        pairs = [(bytes(key), bytes(value)) for key, value in txn.cursor()]
    with lmdb.open(path, map_size=1 << 30, sync=False, **options) as env:
        for i in range(3):  # transactions
            with env.begin(write=True) as txn:
                for key, value in reversed(pairs[i::3]):
                    txn.put(key, b"to be overwritten" * 1000)
                    txn.put(key, value)
    return path


def main():
    with tempfile.TemporaryDirectory() as work:
        for name in FORMATS:
            source, copy = os.path.join(work, name), os.path.join(work, name + ".lmdb")
            weir("synth", source, "--format", name, "--episodes", "3", "--steps", "11", "--size", "64x48")
            weir("convert", source, copy, "--to", "lmdb")
            check(f"{name}: the folder contains data.mdb and the reader's lock file", set(os.listdir(copy)) <= {"data.mdb", "lock.mdb"})
            read_copy(name, copy, source)
            wanted = sums(source)
            check(f"{name}: samples of the copy", sums(copy) == wanted)
            anew = write_anew(copy, os.path.join(work, name + "-anew"))
            check(f"{name}: samples of python-lmdb's output", sums(anew) == wanted)
            check(f"{name}: samples of a single file", sums(write_anew(copy, os.path.join(work, name + "-file.lmdb"), subdir=False)) == wanted)
            packed = os.path.join(work, name + "-compact")
            os.mkdir(packed)
            with lmdb.open(copy, readonly=True, lock=False) as env:
                env.copy(packed, compact=True)
            check(f"{name}: samples of a compacted copy", sums(packed) == wanted)
    print(f"{len(FORMATS)} formats, {failures} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
