"""Contents of batches, compared bit for bit with h5py, Pillow and numpy."""
import io
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import unittest
import warnings
from unittest import mock

import common
import h5py
import numpy as np
import weir
from PIL import Image

try:
    import torch
except ImportError:
    torch = None


def array(value):
    return value.numpy() if torch is not None and isinstance(value, torch.Tensor) else np.asarray(value)


class Values(common.Data):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.reference = common.Reference(cls.data)

    def same(self, value, expected):
        value = array(value)
        self.assertEqual(value.dtype, expected.dtype)
        self.assertEqual(value.shape, expected.shape)
        self.assertEqual(value.tobytes(), np.ascontiguousarray(expected).tobytes())

    def batches(self, **options):
        """Yields (batch, expected samples)."""
        at = 0
        with weir.Loader(self.data, batch_size=4, shuffle=False, **options) as loader:
            batches = list(loader)
            self.assertEqual(len(batches), len(loader))
            for batch in batches:
                first = batch[0] if isinstance(batch, tuple) else next(iter(batch.values()))
                yield batch, self.reference.order[at:at + len(first)]
                at += len(first)
        self.assertEqual(at, len(self.reference.order))

    def images(self, samples, cameras=("top", "wrist")):
        return np.stack([np.stack([self.reference.image(sample, camera) for camera in cameras]) for sample in samples])

    def check_state(self, samples, qpos, action, is_pad, normalise=True):
        rows = np.stack([self.reference.episodes[e]["qpos"][t] for e, t in samples])
        self.same(qpos, self.reference.normalised("qpos", rows) if normalise else rows)
        chunks = [self.reference.chunk(sample, normalise) for sample in samples]
        self.same(action, np.stack([actions for actions, _ in chunks]))
        self.same(is_pad, np.stack([pad for _, pad in chunks]))

    def check_weir(self, tensors):
        for batch, samples in self.batches(tensors=tensors):
            self.assertEqual(list(batch), ["image", "qpos", "action", "is_pad"])
            self.same(batch["image"], self.images(samples).transpose(0, 1, 4, 2, 3))
            self.check_state(samples, batch["qpos"], batch["action"], batch["is_pad"])

    def test_weir(self):
        self.check_weir("array")

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_weir_torch(self):
        self.check_weir("torch")
        with weir.Loader(self.data) as loader:
            batch = next(iter(loader))
        self.assertTrue(all(isinstance(value, torch.Tensor) for value in batch.values()))
        self.assertIs(batch["is_pad"].dtype, torch.bool)

    def test_nhwc_floats(self):
        for batch, samples in self.batches(tensors="array", image_layout="nhwc", dtype="float32", num_workers=0):
            self.same(batch["image"], self.images(samples).astype(np.float32) / np.float32(255))

    def test_act(self):
        for batch, samples in self.batches(keys="act"):
            image, qpos, action, is_pad = batch
            self.assertIs(batch.image, image)
            self.same(image, (self.images(samples).astype(np.float32) / np.float32(255)).transpose(0, 1, 4, 2, 3))
            self.check_state(samples, qpos, action, is_pad)

    def check_lerobot(self, tensors):
        for batch, samples in self.batches(keys="lerobot", tensors=tensors):
            self.assertEqual(list(batch), ["observation.images.top", "observation.images.wrist", "observation.state",
                                           "action", "action_is_pad"])
            for camera in ("top", "wrist"):
                images = self.images(samples, (camera,))[:, 0].astype(np.float32) / np.float32(255)
                self.same(batch[f"observation.images.{camera}"], images.transpose(0, 3, 1, 2))
            self.check_state(samples, batch["observation.state"], batch["action"], batch["action_is_pad"], False)

    def test_lerobot(self):
        self.check_lerobot("array")

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_lerobot_torch(self):
        self.check_lerobot("torch")

    def test_history(self):
        samples = iter(self.reference.order)
        with weir.Loader(self.data, batch_size=5, shuffle=False, obs_history=3, keys="lerobot", cameras=["wrist"],
                         dtype="uint8", image_layout="nhwc") as loader:
            for batch in loader:
                state, images = array(batch["observation.state"]), array(batch["observation.images.wrist"])
                for i in range(len(state)):
                    e, t = next(samples)
                    frames = [max(0, t - 2), max(0, t - 1), t]
                    self.same(state[i], self.reference.episodes[e]["qpos"][frames])
                    self.same(images[i], self.reference.episodes[e]["images"]["wrist"][frames])

    def test_delta_indices(self):
        """Steps of each key, with masks; steps outside the episode repeat its first or last step."""
        windows = {"wrist": [-2, 0, 3], "qpos": range(-1, 1), "observation.images.top": [1], "action": [0, 1, 20]}
        samples = iter(self.reference.order)
        with weir.Loader(self.data, batch_size=5, shuffle=False, keys="lerobot", delta_indices=windows, dtype="uint8",
                         image_layout="nhwc") as loader:
            for batch in loader:
                for i in range(len(batch["action"])):
                    e, t = next(samples)
                    episode = self.reference.episodes[e]
                    for key, rows, steps in (
                            ("observation.images.wrist", episode["images"]["wrist"], windows["wrist"]),
                            ("observation.images.top", episode["images"]["top"], [1]),
                            ("observation.state", episode["qpos"], windows["qpos"]),
                            ("action", episode["action"], windows["action"])):
                        wanted = [t + step for step in steps]
                        inside = [min(max(step, 0), len(rows) - 1) for step in wanted]
                        got = array(batch[key])[i]
                        self.same(got, rows[inside] if len(steps) > 1 or key == "action" else rows[inside[0]])
                        self.assertEqual(array(batch[key + "_is_pad"])[i].tolist(),
                                         [a != b for a, b in zip(wanted, inside)], key)
        self.assertIsNone(next(samples, None))

    def test_shuffled(self):
        """Every sample once per epoch, in an order that depends on seed and epoch only, not on workers."""
        def epochs(workers, seed, n=2):
            with weir.Loader(self.data, batch_size=4, num_workers=workers, seed=seed, normalize=False) as loader:
                return [[self.reference.find(row) for batch in loader for row in array(batch["qpos"])]
                        for _ in range(n)]
        one = epochs(1, 5)
        self.assertEqual(one, epochs(3, 5))
        self.assertEqual(sorted(one[0]), self.reference.order)
        self.assertEqual(sorted(one[1]), self.reference.order)
        self.assertNotEqual(one[0], one[1])
        self.assertNotEqual(one[0], epochs(1, 6)[0])

    def test_ranks(self):
        seen = []
        for rank in range(2):
            with weir.Loader(self.data, batch_size=3, rank=rank, world_size=2, normalize=False) as loader:
                seen += [self.reference.find(row) for batch in loader for row in array(batch["qpos"])]
        self.assertEqual(len(seen), len(set(seen)))

    def test_ranks_of_the_environment(self):
        """As set by torchrun, with both processes on this machine."""
        environment = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
        with weir.Loader(self.data, batch_size=3, rank=1, world_size=2, tensors="array") as loader:
            expected = [np.asarray(batch["qpos"]).tobytes() for batch in loader]
        with mock.patch.dict(os.environ, environment), weir.Loader(self.data, batch_size=3, tensors="array") as loader:
            self.assertEqual([np.asarray(batch["qpos"]).tobytes() for batch in loader], expected)

    def test_splits(self):
        seen = {}
        for split in ("train", "val"):
            with weir.Loader(self.data, batch_size=3, split=split, train_split=0.7, normalize=False) as loader:
                seen[split] = [self.reference.find(row) for batch in loader for row in array(batch["qpos"])]
                self.assertEqual(len(loader), -(-len(seen[split]) // 3))
        self.assertEqual(sorted(seen["train"] + seen["val"]), self.reference.order)
        self.assertEqual(len({episode for episode, _ in seen["val"]}), 1)

    def test_libavcodec_of_pyav(self):
        """PyAV's libavcodec is named without importing PyAV, in a process of its own, unless the user names one."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("av/__init__.py", "raise ImportError"), ("av.libs/libavcodec-0a1b.so.61.1.2", ""),
                               ("av.libs/libavcodec-0a1b.so.63.1.2", "")):
                path = pathlib.Path(folder, name)
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
            code = f"import os, sys, weir; sys.path.insert(0, {folder!r}); weir.Loader({self.data!r}, num_workers=0); " \
                   "print(os.environ['WEIR_LIBAVCODEC'])"
            for named, expected in ((None, f"{folder}/av.libs/libavcodec-0a1b.so.61.1.2"), ("mine.so", "mine.so")):
                environment = {key: value for key, value in os.environ.items() if key != "WEIR_LIBAVCODEC"}
                if named:
                    environment["WEIR_LIBAVCODEC"] = named
                out = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
                self.assertEqual(out.stdout.strip(), expected)

    def test_exact_resize(self):
        """resize="exact" is Pillow's BILINEAR within one level, also of a crop."""
        for size, crop, box in (((32, 24), None, None), ((21, 31), "40x30+7+5", (7, 5, 47, 35))):
            for batch, samples in self.batches(resize="exact", image_size=size, crop=crop):
                images = self.images(samples)
                small = [np.asarray(common.Image.fromarray(image).crop(box)
                                    .resize(size, common.Image.Resampling.BILINEAR))
                         for image in images.reshape(-1, *images.shape[2:])]
                given = array(batch["image"]).transpose(0, 1, 3, 4, 2).reshape(-1, size[1], size[0], 3)
                self.assertLessEqual(abs(given.astype(int) - np.stack(small)).max(), 1)

    def test_marked_frames(self):
        """RoboTwin's JPEGs have red and blue swapped, except those with a comment; orientations turn images."""
        stored = [self.reference.image((0, t), "top") for t in range(4)]
        with tempfile.TemporaryDirectory() as folder:
            for name, orientation in (("episode0.hdf5", 1), ("episode1.hdf5", 6)):
                common.write_robotwin(os.path.join(folder, name), stored, orientation)
            for name, turned in (("episode0.hdf5", False), ("episode1.hdf5", True)):
                with weir.Loader(os.path.join(folder, name), batch_size=4, shuffle=False, train_split=1, dtype="uint8",
                                 tensors="array") as loader:
                    images = np.asarray(next(iter(loader))["image"])[:, 0].transpose(0, 2, 3, 1)
                for t, pixels in enumerate(stored):
                    expected = np.rot90(pixels, -1) if turned else pixels
                    self.assertEqual(images[t].shape, expected.shape)
                    self.assertLess(np.abs(images[t].astype(int) - expected).mean(), 3, (name, t))

    def test_unturned_frames(self):
        """Orientations that readers of a layout ignore are ignored, and said so at open; other datasets need no such line."""
        program = os.environ["WEIR_PROGRAM"]
        with tempfile.TemporaryDirectory() as folder:
            data = os.path.join(folder, "copy.zarr")
            subprocess.run([program, "convert", self.data, data, "--to", "zarr"], check=True, capture_output=True)
            pixels = self.reference.image((0, 0), "top")
            for orientation, cameras in ((1, ("top", "wrist")), (6, ("wrist",)), (6, ("top",))):
                for path in (path for camera in cameras for path in pathlib.Path(data, "data", camera).glob("[0-9]*")):
                    path.write_bytes(common.marked_jpeg(pixels, orientation, False))
                said = {command: subprocess.run([program, command, data, *options], capture_output=True, text=True, check=True)
                        for command, options in (("info", ()), ("run", ("--max-batches", "1")))}
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    with weir.Loader(data, batch_size=1, shuffle=False, train_split=1, dtype="uint8", tensors="array") as loader:
                        image = np.asarray(next(iter(loader))["image"])[0, 0].transpose(1, 2, 0)
                self.assertLess(np.abs(image.astype(int) - pixels).mean(), 3)
                line = "" if orientation == 1 else f"the first frame of camera {cameras[0]}" + \
                    (" (and those of 1 other)" if cameras == ("top",) else "") + " has EXIF orientation 6, which programs"
                self.assertEqual([str(w.message)[:len(line)] for w in caught], [line] if line else [])
                for command, done in said.items():
                    lines = re.findall("note: .*EXIF.*", done.stdout + done.stderr)
                    self.assertEqual([text[6:6 + len(line)] for text in lines], [line] if line else [], command)

    def test_dataset(self):
        with weir.Loader(self.data, image_size=(32, 24)) as loader:
            dataset = loader.dataset
            self.assertEqual([episode.steps for episode in dataset.episodes], [13, 13, 13])
            self.assertEqual([(c.name, c.codec, c.width, c.height) for c in dataset.cameras],
                             [("top", "jpeg", 32, 24), ("wrist", "jpeg", 32, 24)])
            rows = np.concatenate([episode["qpos"] for episode in self.reference.episodes]).astype(np.float64)
            np.testing.assert_allclose(dataset.statistics["qpos_mean"], rows.mean(axis=0))
            np.testing.assert_allclose(dataset.statistics["qpos_std"], rows.std(axis=0, ddof=1))
            self.assertEqual(loader.batch_size, 8)
            self.assertEqual(array(next(iter(loader))["image"]).shape, (8, 2, 3, 24, 32))


class Damaged(common.Data):
    def setUp(self):
        self.data = self.synth(self.id(), *self.SYNTH)
        with h5py.File(f"{self.data}/episode_1.hdf5", "r+") as file:
            file["observations/images/wrist"][5] = 0

    def test_fail(self):
        """The iteration ends at the bad batch with a one-line error; earlier batches are delivered."""
        with weir.Loader(self.data, batch_size=4, shuffle=False) as loader:
            seen = 0
            with self.assertRaisesRegex(weir.Error, 'episode_1.hdf5.*wrist.*on_error="skip"') as raised:
                for _ in loader:
                    seen += 1
            self.assertEqual(seen, (13 + 5) // 4)
            self.assertNotIn("\n", str(raised.exception))

    def test_skip(self):
        for num_workers in (0, 2):
            with self.subTest(num_workers), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                with weir.Loader(self.data, batch_size=4, num_workers=num_workers, shuffle=False, on_error="skip") as loader:
                    sizes = []
                    for epoch in range(3):
                        for batch in loader:
                            sizes.append(len(batch["qpos"]))
                            if num_workers == 0 and epoch == 0:
                                self.assertEqual(len(caught), len(sizes) > 5, "the warning comes with the next batch")
                        self.check_warnings(caught, r"samples skipped: %d, frames substituted: 0", epoch)
            self.assertEqual((sum(sizes), sizes[4]), (3 * (3 * 13 - 1), 3))
            self.assertEqual({os.path.basename(w.filename) for w in caught}, {os.path.basename(__file__)})

    def check_warnings(self, caught, counts, epoch):
        """One warning at the first bad frame, then at most one at the end of each epoch; workers can be an epoch ahead."""
        texts = [str(warning.message) for warning in caught]
        self.assertTrue(1 <= len(texts) <= epoch + 2, texts)
        self.assertEqual({warning.category for warning in caught}, {RuntimeWarning})
        at = [re.fullmatch(r"bad frames since the loader was opened \(" + counts.replace("%d", r"(\d+)") + r"\); the first "
                           r"error: .*/episode_1\.hdf5: /observations/images/wrist\[5\]: .+", text) for text in texts]
        self.assertTrue(all(at), texts)
        found = [int(match[1]) for match in at]
        self.assertEqual(found, sorted(set(found)))
        self.assertTrue(epoch + 1 <= found[-1] <= epoch + 3, texts)

    def test_substitute(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with weir.Loader(self.data, batch_size=4, shuffle=False, on_error="substitute") as loader:
                self.assertEqual(sum(len(batch["qpos"]) for batch in loader), 3 * 13)
        self.check_warnings(caught, r"samples skipped: 0, frames substituted: %d", 0)

    def test_warning_is_error(self):
        with weir.Loader(self.data, batch_size=4, num_workers=0, shuffle=False, on_error="skip") as loader:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with self.assertRaisesRegex(RuntimeWarning, "samples skipped: 1,"):
                    list(loader)

    def test_episode(self):
        with open(f"{self.data}/episode_2.hdf5", "r+b") as file:
            file.truncate(3000)
        with self.assertWarnsRegex(RuntimeWarning, "1 episode cannot be opened and is skipped; the first error: .*/episode_2.hdf5: "):
            weir.Loader(self.data, batch_size=4, on_error="skip").close()


class LeftOut(common.Data):
    """An unreadable camera next to a readable one."""
    SYNTH = ["--format", "robomimic", "--episodes", "2", "--steps", "5", "--cameras", "top", "--size", "32x24"]

    def setUp(self):
        with h5py.File(f"{self.data}/demos.hdf5", "a") as file:
            if "wrist" not in file["data/demo_0/obs"]:
                file["data/demo_0/obs/wrist"] = np.zeros((5, 24, 32, 3), np.uint16)

    def test_warning(self):
        with self.assertWarnsRegex(RuntimeWarning, r"camera wrist is left out: uint16 \(steps, 24, 32, 3\); images are read from"):
            weir.Loader(self.data, batch_size=2).close()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            weir.Loader(self.data, batch_size=2, cameras=["top_image"]).close()
            with self.assertRaisesRegex(RuntimeWarning, "camera wrist"):
                weir.Loader(self.data, batch_size=2)

    def test_named(self):
        with self.assertRaisesRegex(weir.Error, r"camera wrist cannot be read: uint16 \(steps, 24, 32, 3\)"):
            weir.Loader(self.data, batch_size=2, cameras=["wrist"])


class Errors(common.Data):
    def test_one_line(self):
        for error, words, options in [
                (FileNotFoundError, "nowhere", {"path": "/nowhere"}),
                (weir.Error, 'device="cuda:999": ', {"device": "cuda:999"}),
                (ValueError, "batch_size", {"batch_size": 0}),
                (ValueError, "keys", {"keys": "rlds"}),
                (ValueError, "rank", {"rank": 1}),
                (ValueError, "use a smaller batch_size, or wrap", {"rank": 0, "world_size": 1000}),
                (ValueError, "crop: ", {"crop": "8x8+1000+0"}),
                (ValueError, "validation", {"split": "val"}),
                (ValueError, "batch_size", {"batch_size": "many"}),
                (ValueError, "decode_cache must be bytes", {"decode_cache": "much"}),
                (ValueError, "decode_cache must be an int", {"decode_cache": 1.5}),
                (ValueError, "num_workers must be 0 or more, or 'auto', not -1", {"num_workers": -1}),
                (ValueError, "num_workers must be a 32-bit int", {"num_workers": "many"}),
                (ValueError, "num_workers=1048576: must be from 0 to 512 threads, or auto", {"num_workers": 1 << 20}),
                (ValueError, "prefetch_factor must be a 32-bit int", {"prefetch_factor": "x"}),
                (ValueError, "prefetch_factor=5000: must be from 1 to 4096 batches, or auto", {"prefetch_factor": 5000}),
                (ValueError, "image_size=(17000, 8): must be from 1 to 16384 pixels", {"image_size": (17000, 8)}),
                (ValueError, "sampling must be one of 'timestep', 'episode', not 'frame'", {"sampling": "frame"}),
                (ValueError, "split must be one of 'train', 'val', not ''", {"split": ""}),
                (TypeError, "dtype and its old name, image_dtype, are both given",
                 {"dtype": "uint8", "image_dtype": "uint8"}),
                (ValueError, "image_size must be (width, height) in pixels, such as (320, 240), not 32", {"image_size": 32}),
                (ValueError, "image_size", {"image_size": (32,)}),
                (ValueError, "image_size", {"image_size": (32, -1)}),
                (ValueError, "image_size", {"image_size": "ab"}),
                (ValueError, "dtype must be one of 'uint8', 'float32', not 'float16'", {"dtype": np.float16}),
                (ValueError, "chunk_size=0: must be from 1 to 65536 actions", {"chunk_size": 0}),
                (ValueError, "obs_history=2000: must be from 1 to 1024 frames", {"obs_history": 2000}),
                (ValueError, "delta_indices must be a dict of lists of integers", {"delta_indices": 3}),
                (ValueError, "delta_indices must be a dict of lists of integers", {"delta_indices": {"top": [0.5]}}),
                (ValueError, "delta_indices: 't=p' is not the name of a camera", {"delta_indices": {"t=p": [0]}}),
                (ValueError, 'delta indices "tip=0": names no camera', {"delta_indices": {"tip": [0]}}),
                (ValueError, "delta_indices and delta_timestamps are both given",
                 {"delta_indices": {"top": [0]}, "delta_timestamps": {"top": [0]}}),
                (ValueError, "delta_timestamps needs a LeRobot dataset", {"delta_timestamps": {"top": [0.0]}}),
                (ValueError, "max_batches=-1: must be from 0 to 2000000000 batches", {"max_batches": -1}),
                (ValueError, "train_split=1.5: must be from 0 to 1", {"train_split": 1.5}),
                (ValueError, "shuffle must be True or False, not 'no'", {"shuffle": "no"}),
                (ValueError, "wrap must be True or False, not 'no'", {"wrap": "no"}),
                (ValueError, "cameras must be a name or a list of names", {"cameras": 7}),
                (ValueError, "cameras must be a name or a list of names", {"cameras": [7]}),
                (ValueError, "cameras must be a str without zero bytes", {"cameras": "top\0wrist"}),
                (ValueError, "io must be a str", {"io": 1j}),
                (ValueError, "keys must be one of", {"keys": []}),
                (ValueError, "batch_size must be a 32-bit int, not None", {"batch_size": None}),
                (TypeError, "no argument 'batchsize'; did you mean 'batch_size'?", {"batchsize": 4}),
                (TypeError, "no argument 'workers'; did you mean 'num_workers'?", {"workers": 4}),
                (TypeError, "no argument 'pin_memory'; help(weir.Loader)", {"pin_memory": True}),
                (TypeError, "path must be a path", {"path": 7}),
                (ValueError, "path without zero bytes", {"path": self.data + "\0x"}),
                (ValueError, "path without zero bytes", {"index": b"a\0b"}),
                (ValueError, "seed", {"seed": -1})]:
            with self.subTest(options=options), self.assertRaises(error) as raised:
                weir.Loader(**{"path": self.data, **options})
            self.assertIn(words, str(raised.exception))
            self.assertNotRegex(str(raised.exception), "\n|--")

    def test_paths_in_any_encoding(self):
        """Paths as bytes or as decoded by Python; messages about them are printable."""
        folder = os.path.join(os.fsencode(self.work), b"any\xff")
        os.symlink(self.data, folder)
        for path in (folder, os.fsdecode(folder), pathlib.Path(os.fsdecode(folder))):
            with weir.Loader(path, index=folder + b".index") as loader:
                self.assertEqual(sum(1 for _ in loader), len(loader))
                self.assertEqual(os.path.dirname(os.fsencode(loader.dataset.episodes[0].path)), folder)
        self.assertTrue(os.path.exists(folder + b".index"))
        with self.assertRaises(FileNotFoundError) as raised:
            weir.Loader(folder + b"/none")
        str(raised.exception).encode()

    def test_dtypes(self):
        """NumPy's and torch's dtypes."""
        dtypes = [np.float32, np.dtype("uint8")] + ([torch.float32, torch.uint8] if torch else [])
        for dtype in dtypes:
            with weir.Loader(self.data, dtype=dtype, tensors="array") as loader:
                self.assertIn(next(iter(loader))["image"].dtype, str(dtype))

    def test_old_keywords(self):
        """Old keywords work for one release, with a warning at the caller's line."""
        for old, new, value in (("image_dtype", "dtype", "float32"), ("output", "dtype", "float32"),
                                ("layout", "image_layout", "nhwc")):
            with self.assertWarnsRegex(DeprecationWarning, f"^{old} is deprecated .*; use {new}$") as warned:
                loader = weir.Loader(self.data, tensors="array", **{old: value})
            self.assertEqual(warned.filename, __file__)
            with loader, weir.Loader(self.data, tensors="array", **{new: value}) as same:
                images = [next(iter(one))["image"] for one in (loader, same)]
                self.assertEqual(images[0].dtype, images[1].dtype)
                self.assertEqual(images[0].shape, images[1].shape)

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_inside_a_dataloader(self):
        import torch.utils.data
        with weir.Loader(self.data) as loader:
            for workers in (0, 1):
                with self.assertRaisesRegex(TypeError, "iterate over it without a DataLoader"):
                    next(iter(torch.utils.data.DataLoader(loader, num_workers=workers)))

    def test_a_camera_that_an_episode_lacks(self):
        """The advice names Python arguments, also in parentheses."""
        data = self.synth("lacks", *self.SYNTH)
        with h5py.File(f"{data}/episode_1.hdf5", "r+") as file:
            del file["observations/images/wrist"]
        with self.assertRaisesRegex(weir.Error, r'episode_1.hdf5: no camera "wrist"; it has top; choose cameras .*'
                                                r'\(cameras\).* \(on_error="skip"\)$'):
            weir.Loader(data)
        with weir.Loader(data, cameras=["top"]) as loader:
            self.assertEqual(len(loader.dataset.episodes), 3)
        os.symlink("nowhere", f"{data}/folder")
        with self.assertRaises(FileNotFoundError) as raised:
            weir.Loader(data)
        self.assertIn('(on_error="skip" leaves it out)', str(raised.exception))

    def test_decode_cache(self):
        for bytes_ in (64 << 20, "64M", "1g"):
            with weir.Loader(self.data, decode_cache=bytes_) as loader:
                self.assertIn("decode cache: ", [list(loader), list(loader), loader.table()][2])

    def test_closed(self):
        loader = weir.Loader(self.data)
        iterator = iter(loader)
        loader.close()
        loader.close()
        self.assertTrue(loader.closed)
        for use in (lambda: next(iterator), lambda: iter(loader), loader.state_dict, loader.verdict):
            with self.assertRaisesRegex(weir.Error, "closed"):
                use()

    def test_never_opened(self):
        loader = weir.Loader.__new__(weir.Loader)
        self.assertEqual(len(loader), 0)
        for use in (lambda: iter(loader), lambda: loader.set_epoch(0), lambda: loader._resume(0), loader.verdict):
            with self.assertRaises(weir.Error):
                use()
        loader.close()
        with self.assertRaises(TypeError):
            pickle.dumps(loader)

    def test_two_iterations(self):
        with weir.Loader(self.data) as loader:
            first = iter(loader)
            next(first)
            second = iter(loader)
            next(second)
            with self.assertRaisesRegex(weir.Error, "when a later iteration"):
                next(first)


WITHOUT_MOTION = """
import importlib
import weir

names = ("MotionClip", "MotionLibrary", "MotionState", "motion_state")
if hasattr(weir._weir, "_Motion"):  # simulates an extension without the extra
    del weir._weir._Motion
    for name in names:
        delattr(weir, name)
    importlib.reload(weir._package)
    importlib.reload(weir)
assert not set(names) & set(weir.__all__), weir.__all__
assert weir.Loader and not hasattr(weir, "no_such_name")
for name in names:
    try:
        getattr(weir, name)
    except AttributeError as error:
        print(error)
"""


class NoCameras(unittest.TestCase):
    """A file with states and actions only."""

    def test_batches_have_states_and_actions(self):
        with tempfile.TemporaryDirectory() as work:
            path = os.path.join(work, "low_dim.hdf5")
            rows = np.arange(18, dtype=np.float32).reshape(6, 3)
            with h5py.File(path, "w") as f:
                f["data/demo_0/obs/pose"], f["data/demo_0/actions"] = rows, rows + 1
            options = {"batch_size": 4, "shuffle": False, "tensors": "array", "chunk_size": 1, "normalize": False}
            for workers in (0, 2):
                with weir.Loader(path, num_workers=workers, **options) as loader:
                    self.assertEqual(loader.dataset.cameras, [])
                    batches = [{key: np.array(value) for key, value in batch.items()} for batch in loader]
                    self.assertEqual([sorted(batch) for batch in batches], [["action", "is_pad", "qpos"]] * 2)
                    np.testing.assert_array_equal(np.concatenate([batch["qpos"] for batch in batches]), rows)
                    np.testing.assert_array_equal(np.concatenate([batch["action"][:, 0] for batch in batches]), rows + 1)
            with weir.Loader(path, keys="lerobot", **options) as loader:
                self.assertEqual(sorted(next(iter(loader))), ["action", "action_is_pad", "observation.state"])
            with self.assertRaisesRegex(weir.Error, "keys='act' requires colour cameras.*found qpos instead of image"):
                with weir.Loader(path, keys="act", **options) as loader:
                    next(iter(loader))
            with h5py.File(path, "w") as f:
                f["data/demo_0/pose"] = rows
            with self.assertRaisesRegex(FileNotFoundError, "missing dataset.*for example: weir run .* --qpos-keys pose --action-keys pose$"):
                weir.Loader(path, **options)


class FilterKey(unittest.TestCase):
    def test_a_list_of_demos_is_loaded(self):
        with tempfile.TemporaryDirectory() as work:
            path = os.path.join(work, "demo.hdf5")
            with h5py.File(path, "w") as f:
                for demo in range(3):
                    f[f"data/demo_{demo}/obs/pose"] = f[f"data/demo_{demo}/actions"] = np.full((4, 2), demo, np.float32)
                f["mask/train"] = np.array(["demo_2", "demo_0"], "S")
            options = {"batch_size": 4, "shuffle": False, "tensors": "array", "normalize": False}
            with weir.Loader(path, filter_key="train", **options) as loader:
                self.assertEqual([float(np.asarray(batch["qpos"])[0, 0]) for batch in loader], [0, 2])
            with self.assertRaisesRegex(ValueError, r"filter_key=.test.: no such list of demos; the file has /mask/train \(2 demos\)"):
                weir.Loader(path, filter_key="test", **options)


class Extras(unittest.TestCase):
    def test_a_name_that_was_not_built_says_so_in_one_line(self):
        done = subprocess.run([sys.executable, "-c", WITHOUT_MOTION], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 4)
        self.assertEqual(lines[1], "weir.MotionLibrary: this weir was built without it; build it with WEIR_WITH_MOTION=ON")


if __name__ == "__main__":
    unittest.main()
