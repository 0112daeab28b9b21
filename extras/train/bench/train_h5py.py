#!/usr/bin/env python3
"""Compares the data wait of `weir train` with that of the same network in torch on h5py and OpenCV.

    extras/train/bench/train_h5py.py DATA [--device cuda] [--rounds 3]

The network is in train_torch.py; its DataLoader has pinned memory and one worker process per core. Trials are
interleaved, with the same episodes and batch size; the first epoch of each is not timed. DATA is a folder of episodes
from `weir synth --format act-jpeg`. Needs torch, h5py, OpenCV."""
import argparse
import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import cv2
import h5py
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from train_torch import CHUNK, FEEDFORWARD, HIDDEN, Policy, masked_l1  # noqa: E402


class Episodes(Dataset):
    """One sample per step. Opens the file for each sample, like ACT's dataset."""

    def __init__(self, folder):
        self.steps = []
        for path in sorted(glob.glob(os.path.join(folder, "*.hdf5"))):
            with h5py.File(path, "r") as f:
                self.cameras = sorted(f["observations/images"])
                self.action_dim, self.state_dim = f["action"].shape[1], f["observations/qpos"].shape[1]
                self.steps += [(path, t) for t in range(f["action"].shape[0])]

    def __len__(self):
        return len(self.steps)

    def __getitem__(self, index):
        path, t = self.steps[index]
        with h5py.File(path, "r") as f:
            jpegs = [f[f"observations/images/{name}"][t] for name in self.cameras]
            images = [cv2.imdecode(np.asarray(jpeg, np.uint8), cv2.IMREAD_COLOR) for jpeg in jpegs]
            state, actions = f["observations/qpos"][t], f["action"][t:t + CHUNK]
        chunk = np.zeros((CHUNK, self.action_dim), np.float32)
        chunk[:len(actions)] = actions
        is_pad = np.arange(CHUNK) >= len(actions)
        images = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 255
        return images, torch.from_numpy(state.astype(np.float32)), torch.from_numpy(chunk), torch.from_numpy(is_pad)


def h5py_side(o, epochs):
    """[(seconds, seconds spent waiting for data, samples)] of each epoch."""
    data = Episodes(o.data)
    loader = DataLoader(data, o.batch_size, shuffle=True, num_workers=o.workers, pin_memory=o.device != "cpu",
                        persistent_workers=True)
    policy = Policy(data.cameras, data.state_dim, data.action_dim, CHUNK, HIDDEN, FEEDFORWARD).to(o.device)
    optimiser = torch.optim.AdamW(policy.parameters(), lr=1e-5, weight_decay=1e-4)
    result = []
    for _ in range(epochs):
        begin, waited, mark = time.perf_counter(), 0.0, time.perf_counter()
        for batch in loader:
            waited += time.perf_counter() - mark
            images, state, actions, is_pad = (x.to(o.device, non_blocking=True) for x in batch)
            loss = masked_l1(policy(images.unbind(1), state), actions, is_pad)
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()
            mark = time.perf_counter()
        loss.item()
        result.append((time.perf_counter() - begin, waited, len(data)))
    return result[1:]


def weir_side(o, epochs, options):
    with tempfile.NamedTemporaryFile() as log:
        subprocess.run([o.weir, "train", o.data, "--device", o.device, "--num-epochs", str(epochs), "--every", "0", "--log", log.name,
                        "--train-split", "1", "--batch-size", str(o.batch_size), "--chunk-size", str(CHUNK), *options],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, timeout=300)
        lines = [json.loads(line) for line in open(log.name, encoding="utf-8")]
    return [(e["train_s"], e["train_s"] * e["data_wait_fraction"], e["train_s"] * e["samples_per_s"])
            for e in lines if e["type"] == "epoch"][1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data")
    parser.add_argument("--weir", default=os.path.join(HERE, "../../../build/release/weir"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3, help="epochs per trial (Weir: 10 times as many)")
    o = parser.parse_args()
    cv2.setNumThreads(1)
    sides = {"h5py + DataLoader, torch": lambda: h5py_side(o, o.epochs),
             "weir train": lambda: weir_side(o, 10 * o.epochs, [])}
    if o.device != "cpu":
        sides["weir train, GPU decodes too"] = lambda: weir_side(o, 10 * o.epochs, ["--decoder", "hybrid"])
    epochs = {name: [] for name in sides}
    for turn in range(o.rounds):
        for name in list(sides) if turn % 2 == 0 else list(sides)[::-1]:
            epochs[name] += sides[name]()
    print(f"{'':28}{'data wait':>12}{'samples/s':>14}{'ms a sample':>14}   batch {o.batch_size}, {o.workers} workers, medians of epochs")
    for name, rows in epochs.items():
        wait = statistics.median(waited / s for s, waited, _ in rows)
        rate = statistics.median(n / s for s, _, n in rows)
        print(f"{name:28}{100 * wait:10.1f} %{rate:14.0f}{1e3 / rate:14.2f}")


if __name__ == "__main__":
    main()
