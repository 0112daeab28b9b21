"""Small datasets of every layout in every storage, for tests/datasets/compare_h5py.py --synthetic.

A Case creates its dataset in an empty folder and contains the expected results.
"""
import dataclasses
import io
import os

import h5py
import numpy as np
from PIL import Image

import h5_storage
from reference import Options

STEPS = (11, 6)  # per episode
HEIGHT, WIDTH = 10, 14  # of raw frames
CAMERAS = ("front", "wrist")


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    make: object  # (folder), returns the path for Weir
    layout: str  # its name in `weir info`
    kind: str = "."  # every camera's storage in `weir info`, a regular expression
    library: bool = None  # whether only the HDF5 library can read it; None: the reported kind decides
    options: Options = Options()
    skip: bool = False  # some frames are unreadable; run with --on-error skip
    error: str = None  # the error line if Weir must refuse the dataset, a regular expression
    refused_by: tuple = ("info", "run")
    script: object = None  # (weir, folder), returns the number of compared lines; replaces make and all checks


# ---- contents ----


def random_of(*seed):
    return np.random.default_rng([sum(map(ord, s)) if isinstance(s, str) else s for s in seed])


def raw_frames(steps, seed):
    """Smooth, so that they compress, and below 128, so that n-bit packs them."""
    rng = random_of(*seed)
    ramp = np.arange(HEIGHT)[:, None, None] * 3 + np.arange(WIDTH)[:, None] * 2 + np.arange(3) * 7
    frames = ramp + rng.integers(0, 50, (steps, 1, 1, 1)) + rng.integers(0, 3, (steps, HEIGHT, WIDTH, 3))
    return (frames % 128).astype(np.uint8)


def depth_frames(steps, seed, dtype="<u2"):
    rng = random_of(*seed)
    return (rng.integers(0, 300, (steps, HEIGHT, WIDTH)) + np.arange(WIDTH) * 256 % 3700).astype(dtype)


def jpegs(steps, seed):
    """JPEGs in different subsamplings and qualities, some progressive."""
    rng = random_of(*seed)
    ways = [dict(subsampling=s, quality=q, progressive=p) for s, q, p in
            ((2, 90, False), (0, 95, False), (1, 50, False), (2, 30, True), (2, 95, False))]
    out = []
    for t in range(steps):
        small = Image.fromarray(rng.integers(0, 256, (4, 5, 3), dtype=np.uint8))
        data = io.BytesIO()
        small.resize((46, 30), Image.BICUBIC).save(data, "JPEG", **ways[t % len(ways)])
        out.append(data.getvalue())
    return out


def depth_pngs(steps, seed):
    out = []
    for frame in depth_frames(steps, seed):
        data = io.BytesIO()
        Image.fromarray(frame).save(data, "PNG")
        out.append(data.getvalue())
    return out


def numbers(steps, dim, seed, dtype="f4"):
    rng = random_of(*seed)
    walk = np.cumsum(rng.normal(0, 1 if np.dtype(dtype).kind == "f" else 20, (steps, dim)), axis=0)
    return (np.abs(walk) if np.dtype(dtype).kind == "u" else walk).astype(dtype)


# ---- layouts: each writes its files and calls put(group, name, steps, seed) for every camera ----


def put_state(root, key, steps, dim, seed, dtype="f4", **options):
    root.create_dataset(key, data=numbers(steps, dim, (key, *seed), dtype), **options)


@dataclasses.dataclass
class Style:
    """How a layout's files are written."""
    put: object  # (group, name, steps, seed)
    put_depth: object = None
    file: dict = dataclasses.field(default_factory=dict)  # options of h5py.File
    state: dict = dataclasses.field(default_factory=dict)  # options of put_state
    first: object = None  # (file), called while the file is empty
    last: object = None  # (root, episode), called when the episode is complete
    cameras: tuple = CAMERAS
    stem: str = "episode_"
    steps: tuple = STEPS


def each_file(folder, style):
    for e, steps in enumerate(style.steps):
        with h5py.File(os.path.join(folder, f"{style.stem}{e}.hdf5"), "w", **style.file) as f:
            if style.first:
                style.first(f)
            yield e, f, steps
            if style.last:
                style.last(f, e)


def put_cameras(group, style, steps, e):
    for name in style.cameras:
        style.put(group, name, steps, (name, e))


def write_act(folder, style, **attributes):
    for e, f, steps in each_file(folder, style):
        f.attrs.update({"sim": True, **attributes})
        put_state(f, "observations/qpos", steps, 7, (e,), **style.state)
        put_state(f, "observations/qvel", steps, 7, (e,))
        put_state(f, "action", steps, 5, (e,), **style.state)
        put_cameras(f.create_group("observations/images"), style, steps, e)
    return folder


def write_agilex(folder, style):
    for e, f, steps in each_file(folder, style):
        f.attrs.update({"sim": False, "compress": False})
        put_state(f, "observations/qpos", steps, 7, (e,), **style.state)
        put_state(f, "action", steps, 7, (e,), **style.state)
        put_cameras(f.create_group("observations/images"), style, steps, e)
        put_depth = style.put_depth or put_array(depth_frames, h5_storage.simple())
        for name in style.cameras:
            put_depth(f.require_group("observations/images_depth"), name, steps, ("depth", name, e))
    return folder


def write_astrobench(folder, style):
    for e, f, steps in each_file(folder, style):
        put_state(f, "observations/joint_pos", steps, 6, (e,), compression="gzip", **style.state)
        put_state(f, "action/joint_positions", steps, 6, (e,), compression="gzip", **style.state)
        put_depth = style.put_depth or put_array(depth_pngs, h5_storage.variable())
        for name in style.cameras:
            style.put(f["observations"], f"rgb_{name}", steps, (name, e))
            put_depth(f["observations"], f"depth_{name}", steps, ("depth", name, e))
    return folder


def write_robotwin(folder, style):
    for e, f, steps in each_file(folder, style):
        put_state(f, "joint_action/vector", steps, 9, (e,), **{"dtype": "f8", **style.state})
        put_state(f, "joint_action/left_arm", steps, 6, (e,))
        for name in style.cameras:
            style.put(f.create_group(f"observation/{name}"), "rgb", steps, (name, e))
            if style.put_depth:
                style.put_depth(f[f"observation/{name}"], "depth", steps, ("depth", name, e))
    return folder


def write_robomind(folder, style):
    for e, f, steps in each_file(folder, style):
        f.attrs.update({"sim": False, "compress": True})
        for arm in ("puppet", "master"):
            for side in ("left", "right"):
                put_state(f, f"{arm}/joint_position_{side}", steps, 7, (e,), **{"dtype": "f8", **style.state})
            put_state(f, f"{arm}/end_effector", steps, 6, (e,))
        put_cameras(f.create_group("observations/rgb_images"), style, steps, e)
        put_depth = style.put_depth or put_array(depth_pngs, h5_storage.variable())
        for name in style.cameras:
            put_depth(f.require_group("observations/depth_images"), name, steps, ("depth", name, e))
    return folder


def write_demos(folder, style, attributes=(), nested=False):
    """robomimic's layout, with LIBERO's attributes or Isaac Lab's groups."""
    path = os.path.join(folder, "demos.hdf5")
    with h5py.File(path, "w", **style.file) as f:
        if style.first:
            style.first(f)
        f.create_group("data").attrs.update(dict(attributes))
        for e, steps in enumerate((*style.steps, 3, 3, 3, 3, 3, 3, 3, 3, 3)):  # demo_10 comes last
            demo = f.create_group(f"data/demo_{e}")
            put_state(demo, "actions", steps, 4, (e,), **style.state)
            put_state(demo, "obs/robot0_eef_pos", steps, 3, (e,), **style.state)
            put_state(demo, "obs/gripper", steps, 2, (e,), **{"dtype": "f8", **style.state})
            put_state(demo, "obs/counts", steps, 2, (e,), "u1")
            put_state(demo, "states/articulation" if nested else "states", steps, 4, (e,))
            demo["obs/done"] = np.zeros(steps, "u1")
            put_cameras(demo.create_group("obs/policy") if nested else demo["obs"], style, steps, e)
            if style.last:
                style.last(demo, e)
    return path


def write_libero(folder, style):
    return write_demos(folder, style, attributes=[("problem_info", "{}"), ("bddl_file_name", "x.bddl")])


def write_isaaclab(folder, style):
    return write_demos(folder, style, nested=True)


def write_custom(folder, style):
    for e, f, steps in each_file(folder, style):
        put_state(f, "robot/position", steps, 3, (e,), **style.state)
        f["robot/width"] = numbers(steps, 1, ("width", e))[:, 0]
        put_state(f, "robot/command", steps, 3, (e,), **style.state)
        put_cameras(f.create_group("eyes"), style, steps, e)
    return folder


CUSTOM = Options(qpos_keys=("robot/position", "robot/width"), action_keys=("robot/command",),
                 image_keys=("eyes/wrist", "before=eyes/front"))


# ---- layouts x storages ----


def bind(write, style):
    """Returns a case's make()."""
    return lambda folder: write(folder, style)


def put_array(content, write):
    """Returns a put() that stores content(steps, seed) with write."""
    return lambda group, name, steps, seed: write(group, name, content(steps, seed))


FILE_FORMATS = (
    ("earliest", dict(libver="earliest")),
    ("latest", dict(libver="latest")),
    ("v110", dict(libver=("v110", "v110"))),
    ("user block 512", dict(userblock_size=512)),
    ("latest, user block 4096", dict(libver="latest", userblock_size=4096)),
)

RAW_LAYOUTS = (("act", write_act, Options()), ("agilex", write_agilex, Options()),
               ("robomimic", write_demos, Options()), ("libero", write_libero, Options()),
               ("isaaclab", write_isaaclab, Options()), ("custom", write_custom, CUSTOM))
ENCODED_LAYOUTS = (("robotwin", write_robotwin, Options()), ("robomind", write_robomind, Options()),
                   ("astrobench", write_astrobench, Options()), ("act", write_act, Options()),
                   ("robomimic", write_demos, Options()), ("custom", write_custom, CUSTOM))
PADDED_LAYOUTS = (("act-plus-plus", write_act, Options()), ("robomimic", write_demos, Options()))


def option_of(i, options):
    """Options for case i, which vary between cases."""
    asked = (dict(), dict(obs_history=3), dict(chunk_size=4, bgr=True), dict(planar_floats=True, obs_history=2))
    return dataclasses.replace(options, **asked[i % len(asked)])


def crossed(layouts, storages, content, every):
    """Cases for all storages, cycling through layouts and file formats. every: each storage in every layout, and in the
    first layout with all file formats."""
    out = []
    for i, storage in enumerate(storages):
        for which, (layout, write, options) in enumerate(layouts):
            if not every and which != i % len(layouts):
                continue
            formats = FILE_FORMATS if every and which == 0 else (FILE_FORMATS[(i + which) % len(FILE_FORMATS)],)
            for format_name, file in formats:
                style = Style(put_array(content, storage.write), file=file)
                out.append(Case(f"{layout}: {storage.name} ({format_name})", bind(write, style), layout, storage.kind,
                                storage.library, option_of(len(out), options)))
    return out


DEPTH = ("front", "depth_front", "wrist", "depth_wrist")


def raw_depth_cases():
    """16-bit depth in every storage of arrays, sometimes big-endian."""
    out = []
    for i, storage in enumerate(h5_storage.arrays() + h5_storage.numbers()):
        style = Style(put_array(raw_frames, storage.write), put_array(depth_frames, storage.write),
                      FILE_FORMATS[i % 5][1])
        out.append(Case(f"agilex with depth: {storage.name}", bind(write_agilex, style), "agilex", storage.kind,
                        storage.library, option_of(i, Options(cameras=DEPTH))))
    for storage in h5_storage.arrays()[:6]:
        big = put_array(lambda steps, seed: depth_frames(steps, seed, ">u2"), storage.write)
        style = Style(put_array(raw_frames, h5_storage.simple()), big)
        out.append(Case(f"agilex with big-endian depth: {storage.name}", bind(write_agilex, style), "agilex",
                        h5_storage.through_library("big-endian"), True, Options(cameras=DEPTH[3:] + DEPTH[1:2])))
    return out


def png_depth_cases(every):
    """Depth as PNG in every storage of encoded frames."""
    layouts = (("robomind", write_robomind), ("robotwin", write_robotwin), ("astrobench", write_astrobench))
    out = []
    for i, storage in enumerate(h5_storage.encoded()):
        style = Style(put_array(jpegs, storage.write), put_array(depth_pngs, storage.write))
        for which, (layout, write) in enumerate(layouts):
            if every or which == i % len(layouts):
                out.append(Case(f"{layout} with depth: {storage.name}", bind(write, style), layout, storage.kind,
                                storage.library, option_of(len(out), Options(cameras=DEPTH))))
    return out


TYPES = ("<f2", ">f2", ">f4", "<f8", ">f8", "<i1", "<i2", ">i4", "<i8", ">i8", "<u1", ">u2")
STATES = [dict(dtype=dtype) for dtype in TYPES] + [
    dict(compression=4, shuffle=True, fletcher32=True), dict(chunks=(2, 3), maxshape=(None, None)),
    dict(compression="lzf"), dict(scaleoffset=0, dtype="i4"), dict(chunks=(1, 2), dtype=">f8")]


def state_cases(every):
    """State and actions of every type, and in some storages."""
    out = []
    for i, state in enumerate(STATES):
        text = ", ".join(f"{k} {v}" for k, v in state.items())
        for which, (layout, write, options) in enumerate(RAW_LAYOUTS):
            if every or which == i % len(RAW_LAYOUTS):
                style = Style(put_array(raw_frames, h5_storage.simple()), state=state, file=FILE_FORMATS[i % 5][1])
                out.append(Case(f"{layout}: state of {text}", bind(write, style), layout,
                                options=option_of(i, options)))
    return out


def all_crossed(every):
    rows = h5_storage.padded_rows()
    return (crossed(RAW_LAYOUTS, h5_storage.arrays() + h5_storage.numbers(), raw_frames, every) +
            crossed(ENCODED_LAYOUTS, h5_storage.encoded(), jpegs, every) +
            crossed(PADDED_LAYOUTS, rows, jpegs, every) +
            raw_depth_cases() + png_depth_cases(every) + state_cases(every))
