"""Shared by the tests of the Python package: datasets from `weir synth`, and a plain reader of them."""
import io
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import weir

try:
    import h5py
    import numpy as np
    from PIL import Image
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed")

DIM, CHUNK = 14, 20
os.environ["COLUMNS"] = "1000"  # most tests are about the text of a line, not about its layout


class Data(unittest.TestCase):
    """A test case with a folder of episodes in .data."""
    SYNTH = ["--format", "act-jpeg", "--episodes", "3", "--steps", "13", "--cameras", "top,wrist", "--size", "64x48"]

    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.mkdtemp(prefix="weir-python-")
        cls.addClassCleanup(shutil.rmtree, cls.work)
        cls.data = cls.synth("data", *cls.SYNTH)

    @classmethod
    def synth(cls, name, *options):
        path = os.path.join(cls.work, name)
        subprocess.run([os.environ["WEIR_PROGRAM"], "synth", path, *options], check=True, stdout=subprocess.DEVNULL)
        return path


def marked_jpeg(pixels, orientation, marked):
    """A JPEG with an EXIF orientation; marked: with the comment XPL-RGB1."""
    exif, out = Image.Exif(), io.BytesIO()
    exif[0x0112] = orientation
    Image.fromarray(pixels).save(out, "JPEG", quality=100, subsampling=0, exif=exif, **({"comment": b"XPL-RGB1"} if marked else {}))
    return out.getvalue()


def write_robotwin(path, images, orientation):
    """RoboTwin's file: every other JPEG is marked, and the others have red and blue swapped."""
    frames = [marked_jpeg(pixels if t % 2 == 0 else pixels[:, :, ::-1], orientation, t % 2 == 0) for t, pixels in enumerate(images)]
    with h5py.File(path, "w") as f:
        f["observation/head/rgb"] = np.array(frames, f"S{max(map(len, frames))}")
        f["joint_action/vector"] = np.arange(len(images) * 14, dtype="f8").reshape(-1, 14)


class Reference:
    """A folder's episodes in memory, read with h5py and Pillow."""

    def __init__(self, data):
        names = sorted(os.listdir(data), key=lambda name: [int(n) for n in re.findall(r"\d+", name)])
        self.episodes = [self.read(os.path.join(data, name)) for name in names if name.endswith(".hdf5")]
        for key in ("qpos", "action"):
            rows = np.concatenate([episode[key] for episode in self.episodes]).astype(np.float64)
            mean, std = rows.mean(axis=0), rows.std(axis=0, ddof=1)
            setattr(self, key + "_norm", (mean.astype(np.float32), np.maximum(std, 1e-2).astype(np.float32)))
        self.order = [(e, t) for e, episode in enumerate(self.episodes) for t in range(len(episode["qpos"]))]

    @staticmethod
    def read(path):
        with h5py.File(path) as file:
            images = {}
            for name, rows in file["observations/images"].items():
                images[name] = np.stack([np.asarray(Image.open(io.BytesIO(row.tobytes()))) for row in rows[:]])
            return {"qpos": file["observations/qpos"][:], "action": file["action"][:], "images": images}

    def image(self, sample, camera):
        return self.episodes[sample[0]]["images"][camera][sample[1]]

    def normalised(self, key, rows):
        mean, std = getattr(self, key + "_norm")
        return (rows - mean) / std

    def chunk(self, sample, normalise, chunk=CHUNK):
        """(actions from t on, with zeros past the end; is_pad)"""
        actions = self.episodes[sample[0]]["action"][sample[1]:sample[1] + chunk]
        padded = np.zeros((chunk, DIM), np.float32)
        padded[:len(actions)] = actions
        return self.normalised("action", padded) if normalise else padded, np.arange(chunk) >= len(actions)

    def find(self, qpos):
        """The sample with this state, not normalised."""
        found = [(e, t) for e, t in self.order if np.array_equal(self.episodes[e]["qpos"][t], qpos)]
        assert len(found) == 1, found
        return found[0]
