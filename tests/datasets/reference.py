"""The batches that Weir should deliver, computed with h5py, numpy and Pillow alone.

    data = reference.Dataset("episodes/", reference.Options(obs_history=3))
    data.tensors([(0, 5), (3, 0)])   # [("images", array), ("qpos", array), ...] of a batch of two samples
    data.line(...)                   # the line that `weir run --checksums` writes for it

Based on the output of each layout's recorder (docs/internals/layouts.md), not on Weir's readers. State and actions are float32,
normalised with mean and std of all episodes (--train-split 1); images are uint8 (uint16 for depth).
"""
import dataclasses
import io
import os
import re

import h5py
import numpy as np
import xxhash
from PIL import Image

JPEG_BYTES_MIN = 100  # in demos narrower uint8 rows are numbers


@dataclasses.dataclass(frozen=True)
class Options:
    cameras: tuple = ()
    qpos_keys: tuple = ()
    action_keys: tuple = ()
    image_keys: tuple = ()
    allow_ragged: bool = False
    obs_history: int = 1
    chunk_size: int = 20
    bgr: bool = False
    planar_floats: bool = False  # --dtype f32 --image-layout nchw

    def arguments(self):
        """The same options for `weir run`."""
        out = []
        for name in ("cameras", "qpos_keys", "action_keys", "image_keys"):
            if getattr(self, name):
                out += ["--" + name.replace("_", "-"), ",".join(getattr(self, name))]
        out += ["--allow-ragged"] if self.allow_ragged else []
        out += ["--obs-history", str(self.obs_history), "--chunk-size", str(self.chunk_size)]
        out += ["--color", "bgr"] if self.bgr else []
        out += ["--dtype", "f32", "--image-layout", "nchw"] if self.planar_floats else []
        return out

    def look_arguments(self):
        """The options that `weir info` accepts."""
        kept = dataclasses.replace(self, obs_history=1, chunk_size=20, bgr=False, planar_floats=False)
        return [a for a in kept.arguments() if a not in ("--obs-history", "1", "--chunk-size", "20")]


class Unreadable(Exception):
    """An unreadable frame, which Weir must refuse too."""


# ---- names and files ----


def by_number(name):
    """Sort key: episode_10 follows episode_9; otherwise byte order."""
    parts = re.split(rb"(\d+)", os.fsencode(name))
    return [int(part) if i % 2 else part for i, part in enumerate(parts)]


def episode_files(path):
    if not os.path.isdir(path):
        return [path]
    found = []
    for folder, _, names in os.walk(path, followlinks=True):
        found += [os.path.join(folder, name) for name in names
                  if name.lower().endswith((".hdf5", ".h5")) and not name.startswith(".")]
    return sorted(found, key=by_number)


def members(group):
    return sorted(group, key=os.fsencode)


def is_depth_name(name):
    return name.startswith("depth_") or (name.endswith("_depth") and len(name) > 6)


# ---- layouts ----


@dataclasses.dataclass
class Camera:
    name: str
    key: str
    depth: bool
    swapped: bool = False  # red and blue of JPEGs, except in those whose comment is XPL-RGB1


@dataclasses.dataclass
class Parts:
    """A layout's keys in an episode. next_row: the actions are the next step's state."""
    qpos: list
    actions: list
    cameras: list
    next_row: bool = False


def group_cameras(root, key, depth=False):
    cameras = []
    for name in members(root[key]):
        shown = f"depth_{name}" if depth and not is_depth_name(name) else name
        cameras.append(Camera(shown, f"{key}/{name}", depth or is_depth_name(name)))
    return cameras


def act(root):
    return Parts(["observations/qpos"], ["action"], group_cameras(root, "observations/images"))


def act_plus_plus(root):
    """Ignores compress_len, whose row order depends on the recorder: a frame ends where its JPEG ends."""
    return act(root)


def agilex(root):
    cameras = group_cameras(root, "observations/images")
    if "observations/images_depth" in root:
        cameras += group_cameras(root, "observations/images_depth", True)
    return Parts(["observations/qpos"], ["observations/qpos"], cameras, next_row=True)


def astrobench(root):
    cameras = [Camera(name, f"observations/{name}", is_depth_name(name)) for name in members(root["observations"])
               if name.startswith(("rgb_", "depth_"))]
    return Parts(["observations/joint_pos"], ["action/joint_positions"], cameras)


def robotwin(root):
    cameras = []
    for name in members(root["observation"]):
        for kind, shown in (("rgb", name), ("depth", f"depth_{name}")):
            if kind in root[f"observation/{name}"]:
                cameras.append(Camera(shown, f"observation/{name}/{kind}", kind == "depth"))
    return Parts(["joint_action/vector"], ["joint_action/vector"], cameras, next_row=True)


def robomind(root):
    arms = {arm: [f"{arm}/{name}" for name in members(root[arm]) if name.startswith("joint_position")]
            for arm in ("puppet", "master")}
    cameras = group_cameras(root, "observations/rgb_images")
    if "observations/depth_images" in root:
        cameras += group_cameras(root, "observations/depth_images", True)
    return Parts(arms["puppet"], arms["master"], cameras)


def demo(root):
    parts = Parts([], ["actions"], [])

    def visit(group, path):
        for name in members(group):
            key, item = f"{path}{name}", group[name]
            if isinstance(item, h5py.Group):
                visit(item, key + "/")
                continue
            encoded = is_encoded(item) and (item.ndim == 1 or item.shape[1] >= JPEG_BYTES_MIN)
            if item.ndim == 2 and item.dtype.kind in "fiu" and not encoded:
                parts.qpos.append("obs/" + key)
            elif is_raw_depth(item) or (encoded and "depth" in name):
                parts.cameras.append(Camera(key, "obs/" + key, True))
            elif encoded or is_raw_images(item):
                parts.cameras.append(Camera(key, "obs/" + key, False))

    visit(root["obs"], "")
    return parts


def is_encoded(item):
    if item.ndim == 2:
        return item.dtype == np.uint8
    return item.ndim == 1 and (h5py.check_vlen_dtype(item.dtype) == np.uint8 or item.dtype.kind in "SV")


def is_raw_images(item):
    return item.dtype == np.uint8 and item.ndim == 4 and item.shape[3] == 3


def is_raw_depth(item):
    return item.dtype.kind in "iu" and item.dtype.itemsize == 2 and \
        (item.ndim == 3 or (item.ndim == 4 and item.shape[3] == 1))


def recognise(f):
    """(function from an episode's group to its Parts, groups). A group "" is the whole file."""
    if "data" in f and any(re.fullmatch(r"demo_\d+", name) for name in f["data"]):
        return demo, demo_groups(f)
    if "observation" in f and "joint_action" in f:
        return robotwin, [""]
    observations = f["observations"] if "observations" in f else {}
    if "rgb_images" in observations:
        return robomind, [""]
    if "images" in observations:
        images = observations["images"]
        if "compress_len" in f or any(images[name].ndim == 2 and images[name].dtype == np.uint8 for name in images):
            return act_plus_plus, [""]
        shifted = "images_depth" in observations or not f.attrs.get("compress", True)
        return (agilex if shifted else act), [""]
    if any(name.startswith("rgb_") for name in observations):
        return astrobench, [""]
    raise ValueError("no layout")


def demo_groups(f):
    return [f"data/{name}" for name in sorted(f["data"], key=by_number) if re.fullmatch(r"demo_\d+", name)]


def user_cameras(root, image_keys):
    cameras = []
    for text in image_keys:
        name, _, key = text.rpartition("=")
        if not name:
            steps = key.split("/")
            generic = steps[-1] in ("rgb", "image", "depth") and len(steps) > 1
            name = steps[-2] if generic else steps[-1]
        item = root[key]
        cameras.append(Camera(name, key, is_raw_depth(item) or (is_encoded(item) and "depth" in key)))
    return cameras


# ---- values ----


def floats(root, key):
    values = root[key][()].astype(np.float32)
    return values[:, None] if values.ndim == 1 else values


def next_rows(values):
    return np.concatenate([values[1:], values[-1:]])


def stored_bytes(item, t):
    """One row of strings or opaque bytes as stored: h5py would cut it at a zero or strip blanks."""
    row = np.empty(1, f"V{item.id.get_type().get_size()}")
    space = item.id.get_space()
    space.select_hyperslab((t,), (1,))
    item.id.read(h5py.h5s.create_simple((1,)), space, row, item.id.get_type())
    return row.tobytes()


def decode(data, camera):
    if len(data) == 0:
        raise Unreadable("empty")
    image = Image.open(io.BytesIO(data))
    if camera.depth:
        return np.asarray(image).astype(np.uint16)
    pixels = np.asarray(image.convert("RGB"))
    return pixels[:, :, ::-1] if camera.swapped and image.info.get("comment") != b"XPL-RGB1" else pixels


def frame(item, camera, t):
    """uint8 (H, W, 3), or uint16 (H, W) for depth."""
    if not is_encoded(item):
        return item[t].astype(np.uint16).reshape(item.shape[1:3]) if camera.depth else item[t]
    if item.dtype.kind in "SV" or item.id.get_type().get_class() in (h5py.h5t.STRING, h5py.h5t.OPAQUE):
        return decode(stored_bytes(item, t), camera)
    return decode(item[t].tobytes(), camera)


def moments(rows):
    """Mean, and unbiased std of at least 0.01, summed in double, row by row."""
    rows = rows.astype(np.float64)
    mean = np.cumsum(rows, axis=0)[-1] / len(rows)
    if len(rows) == 1:
        std = np.zeros_like(mean)
    else:
        std = np.sqrt(np.cumsum((rows - mean) ** 2, axis=0)[-1] / (len(rows) - 1))
    return mean.astype(np.float32), np.maximum(std, 1e-2).astype(np.float32)


# ---- the dataset ----


class Episode:
    def __init__(self, path, f, group, layout, options):
        root = f[group] if group else f
        self.path, self.group, self.layout = path, group, layout.__name__ if layout else "custom"
        parts = layout(root) if layout else Parts([], [], [])
        if options.qpos_keys:
            parts.qpos = list(options.qpos_keys)
        if options.action_keys:
            parts.actions, parts.next_row = list(options.action_keys), False
        if options.image_keys:
            parts.cameras = user_cameras(root, options.image_keys)
        for camera in parts.cameras:
            camera.swapped = layout is robotwin
        self.cameras = parts.cameras
        qpos = [floats(root, key) for key in parts.qpos]
        actions = [floats(root, key) for key in parts.actions]
        if parts.next_row:
            actions = [next_rows(values) for values in actions]
        wanted = [c for c in self.cameras if c.name in options.cameras or (not options.cameras and not c.depth)]
        lengths = [len(x) for x in qpos + actions] + [root[c.key].shape[0] for c in wanted]
        if not options.allow_ragged and len(set(lengths)) > 1:
            raise ValueError(f"{path}: lengths {lengths}")
        self.steps = min(lengths)
        self.qpos = np.concatenate([x[:self.steps] for x in qpos], axis=1)
        self.actions = np.concatenate([x[:self.steps] for x in actions], axis=1)

    def camera(self, name):
        """The camera called name or rgb_name."""
        for shown in (name, f"rgb_{name}"):
            for camera in self.cameras:
                if camera.name == shown:
                    return camera
        raise KeyError(f"{self.path}: no camera {name}")


class Dataset:
    def __init__(self, path, options=Options()):
        self.options, self.episodes = options, []
        self.files, self.items, self.frames = {}, {}, {}
        for name in episode_files(path):
            with h5py.File(name, "r") as f:
                by_keys = options.qpos_keys and options.action_keys and options.image_keys
                if not by_keys:
                    layout, groups = recognise(f)
                else:
                    layout, groups = None, [""] if options.qpos_keys[0] in f else demo_groups(f)
                self.episodes += [Episode(name, f, group, layout, options) for group in groups]
        first = self.episodes[0]
        self.names = [first.camera(name).name for name in options.cameras] if options.cameras else \
            [c.name for c in first.cameras if options.image_keys or not c.depth]
        self.norms = {what: moments(np.concatenate([getattr(e, what) for e in self.episodes]))
                      for what in ("qpos", "actions")}

    def item(self, episode, key):
        """A dataset of an episode, cached because h5py's lookup is slow."""
        where = (episode.path, episode.group, key)
        if where not in self.items:
            if episode.path not in self.files:
                self.files[episode.path] = h5py.File(episode.path, "r")
            root = self.files[episode.path]
            self.items[where] = (root[episode.group] if episode.group else root)[key]
        return self.items[where]

    def close(self):
        for f in self.files.values():
            f.close()
        self.files, self.items = {}, {}

    def image(self, episode, name, t):
        """A frame in the form that the options require. The last few are cached for histories."""
        key = (episode, name, t)
        if key not in self.frames:
            e = self.episodes[episode]
            camera = e.camera(name)
            pixels = frame(self.item(e, camera.key), camera, t)
            if self.options.bgr and not camera.depth:
                pixels = pixels[:, :, ::-1]
            if self.options.planar_floats and not camera.depth:
                pixels = pixels.transpose(2, 0, 1).astype(np.float32) / np.float32(255)
            if len(self.frames) > 256:
                self.frames.clear()
            self.frames[key] = np.ascontiguousarray(pixels)
        return self.frames[key]

    def window(self, t):
        """Steps of a sample's observations, with the first repeated at the start."""
        return [max(0, t - back) for back in reversed(range(self.options.obs_history))]

    def camera_tensors(self, samples):
        first = self.episodes[0]
        out = []
        for depth, kind in ((False, "images"), (True, "depth")):
            names = [name for name in self.names if first.camera(name).depth == depth]
            stacks = [np.stack([np.stack([self.image(e, name, at) for at in self.window(t)]) for e, t in samples])
                      for name in names]
            if self.options.obs_history == 1:
                stacks = [stack[:, 0] for stack in stacks]
            if len({stack.shape for stack in stacks}) == 1:
                out.append((kind, np.stack(stacks, axis=1)))
            else:
                out += [(f"{kind}/{name}", stack) for name, stack in zip(names, stacks)]
        return out

    def state(self, episode, t):
        mean, std = self.norms["qpos"]
        rows = (self.episodes[episode].qpos[self.window(t)] - mean) / std
        return rows if self.options.obs_history > 1 else rows[0]

    def chunk(self, episode, t):
        """(normalised actions from t on, with zeros past the end before normalisation; is_pad)"""
        mean, std = self.norms["actions"]
        rows = self.episodes[episode].actions[t:t + self.options.chunk_size]
        padded = np.zeros((self.options.chunk_size, rows.shape[1]), np.float32)
        padded[:len(rows)] = rows
        return (padded - mean) / std, (np.arange(self.options.chunk_size) >= len(rows)).astype(np.uint8)

    def tensors(self, samples):
        """[(name, array)] of a batch, in Weir's order."""
        chunks = [self.chunk(e, t) for e, t in samples]
        return self.camera_tensors(samples) + [("qpos", np.stack([self.state(e, t) for e, t in samples])),
                                               ("actions", np.stack([c[0] for c in chunks])),
                                               ("is_pad", np.stack([c[1] for c in chunks]))]

    def is_readable(self, sample):
        try:
            self.camera_tensors([sample])
            return True
        except Unreadable:
            return False

    def samples(self):
        return [(e, t) for e, episode in enumerate(self.episodes) for t in range(episode.steps)]


def hashes(tensors):
    return [(name, xxhash.xxh3_64_hexdigest(np.ascontiguousarray(values).tobytes())) for name, values in tensors]
