"""The data of all peers: samples, positions of their JPEGs, states and actions."""
import glob
import itertools
import os
import random
import re

import h5py
import numpy as np


class Episodes:
    """The act-jpeg episodes of a folder: /observations/images/CAMERA contains rows of JPEG bytes padded with zeros,
    /compress_len their lengths. State and actions are normalised like ACT's."""

    def __init__(self, folder, chunk_size):
        self.chunk_size = chunk_size
        self.paths = sorted(glob.glob(os.path.join(folder, "*.hdf5")),
                            key=lambda path: int(re.search(r"(\d+)\.hdf5$", path).group(1)))
        self.places, self.qpos, self.actions = [], [], []
        for path in self.paths:
            with h5py.File(path, "r") as file:
                self._describe(file)
        self.samples = [(e, t) for e, qpos in enumerate(self.qpos) for t in range(len(qpos))]
        self.qpos_stats, self.action_stats = _stats(self.qpos), _stats(self.actions)
        self.mean_bytes = float(np.mean([length for episode in self.places for camera in episode for _, length in camera]))

    def _describe(self, file):
        images = file["/observations/images"]
        self.cameras = list(images)
        lengths = file["/compress_len"][()].astype(int)
        self.places.append([])
        for camera, row_lengths in zip(self.cameras, lengths):
            base, row = images[camera].id.get_offset(), images[camera].shape[1]
            self.places[-1].append([(base + t * row, int(length)) for t, length in enumerate(row_lengths)])
        self.qpos.append(file["/observations/qpos"][()])
        self.actions.append(file["/action"][()])

    def state_of(self, episode, t):
        return normalised(self.qpos[episode][t], self.qpos_stats)

    def actions_of(self, episode, t):
        return normalised(padded(self.actions[episode][t:t + self.chunk_size], self.chunk_size), self.action_stats)

    def order(self, shuffle):
        """Endless sample numbers: each once per epoch, reshuffled for every epoch."""
        if not shuffle:
            return itertools.cycle(range(len(self.samples)))
        return self._shuffled()

    def _shuffled(self):
        numbers, source = list(range(len(self.samples))), random.Random(0)
        while True:
            source.shuffle(numbers)
            yield from numbers


def _stats(episodes):
    rows = np.concatenate(episodes).astype(np.float64)
    return rows.mean(0), np.clip(rows.std(0, ddof=1), 1e-2, None)


def normalised(values, stats):
    return ((values - stats[0]) / stats[1]).astype(np.float32)


def padded(rows, n):
    out = np.zeros((n, rows.shape[1]), np.float32)
    out[:len(rows)] = rows
    return out
