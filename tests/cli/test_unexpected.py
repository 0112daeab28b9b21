"""Datasets that are sound, but lack something or have more than their layout uses: test_unexpected.py WEIR FAKE_CUDA

Without cameras; with arrays that are not used; with names that no layout has, where the command that a refusal prints
must work as typed.
"""
import json
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile

import h5py
import numpy as np

from checks import check, failed

WEIR, FAKE_CUDA = sys.argv[1:]
STEPS = (6, 5)
FORMATS = {"hdf5": "copy", "zarr": "copy.zarr", "lmdb": "copy.lmdb", "packed": "copy.weir", "tfrecord": "copy-tfrecord"}


def weir(*arguments, **environment):
    return subprocess.run([WEIR, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=os.environ | environment)


def said(done):
    return done.stdout + done.stderr


def rows(episode, steps, width, dtype="f4"):
    return (1000 * episode + np.arange(steps)[:, None] + np.arange(width) / 100).astype(dtype)


def pictures(steps):
    return np.random.default_rng(steps).integers(0, 255, (steps, 24, 32, 3), np.uint8)


# ---- files ----

def write_demos(path, steps=STEPS, images=False, names=None, attributes=None):
    """robomimic's file, without images unless asked for."""
    with h5py.File(path, "w") as f:
        f.create_group("data").attrs.update({"total": sum(steps), "env_args": "{}"})
        for e, n in enumerate(steps):
            g = f.create_group(f"data/{names[e] if names else f'demo_{e}'}")
            g.attrs["num_samples"] = n
            for group in ("obs", "next_obs"):
                g[f"{group}/eef_pos"], g[f"{group}/object"] = rows(e, n, 3, "f8"), rows(e, n, 10, "f8")
            if images:
                g["obs/front"] = pictures(n)
            g["actions"], g["rewards"] = rows(e, n, 7, "f8"), np.zeros(n)
            g.attrs.update((attributes or {}).get(e, {}))
    return path


def write_act(path, episode, **more):
    with h5py.File(path, "w") as f:
        f.attrs["sim"] = False
        f["observations/images/top"] = pictures(STEPS[episode])
        f["observations/qpos"] = f["action"] = rows(episode, STEPS[episode], 4)
        for key, value in more.items():
            f[key] = value


def write_zarr(path, **arrays):
    """Zarr 2, uncompressed, one chunk per array."""
    for key, values in (arrays | {"meta/episode_ends": np.cumsum(STEPS)}).items():
        folder = os.path.join(path, key.replace("__", "/"))
        os.makedirs(folder)
        with open(os.path.join(folder, ".zarray"), "w", encoding="ascii") as f:
            json.dump({"zarr_format": 2, "shape": values.shape, "chunks": values.shape, "dtype": values.dtype.str, "order": "C",
                       "compressor": None, "filters": None, "fill_value": 0}, f)
        with open(os.path.join(folder, ".".join("0" * values.ndim)), "wb") as f:
            f.write(values.tobytes())
    for folder in ("", "data", "meta"):
        with open(os.path.join(path, folder, ".zgroup"), "w", encoding="ascii") as f:
            f.write('{"zarr_format": 2}')
    return path


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def field(number, payload):
    """A field of a protocol buffer that holds bytes."""
    length, n = b"", len(payload)
    while n > 127:
        length += bytes([n & 127 | 128])
        n >>= 7
    return bytes([number << 3 | 2]) + length + bytes([n]) + payload


def write_rlds(folder, make):
    """One TFRecord file; make(episode, steps) returns an episode's floats and bytes by feature."""
    os.makedirs(folder)
    with open(os.path.join(folder, "made-train.tfrecord-00000-of-00001"), "wb") as f:
        for e, n in enumerate(STEPS):
            example = b""
            for key, value in sorted(make(e, n).items()):
                kind = field(1, b"".join(field(1, v) for v in value)) if isinstance(value, list) else \
                    field(2, field(1, np.asarray(value, "<f4").tobytes())) if value.dtype.kind == "f" else \
                    field(3, field(1, bytes(value.ravel().tolist())))
                example += field(1, field(1, key.encode()) + field(2, kind))
            data = field(1, example)
            head = struct.pack("<Q", len(data))
            f.write(head + struct.pack("<I", crc32c(head)) + data + struct.pack("<I", crc32c(data)))
    return folder


def steps_of(n):
    return {"steps/is_first": np.eye(1, n, 0, dtype=int), "steps/is_last": np.eye(1, n, n - 1, dtype=int)}


# ---- no cameras ----

def sums(work, data, *options):
    path = os.path.join(work, "sums")
    done = weir("run", data, "--no-shuffle", "--batch-size", "4", "--num-workers", "2", "--train-split", "1", "--checksums", path, *options)
    check(f"weir run {data}", done.returncode == 0, said(done))
    if done.returncode != 0:
        return ""
    with open(path, encoding="ascii") as f:
        return f.read()


def low_dim(work):
    """The same states and actions in every format."""
    make = lambda width: np.concatenate([rows(e, n, width) for e, n in enumerate(STEPS)])
    steps = lambda e, n: {"steps/observation/state": np.concatenate([rows(e, n, 3), rows(e, n, 10)], 1).ravel(),
                          "steps/action": rows(e, n, 7).ravel()} | steps_of(n)
    state = np.concatenate([make(3), make(10)], 1)
    os.makedirs(f"{work}/act")
    for e, n in enumerate(STEPS):
        with h5py.File(f"{work}/act/episode_{e}.hdf5", "w") as f:
            f.create_group("observations/images")
            f["observations/qpos"], f["action"] = np.concatenate([rows(e, n, 3), rows(e, n, 10)], 1), rows(e, n, 7)
    with h5py.File(f"{work}/named.hdf5", "w") as f:
        f["q"], f["a"] = rows(0, 6, 13), rows(0, 6, 7)
    sound = {"robomimic": write_demos(f"{work}/low_dim.hdf5"), "act": f"{work}/act",
             "diffusion-policy": write_zarr(f"{work}/low.zarr", data__state=state, data__action=make(7)),
             "rlds": write_rlds(f"{work}/low_rlds", steps)}
    return sound


def test_no_cameras(work):
    wanted = None
    for layout, data in low_dim(work).items():
        info = weir("info", data)
        check(f"{layout}: weir info", info.returncode == 0 and f"layout: {layout}" in info.stdout and "cameras: none" in info.stdout
              and "remove" not in said(info) and "nan" not in info.stdout, said(info))
        verify = weir("verify", data)
        check(f"{layout}: weir verify", verify.returncode == 0, said(verify))
        got = sums(work, data)
        wanted = wanted or got
        check(f"{layout}: the same batches as robomimic", got == wanted and " qpos " in got and "images" not in got, got + wanted)
        check(f"{layout}: without workers", sums(work, data, "--num-workers", "0") == wanted)
        check(f"{layout}: with a decode cache, and uring", sums(work, data, "--decode-cache", "1M", "--io", "uring") == wanted)
        wrong = weir("info", data, "--cameras", "top")
        check(f"{layout}: a camera that is not there", wrong.returncode == 1 and "no cameras" in wrong.stderr, said(wrong))
    data = f"{work}/low_dim.hdf5"
    for to, name in FORMATS.items():
        copy = os.path.join(work, name)
        done = weir("convert", data, copy, "--to", to, "--allow-narrowing")
        check(f"weir convert --to {to}", done.returncode == 0, said(done))
        check(f"{to}: the copy's batches are the same", sums(work, copy) == wanted)
    index = f"{work}/saved.index"
    check("an index file", sums(work, data, "--index", index) == wanted and sums(work, data, "--index", index) == wanted)
    named = weir("run", f"{work}/named.hdf5", "--qpos-keys", "q", "--action-keys", "a", "--max-batches", "1")
    check("named state and actions of an unknown layout", named.returncode == 0, said(named))
    for decoder in ("auto", "hybrid", "nvjpeg"):
        done = weir("run", data, "--device", "cuda", "--decoder", decoder, WEIR_CUDA_MODULE=FAKE_CUDA)
        check(f"a GPU, --decoder {decoder}", done.returncode == 0, said(done))
    for command in ("bench", "tune", "whatif"):
        done = weir(command, data)
        check(f"weir {command} needs images", done.returncode == 1 and "has no cameras" in done.stderr, said(done))
    facts = json.loads(weir("info", data, "--json").stdout)
    check("weir info --json", facts["cameras"] == [] and facts["frames"] == 0, facts)


def test_some_cameras(work):
    """Episodes without cameras are not mixed with others, in any order."""
    for first, second in ((0, 1), (1, 0)):
        folder = f"{work}/mixed{first}"
        os.makedirs(folder)
        write_act(f"{folder}/episode_{first}.hdf5", 0)
        with h5py.File(f"{folder}/episode_{second}.hdf5", "w") as f:
            f.create_group("observations/images")
            f["observations/qpos"] = f["action"] = rows(1, 5, 4)
        done = weir("run", folder)
        check("an episode without cameras among others", done.returncode == 1 and "no cameras" in done.stderr, said(done))


with tempfile.TemporaryDirectory() as work:
    for test in (test_no_cameras, test_some_cameras):
        folder = os.path.join(work, test.__name__)
        os.mkdir(folder)
        test(folder)
sys.exit(failed())
