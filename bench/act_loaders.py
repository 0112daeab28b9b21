#!/usr/bin/env python3
"""Compares loaders that feed ACT (weir.examples.imitate_episodes), interleaved in one process: weir.Loader, h5py with
DataLoader, and SPDL if installed. A trial is a warm-up and then steps for --seconds. "resident" reuses one batch in
device memory and so measures the step alone. Prints steps/s (median, min, max of the trials), the ratio to resident,
the percentage of time that the host waits for a batch or copies it, and the percentage of time that the threads of the
step (the main thread and autograd's) wait for a core. The host is at most one step ahead of the GPU.
Without --data it creates episodes with `weir synth`. Needs a GPU; --device cpu with small sizes tests the script.

    bench/act_loaders.py --rounds 5 --seconds 8 --json act_loaders.json
    bench/act_loaders.py --device cpu --width 64 --height 48 --hidden-dim 64 --dim-feedforward 128 --rounds 2 --seconds 1

Sides: weir (weir.Loader with batches on the device), weir-cpu (uint8 on the CPU, copied and converted), h5py, spdl
(bench/peers/spdl_loader.py with OpenCV), resident."""
import argparse
import contextlib
import glob
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import types

os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")  # before the first use of torch.cuda (docs/python.md)
import torch
import weir
from weir.examples import imitate_episodes as act

HERE = os.path.dirname(os.path.abspath(__file__))
SIDES = ("h5py", "resident", "weir", "weir-cpu", "spdl")  # h5py first: its workers are forked


def forever(loader):
    while True:
        yield from loader


def weir_options(o):
    return {"batch_size": o.batch_size, "num_workers": o.workers, "chunk_size": o.chunk_size, "keys": "act", "rank": 0,
            "world_size": 1, "drop_last": True}


def weir_side(o):
    return forever(weir.Loader(o.data, device=o.device, dtype="float32", **weir_options(o)))


def weir_cpu_side(o):
    loader = weir.Loader(o.data, dtype="uint8", **weir_options(o))
    for batch in forever(loader):
        batch = act.on_device(batch, o)
        yield batch._replace(image=batch.image.float() / 255)


def h5py_side(o):
    options = types.SimpleNamespace(
        data=o.data, train_split=1, seed=0, max_batches=0, chunk_size=o.chunk_size, image_size=None, cameras=None,
        batch_size=o.batch_size, num_workers=o.workers, device=o.device)
    loader = act.H5pyLoader(options, "train", None)
    return (act.on_device(batch, o) for batch in forever(loader) if len(batch.qpos) == o.batch_size)


def spdl_side(o):
    sys.path.insert(0, os.path.join(HERE, "peers"))
    import spdl_loader
    batches = spdl_loader.make({"data": o.data, "chunk_size": o.chunk_size, "batch_size": o.batch_size, "decoder": "cv2",
                                "width": o.width, "height": o.height, "shuffle": True, "workers": o.workers})
    next(batches)  # the number of prefetched batches
    for images, qpos, actions in batches:
        is_pad = torch.zeros(actions.shape[:2], dtype=torch.bool)
        batch = act.on_device(weir.Act(*map(torch.from_numpy, (images, qpos, actions)), is_pad), o)
        yield batch._replace(image=batch.image.permute(0, 1, 4, 2, 3).float() / 255)


def resident_side(o):
    with weir.Loader(o.data, **weir_options(o)) as loader:
        batch = act.on_device(next(iter(loader)), o)
    return itertools.repeat(weir.Act(*(tensor.clone() for tensor in batch)))


def open_sides(o):
    """{name: endless batches}. Prints one line for each side that cannot be opened, and omits it."""
    makers = {"resident": resident_side, "weir": weir_side, "weir-cpu": weir_cpu_side, "h5py": h5py_side, "spdl": spdl_side}
    opened = {}
    for name in o.sides:
        try:
            batches = iter(makers[name](o))
            shapes = [tuple(tensor.shape) for tensor in next(batches)]
        except (ImportError, RuntimeError, OSError, ValueError) as error:
            print(f"{name}: left out: {(str(error) or type(error).__name__).splitlines()[0]}", flush=True)
            continue
        opened[name] = batches
        print(f"{name}: batches {shapes[0]}", flush=True)
    return opened


def core_wait_s():
    """Seconds that this process's main thread and autograd's threads have waited for a core so far: the second
    number of schedstat. They take turns, so their waits add up."""
    waited = []
    for task in glob.glob("/proc/self/task/[0-9]*"):
        with contextlib.suppress(OSError), open(f"{task}/comm", encoding="utf-8") as comm, open(f"{task}/schedstat") as stat:
            if task.endswith(f"/{os.getpid()}") or comm.read().startswith("pt_autograd"):
                waited.append(int(stat.read().split()[1]))
    return sum(waited) / 1e9


class Trainer:
    def __init__(self, o):
        torch.manual_seed(0)
        batch = next(iter(resident_side(o)))
        self.policy = act.ACT(batch.qpos.shape[1], batch.action.shape[2], hidden_dim=o.hidden_dim,
                              dim_feedforward=o.dim_feedforward, chunk_size=o.chunk_size).to(o.device)
        self.optimizer = torch.optim.AdamW(self.policy.parameters(), lr=1e-5)
        self.o, self.cuda, self.before = o, o.device.type == "cuda", None

    def step(self, batch):
        with torch.autocast(self.o.device.type, torch.bfloat16, enabled=self.o.amp):
            loss = self.policy.loss(batch, 10)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.cuda:  # wait until the previous step is done
            now = torch.cuda.Event()
            now.record()
            if self.before:
                self.before.synchronize()
            self.before = now

    def finish(self):
        if self.cuda:
            torch.cuda.synchronize()

    def turn(self, batches):
        """(steps/s, fraction of the time that the host waited for batches, and that the step's threads waited for a core)"""
        for _ in range(self.o.warm_up):
            self.step(next(batches))
        self.finish()
        steps, waited, queued, begin = 0, 0.0, core_wait_s(), time.perf_counter()
        while steps < 2 or time.perf_counter() - begin < self.o.seconds:
            asked = time.perf_counter()
            batch = next(batches)
            waited += time.perf_counter() - asked
            self.step(batch)
            steps += 1
        self.finish()
        spent = time.perf_counter() - begin
        return steps / spent, waited / spent, (core_wait_s() - queued) / spent


def options():
    cores = len(os.sched_getaffinity(0))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", help="folder of act-jpeg episodes")
    p.add_argument("--weir", default=os.path.join(HERE, "../build/release/weir"), help="program for `weir synth`")
    p.add_argument("--episodes", type=int, default=40, help="synthetic episodes")
    p.add_argument("--steps", type=int, default=100, help="steps per synthetic episode")
    p.add_argument("--cameras", default="cam_high,cam_low,cam_left_wrist,cam_right_wrist")
    p.add_argument("--width", type=int, default=640)
    p.add_argument("--height", type=int, default=480)
    p.add_argument("--sides", default=",".join(SIDES), help=", ".join(SIDES))
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    p.add_argument("--workers", type=int, default=cores, help="threads or DataLoader processes per loader")
    p.add_argument("--batch-size", type=int, default=8)
    p.add_argument("--chunk-size", type=int, default=20)
    p.add_argument("--hidden-dim", type=int, default=512)
    p.add_argument("--dim-feedforward", type=int, default=3200)
    p.add_argument("--amp", action="store_true", help="bfloat16")
    p.add_argument("--rounds", type=int, default=5, help="trials of each side")
    p.add_argument("--seconds", type=float, default=8, help="duration of a trial")
    p.add_argument("--warm-up", type=int, default=40, help="untimed steps before each trial: more than a loader prefetches")
    p.add_argument("--limit", type=float, default=480, help="seconds after which no round starts")
    p.add_argument("--json", help="output file for the results")
    o = p.parse_args()
    o.device, o.sides, o.weir_cuda = torch.device(o.device), o.sides.split(","), False  # no stages on the GPU
    if set(o.sides) - set(SIDES):
        p.error(f"--sides must be among {', '.join(SIDES)}")
    return o


def synth(o, folder):
    o.data = os.path.join(folder, "episodes")
    subprocess.run([o.weir, "synth", o.data, "--format", "act-jpeg", "--episodes", str(o.episodes), "--steps", str(o.steps),
                    "--cameras", o.cameras, "--size", f"{o.width}x{o.height}"], check=True, stdout=subprocess.DEVNULL)


def report(o, turns):
    print(f"{'':10}{'steps/s':>24}{'images/s':>10}{'of resident':>13}{'host waits':>12}{'core wait':>11}")
    alone = statistics.median(rate for rate, *_ in turns["resident"]) if turns.get("resident") else None
    for name, results in turns.items():
        rates, waits, queued = zip(*results)
        middle = statistics.median(rates)
        images, spread = middle * o.batch_size * o.n_cameras, f"{middle:.2f} ({min(rates):.2f} - {max(rates):.2f})"
        part = f"{100 * middle / alone:.1f} %" if alone else "-"
        shares = "".join(f"{100 * statistics.median(share):>9.1f} %" for share in (waits, queued))
        print(f"{name:10}{spread:>24}{images:>10.0f}{part:>13} {shares}")
    if o.json:
        device = torch.cuda.get_device_name() if o.device.type == "cuda" else "CPU"
        machine = (f"{device}, {len(os.sched_getaffinity(0))} cores, torch {torch.__version__}, {o.n_cameras} cameras of "
                   f"{o.width}x{o.height}, batches of {o.batch_size}, {o.workers} workers")
        with open(o.json, "w", encoding="utf-8") as file:
            json.dump({"options": {name: str(value) for name, value in vars(o).items()}, "torch": torch.__version__,
                       "machine": machine, "turns": turns}, file, indent=1)


def measure(o):
    began = time.monotonic()
    trainer = Trainer(o)
    sides = open_sides(o)
    with weir.Loader(o.data) as loader:
        o.n_cameras = len(loader.dataset.cameras)
    turns = {name: [] for name in sides}
    for number in range(o.rounds):
        if number and time.monotonic() - began > o.limit:
            print(f"stopped after {number} rounds: --limit {o.limit:g} s", flush=True)
            break
        order = list(sides)[number % len(sides):] + list(sides)[:number % len(sides)]
        for name in order:
            turns[name].append(trainer.turn(sides[name]))
        print(f"round {number + 1}: " + ", ".join(f"{name} {turns[name][-1][0]:.2f}" for name in sides), flush=True)
    report(o, turns)


def main():
    o = options()
    cuda = o.device.type == "cuda"
    with tempfile.TemporaryDirectory() as folder:
        if not o.data:
            synth(o, folder)
        print(f"torch {torch.__version__}, {torch.cuda.get_device_name() if cuda else 'CPU'}; {o.workers} workers, "
              f"batch {o.batch_size}", flush=True)
        # avoids the legacy default stream, which blocks other streams
        with torch.cuda.stream(torch.cuda.Stream()) if cuda else contextlib.nullcontext():
            measure(o)


if __name__ == "__main__":
    main()
