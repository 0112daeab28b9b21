#!/usr/bin/env python3
"""Compares a training step of Weir's policy (extras/train/policy.h) in torch with Weir's train_step:
extras/train/bench/train_torch.py [--batch-size 4] [--rounds 20]. Needs torch (Debian: python3-torch).

Network, batch and number of threads are the same, without a loader, on the CPU or on GPU 0 (--device cuda). Trials are
interleaved. Prints median and min times of forward, backward and optimiser, and the ratio of the steps within a trial;
on a GPU also of steps queued in a row. torch is eager, with its defaults and a fused AdamW; --amp is autocast and
GradScaler. Stop other processes: they slow down torch far more than Weir."""
import argparse
import os
import statistics
import subprocess
import time

import torch
from torch import nn

STATE, ACTION, CHUNK, HIDDEN, FEEDFORWARD = 14, 14, 20, 512, 3200


class Encoder(nn.Module):
    """Encodes a camera's image as 64 numbers."""

    def __init__(self):
        super().__init__()
        sizes = [3, 16, 32, 64, 64]
        for i in range(4):
            self.add_module(f"conv{i + 1}", nn.Conv2d(sizes[i], sizes[i + 1], 3, stride=2, padding=1))

    def forward(self, x):
        for layer in self.children():
            x = torch.relu(layer(x))
        return x.mean((2, 3))


class Policy(nn.Module):
    """The policy of weir_policy_open, with the same parameter names and order."""

    def __init__(self, cameras, state_dim, action_dim, chunk, hidden_dim, feedforward_dim):
        super().__init__()
        self.shape = (chunk, action_dim)
        self.encoder = nn.ModuleDict({name: Encoder() for name in cameras})
        self.state = nn.Linear(state_dim, 64)
        self.head = nn.Sequential(nn.Linear(64 * len(cameras) + 64, hidden_dim), nn.ReLU(),
                                  nn.Linear(hidden_dim, feedforward_dim), nn.ReLU(),
                                  nn.Linear(feedforward_dim, chunk * action_dim))

    def forward(self, images, state):
        features = [encoder(x) for encoder, x in zip(self.encoder.values(), images)]
        return self.head(torch.cat(features + [self.state(state)], 1)).view(-1, *self.shape)


def masked_l1(predicted, actions, is_pad):
    """Mean of |predicted - actions| over the steps that are not padding; 0 without such steps."""
    counts = ~is_pad.unsqueeze(-1).expand_as(actions)
    return (predicted - actions).abs().mul(counts).sum() / counts.sum().clamp(min=1)


IN_A_ROW = 20  # as in train_step


class Torch:
    """The policy in torch, and a batch."""

    def __init__(self, o):
        self.cuda, self.amp = o.device == "cuda", o.amp
        if not self.cuda:
            torch.set_num_threads(o.threads)
        torch.manual_seed(0)
        self.policy = Policy([f"c{i}" for i in range(o.cameras)], STATE, ACTION, CHUNK, HIDDEN, FEEDFORWARD).to(o.device)
        fused = {"fused": True} if self.cuda else {}
        self.optimiser = torch.optim.AdamW(self.policy.parameters(), lr=1e-5, weight_decay=1e-4, **fused)
        self.scaler = torch.cuda.amp.GradScaler(enabled=o.amp)
        images = [torch.rand(o.batch_size, 3, o.height, o.width) for _ in range(o.cameras)]
        self.images = [x.to(o.device) for x in images]
        self.state = torch.rand(o.batch_size, STATE).to(o.device)
        self.actions = torch.rand(o.batch_size, CHUNK, ACTION).to(o.device)
        self.is_pad = torch.zeros(o.batch_size, CHUNK, dtype=torch.bool).to(o.device)

    def forward(self):
        with torch.autocast("cuda", dtype=torch.float16, enabled=self.amp):
            predicted = self.policy(self.images, self.state)
        return masked_l1(predicted.float(), self.actions, self.is_pad)

    def optimise(self):
        self.scaler.step(self.optimiser)
        self.scaler.update()
        self.optimiser.zero_grad()

    def now(self):
        if self.cuda:
            torch.cuda.synchronize()
        return time.perf_counter()

    def step(self):
        """ms of forward, backward and optimiser; on a GPU also of a step among several queued in a row."""
        times = [self.now()]
        loss = self.forward()
        times.append(self.now())
        self.scaler.scale(loss).backward()
        times.append(self.now())
        self.optimise()
        times.append(self.now())
        row = [1e3 * (b - a) for a, b in zip(times, times[1:])]
        if self.cuda:
            for _ in range(IN_A_ROW):
                self.scaler.scale(self.forward()).backward()
                self.optimise()
            row.append(1e3 * (self.now() - times[-1]) / IN_A_ROW)
        return row


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--cameras", type=int, default=2)
    parser.add_argument("--height", type=int, default=480)
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=20, help="timed rounds, after two untimed ones")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--amp", action="store_true", help="mixed precision, with --device cuda")
    parser.add_argument("--build", default=os.path.join(here, "../../../build/release"))
    o = parser.parse_args()
    ours = Torch(o)
    sizes = [f"--{name}={getattr(o, name.replace('-', '_'))}"
             for name in ("batch-size", "cameras", "height", "width", "threads")]
    sizes += ["--cuda"] * (o.device == "cuda") + ["--amp"] * o.amp
    weir = subprocess.Popen([os.path.join(o.build, "bench/train_step"), *sizes], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)
    where = torch.cuda.get_device_name() if ours.cuda else f"{torch.get_num_threads()} threads"
    print(f"torch {torch.__version__}, {where}; Weir: {weir.stdout.readline().strip()}")
    print(f"batch {o.batch_size}, {o.cameras} cameras of {o.width}x{o.height}, {o.rounds} turns, ms: median (least)")
    rows = {"torch": [], "Weir": []}
    for turn in range(o.rounds + 2):
        for side in ("torch", "Weir") if turn % 2 else ("Weir", "torch"):
            if side == "torch":
                row = ours.step()
            else:
                weir.stdin.write("\n")
                weir.stdin.flush()
                row = [float(word) for word in weir.stdout.readline().split()]
            if turn >= 2:
                rows[side].append(row)
    weir.stdin.close()
    weir.wait()
    names = ("forward", "backward", "optimiser", "step") + ("in a row",) * ours.cuda
    print(f"{'':6}" + "".join(f"{name:>20}" for name in names))
    for side, times in rows.items():
        columns = [*zip(*times)]
        columns.insert(3, [sum(step[:3]) for step in times])
        print(f"{side:6}" + "".join(f"{f'{statistics.median(ms):.2f} ({min(ms):.2f})':>20}" for ms in columns))
    for what, of in [("a turn's steps", lambda row: sum(row[:3]))] + [("steps in a row", lambda row: row[3])] * ours.cuda:
        ratios = sorted(of(a) / of(b) for a, b in zip(rows["Weir"], rows["torch"]))
        print(f"Weir / torch, of {what}: {statistics.median(ratios):.2f} ({ratios[0]:.2f} - {ratios[-1]:.2f})")


if __name__ == "__main__":
    main()
