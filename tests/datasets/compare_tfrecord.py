#!/usr/bin/env python3
"""Compares Weir's TFRecord support with PyPI's tfrecord, in both directions: tests/datasets/compare_tfrecord.py [WEIR]

- The package reads an RLDS dataset and writes it as HDF5: `weir run` has equal checksums for both.
- The package reads a copy by `weir convert --to tfrecord`: JPEGs, states, actions, instructions and CRCs are right.
- Weir reads what the package writes.

Real data is below $WEIR_DATA. tests/readers/setup.sh installs tfrecord, crc32c and h5py; WEIR_READERS_PYTHON names
another Python. Exit status 77: a module is missing.
"""
import glob
import json
import os
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PYTHON = os.environ.get("WEIR_READERS_PYTHON", os.path.join(ROOT, "build", "readers-venv", "bin", "python"))
if os.path.exists(PYTHON) and os.path.realpath(sys.prefix) != os.path.realpath(os.path.join(os.path.dirname(PYTHON), "..")):
    os.execv(PYTHON, [PYTHON, os.path.abspath(__file__)] + sys.argv[1:])
try:
    import crc32c
    import h5py
    import numpy as np
    from tfrecord import TFRecordWriter, tfrecord_loader
except ImportError as missing:
    print(f"skipped: no module {missing.name}; tests/readers/setup.sh installs what is needed, or WEIR_READERS_PYTHON names a Python that has it")
    sys.exit(77)

WEIR = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build", "release", "weir")
OBSERVATION = "steps/observation/"
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
    return done.stdout


def sums(data, name):
    weir("run", data, "--no-shuffle", "--batch-size", "4", "--num-workers", "2", "--num-epochs", "1", "--train-split", "1",
         "--checksums", name)
    with open(name, "rb") as f:
        return f.read()


def read(folder):
    """Episodes read by the package, as {feature: value}."""
    found = []
    for path in sorted(glob.glob(os.path.join(folder, "*.tfrecord*"))):
        found += [{key: value for key, value in episode.items()} for episode in tfrecord_loader(path, None)]
    return found


def frames(values):
    """The package returns a list of one value as the value itself."""
    return [values] if isinstance(values, bytes) else [bytes(value) for value in values]


def is_jpeg(value):
    return (isinstance(value, bytes) and value[:2] == b"\xff\xd8") or \
        (isinstance(value, np.ndarray) and value.dtype.kind == "S" and bytes(value[0])[:2] == b"\xff\xd8")


def cameras(episode):
    return sorted(key[len(OBSERVATION):] for key, value in episode.items() if key.startswith(OBSERVATION) and is_jpeg(value))


def text(values):
    return (values if isinstance(values, bytes) else bytes(values.flat[0])).decode()


def write_hdf5(folder, episodes):
    os.makedirs(folder)
    for number, episode in enumerate(episodes):
        steps = len(episode["steps/is_first"])
        with h5py.File(os.path.join(folder, f"episode_{number}.hdf5"), "w") as f:
            f["observations/qpos"] = episode[OBSERVATION + "state"].reshape(steps, -1)
            f["action"] = episode["steps/action"].reshape(steps, -1)
            for name in cameras(episode):
                images = f.create_dataset("observations/images/" + name, (steps,), h5py.vlen_dtype(np.uint8))
                for t, image in enumerate(frames(episode[OBSERVATION + name])):
                    images[t] = np.frombuffer(image, np.uint8)


def check_checksums(path):
    """Checks the CRCs of all records of a file, which the package ignores."""
    def masked(data):
        crc = crc32c.crc32c(data)
        return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    with open(path, "rb") as f:
        data = f.read()
    at = n = 0
    while at < len(data):
        length, crc = struct.unpack_from("<QI", data, at)
        check(f"{path}: checksums of record {n}", crc == masked(data[at:at + 8]) and
              struct.unpack_from("<I", data, at + 12 + length)[0] == masked(data[at + 12:at + 12 + length]))
        at += 16 + length
        n += 1
    return n


def check_copy(work, name, source, wanted):
    """Compares a copy by `weir convert`, read by the package, with the episodes wanted."""
    copy = os.path.join(work, name + "-copy")
    weir("convert", source, copy, "--to", "tfrecord")
    got = read(copy)
    check(f"{name}: files", sorted(os.listdir(copy)) == ["dataset_info.json", "episodes-train.tfrecord-00000-of-00001", "features.json"])
    n = check_checksums(os.path.join(copy, "episodes-train.tfrecord-00000-of-00001"))
    with open(os.path.join(copy, "dataset_info.json"), encoding="utf-8") as f:
        info = json.load(f)
    check(f"{name}: {n} records, {len(got)} read", n == len(got) == len(wanted) == int(info["splits"][0]["shardLengths"][0]))
    for e, (a, b) in enumerate(zip(wanted, got)):
        for key in ("steps/action", OBSERVATION + "state"):
            check(f"{name}: {key} of episode {e}", a[key].dtype == b[key].dtype and a[key].tobytes() == b[key].tobytes())
        steps = len(a["steps/is_first"])
        check(f"{name}: ends of episode {e}", list(b["steps/is_first"]) == [1] + [0] * (steps - 1) and
              list(b["steps/is_last"]) == [0] * (steps - 1) + [1])
        check(f"{name}: cameras of episode {e}", cameras(a) == cameras(b))
        for camera in cameras(a):
            check(f"{name}: {camera} of episode {e}", frames(a[OBSERVATION + camera]) == frames(b[OBSERVATION + camera]))
        for key in ("steps/language_instruction", "episode_metadata/file_path"):
            if key in a:
                check(f"{name}: {key} of episode {e}", key in b and text(a[key]) == text(b[key]))
    check(f"{name}: samples of the copy", sums(copy, copy + ".sums") == sums(source, copy + ".source.sums"))


def of_synthetic(folder):
    """The episodes of act-jpeg files, in the form in which the package returns episodes."""
    episodes = []
    for path in sorted(glob.glob(os.path.join(folder, "*.hdf5"))):
        with h5py.File(path) as f:
            steps = len(f["action"])
            episode = {"steps/is_first": np.array([1] + [0] * (steps - 1)), "steps/action": f["action"][()].ravel(),
                       OBSERVATION + "state": f["observations/qpos"][()].ravel()}
            for name, rows in f["observations/images"].items():
                images = [row.tobytes() for row in rows[()]]
                images = [image[:image.rindex(b"\xff\xd9") + 2] for image in images]
                episode[OBSERVATION + name] = np.array(images, dtype=bytes)
            episodes.append(episode)
    return episodes


def write_by_package(folder, episodes):
    """Writes a dataset without features.json."""
    os.makedirs(folder)
    writer = TFRecordWriter(os.path.join(folder, "anybody.tfrecord"))
    for episode in episodes:
        steps = len(episode["steps/is_first"])
        datum = {"steps/is_first": (list(map(int, episode["steps/is_first"])), "int"),
                 "steps/action": (episode["steps/action"].tolist(), "float"),
                 OBSERVATION + "state": (episode[OBSERVATION + "state"].tolist(), "float"),
                 "steps/language_instruction": ([b"pick it up"] * steps, "byte")}
        for name in cameras(episode):
            datum[OBSERVATION + name] = (frames(episode[OBSERVATION + name]), "byte")
        writer.write(datum)
    writer.close()


def main():
    with tempfile.TemporaryDirectory() as work:
        synthetic = os.path.join(work, "synthetic")
        weir("synth", synthetic, "--format", "act-jpeg", "--episodes", "3", "--steps", "7", "--size", "64x48")
        sources = [("synthetic", synthetic, of_synthetic(synthetic))]
        bridge = os.path.join(os.environ.get("WEIR_DATA", ""), "tfrecord", "bridge")
        if os.environ.get("WEIR_DATA") and os.path.isdir(bridge):
            sources.append(("bridge", bridge, read(bridge)))
        else:
            print("no $WEIR_DATA/tfrecord/bridge: synthetic data only")
        for name, source, episodes in sources:
            hdf5, anew = os.path.join(work, name + "-hdf5"), os.path.join(work, name + "-anew")
            write_hdf5(hdf5, episodes)
            wanted = sums(hdf5, hdf5 + ".sums")
            check(f"{name}: samples equal those read by the package", sums(source, os.path.join(work, name + ".sums")) == wanted)
            check_copy(work, name, source, episodes)
            write_by_package(anew, episodes)
            check(f"{name}: samples of the package's output", sums(anew, anew + ".sums") == wanted)
            check(f"{name}: text of the package's output", '"value": "pick it up"' in weir("info", anew, "--json"))
    print(f"{len(sources)} datasets, {failures} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
