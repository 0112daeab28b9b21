"""Datasets that are sound, but lack something or have more than their layout uses: test_unexpected.py WEIR FAKE_CUDA

Without cameras; with arrays or demos that are not wanted; images that are upside down; with names that no layout has,
where the command that a refusal prints must work as typed.
"""
import json
import os
import re
import shlex
import shutil
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


# ---- arrays that are not used, demos that are not wanted ----

def line_of(done, start):
    """The line of `weir info` with this start, without its breaks."""
    found = re.search(rf"^{start}: (.*(?:\n  .*)*)", done.stdout, re.M)
    return re.sub(r"\s+", " ", found[1]) if found else ""


def test_not_used(work):
    write_act(f"{work}/episode_0.hdf5", 0, base_action=np.full((6, 2), 7, "f4"), **{"observations/qvel": rows(0, 6, 4), "rewards": np.zeros(6)})
    not_used = line_of(weir("info", work), "not used")
    check("arrays of numbers that an episode does not use", not_used == "base_action (2), observations/qvel (4)", not_used)
    given = weir("info", work, "--action-keys", "/action,/base_action", "--qpos-keys", "observations/qpos,observations/qvel")
    check("arrays that the user names are used", given.returncode == 0 and not line_of(given, "not used"), said(given))
    state = np.concatenate([rows(e, n, 2) for e, n in enumerate(STEPS)])
    cloud = np.zeros((11, 64, 6), "f4")
    data = write_zarr(f"{work}/cloud.zarr", data__state=state, data__action=state, data__point_cloud=cloud)
    info = weir("info", data)
    check("a point cloud is not state", "data/state (11 steps, 2" in info.stdout and line_of(info, "not used") == "data/point_cloud (384)", said(info))
    named = weir("info", data, "--qpos-keys", "data/point_cloud")
    check("unless it is named", "(11 steps, 384" in named.stdout, said(named))
    check("weir info --json", json.loads(weir("info", data, "--json").stdout)["not_used"] == "data/point_cloud (384)")


def test_filter_key(work):
    data = write_demos(f"{work}/demo.hdf5", steps=(4, 5, 6, 7), names=["demo_0", "demo_2", "demo_10", "demo_3"])
    with h5py.File(data, "a") as f:
        f["mask/train"] = np.array(["demo_10", "demo_2", "demo_3"], "S")
        f["mask/valid"] = np.array(["demo_0"], dtype=h5py.string_dtype())
        f["mask/none"] = np.array([], "S8")
    info = weir("info", data)
    not_used = line_of(info, "not used")
    check("weir info lists the lists of demos", "/mask/train (3 demos)" in not_used and "/mask/valid (1 demos)" in not_used and
          "--filter-key" in not_used, said(info))
    for key, lengths in (("train", [5, 7, 6]), ("valid", [4])):
        path = f"{work}/sums"
        done = weir("run", data, "--filter-key", key, "--no-shuffle", "--train-split", "1", "--batch-size", "1", "--checksums", path)
        samples = re.findall(r"samples (\d+):(\d+)", open(path, encoding="ascii").read()) if done.returncode == 0 else []
        got = [sum(int(e) == i for e, _ in samples) for i in range(len(lengths))]
        check(f"--filter-key {key}", got == lengths and len(samples) == sum(lengths), said(done))
        chosen = weir("info", data, "--filter-key", key)
        check(f"weir info --filter-key {key}", f"episodes: {len(lengths)}, {sum(lengths)} steps" in chosen.stdout, said(chosen))
    for key, text in (("test", "/mask/train (3 demos)"), ("../x", "/mask/train (3 demos)"), ("none", "names no demo")):
        done = weir("info", data, "--filter-key", key)
        check(f"--filter-key {key}", done.returncode == 1 and text in done.stderr, said(done))
    index = f"{work}/saved.index"
    for key, n in (("train", 3), ("valid", 1), ("train", 3)):
        done = weir("info", data, "--filter-key", key, "--index", index)
        check(f"an index file, --filter-key {key}", f"episodes: {n}," in done.stdout, said(done))
    os.mkdir(f"{work}/act")
    write_act(f"{work}/act/episode_0.hdf5", 0)
    for other in (f"{work}/act", write_zarr(f"{work}/x.zarr", data__state=rows(0, 11, 2), data__action=rows(0, 11, 2))):
        done = weir("info", other, "--filter-key", "train")
        check("--filter-key where there are no lists", done.returncode == 1 and "no lists of demos" in done.stderr, said(done))


def test_demos(work):
    data = write_demos(f"{work}/a.hdf5", steps=(4, 5, 6), attributes={0: {"success": True}, 1: {"success": False}, 2: {"success": True}})
    for command in ("info", "run"):
        done = weir(command, data)
        check(f"weir {command} counts failed demos", "success is false" in said(done) and "in 1 of 3 episodes" in re.sub(r"\s+", " ", said(done)) and
              "demo_1" in said(done), said(done))
    write_demos(f"{work}/empty.hdf5", steps=())
    done = weir("run", work)
    check("a file without demos", done.returncode == 1 and "empty.hdf5: has no episodes" in done.stderr and "--on-error skip" in done.stderr, said(done))
    done = weir("run", work, "--on-error", "skip")
    check("and --on-error skip", done.returncode == 0 and "empty.hdf5" in done.stderr, said(done))
    write_demos(f"{work}/empty.hdf5", steps=(4, 0))
    done = weir("run", work)
    check("a demo without steps", done.returncode == 1 and "has 0 steps" in done.stderr and "remove" not in done.stderr, said(done))


def test_upside_down(work):
    data = write_demos(f"{work}/a.hdf5", images=True)
    check("images of no convention", "upside down" not in said(weir("info", data)))
    with h5py.File(data, "a") as f:
        f["data"].attrs.update({"macros_image_convention": "opengl", "problem_info": "{}"})
    for command in ("info", "run"):
        done = weir(command, data)
        check(f"weir {command}: images are upside down", "macros_image_convention is opengl" in re.sub(r"\s+", " ", said(done)), said(done))


# ---- names that no layout has ----

def command_of(done):
    found = re.search(r"for example: (weir run .*)", done.stderr)
    return shlex.split(found[1])[1:] if found else None


def test_names(work):
    """Runs the command that each refusal prints."""
    names = {"left_arm/joint": 6, "left_arm/gripper": 1, "right_arm/joint": 6}
    os.mkdir(f"{work}/it's data")
    data = f"{work}/it's data/episode_0.hdf5"
    with h5py.File(data, "w") as f:
        for name, width in names.items():
            f[name] = rows(0, 6, width)
        f["cam_head/color"], f["cam_wrist/color"] = pictures(6), pictures(6)
        f["reward"], f["instruction"], f["calibration"] = np.zeros(6), "stack", np.eye(4)
    done = weir("info", data)
    check("an unknown layout lists its arrays", done.returncode == 1 and all(text in done.stderr for text in (
        "left_arm/joint (6)", "left_arm/gripper (1)", "cam_head/color (images)", "--image-keys")), said(done))
    command = command_of(done)
    check("the command", command and weir(*command, "--max-batches", "1").returncode == 0, f"{said(done)}\n{command and said(weir(*command))}")
    check("the command takes cameras and state", command and "cam_head_color=cam_head/color,cam_wrist_color=cam_wrist/color" in command and
          "left_arm/gripper,left_arm/joint,right_arm/joint" in command and "reward" not in str(command), command)
    folder = command_of(weir("info", os.path.dirname(data)))
    check("the command for a folder", folder and weir(*folder, "--max-batches", "1").returncode == 0, folder)
    wrong = weir("info", data, "--qpos-keys", "left_arm/joints", "--action-keys", "left_arm/joint")
    check("a name that is not there", wrong.returncode == 1 and "left_arm/joint (6)" in wrong.stderr, said(wrong))
    rlds = write_rlds(f"{work}/fractal", lambda e, n: {
        "steps/observation/base_pose": rows(e, n, 7).ravel(), "steps/action/world_vector": rows(e, n, 3).ravel(),
        "steps/action/rotation": rows(e, n, 2).ravel(), "steps/reward": np.zeros(n, "f4")} | steps_of(n))
    done = weir("info", rlds)
    command = command_of(done)
    check("RLDS with other names", done.returncode == 1 and "no state and no actions" in done.stderr and command and
          "steps/action/rotation,steps/action/world_vector" in command and "steps/observation/base_pose" in command, said(done))
    check("the command for RLDS", command and weir(*command, "--max-batches", "1").returncode == 0, command)
    half = command_of(weir("info", rlds, "--qpos-keys", "steps/observation/base_pose"))
    check("the command keeps the options given", half and "--qpos-keys" in half and weir(*half).returncode == 0, half)
    with h5py.File(f"{work}/nothing.hdf5", "w") as f:
        f["note"] = "empty"
    done = weir("info", f"{work}/nothing.hdf5")
    check("a file with nothing to name", done.returncode == 1 and "no datasets of numbers or images" in done.stderr and command_of(done) is None, said(done))


def test_groups_at_root(work):
    """Simulators and RoboSet write episodes as groups at the file's root; observations have one row more than actions."""
    data = f"{work}/trajectory.h5"
    with h5py.File(data, "w") as f:
        for e in range(11):
            n = 4 + e % 2
            f[f"traj_{e}/obs/agent/qpos"], f[f"traj_{e}/actions"] = rows(e, n + 1, 9), rows(e, n, 8)
            f[f"traj_{e}/obs/cam/rgb"] = pictures(n + 1)
    done = weir("info", data)
    command = command_of(done)
    check("groups at the root are episodes", done.returncode == 1 and "group /traj_0 has actions (8), obs/agent/qpos (9), obs/cam/rgb (images)" in done.stderr and
          "traj_1" not in done.stderr, said(done))
    check("the command is for every group", command and command[-1] == "--allow-ragged" and weir(*command, "--max-batches", "1").returncode == 0, command)
    info = weir("info", *command[1:]) if command else done
    check("all of them are loaded", "episodes: 11, 49 steps" in info.stdout, said(info))
    with h5py.File(data, "a") as f:
        f["extra"] = np.zeros(3)
    done = weir(*command) if command else done
    check("a root with other arrays has no such episodes", done.returncode == 1 and "no such dataset" in done.stderr, said(done))


def test_without_observations(work):
    """robosuite's own recordings have states and actions only."""
    with h5py.File(f"{work}/demo.hdf5", "w") as f:
        for e, n in enumerate(STEPS):
            f[f"data/demo_{e + 1}/states"], f[f"data/demo_{e + 1}/actions"] = rows(e, n, 12, "f8"), rows(e, n, 7, "f8")
    done = weir("info", work)
    check("demos without obs", done.returncode == 1 and "has no group obs" in done.stderr and "dataset_states_to_obs.py" in done.stderr, said(done))
    done = weir("info", work, "--qpos-keys", "states", "--action-keys", "actions")
    check("and with the states named", done.returncode == 0 and "12 dimensions" in done.stdout, said(done))


UNCLOSED = """
import os, sys, h5py, numpy
f = h5py.File(sys.argv[1], "w", libver="latest")
f["observations/images/top"], f["observations/qpos"] = numpy.zeros((4, 24, 32, 3), "u1"), numpy.zeros((4, 3), "f4")
f["action"] = numpy.zeros((4, 3), "f4")
f.flush()
os._exit(0)
"""


def test_unclosed(work):
    """Files whose recorder was killed: the reason is HDF5's, and what to do is named."""
    os.mkdir(f"{work}/marked")
    data = f"{work}/marked/episode_0.hdf5"
    subprocess.run([sys.executable, "-c", UNCLOSED, data], check=True)
    done = weir("info", data)
    check("a file that is marked as open", done.returncode == 1 and "already open for write" in done.stderr and "h5clear -s" in done.stderr, said(done))
    if shutil.which("h5clear"):
        subprocess.run(["h5clear", "-s", data], check=True)
        check("h5clear -s helps", weir("info", data).returncode == 0)
    write_act(f"{work}/episode_0.hdf5", 0)
    with open(f"{work}/episode_0.hdf5", "rb") as f:
        whole = f.read()
    for block in (b"TREE", b"HEAP"):  # the root group's, as if they had not been written
        with open(f"{work}/episode_0.hdf5", "wb") as f:
            f.write(whole.replace(block, bytes(4), 1))
        done = weir("info", f"{work}/episode_0.hdf5")
        check(f"a file without {block}", done.returncode == 1 and "no reason given" not in done.stderr and "root group" in done.stderr and
              "was it closed" in done.stderr, said(done))


def test_search_is_bounded(work):
    """Unused links that lead out of the folder, and many members, neither refuse a file nor take long."""
    os.mkdir(f"{work}/inside")
    write_act(f"{work}/outside.hdf5", 1)
    write_act(f"{work}/inside/episode_0.hdf5", 0)
    with h5py.File(f"{work}/inside/episode_0.hdf5", "a") as f:
        f["elsewhere"] = h5py.ExternalLink(f"{work}/outside.hdf5", "/observations")
        for i in range(600):
            f[f"many/{i}"] = np.zeros(6)
        f["loop"] = h5py.SoftLink("/")
    done = weir("info", f"{work}/inside")
    check("links that are not used", done.returncode == 0 and "not used: " in done.stdout, said(done))


with tempfile.TemporaryDirectory() as work:
    for test in (test_no_cameras, test_some_cameras, test_not_used, test_filter_key, test_demos, test_upside_down, test_names, test_groups_at_root,
                 test_without_observations, test_unclosed,
                 test_search_is_bounded):
        folder = os.path.join(work, test.__name__)
        os.mkdir(folder)
        test(folder)
sys.exit(failed())
