#!/usr/bin/env python3
"""weir.Loader on LeRobot datasets that plain.py writes, compared with the rows that it wrote and with the pictures that
ffmpeg decodes: test_items.py. Skipped (77) without ffmpeg, or without pyarrow from tests/readers/setup.sh.
tests/lerobot/compare.py compares with lerobot itself."""
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PYTHON = os.environ.get("WEIR_READERS_PYTHON", os.path.join(ROOT, "build", "readers-venv", "bin", "python"))
if os.path.exists(PYTHON) and os.path.realpath(sys.prefix) != os.path.realpath(os.path.join(os.path.dirname(PYTHON), "..")):
    os.execv(PYTHON, [PYTHON, os.path.abspath(__file__)] + sys.argv[1:])
try:
    import numpy as np
    import plain
    import weir
    if plain.pq is None or not hasattr(weir, "Loader"):
        raise ImportError("pyarrow is not installed, or weir has no extension for this Python")
except ImportError as e:
    print(f"skipped: {e}; tests/readers/setup.sh installs what is needed")
    sys.exit(77)
if not shutil.which("ffmpeg"):
    print("skipped: ffmpeg is not installed")
    sys.exit(77)

LENGTHS = (9, 12, 7)
CAMERAS = {"observation.images.top": (96, 64), "observation.images.wrist": (64, 64)}
DTYPES = {"float16": np.float32, "float32": np.float32, "int64": np.int64, "bool": np.bool_}


def ready(name):
    """Whether a codec or an I/O engine works here: libavcodec may be missing, io_uring may be forbidden."""
    text = subprocess.run([os.environ["WEIR_PROGRAM"], "doctor"], text=True, capture_output=True, check=True).stdout
    return not any(line.split()[:1] == [name] and " no" in line for line in text.splitlines())


def decode(path, size, images=b"", pixels="rgb24"):
    """All pictures of a video, or of consecutive PNGs if path is "-", as ffmpeg converts them to RGB or to gray."""
    source = ["-f", "png_pipe", "-i", path] if images else ["-nostdin", "-i", path]
    done = subprocess.run(["ffmpeg", "-v", "error", *source, "-f", "rawvideo", "-pix_fmt", pixels, "-"], input=images,
                          capture_output=True, check=True)
    if pixels != "rgb24":
        return np.frombuffer(done.stdout, np.uint16).reshape(-1, size[1], size[0], 1)
    return np.frombuffer(done.stdout, np.uint8).reshape(-1, size[1], size[0], 3)


def millimetres(codes, scale):
    """Depth as lerobot computes it from the codes of a video."""
    f32 = np.float32
    low, high, shift = scale["video.depth_min"], scale["video.depth_max"], scale["video.shift"]
    first, last = (math.log(low + shift), math.log(high + shift)) if scale["video.use_log"] else (low, high)
    values = codes.astype(f32) * f32((last - first) / 4095) + f32(first)
    if scale["video.use_log"]:
        values = np.exp(values.astype(float)).astype(f32) - f32(shift)
    return np.rint(values.clip(f32(low), f32(high)) * f32(1000))


class Reference:
    """Columns and pictures of every episode."""

    def __init__(self, root, version, images, cameras=CAMERAS, depth={}):
        self.dataset = plain.Dataset(root, version, cameras, LENGTHS, 30, "", images, depth)
        self.rows = [plain.rows_of(self.dataset, e) for e in range(len(LENGTHS))]
        self.pictures = {key: self.read(key, images, version) for key in cameras}
        for key, scale in depth.items():
            metres = scale.get("depth_unit") == "m"
            self.pictures[key] = [frames * np.float32(1000 if metres else 1) if images else millimetres(frames, scale)
                                  for frames in self.pictures[key]]

    def read(self, key, images, version):
        size, pixels = self.dataset.cameras[key], "rgb24"
        if key in self.dataset.depth:
            pixels = "gray16le" if images else "gray12le"
        if images:
            values = [plain.image_values(self.dataset, e, key) for e in range(len(LENGTHS))]
            return [decode("-", size, b"".join(value["bytes"] for value in episode), pixels) for episode in values]
        if version == "v2.1":
            return [decode(self.dataset.path(plain.VIDEO, e, key), size, b"", pixels) for e in range(len(LENGTHS))]
        joined = decode(self.dataset.path(plain.VIDEO, 0, key), size, b"", pixels)
        ends = np.cumsum(LENGTHS)
        return [joined[end - n:end] for end, n in zip(ends, LENGTHS)]

    def column(self, name, e, steps):
        dtype = DTYPES[plain.ROWS[name][0]]
        return np.array([self.rows[e][name][step] for step in steps], dtype)

    def texts(self, samples):
        """The columns of strings, the tasks and the subtasks of a batch."""
        rows = [{name: column[t] for name, column in self.rows[e].items()} for e, t in samples]
        texts = {name: [row[name] for row in rows] for name, (dtype, _) in plain.ROWS.items() if dtype == "string"}
        texts["task"] = [plain.TASKS[row["task_index"]] for row in rows]
        if self.dataset.version == "v3.0":
            texts["subtask"] = [plain.SUBTASKS[row["subtask_index"]] for row in rows]
        return texts


class Items(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.work = pathlib.Path(folder.name)

    def dataset(self, name, cameras=CAMERAS, **options):
        root = self.work / name
        if not root.exists():
            plain.write(root, cameras=cameras, lengths=LENGTHS, **options)
        return root

    def same(self, got, want, what):
        got = np.asarray(got)
        self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape), what)
        self.assertEqual(got.tobytes(), np.ascontiguousarray(want).tobytes(), what)

    def compare(self, root, reference, windows=None, episodes=range(len(LENGTHS)), **options):
        """windows: steps by key. Compares all batches, in the dataset's order unless they are shuffled."""
        samples = [(e, t) for e in sorted(episodes) for t in range(LENGTHS[e])]
        seen = []
        windows = windows or {}
        deltas = {key: [step / 30 for step in steps] for key, steps in windows.items()} or None
        chosen = list(episodes) if len(episodes) < len(LENGTHS) else None
        options = {"shuffle": False, "dtype": "uint8", **options}
        with weir.Loader(root, batch_size=5, keys="lerobot", tensors="array", delta_timestamps=deltas, episodes=chosen,
                         **options) as loader:
            for batch in loader:
                here = list(zip(np.asarray(batch["episode_index"]).tolist(), np.asarray(batch["frame_index"]).tolist()))
                self.compare_batch(batch, reference, windows, here)
                seen += here
        self.assertEqual(sorted(seen) if options["shuffle"] else seen, samples)

    def compare_batch(self, batch, reference, windows, samples):
        def steps_of(key, e, t):
            return [min(max(t + step, 0), LENGTHS[e] - 1) for step in windows.get(key, [0])]
        cameras = list(reference.dataset.cameras)
        videos = [] if reference.dataset.images else cameras
        texts = reference.texts(samples)
        order = cameras + list(plain.ROWS) + [f"{key}_is_pad" for key in windows]
        self.assertEqual(list(batch), order + [key for key in texts if key not in order])
        for key, want in texts.items():
            self.assertEqual(batch[key], want, key)
        for key in cameras:
            want = np.stack([reference.pictures[key][e][steps_of(key, e, t)] for e, t in samples]).transpose(0, 1, 4, 2, 3)
            keeps = len(windows.get(key, [0])) > 1 or (key in windows and key not in videos)
            if np.asarray(batch[key]).dtype == np.float32 and key not in reference.dataset.depth:
                want = want.astype(np.float32) / np.float32(255)
            self.same(batch[key], want if keeps else want[:, 0], key)
        for name in [name for name in plain.ROWS if name not in texts]:
            want = np.stack([reference.column(name, e, steps_of(name, e, t)) for e, t in samples])
            self.same(batch[name], want if name in windows else want[:, 0], name)
        for key, steps in windows.items():
            want = np.array([[not 0 <= t + step < LENGTHS[e] for step in steps] for e, t in samples])
            self.same(batch[key + "_is_pad"], want, key)

    def test_videos(self):
        for version in ("v3.0", "v2.1"):
            root = self.dataset(version, version=version)
            reference = Reference(root, version, False)
            for workers in (0, 2):
                self.compare(root, reference, num_workers=workers)
            self.compare(root, reference, {"observation.images.top": [-3, 0, 2], "observation.images.wrist": [0],
                                           "observation.state": [-1, 0], "action": range(16), "next.done": [1],
                                           "observation.grid": [-20, 4, 4], "index": [0]})
            self.compare(root, reference, episodes=[2, 0])
            self.compare(root, reference, shuffle=True, dtype="float32")
            self.compare(root, reference, decode_cache="1M")

    def run_weir(self, root, *options):
        """Returns the checksums of all batches, and the number of reads that read-ahead performed."""
        log, sums = self.work / "log.jsonl", self.work / "sums"
        log.unlink(missing_ok=True)
        subprocess.run([os.environ["WEIR_PROGRAM"], "run", root, "--batch-size", "5", "--num-epochs", "2", "--log", log,
                        "--checksums", sums, *options], check=True, capture_output=True)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        return sums.read_text(), max(line["io"]["ahead_reads"] for line in lines if "io" in line)

    def test_read_ahead(self):
        """The groups of pictures that future tasks need are read ahead, and batches are the same."""
        root = self.dataset("v3.0", version="v3.0")
        uring = ready("uring") and ready("io_uring")
        for options, way in ((["--no-shuffle", "--prefetch", "1"], ["--cold"]), ([], ["--io", "uring"]),
                             (["--obs-history", "3"], ["--io", "uring", "--io-depth", "1"])):
            if uring or "uring" not in way:
                want, _ = self.run_weir(root, "--io", "pread", "--num-workers", "0", *options)
                self.assertEqual(self.run_weir(root, "--num-workers", "2", *way, *options)[0], want, way)
        if not uring:
            self.skipTest("io_uring is not available")
        ahead = 0
        for _ in range(50):  # the workers must be slower than the thread that reads ahead
            ahead = ahead or self.run_weir(root, "--io", "uring", "--step-ms", "2")[1]
        self.assertGreater(ahead, 0)

    def test_codecs_of_libavcodec(self):
        """Groups of pictures are open in HEVC, and more pictures of them are decoded than a batch wants."""
        for codec, encoder in (("h264", "libx264"), ("hevc", "libx265")):
            if not ready(codec):
                self.skipTest("libavcodec is not installed")
            root = self.dataset(codec, codec=encoder)
            self.compare(root, Reference(root, "v3.0", False), {"observation.images.top": [-1, 0]})
            self.compare(root, Reference(root, "v3.0", False))

    def test_tags_of_colours_are_printed(self):
        """Of the stream: there is no box colr."""
        if not ready("h264"):
            self.skipTest("libavcodec is not installed")
        plain_root, root = self.dataset("h264", codec="libx264"), self.work / "full-range"
        shutil.copytree(plain_root, root)
        for video in (root / "videos" / "observation.images.top").rglob("*.mp4"):
            subprocess.run(["ffmpeg", "-v", "error", "-y", "-i", plain_root / video.relative_to(root), "-c:v", "libx264",
                            "-g", "2", "-bf", "0", "-pix_fmt", "yuvj420p", "-x264-params", "colormatrix=bt709",
                            video], check=True)
            self.assertNotIn(b"colr", video.read_bytes())
        done = subprocess.run([os.environ["WEIR_PROGRAM"], "info", root, "--json"], text=True, capture_output=True,
                              check=True)
        videos = [camera["video"] for camera in json.loads(done.stdout)["cameras"]]
        self.assertEqual([(v["matrix"], v["full_range"]) for v in videos], [("BT.709", True), (None, False)])

    def test_a_missing_decoder_says_what_to_install(self):
        if not ready("h264"):
            self.skipTest("libavcodec is not installed")
        for policy in ("fail", "skip"):
            done = subprocess.run([os.environ["WEIR_PROGRAM"], "info", self.dataset("h264", codec="libx264"), "--on-error",
                                   policy], text=True, capture_output=True,
                                  env={**os.environ, "WEIR_LIBAVCODEC": "/nonexistent/libavcodec.so"})
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done)
            self.assertRegex(done.stderr, r"observation.images.top\[0\]: videos/.*\.mp4: H.264 video: .*; install FFmpeg's libavcodec")
            self.assertNotIn("repair", done.stderr)
            self.assertNotIn("skip", done.stderr)

    def test_images(self):
        for version in ("v3.0", "v2.1"):
            root = self.dataset("images-" + version, version=version, images=True)
            reference = Reference(root, version, True)
            self.compare(root, reference, num_workers=2)
            self.compare(root, reference, {"observation.images.top": [0], "action": [0, 1]})

    def test_the_folder_above_gives_the_same(self):
        above = self.work / "above"
        shutil.copytree(self.dataset("v3.0", version="v3.0"), above / "one")
        reference = Reference(above / "one", "v3.0", False)
        self.compare(above, reference)
        self.compare(above, reference, {"observation.images.top": [-3, 0], "action": range(4)})

    def test_a_dataset_on_a_server(self):
        if not ready("http"):
            self.skipTest("built without libcurl")
        sys.path.append(os.path.join(ROOT, "tests", "origin"))
        import http_server
        root = self.dataset("v3.0", version="v3.0")
        url = http_server.Server(str(self.work)).url
        for windows in (None, {"observation.images.top": [-3, 0], "action": range(4)}):
            self.compare(f"{url}/v3.0/", Reference(root, "v3.0", False), windows)
        with self.assertRaisesRegex(FileNotFoundError, "no episode files"):
            weir.Loader(f"{url}/missing", keys="lerobot")

    def test_reading_without_decoding(self):
        root = self.dataset("v3.0")
        for decoder, expected in (("turbo", True), ("null", False)):
            done = subprocess.run([os.environ["WEIR_PROGRAM"], "run", root, "--decoder", decoder, "--num-epochs", "1",
                                   "--json"], text=True, capture_output=True, check=True)
            names = [stage["name"] for stage in json.loads(done.stdout)["report"]["stages"]]
            self.assertEqual("03j_video_decode" in names, expected, names)
            self.assertIn("03c_read_bytes", names)

    def test_fast_verification_decodes_first_pictures_only(self):
        root = self.work / "damaged"
        shutil.copytree(self.dataset("v2.1", version="v2.1"), root)
        video = next((root / "videos").rglob("*.mp4"))
        content = video.read_bytes()
        begin = content.index(b"mdat") + 4
        end = begin - 8 + int.from_bytes(content[begin - 8:begin - 4], "big")
        middle = (begin + end) // 2
        video.write_bytes(content[:middle] + bytes(end - middle) + content[end:])
        for options, status in (([], 3), (["--fast"], 0)):
            done = subprocess.run([os.environ["WEIR_PROGRAM"], "verify", root, *options], text=True, capture_output=True)
            self.assertEqual(done.returncode, status, done)
        video.write_bytes(content[:begin] + bytes(middle - begin) + content[middle:])
        done = subprocess.run([os.environ["WEIR_PROGRAM"], "verify", root, "--fast"], text=True, capture_output=True)
        self.assertEqual(done.returncode, 3, done)

    def test_faults_name_the_file_and_say_what_they_are(self):
        """A damaged frame is unreadable. Wrong statistics are not."""
        for name, options, files in (("v2.1", {}, "videos/*/*/*.mp4"), ("images-v2.1", {"images": True}, "data/*/*.parquet")):
            root = self.work / (name + "-faulty")
            shutil.copytree(self.dataset(name, version="v2.1", **options), root)
            path = sorted(root.glob(files))[0]
            content = path.read_bytes()
            begin = content.index(b"IDAT" if options else b"mdat") + 4
            path.write_bytes(content[:begin] + bytes(64) + content[begin + 64:])
            stats = root / "meta" / "episodes_stats.jsonl"
            stats.write_text(stats.read_text().replace('"max": [', '"max": [9', 1))
            info = root / "meta" / "info.json"
            info.write_text(info.read_text().replace("64", "65"))  # the height of both cameras
            place = r"%s: episode 0/observation.images.top\[\d+(\.\.\d+)?\]: %s: " % (root, path.relative_to(root))
            done = subprocess.run([os.environ["WEIR_PROGRAM"], "run", root], text=True, capture_output=True)
            self.assertEqual(done.returncode, 1, done)
            self.assertRegex(done.stderr, place)
            done = subprocess.run([os.environ["WEIR_PROGRAM"], "verify", root, "--json"], text=True, capture_output=True)
            told = json.loads(done.stdout)
            self.assertRegex(told["findings"][0]["text"], place)
            self.assertEqual({(f["kind"], f["unreadable"], f["wrong"]) for f in told["findings"]},
                             {("frame", True, False), ("table", False, True), ("stats", False, True)})
            self.assertEqual((done.returncode, told["found"]["frame"], told["found"]["table"], told["wrong"]),
                             (3, told["unreadable"], 2, 3), told)

    def test_video_is_decoded_for_a_copy_only_when_asked(self):
        for target, choice in (("packed", "--frames raw (every pixel as it is decoded) or --frames jpeg:95"),
                               ("hdf5-gzip", "choose --frames raw"), ("tfrecord", "choose --frames jpeg:95")):
            done = subprocess.run([os.environ["WEIR_PROGRAM"], "convert", self.dataset("v3.0"), self.work / "copy.weir",
                                   "--to", target], text=True, capture_output=True)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done)
            self.assertIn("is video, which %s cannot store; " % target, done.stderr)
            self.assertIn(choice, done.stderr)

    def test_a_comparison_of_formats_has_a_copy_of_jpegs(self):
        for name, options, there in (("v3.0", {}, True), ("images-v3.0", {"images": True}, False)):
            done = subprocess.run([os.environ["WEIR_PROGRAM"], "bench", self.dataset(name, **options), "--cache", "warm",
                                   "--max-copies", "1", "--repeats", "1", "--min-seconds", "0.05", "--json"],
                                  text=True, capture_output=True, check=True)
            self.assertEqual("hdf5:jpeg" in json.loads(done.stdout)["left_out"], there, done)

    def test_killed_copies_are_resumed(self):
        script = os.path.join(ROOT, "tests", "convert", "kill_convert.sh")
        done = subprocess.run(["bash", script, "2", "packed"], text=True, capture_output=True,
                              env={**os.environ, "DATA": str(self.dataset("v3.0")), "FRAMES": "raw"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_decoded_pictures_are_counted(self):
        """Every other picture is a key frame, so a frame costs one or two decoded pictures."""
        run = [os.environ["WEIR_PROGRAM"], "run", self.dataset("v3.0"), "--json", "--num-workers=1", "--batch-size=1",
               "--prefetch=1", "--max-batches=20"]
        video = json.loads(subprocess.run(run, text=True, capture_output=True, check=True).stdout)["report"]["video"]
        self.assertLessEqual(video["used"], video["decoded"])
        self.assertLessEqual(video["groups"], video["used"])
        self.assertLessEqual(video["decoded"], video["group_pictures"])
        self.assertLessEqual(video["group_pictures"], 2 * video["groups"])
        self.assertGreater(video["key_s"], 0)

    def test_depth(self):
        """Videos with two scales, and images."""
        top, near, far = "observation.images.top", "observation.images.near", "depth"
        cameras = {top: (96, 64), near: (64, 48), far: (96, 64)}
        log = {"video.depth_min": 0.02, "video.depth_max": 8.0, "video.shift": 2.5, "video.use_log": True}
        for name, images, depth in (
                ("depth-images", True, {near: {"depth_unit": "mm"}, far: {"depth_unit": "m"}}),
                ("depth", False, {near: log, far: {**log, "video.use_log": False}})):
            if not images and not ready("hevc"):
                self.skipTest("libavcodec is not installed")
            if not images:
                del cameras[top]
            root = self.dataset(name, cameras, images=images, depth=depth)
            reference = Reference(root, "v3.0", images, cameras, depth)
            self.compare(root, reference, {near: [-1, 0], far: [0]}, num_workers=2)
            self.compare(root, reference, dtype="float32", decode_cache="1M")
            with weir.Loader(root, tensors="array", cameras=["near"], batch_size=1, shuffle=False) as loader:
                stored = np.asarray(next(iter(loader))["depth"])
            self.assertEqual((stored.dtype, stored.shape), (np.uint16, (1, 1, 48, 64)))
            if images:  # PNGs of 16 bits show what they are
                info = json.loads((root / "meta" / "info.json").read_text())
                del info["features"][near]["info"]
                (root / "meta" / "info.json").write_text(json.dumps(info))
                self.compare(root, reference, num_workers=2)
                done = subprocess.run([os.environ["WEIR_PROGRAM"], "info", root], text=True, capture_output=True, check=True)
                self.assertIn(f"feature {near} has PNGs of 16 bits", " ".join(done.stdout.split()))

    def test_drift_is_reported_when_a_dataset_is_opened(self):
        root = self.work / "late"
        shutil.copytree(self.dataset("v3.0", version="v3.0"), root)
        rows = next((root / "data").rglob("*.parquet"))
        table = plain.pq.read_table(rows)
        times = np.asarray(table["timestamp"]) * np.float32(1.01)
        table = table.set_column(table.column_names.index("timestamp"), "timestamp", plain.pa.array(times))
        plain.pq.write_table(table, rows)
        for keys in ("weir", "lerobot"):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                weir.Loader(root, keys=keys).close()
            self.assertEqual([one.category for one in seen], [RuntimeWarning])
            self.assertRegex(str(seen[0].message), "25 rows of 3 episodes drift from their pictures by up to 0.11 frames")
        done = subprocess.run([os.environ["WEIR_PROGRAM"], "run", root, "--num-epochs", "1"], text=True,
                              capture_output=True, check=True)
        self.assertEqual([line for line in done.stderr.splitlines() if "drift" in line], [f"note: {seen[0].message}"])

    def test_refusals(self):
        root = self.dataset("v3.0")
        for options, error in (({"delta_timestamps": {"action": [0.01]}}, "is not a multiple of 1/30 s"),
                               ({"delta_timestamps": {"nothing": [0.0]}}, "names no camera or column"),
                               ({"delta_timestamps": {"action": []}}, "'action' has no offsets"),
                               ({"delta_timestamps": {"language_instruction": [0.0]}}, "names no camera or column"),
                               ({"episodes": [7]}, "has no episode 7; its episodes are 0 to 2"),
                               ({"episodes": []}, "episodes must be a list of episode numbers"),
                               ({"episodes": "0-2"}, "must be like 0,3,10:20")):
            with self.assertRaisesRegex((ValueError, weir.Error), error, msg=str(options)):
                weir.Loader(root, keys="lerobot", tensors="array", **options)


if __name__ == "__main__":
    unittest.main()
