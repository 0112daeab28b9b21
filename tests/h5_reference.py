"""What a dataset of robot episodes holds, by h5py, Pillow and numpy alone: the reference that weir is compared with.

A slow and plain reader. It knows the layouts by their own definitions, not through weir.
"""
import io
import os
import re

import h5py
import numpy as np
from PIL import Image

IMAGE, DEPTH = "image", "depth"


class Camera:
    """Frames of one dataset; an encoded one is decoded, a padded one cut by its length when it has one."""

    def __init__(self, dataset, kind, lengths=None):
        self.dataset, self.kind, self.lengths = dataset, kind, lengths
        self.frames = dataset.shape[0]

    def string(self, t):
        """All bytes of a fixed string: converted, they would end at the first zero."""
        row = np.zeros((), f"V{self.dataset.dtype.itemsize}")
        space = self.dataset.id.get_space()
        space.select_hyperslab((t,), (1,))
        self.dataset.id.read(h5py.h5s.create_simple((1,)), space, row, mtype=self.dataset.id.get_type())
        return row.tobytes()

    def stored(self, t):
        row = self.string(t) if self.dataset.dtype.kind == "S" else self.dataset[t]
        if isinstance(row, (bytes, np.void)):
            return row if isinstance(row, bytes) else row.tobytes()
        row = np.asarray(row)
        if self.lengths is not None and row.ndim == 1:
            row = row[: int(self.lengths[t])]
        return row

    def frame(self, t):
        row = self.stored(t)
        if not isinstance(row, bytes) and (row.ndim == 3 or (self.kind == DEPTH and row.ndim == 2)):
            wanted = np.uint8 if self.kind == IMAGE else np.uint16
            return np.ascontiguousarray(row.astype(wanted).reshape(row.shape[:3 if self.kind == IMAGE else 2]))
        encoded = row if isinstance(row, bytes) else row.tobytes()
        picture = Image.open(io.BytesIO(encoded))
        if self.kind == DEPTH:
            return np.asarray(picture).astype(np.uint16)
        return np.asarray(picture.convert("RGB"))


class Episode:
    def __init__(self, path, group, state, actions, cameras):
        """state and actions: lists of (steps, columns); cameras: name -> Camera."""
        self.path, self.group, self.cameras = path, group, cameras
        lengths = [len(x) for x in state + actions] + [c.frames for c in cameras.values()]
        self.steps, self.is_ragged = min(lengths), min(lengths) != max(lengths)
        self.qpos = np.concatenate([x[: self.steps] for x in state], axis=1)
        self.actions = np.concatenate([x[: self.steps] for x in actions], axis=1)


# ---- layouts ----


def columns(dataset):
    values = dataset[()].astype(np.float32)
    return values.reshape(len(values), -1)


def next_row(rows):
    return np.concatenate([rows[1:], rows[-1:]])


def is_depth_name(name):
    return name.startswith("depth_") or name.endswith("_depth")


def members(group):
    return sorted(group.keys(), key=lambda name: name.encode())


def group_cameras(group, kind=IMAGE):
    cameras = {}
    for name in members(group):
        depth = kind == DEPTH or is_depth_name(name)
        shown = name if kind == IMAGE or is_depth_name(name) else "depth_" + name
        cameras[shown] = Camera(group[name], DEPTH if depth else IMAGE)
    return cameras


def act(file):
    return [columns(file["observations/qpos"])], [columns(file["action"])], group_cameras(file["observations/images"])


def act_plus_plus(file):
    state, actions, cameras = act(file)
    if "compress_len" in file:
        lengths = file["compress_len"][()]
        rows = [name for name in cameras if len(lengths) == len(cameras) or not is_depth_name(name)]
        for row, name in enumerate(rows):
            cameras[name].lengths = lengths[row]
    return state, actions, cameras


def agilex(file):
    state = columns(file["observations/qpos"])
    cameras = group_cameras(file["observations/images"])
    if "observations/images_depth" in file:
        cameras.update(group_cameras(file["observations/images_depth"], DEPTH))
    return [state], [next_row(state)], cameras


def astrobench(file):
    group = file["observations"]
    cameras = {}
    for name in members(group):
        if name.startswith("rgb_"):
            cameras[name] = Camera(group[name], IMAGE)
        elif name.startswith("depth_"):
            cameras[name] = Camera(group[name], DEPTH)
    return [columns(group["joint_pos"])], [columns(file["action/joint_positions"])], cameras


def robotwin(file):
    state = columns(file["joint_action/vector"])
    cameras = {}
    for name in members(file["observation"]):
        group = file["observation"][name]
        if "rgb" in group:
            cameras[name] = Camera(group["rgb"], IMAGE)
        if "depth" in group:
            cameras["depth_" + name] = Camera(group["depth"], DEPTH)
    return [state], [next_row(state)], cameras


def robomind(file):
    def joints(arm):
        return [columns(file[arm][name]) for name in members(file[arm]) if name.startswith("joint_position")]

    cameras = group_cameras(file["observations/rgb_images"])
    if "observations/depth_images" in file:
        cameras.update(group_cameras(file["observations/depth_images"], DEPTH))
    return joints("puppet"), joints("master"), cameras


def demo(group):
    state, cameras = [], {}

    def look(at, path):
        for name in members(at):
            member, key = at[name], path + name
            if isinstance(member, h5py.Group):
                look(member, key + "/")
                continue
            kind = member.dtype.kind
            bytes_ = kind == "u" and member.dtype.itemsize == 1
            if member.ndim == 2 and kind in "fiu" and not (bytes_ and member.shape[1] >= 100):
                state.append(columns(member))
            elif member.ndim == 4 and bytes_ and member.shape[3] == 3 or member.ndim == 2 and bytes_:
                cameras[key] = Camera(member, DEPTH if "depth" in name else IMAGE)
            elif member.dtype == np.uint16 and member.ndim in (3, 4):
                cameras[key] = Camera(member, DEPTH)

    look(group["obs"], "")
    return state, [columns(group["actions"])], cameras


def by_keys(keys):
    """keys: dict of lists qpos, action, image (name=key or key)."""

    def read(group):
        cameras = {}
        for item in keys["image"]:
            name, _, key = item.rpartition("=")
            dataset = group[key]
            depth = dataset.dtype == np.uint16
            cameras[name or key.rsplit("/", 1)[-1]] = Camera(dataset, DEPTH if depth else IMAGE)
        return ([columns(group[k]) for k in keys["qpos"]], [columns(group[k]) for k in keys["action"]], cameras)

    return read


def layout_of(file):
    """The function that reads an episode of this file, and its groups ("" for the file itself)."""
    demos = [name for name in file.get("data", {}) if re.fullmatch(r"demo_\d+", name)]
    if demos:
        return demo, ["data/" + name for name in sorted(demos, key=lambda name: int(name[5:]))]
    if "observations/rgb_images" in file:
        return robomind, [""]
    if "observation" in file:
        return robotwin, [""]
    if "observations/images" in file:
        images = file["observations/images"]
        if "compress_len" in file or any(images[k].ndim == 2 and images[k].dtype == np.uint8 for k in images):
            return act_plus_plus, [""]
        if "observations/images_depth" in file or not file.attrs.get("compress", True):
            return agilex, [""]
        return act, [""]
    return astrobench, [""]


# ---- a dataset ----


def by_number(path):
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path)]


def files_of(path):
    if os.path.isfile(path):
        return [path]
    found = []
    for folder, _, names in os.walk(path, followlinks=True):
        found += [os.path.join(folder, name) for name in names if name.endswith((".hdf5", ".h5"))]
    return sorted(found, key=by_number)


class Dataset:
    def __init__(self, path, cameras=None, keys=None):
        self.files = [h5py.File(name, "r") for name in files_of(path)]
        self.episodes = []
        for file in self.files:
            read, groups = layout_of(file) if not keys or None in keys.values() else (by_keys(keys), [""])
            if keys and None not in keys.values() and keys["qpos"][0] not in file and "data" in file:
                groups = layout_of(file)[1]
            for group in groups:
                state, actions, found = read(file[group] if group else file)
                self.episodes.append(Episode(file.filename, group, state, actions, found))
        first = self.episodes[0].cameras
        if cameras:
            self.cameras = [name if name in first else "rgb_" + name for name in cameras]
        else:
            self.cameras = [name for name in sorted(first, key=str.encode) if first[name].kind == IMAGE]
            if keys and None not in keys.values():
                self.cameras = list(first)

    def close(self):
        for file in self.files:
            file.close()

    def norm(self, actions):
        """Mean and standard deviation in float32, summed in double in the order of the rows."""
        rows = np.concatenate([e.actions if actions else e.qpos for e in self.episodes]).astype(np.float64)
        mean = np.add.accumulate(rows, axis=0)[-1] / len(rows)
        squares = np.add.accumulate((rows - mean) ** 2, axis=0)[-1]
        std = np.sqrt(squares / (len(rows) - 1)) if len(rows) > 1 else np.zeros_like(mean)
        return mean.astype(np.float32), np.maximum(std, 1e-2).astype(np.float32)

    def samples(self):
        return [(e, t) for e, episode in enumerate(self.episodes) for t in range(episode.steps)]

    def tensors(self, samples, history=1, chunk=20):
        """Name -> array of a batch of samples, in weir's order: images, depth, qpos, actions, is_pad."""
        out = {}
        for kind, name in ((IMAGE, "images"), (DEPTH, "depth")):
            cameras = [c for c in self.cameras if self.episodes[0].cameras[c].kind == kind]
            rows = {c: np.stack([self.window(e, t, c, history) for e, t in samples]) for c in cameras}
            if len({row.shape for row in rows.values()}) == 1:
                out[name] = np.stack(list(rows.values()), axis=1)
            else:
                out.update({f"{name}/{c}": row for c, row in rows.items()})
        mean, std = self.norm(False)
        qpos = np.stack([self.episodes[e].qpos[self.steps_before(t, history)] for e, t in samples])
        out["qpos"] = (qpos - mean) / std
        mean, std = self.norm(True)
        actions = np.zeros((len(samples), chunk, len(mean)), np.float32)
        pad = np.ones((len(samples), chunk), np.uint8)
        for i, (e, t) in enumerate(samples):
            rest = self.episodes[e].actions[t : t + chunk]
            actions[i, : len(rest)] = rest
            pad[i, : len(rest)] = 0
        out["actions"] = (actions - mean) / std
        out["is_pad"] = pad
        return out

    @staticmethod
    def steps_before(t, history):
        return [max(0, t - back) for back in range(history - 1, -1, -1)]

    def window(self, episode, t, camera, history):
        frames = [self.episodes[episode].cameras[camera].frame(s) for s in self.steps_before(t, history)]
        return np.stack(frames) if history > 1 else frames[0]
