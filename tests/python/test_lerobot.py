"""weir.Loader with LeRobot datasets: keys="lerobot" gives the items of LeRobotDataset. The datasets are those of
tests/lerobot/plain.py, the expected items its rows and what ffmpeg decodes. tests/lerobot/compare.py compares with
lerobot itself."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import weir

try:
    import numpy as np
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed")

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
READERS = os.environ.get("WEIR_READERS_PYTHON", os.path.join(ROOT, "build", "readers-venv", "bin", "python"))
sys.path.insert(0, os.path.join(ROOT, "tests", "lerobot"))
import plain  # noqa: E402

CAMERAS = {"observation.images.top": (96, 64), "observation.images.wrist": (64, 64)}
LENGTHS, FPS = (9, 12, 7), 30
NAMES = ("v3.0", "v2.1", "images-v3.0", "images-v2.1")


def make(out):
    if not shutil.which("ffmpeg"):
        raise unittest.SkipTest("ffmpeg is not installed")
    if subprocess.run([READERS, "-c", "import pyarrow"], stderr=subprocess.DEVNULL).returncode != 0:
        raise unittest.SkipTest("no pyarrow: tests/readers/setup.sh installs it")
    subprocess.run([READERS, os.path.join(ROOT, "tests", "lerobot", "plain.py"), out], check=True)


class Reference:
    """The items of a dataset, as LeRobotDataset gives them."""

    def __init__(self, root):
        dataset = plain.Dataset(root, "v3.0", CAMERAS, list(LENGTHS), FPS, "", False)
        self.rows = [plain.rows_of(dataset, episode) for episode in range(len(LENGTHS))]
        self.order = [(episode, t) for episode, n in enumerate(LENGTHS) for t in range(n)]
        self.is_video = os.path.isdir(os.path.join(root, "videos"))
        self.frames = {key: self.pictures(root, key, size) for key, size in CAMERAS.items()}

    def pictures(self, root, key, size):
        """Frames of all episodes in order: of the videos, or of ffmpeg's source itself."""
        if self.is_video:
            files = sorted(os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(root, "videos"))
                           for name in names if key in folder)
            inputs = [("-i", file) for file in files]
        else:
            inputs = [plain.source(size, FPS, 0, sum(LENGTHS))]
        raw = ("-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "rgb24", "-")
        decoded = [subprocess.check_output(["ffmpeg", "-v", "error", "-nostdin", *one, *raw]) for one in inputs]
        frames = np.frombuffer(b"".join(decoded), np.uint8)
        return frames.reshape(sum(LENGTHS), size[1], size[0], 3).transpose(0, 3, 1, 2)

    def value(self, key, episode, t):
        if key in CAMERAS:
            return self.frames[key][sum(LENGTHS[:episode]) + t].astype(np.float32) / np.float32(255)
        dtype, _ = plain.NUMBERS[key]
        return np.asarray(self.rows[episode][key][t], dtype)

    def item(self, i, deltas):
        episode, t = self.order[i]
        videos = list(CAMERAS) if self.is_video else []
        item, last = {}, LENGTHS[episode] - 1
        for key in videos + [key for key in (*CAMERAS, *plain.NUMBERS) if key not in videos]:
            if key not in deltas:
                item[key] = self.value(key, episode, t)
                continue
            steps = [min(max(t + step, 0), last) for step in deltas[key]]
            item[key] = np.stack([self.value(key, episode, step) for step in steps])
            if key in videos and len(steps) == 1:
                item[key] = item[key][0]
        for key, steps in deltas.items():
            item[f"{key}_is_pad"] = np.array([not 0 <= t + step <= last for step in steps])
        item["task"] = plain.TASKS[self.rows[episode]["task_index"][t]]
        return item

    def batch(self, rows, deltas):
        items = [self.item(i, deltas) for i in rows]
        return {key: [item[key] for item in items] if key == "task" else np.stack([item[key] for item in items])
                for key in items[0]}


class Items(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.mkdtemp(prefix="weir-lerobot-")
        cls.addClassCleanup(shutil.rmtree, cls.work)
        make(cls.work)
        cls.references = {name: Reference(os.path.join(cls.work, name)) for name in NAMES}

    def compare(self, name, deltas={}, **options):
        reference, rows = self.references[name], []
        given = {"delta_timestamps": {key: [step / FPS for step in steps] for key, steps in deltas.items()}}
        with weir.Loader(os.path.join(self.work, name), keys="lerobot", batch_size=5, tensors="array",
                         **(given if deltas else {}), **options) as loader:
            for batch in loader:
                which = [int(row) for row in np.asarray(batch["index"])]
                expected = reference.batch(which, deltas)
                self.assertEqual(list(batch), list(expected))
                for key, value in expected.items():
                    self.equal(f"{name}: {key}", batch[key], value)
                rows += which
        return rows

    def equal(self, name, ours, expected):
        if isinstance(expected, list):
            return self.assertEqual(ours, expected, name)
        ours = np.asarray(ours)
        self.assertEqual((ours.dtype, ours.shape), (expected.dtype, expected.shape), name)
        self.assertTrue(np.array_equal(ours, expected), f"{name}: values differ")

    def test_plain(self):
        for name in NAMES:
            self.assertEqual(self.compare(name, shuffle=False), list(range(sum(LENGTHS))))
            self.assertEqual(sorted(self.compare(name, seed=3)), list(range(sum(LENGTHS))))

    def test_offsets(self):
        top, wrist = CAMERAS
        for name in NAMES:
            self.compare(name, {"action": list(range(16))}, shuffle=False)
            self.compare(name, {top: [-1, 0], "observation.state": [-1, 0], "action": [3, -20, 0, 0, 20]})
            self.compare(name, {wrist: [0], "next.done": [-1, 1], "action": [0], "frame_index": [2]})
            self.compare(name, {top: [5, -30, 1], wrist: [0, -1]}, num_workers=0)

    def test_episodes(self):
        for name in NAMES:
            self.assertEqual(self.compare(name, episodes=[1], shuffle=False), list(range(9, 21)))
            self.assertEqual(self.compare(name, {"action": [-9, 9]}, episodes=[2, 0], shuffle=False),
                             [*range(9), *range(21, 28)])

    def test_bytes(self):
        with weir.Loader(os.path.join(self.work, "v3.0"), keys="lerobot", dtype="uint8", batch_size=4, shuffle=False,
                         tensors="array") as loader:
            frames = np.asarray(next(iter(loader))["observation.images.top"])
        self.assertTrue(np.array_equal(frames, self.references["v3.0"].frames["observation.images.top"][:4]))

    def test_refused(self):
        path = os.path.join(self.work, "v3.0")
        for options, text in [
                ({"delta_timestamps": {"action": [0.01]}}, "not a multiple of 1/30 s"),
                ({"delta_timestamps": {"nothing": [0]}}, "nothing"),
                ({"episodes": [3]}, "3"),
                ({"episodes": []}, "episodes must be")]:
            with self.assertRaisesRegex((ValueError, weir.Error), text):
                weir.Loader(path, keys="lerobot", **options)


if __name__ == "__main__":
    unittest.main()
