#!/usr/bin/env python3
"""A training program with a known slow part: tests/jobs/train.py JOB [options]. The jobs are in job_list.py.

    tests/jobs/train.py decode --seconds 10
    tests/jobs/train.py decode --seconds 10 --set num_workers=4
    tests/jobs/train.py lock --advice fixed --method spawn
    python -m weir watch tests/jobs/train.py decode

Prints "training" once batches arrive, and at the end one line of JSON: steps/s without warm-up, and the first losses."""
import argparse
import json
import multiprocessing
import os
import sys
import threading
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the main process; the step is one thread
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch

import job_data
import job_list

KEYS = {"num_workers": int, "prefetch_factor": int, "batch_size": int, "persistent_workers": int, "pin_memory": int,
        "in_order": int, "cv2_threads": int, "torch_threads": int}


class OwnFile(job_data.Small):
    """A dataset class of the program's own file: spawned workers find it in __main__."""

    def __getitem__(self, i):
        picture = super().__getitem__(i)
        for _ in range(300):
            picture = torch.from_numpy((picture.numpy().astype("float32") * 0.99).astype("uint8"))
        return picture


def spin(core):
    if core is not None:
        os.sched_setaffinity(0, {core})
    parent = os.getppid()
    while os.getppid() == parent:
        sum(range(100000))


class Step:
    """A step of ms milliseconds: "sleep" and "compute" on the CPU, a busy kernel on the GPU. "python" runs many small
    operations, each of which gives up the GIL."""

    def __init__(self, ms, kind, device):
        self.ms, self.kind, self.device = ms, kind, device
        torch.manual_seed(0)
        self.model = torch.nn.Linear(64, 1).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)
        self.before = None
        if device.type == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(1000)
            begin.record()
            torch.cuda._sleep(50_000_000)
            end.record()
            torch.cuda.synchronize()
            self.cycles_per_ms = 50_000_000 / begin.elapsed_time(end)

    def __call__(self, x):
        x = x.reshape(len(x), -1)[:, :64].float() / 255
        loss = self.model(x).square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.kind == "python":
            for _ in range(60):
                x = x + 1
        elif self.device.type == "cuda":
            torch.cuda._sleep(int(self.ms * self.cycles_per_ms))
            self.wait_for_last()
        elif self.kind == "compute":
            until = time.perf_counter() + self.ms / 1000
            while time.perf_counter() < until:
                torch.mm(torch.ones(64, 64), torch.ones(64, 64))
        else:
            time.sleep(self.ms / 1000)
        return loss.detach()

    def wait_for_last(self):
        now = torch.cuda.Event()
        now.record()
        if self.before:
            self.before.synchronize()
        self.before = now


def make_dataset(job, o):
    options = dict(job.dataset)
    kind = options.pop("kind")
    if options.pop("locked", False):
        options["lock"] = multiprocessing.get_context(o.method).Lock()
    if "delay_server_ms" in options:
        options["address"] = job_data.serve(options.pop("delay_server_ms"), 64 * 64 * 3)
    found = OwnFile if kind == "OwnFile" else getattr(job_data, kind)
    return found(**options)


def worker_init(options, number):
    job_data.init_threads(number, options.get("cv2_threads"), options.get("torch_threads"))
    if options.get("dear_start"):
        job_data.init_dear(number)


class Init:
    """worker_init_fn; picklable."""

    def __init__(self, options):
        self.options = options

    def __call__(self, number):
        worker_init(self.options, number)


def make_loader(job, o):
    options = dict(job.loader)
    init = {key: options.pop(key) for key in ("cv2_threads", "torch_threads", "dear_start") if key in options}
    if job_data.cv2:
        init.setdefault("cv2_threads", 0)
    collate = options.pop("collate", None)
    if options["num_workers"] == 0:
        for key in ("prefetch_factor", "persistent_workers"):
            options.pop(key, None)
    if options.get("in_order", 1) == 1:
        options.pop("in_order", None)  # absent before torch 2.6
    if options["num_workers"]:
        options.update(multiprocessing_context=o.method, worker_init_fn=Init(init))
    for key in ("pin_memory", "persistent_workers", "in_order"):
        if key in options:
            options[key] = bool(options[key])
    dataset = make_dataset(job, o)
    generator = torch.Generator()
    generator.manual_seed(o.seed)
    if isinstance(dataset, torch.utils.data.IterableDataset):
        order = {}
    else:
        order = {"sampler": torch.utils.data.RandomSampler(dataset, generator=generator)} if job.shuffle else {"shuffle": False}
    return torch.utils.data.DataLoader(dataset, collate_fn=getattr(job_data, collate) if collate else None,
                                       generator=generator, **order, **options)


def background(job):
    """Threads and processes of the job that are not the loader's."""
    if job.gil_thread:
        threading.Thread(target=lambda: [sum(range(10000)) for _ in iter(int, 1)], daemon=True).start()
    last = max(os.sched_getaffinity(0))
    context = multiprocessing.get_context("fork")
    for core in ([last] if job.spin == "last" else [None] * (job.spin or 0)):
        context.Process(target=spin, args=(core,), daemon=True).start()


def train(job, o):
    device = torch.device(o.device)
    loader = make_loader(job, o)
    if o.watch_line:
        import weir
        loader = weir.watch(loader, **({"headroom": True} if o.headroom else {}))
    step = Step(job.step_ms, job.step, device)
    losses, steps, begin, counted, first = [], 0, time.perf_counter(), 0, None
    warm_end = end = None
    while end is None or time.perf_counter() < end:
        for batch in loader:
            x = batch if torch.is_tensor(batch) else batch[0]
            x = x.to(device, non_blocking=job.non_blocking)
            if job.gpu_float:
                x = x.float()
            loss = step(x)
            steps += 1
            now = time.perf_counter()
            if first is None:
                first, warm_end = now - begin, now + o.warm_up
                end = warm_end + o.seconds
                print("training", flush=True)
            if len(losses) < 20:
                losses.append(float(loss))
            if not counted and now >= warm_end:
                counted, counted_begin = steps, now
            if now >= end:
                break
    seconds = time.perf_counter() - counted_begin
    return {"job": job.name, "method": o.method, "steps": steps - counted, "seconds": round(seconds, 3),
            "rate": round((steps - counted) * job.loader["batch_size"] / seconds, 2), "first_batch_s": round(first, 3),
            "losses": losses}


def changed(job, advice, settings):
    """The job after an advice of its table, and with settings of the loader."""
    if advice:
        job = job.after(advice)
    for setting in settings:
        key, value = setting.split("=")
        if key not in KEYS:
            sys.exit(f"--set {setting}: not a setting; one of {', '.join(KEYS)}")
        job = job.with_loader(**{key: KEYS[key](value)})
    return job


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", choices=sorted(job_list.JOBS))
    parser.add_argument("--method", choices=("fork", "spawn", "forkserver"), default="fork", help="start method of workers")
    parser.add_argument("--seconds", type=float, default=5, help="measured time, after --warm-up")
    parser.add_argument("--warm-up", type=float, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--advice", help="name of a change in the job's table")
    parser.add_argument("--set", nargs="*", default=[], help="settings of the loader, such as num_workers=4")
    parser.add_argument("--watch-line", action="store_true", help="weir.watch(loader)")
    parser.add_argument("--headroom", action="store_true", help="with --watch-line: headroom=True")
    o = parser.parse_args()
    job = changed(job_list.JOBS[o.job], o.advice, o.set)
    torch.set_num_threads(1)
    background(job)
    print(json.dumps(train(job, o)), flush=True)


if __name__ == "__main__":
    main()
