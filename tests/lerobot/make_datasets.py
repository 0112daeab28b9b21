#!/usr/bin/env python3
"""Writes small LeRobot datasets with the installed lerobot: make_datasets.py OUT [NAME...]

lerobot 0.4 writes v3.0, lerobot 0.3 writes v2.1 and lerobot 0.6 adds depth; run the script once with each. Names that
another version writes are skipped. Every dataset gets a description in OUT/NAME.txt and a line in OUT/README.txt.
The frames come from photos of a moving camera: $WEIR_DATA or ../shared/data, jpeg/corridor.
"""

import functools
import importlib.metadata
import inspect
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

scratch = tempfile.mkdtemp(prefix="lerobot-cache-")
for variable in ("HF_HOME", "HF_DATASETS_CACHE", "HF_LEROBOT_HOME"):
    os.environ[variable] = scratch  # the caches would otherwise grow in the home folder
os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
from lerobot.datasets import lerobot_dataset  # noqa: E402
from lerobot.datasets.lerobot_dataset import LeRobotDataset  # noqa: E402
from PIL import Image  # noqa: E402

VERSION = tuple(int(part) for part in importlib.metadata.version("lerobot").split(".")[:2])
TASKS = ("walk to the end of the corridor", "Öffne die Tür, dann „weiter“", "回到起点")
MAKERS = {}  # name -> (predicate of VERSION, function that writes it)


def photos():
    here = pathlib.Path(__file__).resolve()
    data = os.environ.get("WEIR_DATA") or next(
        (str(up / "shared" / "data") for up in here.parents if (up / "shared" / "data").is_dir()), ""
    )
    found = sorted(pathlib.Path(data, "jpeg", "corridor").glob("*.jpg"), key=lambda path: int(path.stem))
    if not found:
        sys.exit("no photos: set WEIR_DATA to the folder that holds jpeg/corridor")
    return found


@functools.lru_cache(maxsize=128)
def photo(number):
    found = photos()
    return Image.open(found[number % len(found)]).convert("RGB")


def picture(camera, frame, width, height):
    """A camera's frame: four frames pan across each photo, the second camera sees it mirrored."""
    image = photo(frame // 4 + 17 * camera)
    shift = 6 * (frame % 4)
    image = image.crop((shift, shift // 2, image.width - 24 + shift, image.height - 12 + shift // 2))
    image = image.resize((width, height), Image.BILINEAR)
    return np.asarray(image.transpose(Image.FLIP_LEFT_RIGHT) if camera % 2 else image).copy()


def camera_features(cameras, dtype):
    names = ["height", "width", "channels"]
    return {key: {"dtype": dtype, "shape": (size[1], size[0], 3), "names": names} for key, size in cameras.items()}


def vector(length, name):
    return {"dtype": "float32", "shape": (length,), "names": [f"{name}_{i}" for i in range(length)]}


def create(root, features, fps, videos, **options):
    accepted = inspect.signature(LeRobotDataset.create).parameters
    options = {key: value for key, value in options.items() if key in accepted}
    return LeRobotDataset.create(
        root.name, fps, features, root=root, robot_type="aloha", use_videos=videos, **options
    )


def add(dataset, frame, task):
    if VERSION < (0, 4):
        dataset.add_frame(frame, task=task)
    else:
        dataset.add_frame({**frame, "task": task})


def record(dataset, cameras, lengths, tasks=1, extra=None):
    """Fills a dataset with episodes of the given lengths; extra(episode, t, length) adds values to a frame."""
    rng = np.random.default_rng(7)
    start = 0
    for episode, length in enumerate(lengths):
        for t in range(length):
            frame = {key: picture(i, start + t, *size) for i, (key, size) in enumerate(cameras.items())}
            frame["observation.state"] = rng.normal(size=14).astype(np.float32)
            frame["action"] = rng.normal(size=14).astype(np.float32)
            frame.update(extra(episode, t, length) if extra else {})
            add(dataset, frame, TASKS[(episode if t < length // 2 else episode + 1) % tasks])
        dataset.save_episode()
        start += length
    if hasattr(dataset, "finalize"):
        dataset.finalize()


def plain(root, size=(320, 240), count=2, fps=30, videos=True, lengths=(30, 41, 25), tasks=1, settings=None, **options):
    cameras = {key: size for key in ("observation.images.top", "observation.images.wrist")[:count]}
    features = {
        **camera_features(cameras, "video" if videos else "image"),
        "observation.state": vector(14, "joint"),
        "action": vector(14, "joint"),
    }
    dataset = create(root, features, fps, videos, **options)
    if settings:
        dataset.meta.update_chunk_settings(**settings)
    record(dataset, cameras, lengths, tasks)


def with_features(root):
    """A video camera, an image camera of odd size, and a value of every type and shape that LeRobot takes."""
    video, image = {"observation.images.top": (160, 120)}, {"observation.images.odd": (161, 121)}
    one = {"shape": (1,), "names": None}
    features = {
        **camera_features(video, "video"),
        **camera_features(image, "image"),
        "observation.state": vector(14, "joint"),
        "action": vector(14, "joint"),
        "observation.grid": {"dtype": "float32", "shape": (2, 3), "names": None},
        "observation.precise": {"dtype": "float64", "shape": (3,), "names": None},
        "observation.gripper_open": {"dtype": "bool", **one},
        "observation.contacts": {"dtype": "bool", "shape": (4,), "names": None},
        "observation.mode": {"dtype": "int32", **one},
        "observation.counter": {"dtype": "int64", "shape": (2,), "names": None},
        "observation.byte": {"dtype": "uint8", **one},
        "observation.half": {"dtype": "float16", "shape": (2,), "names": None},
        "language_instruction": {"dtype": "string", **one},
        "next.reward": {"dtype": "float32", **one},
        "next.done": {"dtype": "bool", **one},
        "next.success": {"dtype": "bool", **one},
    }

    def values(episode, t, length):
        return {
            "observation.grid": np.arange(6, dtype=np.float32).reshape(2, 3) + 10 * t,
            "observation.precise": np.array([t / 3, -t / 7, 1e-300 * t]),
            "observation.gripper_open": np.array([t % 3 == 0]),
            "observation.contacts": np.array([t % 2 == 0, t % 3 == 0, episode == 1, t == length - 1]),
            "observation.mode": np.array([t % 5 - 2], dtype=np.int32),
            "observation.counter": np.array([2**40 + t, -t], dtype=np.int64),
            "observation.byte": np.array([t * 7 % 256], dtype=np.uint8),
            "observation.half": np.array([t / 4, -t], dtype=np.float16),
            "language_instruction": f"step {t} of épisode {episode}" if t % 7 else "",
            "next.reward": np.array([t / length], dtype=np.float32),
            "next.done": np.array([t == length - 1]),
            "next.success": np.array([t == length - 1 and episode != 1]),
        }

    record(create(root, features, 30, True), {**video, **image}, (24, 33, 20), tasks=3, extra=values)


def reencoded(root, origin, *options):
    """A copy of another dataset with videos that lerobot did not encode: longer groups of pictures, other tags."""
    shutil.copytree(root.parent / origin, root)
    for video in sorted(root.glob("videos/**/*.mp4")):
        out = video.with_suffix(".new.mp4")
        subprocess.run(["ffmpeg", "-v", "error", "-y", "-i", video, *options, out], check=True)
        out.replace(video)


def with_codec(root, vcodec, **options):
    """lerobot 0.3 takes no codec: its encoder is called with another one."""
    encode = lerobot_dataset.encode_video_frames
    lerobot_dataset.encode_video_frames = functools.partial(encode, vcodec=vcodec)
    try:
        plain(root, **options)
    finally:
        lerobot_dataset.encode_video_frames = encode


def edited(root):
    """Episode 1 of five deleted, then joined with another dataset, by lerobot's own tools."""
    from lerobot.datasets.dataset_tools import delete_episodes, merge_datasets

    parts = [root.parent / f".{root.name}-{i}" for i in range(3)]
    for part in parts:
        shutil.rmtree(part, ignore_errors=True)
    plain(parts[0], size=(160, 120), lengths=(12, 15, 9, 20, 11), tasks=2)
    plain(parts[1], size=(160, 120), lengths=(14, 8), tasks=3)
    first = delete_episodes(LeRobotDataset("first", root=parts[0]), [1], output_dir=parts[2], repo_id="less")
    merge_datasets([first, LeRobotDataset("second", root=parts[1])], output_repo_id=root.name, output_dir=root)
    for part in parts:
        shutil.rmtree(part)


def converted(root, origin):
    """A v2.1 dataset that lerobot 0.4 converted."""
    from lerobot.datasets.v30 import convert_dataset_v21_to_v30 as tool

    shutil.copytree(root.parent / origin, root)
    tool.convert_dataset(repo_id=root.name, root=root.parent, push_to_hub=False)
    shutil.rmtree(root.with_name(root.name + "_old"), ignore_errors=True)


def subtasks(root):
    """A dataset whose rows name a subtask, as policies with a planner use."""
    import pandas

    cameras = {"observation.images.top": (96, 96)}
    features = {
        **camera_features(cameras, "video"),
        "observation.state": vector(14, "joint"),
        "action": vector(14, "joint"),
        "subtask_index": {"dtype": "int64", "shape": (1,), "names": None},
    }
    dataset = create(root, features, 30, True)
    record(dataset, cameras, (16, 18), tasks=2, extra=lambda e, t, n: {"subtask_index": np.array([t * 3 // n])})
    names = pandas.DataFrame({"subtask_index": range(3)}, index=["reach", "grasp", "lift"])
    names.to_parquet(root / "meta" / "subtasks.parquet")


def depth(root):
    """A depth camera: 12-bit gray HEVC of millimetres, beside a colour camera."""
    features = {
        **camera_features({"observation.images.top": (160, 120)}, "video"),
        "observation.images.depth": {
            "dtype": "video",
            "shape": (120, 160, 1),
            "names": ["height", "width", "channels"],
            "info": {"is_depth_map": True},
        },
        "observation.state": vector(14, "joint"),
        "action": vector(14, "joint"),
    }
    rows, columns = np.mgrid[0:120, 0:160].astype(np.float64)

    def values(episode, t, length):
        millimetres = 400 + 9 * rows + 5 * columns + 20 * t + 300 * episode
        millimetres[40:60, 20 + t : 60 + t] = 0  # no measurement
        return {"observation.images.depth": millimetres.astype(np.uint16)[..., None]}

    dataset = create(root, features, 30, True)
    record(dataset, {"observation.images.top": (160, 120)}, (20, 24, 22), extra=values)


def v30(name, maker, *arguments, **options):
    MAKERS[name] = (lambda version: version[:2] == (0, 4), functools.partial(maker, *arguments, **options))


def v21(name, maker, *arguments, **options):
    MAKERS[name] = (lambda version: version < (0, 4), functools.partial(maker, *arguments, **options))


def maker_of(function, **options):
    return lambda root, *arguments: function(root, *arguments, **options)


v30("v30-av1", maker_of(plain, size=(640, 480), lengths=(30, 41, 25, 36), tasks=3))
v30("v30-images", maker_of(plain, size=(160, 120), videos=False, tasks=2))
v30("v30-h264", maker_of(plain, vcodec="h264"))
v30("v30-hevc", maker_of(plain, vcodec="hevc"))
v21("v21-av1", maker_of(plain, size=(320, 240), tasks=3))
v21("v21-images", maker_of(plain, size=(160, 120), videos=False, tasks=2))
v21("v21-h264", maker_of(with_codec, vcodec="h264", size=(320, 240)))
v21("v21-features", with_features)
v30("v30-features", with_features)
v30("v30-av1-15fps", maker_of(plain, fps=15))
v30("v30-av1-50fps", maker_of(plain, fps=50, lengths=(60, 55, 48)))
v30("v30-h264-50fps", maker_of(plain, fps=50, vcodec="h264", lengths=(60, 55, 48)))
v30("v30-av1-odd", maker_of(plain, size=(161, 121), count=1))
small_files = {"chunks_size": 2, "data_files_size_in_mb": 0.01, "video_files_size_in_mb": 0.2}
v30("v30-files", maker_of(plain, size=(320, 240), lengths=(20, 25, 21, 30, 22, 26), tasks=2, settings=small_files))
v30("v30-streaming", maker_of(plain, size=(320, 240), streaming_encoding=True, encoder_queue_maxsize=100))
v30("v30-subtasks", subtasks)
v30("v30-edited", edited)
v30("v30-converted", maker_of(lambda root: converted(root, "v21-av1")))
x264 = ("-c:v", "libx264", "-crf", "28")
v30("v30-h264-bframes", lambda root: reencoded(root, "v30-h264", *x264, "-g", "30", "-bf", "3"))
v30("v30-h264-444", lambda root: reencoded(root, "v30-h264", *x264, "-g", "2", "-pix_fmt", "yuv444p"))
bt709 = "setparams=color_primaries=bt709:color_trc=bt709:colorspace=bt709"
tags = ("-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709")
v30("v30-h264-bt709", lambda root: reencoded(root, "v30-h264", "-vf", bt709, *x264, "-g", "2", *tags))
full = ("-vf", "scale=out_range=full", *x264, "-color_range", "pc")
v30("v30-h264-full", lambda root: reencoded(root, "v30-h264", *full))
v30("v30-av1-gop20", lambda root: reencoded(root, "v30-av1-15fps", "-c:v", "libsvtav1", "-g", "20", "-preset", "10"))
MAKERS["v30-depth"] = (lambda version: version >= (0, 6), depth)


def describe(out):
    lines = []
    for info_path in sorted(out.glob("*/meta/info.json")):
        root = info_path.parent.parent
        info = json.loads(info_path.read_text())
        cameras = {k: f for k, f in info["features"].items() if f["dtype"] in ("video", "image")}
        looks = [
            f"{key.split('.')[-1]} {f['shape'][1]}x{f['shape'][0]} "
            + (f.get("info", {}).get("video.codec", "video") if f["dtype"] == "video" else "images")
            for key, f in cameras.items()
        ]
        others = [k for k in info["features"] if k not in cameras]
        lines.append(
            f"{root.name}: {info['codebase_version']}, {info['fps']} fps, {info['total_episodes']} episodes, "
            f"{info['total_frames']} rows, {'; '.join(looks)}; {', '.join(others)}"
        )
        files = [path for path in sorted(root.rglob("*")) if path.is_file()]
        text = [info_path.read_text(), ""]
        text += [f"{path.stat().st_size:9d} {path.relative_to(root)}" for path in files]
        for path in files:
            if path.suffix == ".parquet":
                text += ["", str(path.relative_to(root)), str(pq.read_metadata(path)), str(pq.ParquetFile(path).schema)]
                text += [str(pq.read_schema(path).metadata)]
        (out / f"{root.name}.txt").write_text("\n".join(text) + "\n")
    (out / "README.txt").write_text("\n".join(lines) + "\n")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or MAKERS:
        wanted, write = MAKERS[name]
        root = out / name
        if not wanted(VERSION) or (root / "meta" / "info.json").exists():
            continue
        shutil.rmtree(root, ignore_errors=True)
        print(name, flush=True)
        write(root)
        describe(out)
    shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
