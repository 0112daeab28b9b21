#!/usr/bin/env python3
"""Compares weir.Loader(keys="lerobot") with LeRobotDataset: compare.py [--quick] [--url=URL] FOLDER...

Every batch of every dataset must have the same keys in the same order, the same shapes, dtypes and values as the items
of LeRobotDataset after torch's default collate: without offsets, with each form of delta_timestamps, with episodes=...,
shuffled, and as uint8 images. Runs in a Python that has lerobot (tests/lerobot/setup.sh) and weir; datasets that this
lerobot does not read are skipped with one line. With --url, Weir reads the folders below that URL instead. Prints one
line per dataset and form; exits 1 on differences.

LeRobot opens videos in torchcodec's approximate mode, which returns wrong frames of some streams (those with reordered
frames). The reference here is torchcodec's exact mode; frames in which LeRobot's own differ are counted. Depth is read
as depth by lerobot 0.6, which needs Python 3.12; older ones read it as colours, so datasets with depth are skipped there.
"""

import json
import os
import pathlib
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("HF_DATASETS_CACHE", tempfile.mkdtemp(prefix="lerobot-cache-"))

try:
    import torch
    import weir
    from lerobot.datasets import lerobot_dataset, video_utils
    from lerobot.datasets.lerobot_dataset import LeRobotDataset
    from torchcodec import decoders
except ImportError as e:
    print(f"skipped: {e}; tests/lerobot/setup.sh installs lerobot, and PYTHONPATH names weir's folder")
    sys.exit(0)
try:
    from lerobot.datasets import dataset_reader
except ImportError:  # before lerobot 0.5
    dataset_reader = lerobot_dataset

BATCH = 7
URL = next((argument[6:] for argument in sys.argv if argument.startswith("--url=")), None)


class Decoders:
    """Replaces lerobot's decode_video_frames by exact mode; counts frames that approximate mode gets wrong."""

    def __init__(self):
        self.decoders, self.frames, self.wrong, self.checked = {}, {}, 0, set()
        self.lerobot = video_utils.decode_video_frames

    def of(self, path, mode):
        if (path, mode) not in self.decoders:
            self.decoders[path, mode] = decoders.VideoDecoder(str(path), seek_mode=mode)
        return self.decoders[path, mode]

    def frame(self, path, number):
        if (path, number) not in self.frames:
            exact = self.of(path, "exact")[number]
            self.frames[path, number] = exact
            try:
                self.wrong += not torch.equal(exact, self.of(path, "approximate")[number])
            except (RuntimeError, IndexError):
                self.wrong += 1
        return self.frames[path, number]

    def __call__(self, path, timestamps, tolerance_s, *_, is_depth=False, **__):
        if is_depth:
            return self.lerobot(path, timestamps, tolerance_s, "pyav", is_depth=True)
        decoder = self.of(path, "exact")
        numbers = [round(ts * decoder.metadata.average_fps) for ts in timestamps]
        for number, ts in zip(numbers, timestamps):
            pts = decoder.get_frame_at(number).pts_seconds if (path, number) not in self.checked else ts
            if abs(pts - ts) >= 0.5 / decoder.metadata.average_fps:
                raise ValueError(f"{path}: frame {number} at {pts} s for {ts} s")
            self.checked.add((path, number))
        return torch.stack([self.frame(path, number) for number in numbers]).type(torch.float32) / 255


def forms(info):
    """name -> delta_timestamps."""
    fps, features = info["fps"], info["features"]
    cameras = [key for key, feature in features.items() if feature["dtype"] in ("video", "image")]
    fixed = {"timestamp", "frame_index", "episode_index", "index", "task_index", "subtask_index"}
    numbers = [k for k, f in features.items() if k not in cameras and k not in fixed and f["dtype"] != "string"]
    policy = {key: [-1, 0] for key in cameras}
    policy.update({"observation.state": [-1, 0], "action": range(-1, 15)})
    steps = {
        "plain": None,
        "ACT": {"action": range(0, 20)},
        "diffusion": policy,
        "one step": {key: [0] for key in [*cameras, *numbers]},
        "every key": {key: [0, -3, 2] for key in [*numbers, "frame_index", "index", *cameras]},
        "far": {"action": [-100, 3, 0, 0, 100], **{key: [100, -100] for key in cameras[:1]}},
    }
    steps.update({f"{key} alone": {key: [-5, 0, 5]} for key in [*cameras, "action"]})
    return {
        name: form and {key: [step / fps for step in offsets] for key, offsets in form.items()}
        for name, form in steps.items()
    }


def difference(key, theirs, ours):
    """Text of how a value of a batch differs; None if it does not."""
    if isinstance(theirs, list) or isinstance(ours, list):
        ours = list(ours) if isinstance(ours, (list, tuple)) else ours
        return None if theirs == ours else f"{key}: {theirs!r:.80} and {ours!r:.80}"
    if theirs.dtype != ours.dtype or theirs.shape != ours.shape:
        return f"{key}: {theirs.dtype} {tuple(theirs.shape)} and {ours.dtype} {tuple(ours.shape)}"
    unequal = ~((theirs == ours) | ((theirs != theirs) & (ours != ours)))
    if not unequal.any():
        return None
    at = tuple(int(i) for i in unequal.nonzero()[0])
    return f"{key}: {int(unequal.sum())} of {unequal.numel()} values, the first at {at}: {theirs[at]} and {ours[at]}"


def compare(theirs, ours):
    """Differences of two batches."""
    missing, extra = [key for key in theirs if key not in ours], [key for key in ours if key not in theirs]
    if missing or extra:
        yield f"keys: missing {missing}, in addition {extra}"
    elif list(theirs) != list(ours):
        yield f"keys in another order: {list(theirs)} and {list(ours)}"
    for key, value in theirs.items():
        found = key in ours and difference(key, value, ours[key])
        if found:
            yield found


def as_dtype(batch, dtype, cameras):
    """The batch with images as bytes, as lerobot 0.6 has videos with return_uint8."""
    if dtype == "uint8":
        batch = {key: (v * 255).round().to(torch.uint8) if key in cameras else v for key, v in batch.items()}
    return batch


def depth_keys(dataset):
    return getattr(dataset.meta, "depth_keys", [])


def check(folder, delta_timestamps, episodes=None, dtype=None, **options):
    """(items, differences)"""
    given = {"delta_timestamps": delta_timestamps} if delta_timestamps else {}
    dataset = LeRobotDataset("weir/compared", root=folder, episodes=episodes, **given)
    by_index = {int(row): i for i, row in enumerate(dataset.hf_dataset.with_format(None)["index"])}
    cameras = set(dataset.meta.camera_keys) - set(depth_keys(dataset))
    found, items, number, order = {}, 0, 0, []  # found: the first difference of each key
    options = {"batch_size": BATCH, "shuffle": False, **given, **options}
    if episodes is not None:
        options["episodes"] = episodes
    if dtype:
        options["dtype"] = dtype
    with weir.Loader(f"{URL}/{folder.name}" if URL else folder, keys="lerobot", **options) as loader:
        for ours in loader:
            if "index" not in ours:
                return items, [f"batch {number}: no index: {list(ours)}"]
            which = items_of(by_index, ours["index"], given)
            theirs = torch.utils.data.default_collate([dataset[i] for i in which])
            for text in compare(as_dtype(theirs, dtype, cameras), ours):
                found.setdefault(text.partition(":")[0], f"batch {number}: {text}")
            items, number, order = items + len(which), number + 1, order + which
    is_ordered = episodes is None or episodes == sorted(episodes) or "dataset_from_index" in dataset.meta.episodes[0]
    if not options["shuffle"] and is_ordered and order != list(range(len(dataset))):
        found["order"] = f"{len(order)} items for {len(dataset)}, or in another order: {order[:8]} ..."
    if sorted(order) != list(range(len(dataset))):
        found["items"] = f"{len(order)} items, not each of {len(dataset)} once"
    return items, list(found.values())


def items_of(by_index, index, given):
    """Numbers of the dataset's items in a batch."""
    if index.ndim > 1:
        index = index[:, given["delta_timestamps"]["index"].index(0)]
    return [by_index[int(row)] for row in index]


def is_readable(folder, info):
    if dataset_reader is lerobot_dataset and any((f.get("info") or {}).get("is_depth_map") for f in info["features"].values()):
        print(f"{folder.name}: skipped: depth needs lerobot 0.6")
        return False
    try:
        LeRobotDataset("weir/compared", root=folder)
    except Exception as e:
        print(f"{folder.name}: skipped: {info['codebase_version']}: {str(e).strip().splitlines()[0]:.100}")
        return False
    return True


def report(name, form, result):
    items, found = result
    print(f"{name}: {form}: {items} items, {len(found)} keys differ", flush=True)
    for text in found[:6]:
        print(f"    {text:.400}")
    return bool(found)


def check_dataset(folder, quick):
    info = json.loads((folder / "meta" / "info.json").read_text())
    if not is_readable(folder, info):
        return False
    failed = False
    every = forms(info)
    if quick:
        every = {name: every[name] for name in ("plain", "every key", "far")}
    jobs = [(name, (delta,), {}) for name, delta in every.items()]
    jobs += [("shuffled", (every["plain"],), {"shuffle": True, "seed": 3}), ("uint8", (None,), {"dtype": "uint8"})]
    last = info["total_episodes"] - 1
    # lerobot 0.3 fails for offsets with episodes, and returns their items in the order of the list.
    delta = every["plain" if info["codebase_version"] == "v2.1" else "far"]
    jobs += [(f"episodes {e}", (delta, e), {}) for e in ([1], [last, 0])]
    for form, arguments, options in jobs:
        try:
            result = check(folder, *arguments, **options)
        except Exception as e:
            result = (0, [f"{type(e).__name__}: {e}"])
        failed |= report(folder.name, form, result)
    return failed


def main():
    folders = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    if not folders:
        sys.exit(__doc__)
    failed = False
    for folder in map(pathlib.Path, folders):
        exact = Decoders()
        video_utils.decode_video_frames = dataset_reader.decode_video_frames = exact
        failed |= check_dataset(folder, "--quick" in sys.argv)
        video_utils.decode_video_frames = exact.lerobot
        if exact.wrong:
            print(f"{folder.name}: {exact.wrong} of {len(exact.frames)} frames differ in LeRobot's own decoding")
    sys.exit(failed)


if __name__ == "__main__":
    main()
