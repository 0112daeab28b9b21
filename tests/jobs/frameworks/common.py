"""Shared by the programs of this folder: a dataset of JPEG files, a small network, and the options of each program."""
import argparse
import json
import os
import sys

import numpy as np
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import job_data


class Frames(job_data.Jpegs):
    """(image as float, target): JPEG files that are decoded in __getitem__."""
    items = 192

    def __getitem__(self, i):
        image = super().__getitem__(i).permute(2, 0, 1).float() / 255
        return image, torch.tensor([(i % 7) / 7])


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.see = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 8, 8), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4))
        self.guess = torch.nn.Linear(128, 1)

    def forward(self, image, target):
        return (self.guess(self.see(image).flatten(1)) - target).square().mean()


def options(**more):
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--num-workers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--watch-line", action="store_true", help="add the line weir.watch(loader)")
    parser.add_argument("--log", help="file for the log of --watch-line")
    for name, default in more.items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(default), default=default)
    o = parser.parse_args()
    torch.manual_seed(0)
    np.random.seed(0)
    torch.set_num_threads(1)
    return o


def make_loader(o):
    return torch.utils.data.DataLoader(Frames(), o.batch_size, shuffle=True, num_workers=o.num_workers,
                                       persistent_workers=o.num_workers > 0)


def forever(loader):
    while True:
        yield from loader


def report(losses):
    print(json.dumps({"losses": [float(loss) for loss in losses]}), flush=True)
