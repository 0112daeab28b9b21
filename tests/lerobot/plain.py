#!/usr/bin/env python3
"""Writes small LeRobot datasets with ffmpeg and pyarrow alone: plain.py OUT [CODEC]

For tests without lerobot. Writes OUT/v3.0, OUT/v2.1 (videos, CODEC = libsvtav1, libx264 or libx265) and
OUT/images-v3.0, OUT/images-v2.1 (images inside Parquet). LeRobotDataset opens all of them.
"""

import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    pa = pq = None  # rows_of needs none

TASKS = ["pick up the cube", "Schließe die Tür"]
SUBTASKS = ["reach", "grasp", "lift"]  # in v3.0
DATA = {
    "v3.0": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
    "v2.1": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
}
VIDEO = {
    "v3.0": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
    "v2.1": "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4",
}
ROWS = {  # name -> (type, shape of a row)
    "observation.state": ("float32", (6,)),
    "action": ("float32", (6,)),
    "observation.grid": ("float32", (2, 3)),
    "observation.half": ("float16", (2,)),
    "language_instruction": ("string", (1,)),
    "next.reward": ("float32", (1,)),
    "next.done": ("bool", (1,)),
    "subtask_index": ("int64", (1,)),
    "timestamp": ("float32", (1,)),
    "frame_index": ("int64", (1,)),
    "episode_index": ("int64", (1,)),
    "index": ("int64", (1,)),
    "task_index": ("int64", (1,)),
}


class Dataset:
    """What the functions below share. cameras: feature name -> (width, height); lengths: rows per episode; depth:
    feature name of a depth camera -> its scale in info.json."""

    def __init__(self, root, version, cameras, lengths, fps, codec, images, depth):
        self.root, self.version, self.cameras, self.lengths = pathlib.Path(root), version, cameras, lengths
        self.fps, self.codec, self.images, self.depth = fps, codec, images, depth

    def path(self, template, episode=0, key=""):
        path = self.root / template[self.version].format(
            video_key=key, chunk_index=0, file_index=0, episode_chunk=0, episode_index=episode
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def write_json(self, name, value):
        path = self.root / "meta" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = value if name.endswith(".jsonl") else [value]
        indent = None if name.endswith(".jsonl") else 4
        path.write_text("".join(json.dumps(line, indent=indent, ensure_ascii=False) + "\n" for line in lines))


def ffmpeg(*arguments):
    command = ["ffmpeg", "-v", "error", "-nostdin", "-y", *map(str, arguments)]
    subprocess.run(command, check=True, env={**os.environ, "SVT_LOG": "1"})


def source(size, fps, first, frames):
    picture = f"testsrc2=size={size[0]}x{size[1]}:rate={fps}"
    return ("-f", "lavfi", "-i", f"{picture},trim=start_frame={first}:end_frame={first + frames},setpts=PTS-STARTPTS")


def rows_of(dataset, episode):
    """The episode's columns, as name -> list."""
    length, rng = dataset.lengths[episode], random.Random(episode)
    first = sum(dataset.lengths[:episode])
    columns = {
        "next.reward": [t / length for t in range(length)],
        "next.done": [t == length - 1 for t in range(length)],
        "observation.grid": [[[t, episode, 0.5], [-t, 2.0, 1 / (t + 1)]] for t in range(length)],
        "observation.half": [[t / 8, -1024 - episode] for t in range(length)],
        "language_instruction": ["" if t % 4 == 3 else f"étape {t // 2}" for t in range(length)],
        "subtask_index": [len(SUBTASKS) * t // length for t in range(length)],
        "timestamp": [t / dataset.fps for t in range(length)],
        "frame_index": list(range(length)),
        "episode_index": [episode] * length,
        "index": list(range(first, first + length)),
        "task_index": [(episode + (2 * t >= length)) % len(TASKS) for t in range(length)],
    }
    for name in ("observation.state", "action"):
        columns[name] = [[rng.uniform(-1, 1) for _ in range(6)] for _ in range(length)]
    return columns


def image_values(dataset, episode, key):
    with tempfile.TemporaryDirectory() as folder:
        first, length = sum(dataset.lengths[:episode]), dataset.lengths[episode]
        pixels = ("-pix_fmt", "gray16be") if key in dataset.depth else ()
        ffmpeg(*source(dataset.cameras[key], dataset.fps, first, length), *pixels, f"{folder}/frame-%06d.png")
        return [{"bytes": path.read_bytes(), "path": path.name} for path in sorted(pathlib.Path(folder).iterdir())]


def schema_of(dataset):
    fields, features = [], {}
    if dataset.images:
        for key in dataset.cameras:
            fields.append(pa.field(key, pa.struct({"bytes": pa.binary(), "path": pa.string()})))
            features[key] = {"_type": "Image"}
    for name, (dtype, shape) in ROWS.items():
        one, about = pa.type_for_alias(dtype), {"dtype": dtype, "_type": "Value"}
        if shape != (1,):
            one = pa.list_(one if len(shape) == 1 else pa.list_(one))
            about = {"feature": about, "length": shape[0], "_type": "Sequence"}
        if len(shape) == 2:
            about = {"shape": shape, "dtype": dtype, "_type": "Array2D"}
        fields.append(pa.field(name, one))
        features[name] = about
    return pa.schema(fields, metadata={"huggingface": json.dumps({"info": {"features": features}})})


def write_rows(dataset):
    schema, writer = schema_of(dataset), None
    for episode in range(len(dataset.lengths)):
        columns = rows_of(dataset, episode)
        if dataset.images:
            columns.update({key: image_values(dataset, episode, key) for key in dataset.cameras})
        if writer is None or dataset.version == "v2.1":
            if writer:
                writer.close()
            writer = pq.ParquetWriter(dataset.path(DATA, episode), schema, compression="snappy")
        writer.write_table(pa.table([columns[name] for name in schema.names], schema=schema))
    writer.close()


def encode(dataset, key, episode, path):
    """Encodes an episode as lerobot does: a key frame every second frame, and depth as 12 bits without loss."""
    first, length = sum(dataset.lengths[:episode]), dataset.lengths[episode]
    preset = ("-preset", "12" if dataset.codec == "libsvtav1" else "veryfast")
    quiet = ("-x265-params", "log-level=error") if dataset.codec == "libx265" else ()
    options = ("-c:v", dataset.codec, "-g", "2", "-crf", "30", "-pix_fmt", "yuv420p", *preset, *quiet)
    if key in dataset.depth:
        lossless = ("-x265-params", "log-level=error:lossless=1:keyint=2")
        options = ("-c:v", "libx265", "-preset", "veryfast", "-pix_fmt", "gray12le", *lossless)
    ffmpeg(*source(dataset.cameras[key], dataset.fps, first, length), *options, path)


def write_videos(dataset):
    for key in dataset.cameras:
        if dataset.version == "v2.1":
            for episode in range(len(dataset.lengths)):
                encode(dataset, key, episode, dataset.path(VIDEO, episode, key))
            continue
        with tempfile.TemporaryDirectory() as folder:
            parts = [pathlib.Path(folder, f"{episode}.mp4") for episode in range(len(dataset.lengths))]
            for episode, part in enumerate(parts):
                encode(dataset, key, episode, part)
            listed = pathlib.Path(folder, "list.txt")
            listed.write_text("".join(f"file '{part}'\n" for part in parts))
            copy = ("-c", "copy", "-movflags", "faststart")
            ffmpeg("-f", "concat", "-safe", "0", "-i", listed, *copy, dataset.path(VIDEO, 0, key))


def write_info(dataset):
    kind, names = "image" if dataset.images else "video", ["height", "width", "channels"]
    features = {
        key: {"dtype": kind, "shape": [size[1], size[0], 3], "names": names} for key, size in dataset.cameras.items()
    }
    for key, scale in dataset.depth.items():
        features[key].update(shape=[*features[key]["shape"][:2], 1], info={"is_depth_map": True, **scale})
    features.update({name: {"dtype": dtype, "shape": shape, "names": None} for name, (dtype, shape) in ROWS.items()})
    episodes = len(dataset.lengths)
    info = {
        "codebase_version": dataset.version,
        "robot_type": None,
        "total_episodes": episodes,
        "total_frames": sum(dataset.lengths),
        "total_tasks": len(TASKS),
        "chunks_size": 1000,
        "fps": dataset.fps,
        "splits": {"train": f"0:{episodes}"},
        "data_path": DATA[dataset.version],
        "video_path": None if dataset.images else VIDEO[dataset.version],
        "features": features,
    }
    if dataset.version == "v3.0":
        info.update({"data_files_size_in_mb": 100, "video_files_size_in_mb": 200})
    else:
        videos = 0 if dataset.images else episodes * len(dataset.cameras)
        info.update({"total_chunks": 1, "total_videos": videos})
    dataset.write_json("info.json", info)


def stats_of(columns):
    """Statistics of the vectors, as lerobot stores them."""
    stats = {}
    for name in ("observation.state", "action"):
        dims = list(zip(*columns[name]))
        means = [sum(dim) / len(dim) for dim in dims]
        stats[name] = {
            "min": [min(dim) for dim in dims],
            "max": [max(dim) for dim in dims],
            "mean": means,
            "std": [math.sqrt(sum((x - m) ** 2 for x in dim) / len(dim)) for dim, m in zip(dims, means)],
            "count": [len(columns[name])],
        }
    return stats


def write_episodes(dataset):
    every = [rows_of(dataset, episode) for episode in range(len(dataset.lengths))]
    tasks = [[TASKS[i] for i in sorted(set(columns["task_index"]))] for columns in every]
    if dataset.version == "v2.1":
        lines = enumerate(zip(tasks, dataset.lengths))
        dataset.write_json("episodes.jsonl", [{"episode_index": e, "tasks": t, "length": n} for e, (t, n) in lines])
        dataset.write_json("tasks.jsonl", [{"task_index": i, "task": task} for i, task in enumerate(TASKS)])
        stats = [{"episode_index": e, "stats": stats_of(columns)} for e, columns in enumerate(every)]
        dataset.write_json("episodes_stats.jsonl", stats)
        return
    ends = [sum(dataset.lengths[: episode + 1]) for episode in range(len(dataset.lengths))]
    begins = [end - length for end, length in zip(ends, dataset.lengths)]
    zeros = [0] * len(ends)
    table = {
        "episode_index": list(range(len(ends))),
        "tasks": tasks,
        "length": dataset.lengths,
        "data/chunk_index": zeros,
        "data/file_index": zeros,
        "dataset_from_index": begins,
        "dataset_to_index": ends,
        "meta/episodes/chunk_index": zeros,
        "meta/episodes/file_index": zeros,
    }
    for key in () if dataset.images else dataset.cameras:
        table[f"videos/{key}/chunk_index"] = table[f"videos/{key}/file_index"] = zeros
        table[f"videos/{key}/from_timestamp"] = [begin / dataset.fps for begin in begins]
        table[f"videos/{key}/to_timestamp"] = [end / dataset.fps for end in ends]
    for name in ("observation.state", "action"):
        for figure in ("min", "max", "mean", "std", "count"):
            table[f"stats/{name}/{figure}"] = [stats_of(columns)[name][figure] for columns in every]
    path = dataset.root / "meta" / "episodes" / "chunk-000" / "file-000.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(table), path, compression="snappy")
    index = {"name": None, "field_name": "__index_level_0__", "pandas_type": "unicode", "numpy_type": "object"}
    number = {"name": "task_index", "field_name": "task_index", "pandas_type": "int64", "numpy_type": "int64"}
    columns = [{**column, "metadata": None} for column in (number, index)]
    pandas = {"index_columns": ["__index_level_0__"], "columns": columns, "column_indexes": []}
    for name, texts in ("task", TASKS), ("subtask", SUBTASKS):
        names = pa.table({f"{name}_index": list(range(len(texts))), "__index_level_0__": texts})
        names = names.replace_schema_metadata({"pandas": json.dumps(pandas).replace("task_index", f"{name}_index")})
        pq.write_table(names, dataset.root / "meta" / f"{name}s.parquet", compression="snappy")
    dataset.write_json("stats.json", stats_of({k: sum((columns[k] for columns in every), []) for k in every[0]}))


def write(root, version="v3.0", cameras=None, lengths=(9, 12, 7), fps=30, codec="libsvtav1", images=False, depth={}):
    """Writes a dataset; root must not exist."""
    cameras = cameras or {"observation.images.top": (96, 64), "observation.images.wrist": (64, 64)}
    dataset = Dataset(root, version, cameras, list(lengths), fps, codec, images, depth)
    dataset.root.mkdir(parents=True)
    write_info(dataset)
    write_episodes(dataset)
    write_rows(dataset)
    if not images:
        write_videos(dataset)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[1])
    for version in ("v3.0", "v2.1"):
        write(out / version, version, codec=sys.argv[2] if len(sys.argv) > 2 else "libsvtav1")
        write(out / f"images-{version}", version, images=True)


if __name__ == "__main__":
    main()
