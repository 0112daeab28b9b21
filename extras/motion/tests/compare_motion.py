#!/usr/bin/env python3
"""Reads motion files written by numpy and h5py: extras/motion/tests/compare_motion.py PROGRAM [-v]

PROGRAM (motion_dump.c) prints the values it reads. Stored numbers must equal numpy's bit for bit; derived ones must be
close to float64 results computed here. Damaged, hostile or incomplete files must be refused with one line that names
the file, in little memory. Exit status 77: no numpy. Without h5py it skips HDF5.
"""
import io
import itertools
import json
import os
import subprocess
import sys
import tempfile
import warnings
import zipfile

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}; install Debian's python3-numpy and python3-h5py")
    sys.exit(77)
try:
    import h5py
except ImportError as e:
    h5py = None
    print(f"left out: HDF5 ({e}; Debian's python3-h5py has it)")

PROGRAM = sys.argv[1]
VERBOSE = "-v" in sys.argv
KEYS = {
    "isaaclab": ("dof_positions", "dof_velocities", "body_positions", "body_rotations", "body_linear_velocities",
                 "body_angular_velocities", "dof_names", "body_names"),
    "tracking": ("joint_pos", "joint_vel", "body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w",
                 "joint_names", "body_names"),
}
FRAMES, DOFS, BODIES = 21, 5, 4
checks = failures = 0


def check(what, holds, more=""):
    global checks, failures
    checks += 1
    if not holds:
        print("FAILED:", what, more)
        failures += 1


# ---- motions ----


def motion(seed, frames=FRAMES, dofs=DOFS, bodies=BODIES, velocities=True, names=True):
    """One clip's arrays under weir's names; quaternions are not normalised."""
    random = np.random.default_rng(seed)
    m = {
        "fps": 30,
        "dof_pos": random.normal(size=(frames, dofs)),
        "body_pos": random.normal(size=(frames, bodies, 3)),
        "body_quat": random.normal(size=(1, bodies, 4)) + 0.3 * random.normal(size=(frames, bodies, 4)),
    }
    if velocities:
        m["dof_vel"] = random.normal(size=(frames, dofs))
        m["body_vel"] = random.normal(size=(frames, bodies, 3))
        m["body_ang_vel"] = random.normal(size=(frames, bodies, 3))
    if names:
        m["dof_names"] = [f"joint_{i}" for i in range(dofs)]
        m["body_names"] = ["pelvis", "left_hand", "\u5de6\u811a", "head"][:bodies]
    for name in [k for k in m if k not in ("fps", "dof_names", "body_names")]:
        m[name] = m[name].astype(np.float32)
    return m


def keyed(m, keys="isaaclab"):
    """The arrays of a file, under the names of its format."""
    names = ("dof_pos", "dof_vel", "body_pos", "body_quat", "body_vel", "body_ang_vel", "dof_names", "body_names")
    arrays = {key: np.array(m[name]) for name, key in zip(names, KEYS[keys]) if name in m}
    return {"fps": np.array(m["fps"]), **arrays}


def multiply(a, b):
    w, x, y, z = np.moveaxis(a, -1, 0)
    W, X, Y, Z = np.moveaxis(b, -1, 0)
    return np.stack([w * W - x * X - y * Y - z * Z, w * X + x * W + y * Z - z * Y,
                     w * Y - x * Z + y * W + z * X, w * Z + x * Y - y * X + z * W], -1)


def turning_rates(quats, fps):
    """Angular velocity in the world frame, from each frame to the next: the rotation vector times fps."""
    q = quats.astype(np.float64)
    turn = multiply(q[1:], q[:-1] * [1, -1, -1, -1])  # in the world: to * conj(from)
    turn *= np.where(turn[:, :1] < 0, -1, 1)
    sine = np.linalg.norm(turn[:, 1:], axis=-1, keepdims=True)
    angle = 2 * np.arctan2(sine, turn[:, :1])
    rates = turn[:, 1:] * np.where(sine > 0, angle / np.where(sine > 0, sine, 1), 0) * fps
    return np.concatenate([rates, rates[-1:]])


def differences(values, fps):
    rates = (values[1:] - values[:-1]) / np.float32(1 / fps)
    return np.concatenate([rates, rates[-1:]])


def expected(m, root=0, key_bodies=None):
    """Expected results for a clip: name -> (array, tolerance)."""
    fps = float(np.array(m["fps"]).reshape(-1)[0])
    f32 = {name: np.asarray(value).astype(np.float32) for name, value in m.items() if "names" not in name}
    quat = f32["body_quat"][:, root].astype(np.float64)
    quat = (quat / np.linalg.norm(quat, axis=-1, keepdims=True)).astype(np.float32)
    bodies = [b for b in range(f32["body_pos"].shape[1]) if b != root] if key_bodies is None else key_bodies
    place = f32["body_pos"][:, root]
    given = "dof_vel" in m
    rates = f32["body_ang_vel"][:, root] if given else turning_rates(quat, fps)
    return {
        "root_pos_w": (place, 0),
        "root_quat": (quat, 1e-7),
        "root_vel_w": (f32["body_vel"][:, root] if given else differences(place, fps), 0),
        "root_ang_vel_w": (rates, 0 if given else 2e-5 * fps),
        "dof_pos": (f32["dof_pos"], 0),
        "dof_vel": (f32["dof_vel"] if given else differences(f32["dof_pos"], fps), 0),
        "key_body_pos_w": (f32["body_pos"][:, bodies], 0),
    }


# ---- reading ----


def run(*arguments):
    """(exit status, stdout, stderr)"""
    ran = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, check=False)
    return ran.returncode, ran.stdout, ran.stderr.decode(errors="replace")


def read(what, *arguments):
    """(head, arrays), or None."""
    status, out, err = run(*arguments)
    check(f"{what}: accepted", status == 0 and err == "", f"exit {status}: {err.strip()}")
    if status != 0:
        return None
    line, data = out.split(b"\n", 1)
    head = json.loads(line)
    values, at = np.frombuffer(data, np.float32), 0
    widths = {"root_pos_w": (3,), "root_quat": (4,), "root_vel_w": (3,), "root_ang_vel_w": (3,), "dof_pos": (head["dofs"],),
              "dof_vel": (head["dofs"],), "key_body_pos_w": (head["bodies"], 3)}
    for name, width in widths.items():
        shape = (head["frames"], *width)
        head[name] = values[at:at + int(np.prod(shape))].reshape(shape)
        at += int(np.prod(shape))
    check(f"{what}: complete", at == values.size)
    return head


def same(what, head, motions, **how):
    """Compares clips; motions: (name, motion, loops) of each."""
    if head is None:
        return
    at = 0
    check(f"{what}: clips", [c["name"] for c in head["clips"]] == [name for name, _, _ in motions], str(head["clips"]))
    for clip, (name, m, loop) in zip(head["clips"], motions):
        fps = float(np.array(m["fps"]).reshape(-1)[0])
        frames = len(m["dof_pos"])
        is_so = (clip["first"], clip["frames"], clip["fps"], clip["loop"]) == (at, frames, fps, loop)
        check(f"{what}: {name}", is_so and abs(clip["duration"] - (frames - 1) / fps) < 1e-12, str(clip))
        for array, (wanted, tolerance) in expected(m, **how).items():
            part = head[array][at:at + frames]
            fine = np.array_equal(part, wanted) if tolerance == 0 else np.allclose(part, wanted, rtol=0, atol=tolerance)
            check(f"{what}: {name}: {array}", fine, f"up to {np.abs(part - wanted).max()} off")
        at += frames


def refused(what, path, *words, memory_mb=None):
    peak = f"{path}.peak"
    status, out, err = run(*(("--peak", peak) if memory_mb else ()), path)
    if VERBOSE:
        print(f"{what}: {err.strip()}")
    check(f"{what}: refused", status == 1 and out == b"", f"exit {status}")
    check(f"{what}: one error line", err.count("\n") == 1 and err.isprintable() is False and len(err) < 1100, err)
    for word in (os.path.basename(str(path)), *words):
        check(f"{what}: the error contains '{word}'", word in err, err.strip())
    if memory_mb:
        with open(peak, encoding="ascii") as file:
            memory = int(file.read()) / 1e6
        check(f"{what}: within {memory_mb} MB", memory < memory_mb, f"{memory:.0f} MB")


# ---- NPZ: accepted files ----


def kinds_of_files(folder):
    for keys, write in itertools.product(KEYS, (np.savez, np.savez_compressed)):
        m = motion(1, names=keys == "isaaclab")
        path = f"{folder}/{keys}_{write.__name__}.npz"
        write(path, **keyed(m, keys))
        head = read(path, path)
        same(path, head, [(os.path.basename(path)[:-4], m, False)])
        if head:
            check(f"{path}: names", head["dof_names"] == m.get("dof_names") and
                  head["body_names"] == (m["body_names"][1:] if "body_names" in m else None))


def kinds_of_numbers(folder):
    path = f"{folder}/numbers.npz"
    for dtype in ("<f8", ">f4", ">f8", "<f2", ">f2", "<i4", "<i8", ">i2", "i1", "u1", "<u2", "<u4", "<u8"):
        m = {name: value if "names" in name or name == "fps" else np.clip(value * 9, -100, 100).astype(dtype)
             for name, value in motion(2).items()}
        m["body_quat"][..., 0] += np.all(m["body_quat"] == 0, axis=-1)
        if dtype[-2] == "u" or dtype[0] == "u":
            m = {name: abs(value.astype("i8")).astype(dtype) if isinstance(value, np.ndarray) else value
                 for name, value in m.items()}
        np.savez_compressed(path, **keyed(m))
        same(dtype, read(dtype, path), [("numbers", m, False)])
    for fps in (30, 29.97, np.int32(60), np.float32(50), [120], np.array([25.0]), np.uint8(1), np.float16(0.5)):
        m = {**motion(3), "fps": fps}
        np.savez(path, **keyed(m))
        same(f"fps {fps!r}", read(f"fps {fps!r}", path), [("numbers", m, False)])


def orders_and_versions(folder):
    path = f"{folder}/order.npz"
    m = motion(4)
    np.savez(path, **{key: np.asfortranarray(value) for key, value in keyed(m).items()})
    with np.load(path) as file:
        check("numpy keeps the order", file["body_positions"].flags.f_contiguous and not file["body_positions"].flags.c_contiguous)
    same("Fortran order", read("Fortran order", path), [("order", m, False)])
    for version in ((1, 0), (2, 0), (3, 0)):
        with zipfile.ZipFile(path, "w") as file:
            for key, value in keyed(m).items():
                data = io.BytesIO()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    np.lib.format.write_array(data, value, version=version)
                file.writestr(f"{key}.npy", data.getvalue())
        same(f"npy {version}", read(f"npy {version}", path), [("order", m, False)])
    limit, zipfile.ZIP64_LIMIT = zipfile.ZIP64_LIMIT, 10
    np.savez_compressed(path, **keyed(m))
    zipfile.ZIP64_LIMIT = limit
    same("ZIP64", read("ZIP64", path), [("order", m, False)])
    arrays = keyed(m)
    arrays["dof_names"] = np.array(m["dof_names"], dtype="S")
    arrays["body_names"] = np.array(m["body_names"]).astype(">U20")
    np.savez(path, **arrays, other=np.array(["not looked at"], dtype=object))
    head = read("names of other types", path)
    check("names of other types: the same", head and (head["dof_names"], head["body_names"]) == (m["dof_names"], m["body_names"][1:]))


def derived(folder):
    path = f"{folder}/derived.npz"
    for keys, fps in itertools.product(KEYS, (30, 0.1, 1000)):
        m = {**motion(5, velocities=False), "fps": fps}
        m["body_quat"][3] = m["body_quat"][2]  # no rotation
        m["body_quat"][5] = -m["body_quat"][4]  # none here either
        np.savez(path, **keyed(m, keys))
        what = f"{keys} at {fps} fps without velocities"
        same(what, read(what, path), [("derived", m, False)])
    m = {**motion(6, frames=2, velocities=False)}
    np.savez(path, **keyed(m))
    same("two frames", read("two frames", path), [("derived", m, False)])


def bodies(folder):
    path = f"{folder}/bodies.npz"
    m = motion(7)
    np.savez(path, **keyed(m))
    clips = [("bodies", m, False)]
    same("another root", read("another root", "--root", "head", path), clips, root=3)
    same("a root by number", read("a root by number", "--root", "2", path), clips, root=2)
    head = read("key bodies", "--key-bodies", "head,\u5de6\u811a,head", path)
    same("key bodies", head, clips, key_bodies=[3, 2, 3])
    check("key bodies: names", head and head["body_names"] == ["head", "\u5de6\u811a", "head"])
    same("all of it", read("all of it", "--root", "1", "--key-bodies", "0,1", path), clips, root=1, key_bodies=[0, 1])
    for options, words in ((("--root", "foot"), "has no body 'foot'; its bodies are pelvis, left_hand"),
                           (("--key-bodies", "head,"), "has no body ''"), (("--key-bodies", "4"), "has no body '4'"),
                           (("--root", "99999999999999999999"), "has no body '9")):
        status, _, err = run(*options, path)
        check(f"{options}: refused", status == 1 and words in err, err)
    np.savez(path, **keyed(motion(7, names=False), "tracking"))
    status, _, err = run("--root", "head", path)
    check("no names", status == 1 and "it has no body_names, so use a number from 0 to 3" in err, err)


def legged_lab(folder):
    path = f"{folder}/walk.npz"
    m = motion(8, velocities=False, names=False)
    arrays = {"fps": 30.0, "root_pos": m["body_pos"][:, 0], "root_rot": m["body_quat"][:, 0], "dof_pos": m["dof_pos"],
              "key_body_pos": m["body_pos"][:, 1:].astype(np.float64), "loop_mode": 1}
    np.savez(path, **arrays)
    same("legged_lab", read("legged_lab", path), [("walk", m, True)])
    same("never", read("never", "--loop", "never", path), [("walk", m, False)])
    np.savez(path, **{**arrays, "loop_mode": 0})
    same("clamp", read("clamp", path), [("walk", m, False)])
    same("always", read("always", "--loop", "always", path), [("walk", m, True)])
    status, _, err = run("--root", "0", path)
    check("a root that is not a body", status == 1 and "store the root separately from the bodies" in err, err)
    np.savez(path, **{**arrays, "loop_mode": 2})
    refused("loop_mode", path, "loop_mode: is 2; it must be 0")


def still(folder):
    """Files at deflate's max compression ratio."""
    path = f"{folder}/still.npz"
    for frames in (2, 1000, 30000):
        m = {**motion(12, frames=2), "fps": 50}
        m = {k: np.repeat(v[:1], frames, 0) if isinstance(v, np.ndarray) else v for k, v in m.items()}
        for name in ("dof_pos", "dof_vel", "body_pos", "body_vel", "body_ang_vel"):
            m[name] = np.zeros_like(m[name])
        np.savez_compressed(path, **keyed(m))
        same(f"still, {frames} frames", read(f"still, {frames} frames", path), [("still", m, False)])


def many_files(folder):
    parts = [(f"walk_{i}", {**motion(20 + i, frames=2 + i), "fps": 10 + i}, False) for i in (1, 2, 9, 10)]
    os.makedirs(f"{folder}/many")
    for name, m, _ in parts:
        np.savez(f"{folder}/many/{name}.npz", **keyed(m))
    with open(f"{folder}/many/readme.txt", "w", encoding="utf-8") as file:
        file.write("no motion\n")
    same("a folder", read("a folder", f"{folder}/many"), parts)
    back = [f"{folder}/many/{name}.npz" for name, _, _ in parts[::-1]]
    same("files", read("files", *back), parts[::-1])
    same("both", read("both", f"{folder}/many", back[0]), parts + parts[3:])
    np.savez(f"{folder}/other.npz", **keyed(motion(30, dofs=DOFS + 1)))
    status, _, err = run(f"{folder}/many", f"{folder}/other.npz")
    check("another robot", status == 1 and "other.npz: has 6 dofs and 3 key bodies, but the first motion has 5 and 3" in err, err)
    renamed = {**motion(31), "dof_names": ["a", "b", "c", "d", "e"]}
    np.savez(f"{folder}/other.npz", **keyed(renamed))
    status, _, err = run(f"{folder}/many", f"{folder}/other.npz")
    check("other names", status == 1 and "other.npz: dof 0 is 'a', but 'joint_0' in the first motion" in err, err)
    os.makedirs(f"{folder}/none")
    refused("an empty folder", f"{folder}/none", "no motion files")
    refused("nothing", f"{folder}/nowhere", "No such file")


# ---- NPZ: refused files ----


def changed(folder, what, words, **arrays):
    path = f"{folder}/changed.npz"
    all_arrays = {**keyed(motion(9)), **arrays}
    np.savez(path, **{key: value for key, value in all_arrays.items() if value is not None})
    refused(what, path, *words)


def wrong_values(folder):
    m = keyed(motion(9))
    for value, text in ((np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")):
        for key, index, at in (("dof_positions", (3, 2), "[3][2]"), ("body_positions", (4, 0, 1), "[4][0][1]"),
                               ("body_rotations", (20, 0, 3), "[20][0][3]"), ("body_positions", (0, 3, 2), "[0][3][2]"),
                               ("dof_velocities", (1, 0), "[1][0]"), ("body_angular_velocities", (2, 0, 0), "[2][0][0]")):
            array = m[key].copy()
            array[index] = value
            changed(folder, f"{text} in {key}", (f"{key}{at}: is {text}, which is not a finite float32",), **{key: array})
    large = m["dof_positions"].astype(np.float64)
    large[7, 1] = 1e300
    changed(folder, "1e300", ("dof_positions[7][1]: is 1e+300",), dof_positions=large)
    zero = m["body_rotations"].copy()
    zero[6, 0] = 0
    changed(folder, "a quaternion of zeros", ("body_rotations[6][0]: is an all-zero quaternion",), body_rotations=zero)
    for key in ("body_positions", "body_rotations", "fps"):
        changed(folder, f"no {key}", (f"{key}: is not in the file;",), **{key: None})
    changed(folder, "no dofs", ("is not a motion file",), dof_positions=None)
    for fps, words in ((0, "fps is 0;"), (-30, "fps is -30;"), (np.nan, "fps is nan;"), (np.inf, "fps is inf;"), (1e-300, "fps is 1e-300;"),
                       ([30, 30], "fps: must be a single number"), ("30", "fps: must be a single number")):
        changed(folder, f"fps {fps}", (words,), fps=np.array(fps))
    differ = {**keyed(motion(9, velocities=False)), "fps": np.array(3e38)}
    np.savez(f"{folder}/changed.npz", **differ)
    refused("no velocity", f"{folder}/changed.npz", "fps")
    changed(folder, "one frame", ("has 1 frame;",), **{k: v[:1] for k, v in m.items() if v.ndim > 1})
    changed(folder, "no frame", ("dof_positions: has shape (0, 5);",), **{k: v[:0] for k, v in m.items() if v.ndim > 1})
    for key, shape, must in (("dof_velocities", (21, 4), "(21, 5)"), ("body_positions", (21, 12), "(21, bodies, 3)"),
                             ("body_rotations", (21, 4, 3), "(21, 4, 4)"), ("body_rotations", (20, 4, 4), "(21, 4, 4)"),
                             ("body_linear_velocities", (21, 3, 3), "(21, 4, 3)"), ("dof_positions", (21,), "(frames, dofs)"),
                             ("dof_positions", (21, 0), "(frames, dofs)"), ("dof_positions", (1,) * 8, "(frames, dofs)")):
        is_so = str(shape)
        changed(folder, f"{key} {shape}", (f"{key}: has shape {is_so}; it must be {must}",), **{key: np.ones(shape)})
    changed(folder, "only the root", ("has no body besides the root",), body_names=None,
            **{k: v[:, :1] for k, v in m.items() if k.startswith("body_") and v.ndim == 3})
    changed(folder, "too many dofs", ("at most 4096",), dof_positions=np.zeros((21, 5000)), dof_names=None)
    changed(folder, "names for others", ("dof_names: must be a list of 5 names",), dof_names=np.array(["a", "b"]))
    changed(folder, "names that are numbers", ("body_names: must be a list of 4 names",), body_names=np.arange(4))
    changed(folder, "a long name", ("dof_names: has a name longer than 63 bytes",), dof_names=np.array(["x" * 64] * 5))
    changed(folder, "positions that are texts", ("dof_positions: holds strings",), dof_positions=np.full((21, 5), "x"))


def wrong_types(folder):
    objects = np.array(["a", "b", "c", "d", "e"], dtype=object)
    changed(folder, "objects", ("dof_names: holds Python objects as a pickle",), dof_names=objects)
    changed(folder, "objects", ("dof_positions: holds Python objects",), dof_positions=np.full((21, 5), None))
    changed(folder, "complex", ("dof_positions: has elements of type <c16",), dof_positions=np.ones((21, 5), complex))
    changed(folder, "dates", ("fps: has elements of type <M8[s]",), fps=np.array("2020-01-01", "M8[s]"))
    changed(folder, "records", ("elements of type several fields",), fps=np.zeros(1, [("a", "<f4"), ("b", "<i4")]))
    changed(folder, "long double", ("has elements of type",), dof_positions=np.ones((21, 5), np.longdouble))
    path = f"{folder}/array.npz"
    with open(path, "wb") as file:
        np.save(file, np.ones((3, 4)))
    refused("one array", path, "is a single numpy array")
    with open(f"{folder}/motion.pkl", "wb") as file:
        file.write(b"\x80\x04}q.")
    refused("a pickle", f"{folder}/motion.pkl", "is a pickle, which is refused because")
    with open(f"{folder}/motion.csv", "w", encoding="ascii") as file:
        file.write("1,2,3\n")
    refused("a table", f"{folder}/motion.csv", "is not a motion file; use NPZ (np.savez) or HDF5")
    for name, data in (("empty.npz", b""), ("text.npz", b"a text, no archive\n" * 20), ("zeros.npz", bytes(1000))):
        with open(f"{folder}/{name}", "wb") as file:
            file.write(data)
        refused(name, f"{folder}/{name}", "not a complete zip archive")
    os.mkfifo(f"{folder}/fifo.npz")
    refused("a FIFO", f"{folder}/fifo.npz", "is not a regular file")


def npy(header, data=b""):
    header = header.encode("latin-1")
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


def archive(folder, members, name="archive.npz", compression=zipfile.ZIP_STORED):
    path = f"{folder}/{name}"
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", compression) as file:
        warnings.simplefilter("ignore")
        for member, data in members:
            file.writestr(member, data)
    return path


def saved(m=None):
    """(name, bytes) of each member."""
    members = []
    for key, value in keyed(m or motion(9)).items():
        data = io.BytesIO()
        np.lib.format.write_array(data, value)
        members.append((f"{key}.npy", data.getvalue()))
    return members


def poked(path, at, data):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)


def wrong_archives(folder):
    members = saved()
    refused("a name twice", archive(folder, members + members[2:3]), "has duplicate array names (1)")
    for compression, method in ((zipfile.ZIP_BZIP2, 12), (zipfile.ZIP_LZMA, 14)):
        path = archive(folder, members, compression=compression)
        refused(f"method {method}", path, f"is compressed with method {method}; only stored and deflate")
    path = archive(folder, members)
    whole = open(path, "rb").read()
    directory = whole.index(b"PK\x01\x02")
    entry = whole.index(b"dof_positions.npy", directory) - 46
    local = int.from_bytes(whole[entry + 42:entry + 46], "little")
    other = whole.index(b"dof_velocities.npy", directory) - 46
    for what, at, data, words in (
            ("a changed byte", local + 300, b"\x55", "does not match its checksum"),
            ("encrypted", entry + 8, b"\x01", "is encrypted"),
            ("shared bytes", other + 42, whole[entry + 42:entry + 46], "overlaps another member of the archive"),
            ("inside another", other + 42, (local + 100).to_bytes(4, "little"), ""),
            ("two sizes", entry + 24, (10 ** 6).to_bytes(4, "little"), "is stored, but with two different sizes"),
            ("outside", entry + 42, (len(whole) - 3).to_bytes(4, "little"), "is invalid"),
            ("a longer member", entry + 20, (10 ** 6).to_bytes(4, "little") * 2, ""),
            ("a member over the next", entry + 20, (len(whole) - local - 400).to_bytes(4, "little") * 2, ""),
            ("a bad local header", local, b"XX", "is invalid")):
        path = archive(folder, members)
        poked(path, at, data)
        refused(what, path, *([words] if words else []))
    path = archive(folder, members, compression=zipfile.ZIP_DEFLATED)
    whole = open(path, "rb").read()
    local = whole.index(b"dof_positions.npy") + len("dof_positions.npy")
    for at in range(local, local + 200, 7):
        path = archive(folder, members, compression=zipfile.ZIP_DEFLATED)
        poked(path, at, bytes([whole[at] ^ 0x20]))
        refused(f"deflate damaged at {at - local}", path)


def wrong_headers(folder):
    good = "{'descr': '<i8', 'fortran_order': False, 'shape': (), }"
    rest = [member for member in saved() if member[0] != "fps.npy"]
    for header in (good, "{'descr':'<i8','fortran_order':False,'shape':()}", '{"shape": ( ), "descr": "<i8", "fortran_order": True}  \n',
                   good.replace("()", "(1,)"), good.replace("()", "(1, 1, 1)"), good.replace("<i8", "=i8")):
        read(header, archive(folder, [("fps.npy", npy(header, (30).to_bytes(8, "little")))] + rest))
    for header, words in (
            ("", "npy header is empty"), ("{}", "does not contain descr"), (good[:-1], "npy header"), (good + "x", "continues after"),
            (good.replace("'shape'", "'form'"), "other than descr, fortran_order and shape"), (good.replace("()", "[]"), "not a tuple"),
            (good.replace("()", "(1)"), "not a tuple"), (good.replace("()", "(-1,)"), "not a tuple"), (good.replace("()", "(1,,)"), "not a tuple"),
            (good.replace("()", "(1.0,)"), "not a tuple"), (good.replace("()", "(1L,)"), "not a tuple"), (good.replace("()", "(2,)"), "bytes, but"),
            (good.replace("()", "(99999999999999999999,)"), "not a tuple"), (good.replace("()", "(4611686018427387904, 4)"), "larger than 1 GiB"),
            (good.replace("()", "(134217729,)"), "larger than 1 GiB"), (good.replace("()", "(1,1,1,1,1,1,1,1,1)"), "more than 8 dimensions"),
            (good.replace("False", "0"), "not a bool"), (good.replace("'<i8'", "8"), "not a string"), (good.replace("'<i8'", "__import__('os')"), "not a string"),
            (good.replace("'<i8'", "'<i8\\x00'"), "not a string"), (good.replace("<i8", "i8"), "elements of type i8"), (good.replace("<i8", "<i3"), "elements of type <i3"),
            (good.replace("<i8", "|i8"), "elements of type"), (good.replace("<i8", "<f16"), "elements of type"), (good.replace("<i8", "<U4294967297"), "elements of type"),
            (good.replace(", }", ", 'descr': '<i8'}"), "has the same key twice"), ("\x00" * 60, "is not a dictionary"), ("{" * 5000, "npy header"),
            (good.replace("<i8", "|O"), "Python objects")):
        path = archive(folder, [("fps.npy", npy(header, (30).to_bytes(8, "little")))] + rest)
        refused(f"header {header[:60]!r}", path, "fps: ", words)
    for data, words in ((b"\x93NUMPY\x04\x00" + npy(good)[8:], "has npy version 4.0"), (b"\x93NUMPZ" + npy(good)[6:], "is not an npy array"),
                        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(50), "4294967307 bytes, but at most 65536"), (b"\x93NUM", "ends too early"), (b"", "ends too early"),
                        (npy(good), "holds 0 bytes, but its npy header says 8"), (npy(good, bytes(9)), "holds 9 bytes, but its npy header says 8"), (npy(good + " " * 50)[:40], "ends too early")):
        refused(f"bytes {data[:12]!r}", archive(folder, [("fps.npy", data)] + rest), "fps: ", words)


def bombs(folder):
    rest = [member for member in saved() if member[0] != "dof_positions.npy"]
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (21, 5), }"
    bomb = npy(header) + bytes(500 * 10 ** 6)
    for compression in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        path = archive(folder, [("dof_positions.npy", bomb)] + rest, compression=compression)
        refused("500 MB that the header does not mention", path, "holds 500000000 bytes, but its npy header says 420", memory_mb=60)
        os.remove(path)
    huge = header.replace("(21, 5)", "(21, 5000000)")
    path = archive(folder, [("dof_positions.npy", npy(huge, bytes(420)))] + rest)
    refused("400 MB that are missing", path, "holds 420 bytes, but its npy header says 420000000", memory_mb=60)
    path = archive(folder, [("dof_positions.npy", npy(huge, bytes(420)))] + rest, compression=zipfile.ZIP_DEFLATED)
    whole = open(path, "rb").read()
    entry = whole.index(b"dof_positions.npy", whole.index(b"PK\x01\x02")) - 46
    poked(path, entry + 24, (420000000 + len(npy(huge))).to_bytes(4, "little"))
    refused("400 MB beyond deflate's max ratio", path, "cannot unpack to the size", memory_mb=60)
    poked(path, entry + 24, (len(npy(huge)) + 421).to_bytes(4, "little"))
    refused("one byte more", path, "dof_positions", memory_mb=60)
    hidden = rest + [("dof_positions.npy", dict(saved())["dof_positions.npy"]), ("other.npy", bomb)]
    read("a bomb that is not looked at", archive(folder, hidden, compression=zipfile.ZIP_DEFLATED))


def cut_and_changed(folder):
    path = f"{folder}/cut.npz"
    np.savez_compressed(path, **keyed(motion(9)))
    whole = open(path, "rb").read()
    for length in list(range(0, len(whole), 97)) + [len(whole) - 1]:
        with open(path, "wb") as file:
            file.write(whole[:length])
        refused(f"cut to {length}", path)
    random = np.random.default_rng(10)
    fine = 0
    for _ in range(300):
        damaged = np.frombuffer(whole, np.uint8).copy()
        for at in random.integers(0, len(whole), random.integers(1, 4)):
            damaged[at] = random.integers(0, 256)
        with open(path, "wb") as file:
            file.write(damaged.tobytes())
        status, out, err = run(path)
        fine += status == 0
        check("a changed byte", (status == 0 and out and not err) or (status == 1 and not out and err.count("\n") == 1), f"{status}: {err}")
    check("most changes are detected", fine < 150, f"{fine} of 300 were not")


# ---- HDF5 ----


def write_h5(where, arrays, **how):
    for key, value in arrays.items():
        if value.dtype.kind == "U":
            value = value.astype(object)
            where.create_dataset(key, data=value, dtype=h5py.string_dtype())
        else:
            where.create_dataset(key, data=value, **(how if value.ndim else {}))


def hdf5(folder):
    path = f"{folder}/motion.hdf5"
    for keys, how in itertools.product(KEYS, ({}, {"compression": "gzip", "shuffle": True}, {"dtype": "f8"}, {"dtype": ">f4"}, {"dtype": "f2"})):
        m = motion(40)
        if how.get("dtype") == "f2":
            m = {k: v.astype(np.float16) if isinstance(v, np.ndarray) else v for k, v in m.items()}
        with h5py.File(path, "w") as file:
            write_h5(file, keyed(m, keys), **how)
        head = read(f"{keys} {how}", path)
        same(f"HDF5 {keys} {how}", head, [("motion", m, False)])
        check("names", head and (head["dof_names"], head["body_names"]) == (m["dof_names"], m["body_names"][1:]))
    parts = [(f"motion/clip_{i}", {**motion(50 + i, frames=3 + i, velocities=i != 2), "fps": 20 + i}, i == 1) for i in (1, 2, 10)]
    with h5py.File(path, "w") as file:
        for name, m, loop in parts:
            write_h5(file.create_group(name.split("/")[1]), {**keyed(m), "loop_mode": np.array(int(loop))})
        file["about"] = "not a clip"
    same("groups", read("groups", path), parts)
    one = motion(60)
    with h5py.File(f"{folder}/one.h5", "w", userblock_size=1024) as file:
        write_h5(file, {**keyed(one), "body_names": np.array([b"a", b"b", b"c", b"d"])})
        file["soft"] = h5py.SoftLink("/dof_positions")
    head = read("a user block", f"{folder}/one.h5")
    same("a user block", head, [("one", one, False)])
    check("fixed names", head and head["body_names"] == ["b", "c", "d"])


def wrong_hdf5(folder):
    path = f"{folder}/wrong.hdf5"

    def written(what, words, change):
        with h5py.File(path, "w") as file:
            write_h5(file, keyed(motion(61)))
            change(file)
        refused(what, path, *words)

    def drop(key):
        return lambda file: file.pop(key)

    def put(key, value):
        return lambda file: (file.pop(key), file.create_dataset(key, data=value))

    def link(key, target):
        return lambda file: (file.pop(key), file.__setitem__(key, target))

    nan = motion(61)["dof_pos"]
    nan[4, 1] = np.nan
    written("no positions", ("body_positions: is not in the file; Isaac Lab's motion files contain it",), drop("body_positions"))
    written("no fps", ("fps: is not in the file",), drop("fps"))
    written("fps 0", ("fps is 0",), put("fps", 0))
    written("no number", ("fps", ), put("fps", h5py.Empty("f4")))
    written("NaN", ("dof_positions[4][1]: is nan",), put("dof_positions", nan))
    written("texts", ("dof_positions: holds strings",), put("dof_positions", [b"a", b"b"]))
    written("a shape", ("dof_positions: has shape (105,)",), put("dof_positions", np.ones(105)))
    written("rank 9", ("rank 9",), put("dof_positions", np.ones((1,) * 9)))
    written("long names", ("dof_names",), put("dof_names", ["x" * 64] * 5))
    written("no dofs", ("is not a motion file",), drop("dof_positions"))
    written("another file", ("/etc/passwd lies outside",), link("dof_positions", h5py.ExternalLink("/etc/passwd", "/x")))
    with h5py.File(path, "w") as file:
        write_h5(file.create_group("a"), keyed(motion(61)))
        file.create_group("b")
    refused("a group without a clip", path, "it has none of dof_positions")
    with h5py.File(path, "w") as file:
        pass
    refused("an empty HDF5 file", path, "is not a motion file")
    with h5py.File(path, "w") as file:
        write_h5(file, keyed(motion(61)))
        file.create_dataset("huge", (1 << 40,), dtype="f4", chunks=(1 << 20,))
        file.pop("dof_velocities")
        file.create_dataset("dof_velocities", (1 << 30, 1 << 10), dtype="f8", chunks=(1 << 10, 1 << 10))
    refused("a huge dataset", path, "dof_velocities: is larger than 1 GiB")
    with h5py.File(path, "w") as file:
        write_h5(file, keyed(motion(61)))
    whole = open(path, "rb").read()
    for length in (0, 7, 100, len(whole) // 2, len(whole) - 1000):
        with open(path, "wb") as file:
            file.write(whole[:length])
        refused(f"HDF5 cut to {length}", path)
    random = np.random.default_rng(11)
    for _ in range(60):
        damaged = np.frombuffer(whole, np.uint8).copy()
        damaged[random.integers(0, 6000, 8)] = random.integers(0, 256, 8)
        with open(path, "wb") as file:
            file.write(damaged.tobytes())
        status, out, err = run(path)
        check("changed HDF5", (status == 0 and out and not err) or (status == 1 and not out and err.count("\n") == 1), f"{status}: {err}")


def main():
    parts = [kinds_of_files, kinds_of_numbers, orders_and_versions, derived, bodies, legged_lab, still, many_files, wrong_values, wrong_types,
             wrong_archives, wrong_headers, bombs, cut_and_changed] + ([hdf5, wrong_hdf5] if h5py else [])
    for part in parts:
        with tempfile.TemporaryDirectory() as folder:
            part(folder)
    print(f"{checks} checks, {failures} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
