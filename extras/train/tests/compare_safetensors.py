#!/usr/bin/env python3
"""Compares extras/train/cli/safetensors.c with PyPI's safetensors: extras/train/tests/compare_safetensors.py PROGRAM

The package writes files, PROGRAM (safetensors_copy.c) copies them, and the package reads the copies: bits, shapes and
metadata must be the same. Both must accept and refuse the same handmade files. tests/readers/setup.sh installs
safetensors and numpy; WEIR_READERS_PYTHON names another Python. Exit status 77: a module is missing.
"""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
PYTHON = os.environ.get("WEIR_READERS_PYTHON", os.path.join(ROOT, "build", "readers-venv", "bin", "python"))
if os.path.exists(PYTHON) and os.path.realpath(sys.prefix) != os.path.realpath(os.path.join(os.path.dirname(PYTHON), "..")):
    os.execv(PYTHON, [PYTHON, os.path.abspath(__file__)] + sys.argv[1:])
try:
    import numpy as np
    import safetensors
    import safetensors.numpy
except ImportError as e:
    print(f"skipped: {e}; tests/readers/setup.sh installs what is needed, or WEIR_READERS_PYTHON names a Python that has it")
    sys.exit(77)

PROGRAM = sys.argv[1]
failures = 0


def check(what, holds):
    global failures
    if not holds:
        print("FAILED:", what)
        failures += 1


def copy(source, target, shapes, keys):
    """Copies a file. Returns None, or the error line."""
    named = [name + "=" + "x".join(map(str, shape)) for name, shape in shapes.items()]
    ran = subprocess.run([PROGRAM, source, target, *named, "--", *keys], capture_output=True, text=True, check=False)
    check(f"{source}: exit status {ran.returncode}", ran.returncode in (0, 1) and (ran.returncode == 0) == (ran.stderr == ""))
    return ran.stderr.strip() if ran.returncode else None


def random_arrays(random):
    """Arrays with arbitrary bits: NaNs with payloads, subnormal numbers, negative zeros."""
    arrays = {"encoder.top.0.weight": np.array([np.nan, -0.0, np.inf, -np.inf, 1e-42, 0.1], np.float32).reshape(2, 3)}
    for i in range(random.integers(0, 20)):
        shape = random.integers(0 if i % 4 == 0 else 1, 6, random.integers(0, 5))
        bits = random.integers(0, 1 << 32, int(np.prod(shape)), dtype=np.uint32)
        arrays[f"{'zyx'[i % 3]}.{i}.\u4e2d \"quoted\\"] = bits.view(np.float32).reshape(shape)
    return arrays


def read(path):
    with safetensors.safe_open(path, "np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()


def compare_round_trips(folder):
    random = np.random.default_rng(5)
    source, target = os.path.join(folder, "source"), os.path.join(folder, "target")
    for turn in range(30):
        arrays = random_arrays(random)
        metadata = {"step": str(turn), "text \u4e2d": "line\n\"quoted\" \\ \u4e2d"} if turn % 3 else None
        safetensors.numpy.save_file(arrays, source, metadata=metadata)
        error = copy(source, target, {name: array.shape for name, array in arrays.items()}, metadata or {})
        check(f"round trip {turn}: {error}", error is None)
        if error is None:
            got, got_metadata = read(target)
            check(f"round trip {turn}: metadata {got_metadata}", (got_metadata or None) == metadata)
            check(f"round trip {turn}: names", got.keys() == arrays.keys())
            for name, array in arrays.items():
                same = name in got and got[name].shape == array.shape and got[name].dtype == np.float32
                check(f"round trip {turn}: {name}", same and got[name].tobytes() == array.tobytes())


def entry(shape, begin, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def compare_made_files(folder):
    """Files that both must accept or refuse: (accepted, header, bytes of data)."""
    w, b = entry([2, 2], 0, 16), entry([3], 16, 28)
    text = json.dumps({"w": w, "b": b})
    rows = [
        (True, text, 28), (True, text + " " * 9, 28), (True, json.dumps({"b": b, "w": w, "__metadata__": {"k": "v"}}), 28),
        (True, json.dumps({"w": entry([2, 2], 12, 28), "b": entry([3], 0, 12)}), 28),
        (False, text, 27), (False, text, 32), (False, text[:-1], 28), (False, text + "x", 28), (False, "[]", 0),
        (False, json.dumps({"w": w, "b": entry([3], 4, 16)}), 28),
        (False, json.dumps({"w": w, "b": entry([3], 20, 32)}), 32),
        (False, json.dumps({"w": w, "b": entry([3], 16, 24)}), 28),
        (False, json.dumps({"w": w, "b": entry([3], 28, 16)}), 28),
        (False, json.dumps({"w": w, "b": entry([3], 16, 1 << 64)}), 28),
        (False, json.dumps({"w": w, "b": b, "__metadata__": 7}), 28),
    ]
    source, target = os.path.join(folder, "source"), os.path.join(folder, "target")
    for i, (taken, header, data_bytes) in enumerate(rows):
        with open(source, "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header.encode() + bytes(range(data_bytes)))
        try:
            arrays, _ = read(source)
        except safetensors.SafetensorError:
            arrays = None
        error = copy(source, target, {"w": (2, 2), "b": (3,)}, [])
        check(f"file {i}: the package {'refuses' if taken else 'accepts'} it", (arrays is not None) == taken)
        check(f"file {i}: {error or 'accepted'}", (error is None) == taken)
        if arrays and error is None:
            got, _ = read(target)
            check(f"file {i}: bits", all(got[name].tobytes() == array.tobytes() for name, array in arrays.items()))


with tempfile.TemporaryDirectory() as work:
    compare_round_trips(work)
    compare_made_files(work)
print(f"safetensors {safetensors.__version__}: {failures} failures")
sys.exit(1 if failures else 0)
