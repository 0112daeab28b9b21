#!/usr/bin/env python3
"""Compares the rates of random frames of a LeRobot dataset with videos: lerobot_rates.py FOLDER [options]

Sides, each in a process of its own, interleaved: weir.Loader with keys="lerobot" (weir-u8, weir-f32), LeRobotDataset
in a DataLoader with worker processes (lerobot: its default, float32; lerobot-u8: as it trains since 0.6, not among the
default sides), and loops of torchcodec and PyAV in as many processes, which decode random frames of all cameras and make
no batches. A trial is a warm-up and then --seconds of batches. Prints frames (images) per second and per CPU second:
median, min, max of the rounds, and the ratio to lerobot.
Needs lerobot (tests/lerobot/setup.sh) and weir.

    build/lerobot-venv/bin/python bench/lerobot_rates.py DATASET --workers 2 --rounds 5 --seconds 5 --json rates.json
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import time

os.environ["HF_HUB_OFFLINE"] = "1"
SIDES = ("weir-u8", "weir-f32", "lerobot", "lerobot-u8", "torchcodec", "pyav")


def forever(loader):
    while True:
        yield from loader


def images_in(batch, cameras):
    return sum(len(batch[key]) for key in cameras)


def camera_keys(folder, dtypes=("video", "image")):
    info = json.loads(pathlib.Path(folder, "meta", "info.json").read_text())
    return [key for key, feature in info["features"].items() if feature["dtype"] in dtypes]


def weir_side(o, dtype):
    import weir

    cameras = camera_keys(o.folder)
    loader = weir.Loader(o.folder, keys="lerobot", batch_size=o.batch_size, num_workers=o.workers, dtype=dtype, seed=1)
    return (images_in(batch, cameras) for batch in forever(loader))


def lerobot_side(o, **colours):
    import torch
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    dataset = LeRobotDataset("bench/rates", root=o.folder, **colours)
    options = {"batch_size": o.batch_size, "shuffle": True, "num_workers": o.workers}
    if o.workers:
        options.update({"persistent_workers": True, "prefetch_factor": 4})  # the values of lerobot's training script
    loader = torch.utils.data.DataLoader(dataset, **options)
    cameras = camera_keys(o.folder)
    return (images_in(batch, cameras) for batch in forever(loader))


def videos(folder):
    found = sorted(path for path in pathlib.Path(folder, "videos").rglob("*.mp4"))
    if not found:
        sys.exit(f"{folder}: no videos")
    return found


def torchcodec_frames(folder, seed):
    from torchcodec.decoders import VideoDecoder

    every = [VideoDecoder(str(path), seek_mode="exact", num_ffmpeg_threads=1) for path in videos(folder)]
    order = [(decoder, number) for decoder in every for number in range(len(decoder))]
    chosen = random.Random(seed)
    while True:
        decoder, number = chosen.choice(order)
        yield decoder[number]


def pyav_frames(folder, seed):
    import av

    chosen, order = random.Random(seed), []
    for path in videos(folder):
        container = av.open(str(path))
        stream = container.streams.video[0]
        stream.thread_count = 1
        times = sorted(packet.pts for packet in container.demux(stream) if packet.pts is not None)
        order += [(container, stream, pts) for pts in times]
    while True:
        container, stream, pts = chosen.choice(order)
        container.seek(pts, stream=stream)
        for frame in container.decode(stream):
            if frame.pts >= pts:
                break
        yield frame.to_ndarray(format="rgb24")


def decode_forever(frames, folder, seed, count, ready):
    decoded = frames(folder, seed)
    next(decoded)
    ready.wait()
    for _ in decoded:
        with count.get_lock():
            count.value += 1


def loop_side(o, frames):
    """Frames decoded by the processes since the last step, every 10 ms."""
    n, count, seen = max(1, o.workers), multiprocessing.Value("q", 0), 0
    ready = multiprocessing.Barrier(n)
    processes = [
        multiprocessing.Process(target=decode_forever, args=(frames, o.folder, seed, count, ready), daemon=True)
        for seed in range(n)
    ]
    for process in processes:
        process.start()
    while True:
        time.sleep(0.01)
        now = count.value
        yield now - seen
        seen = now


def cpu_seconds():
    """CPU time of this process and its running children."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    total, tick = own.ru_utime + own.ru_stime, os.sysconf("SC_CLK_TCK")
    for child in multiprocessing.active_children():
        fields = pathlib.Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / tick
    return total


def trial(o):
    """Runs one side in this process and prints its frames, seconds and CPU seconds."""
    sides = {
        "weir-u8": lambda: weir_side(o, "uint8"),
        "weir-f32": lambda: weir_side(o, "float32"),
        "lerobot": lambda: lerobot_side(o),
        "lerobot-u8": lambda: lerobot_side(o, return_uint8=True),
        "torchcodec": lambda: loop_side(o, torchcodec_frames),
        "pyav": lambda: loop_side(o, pyav_frames),
    }
    steps = sides[o.side]()
    begin, ready = time.monotonic(), 0
    while time.monotonic() - begin < o.warm_up or not ready:
        ready += next(steps)
    begin, cpu, frames = time.monotonic(), cpu_seconds(), 0
    while time.monotonic() - begin < o.seconds:
        frames += next(steps)
    print(json.dumps([frames, time.monotonic() - begin, cpu_seconds() - cpu]))
    sys.stdout.flush()
    for child in multiprocessing.active_children():
        child.kill()
    os._exit(0)  # loaders and their workers end with the process


def run_trial(o, side):
    command = [sys.executable, __file__, o.folder, "--side", side]
    for name in ("workers", "batch_size", "seconds", "warm_up"):
        command += ["--" + name.replace("_", "-"), str(getattr(o, name))]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    frames, seconds, cpu = json.loads(done.stdout.splitlines()[-1])
    return frames / seconds, frames / cpu


def figures(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def report(o, rates):
    print(f"{'side':<12}{'frames/s':>10}{'min':>9}{'max':>9}{'per CPU s':>11}{'to lerobot':>12}")
    result = {}
    for side in o.sides:
        wall, cpu = (figures([rate[i] for rate in rates[side]]) for i in range(2))
        result[side] = {"frames_per_s": wall, "frames_per_cpu_s": cpu}
        ratio = "-"
        if "lerobot" in o.sides:
            ratio = f"{wall['median'] / statistics.median(rate[0] for rate in rates['lerobot']):.2f}"
        numbers = f"{wall['median']:>10.0f}{wall['min']:>9.0f}{wall['max']:>9.0f}{cpu['median']:>11.0f}{ratio:>12}"
        print(f"{side:<12}{numbers}")
    if o.json:
        options = {name: getattr(o, name) for name in ("workers", "batch_size", "seconds", "rounds")}
        pathlib.Path(o.json).write_text(json.dumps({"folder": o.folder, **options, "sides": result}, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    default = [side for side in SIDES if side != "lerobot-u8"]
    parser.add_argument("--sides", type=lambda text: text.split(","), default=default)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--warm-up", type=float, default=2)
    parser.add_argument("--json")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    o = parser.parse_args()
    unknown = [side for side in o.sides if side not in SIDES]
    if unknown:
        parser.error(f"--sides: {unknown[0]} is none of {', '.join(SIDES)}")
    if o.side:
        trial(o)
    rates = {side: [] for side in o.sides}
    for _ in range(o.rounds):
        for side in o.sides:
            rates[side].append(run_trial(o, side))
    report(o, rates)


if __name__ == "__main__":
    main()
