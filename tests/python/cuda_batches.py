"""Batches on the fake GPU: values, streams, memory ownership."""
import ctypes
import gc
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
import types
import unittest
import warnings
from unittest import mock

import common
import h5py
import numpy as np

MODULE = os.environ["WEIR_FAKE_CUDA_MODULE"]
os.environ["WEIR_CUDA_MODULE"] = MODULE
import weir  # noqa: E402
from weir import _cuda  # noqa: E402

fake = ctypes.CDLL(MODULE)
fake.weir_fake_stream_new.restype = ctypes.c_void_p
fake.weir_fake_stream_number.argtypes = [ctypes.c_void_p]
fake.weir_fake_busy.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
fake.weir_fake_copy_out.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64]
fake.weir_fake_calls.argtypes = [ctypes.c_int, ctypes.c_uint32]
fake.weir_fake_used_bytes.restype = ctypes.c_uint64
RECORD, STREAM_WAIT = 0, 1


class Host:
    """A host copy of an array, for numpy without from_dlpack(device=)."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__(stream=stream, dl_device=(1, 0))

    def __dlpack_device__(self):
        return 1, 0


def host(array):
    return np.from_dlpack(Host(array))


def bits(batch):
    return {key: (value.shape, host(value).tobytes()) for key, value in batch.items()}


def host_bits(batch):
    return {key: (value.shape, np.asarray(value).tobytes()) for key, value in batch.items()}


class Tensor:
    """A library's tensor: owns its capsule."""

    def __init__(self, capsule):
        self.capsule = capsule

    def view(self, dtype):
        return self


class Torch(types.SimpleNamespace):
    """The parts of torch with CUDA that the loader uses; tests set the current stream."""

    def __init__(self):
        super().__init__(bool=bool, handle=0, initialised=True)
        self.utils = types.SimpleNamespace(dlpack=types.SimpleNamespace(from_dlpack=Tensor))
        self.cuda = types.SimpleNamespace(
            is_available=lambda: True, is_initialized=lambda: self.initialised, current_device=lambda: 0,
            current_stream=lambda device: types.SimpleNamespace(cuda_stream=self.handle))

    @staticmethod
    def device(name):
        return name


class Cuda(common.Data):
    def loader(self, **options):
        return weir.Loader(self.data, **{"batch_size": 4, "num_workers": 2, "prefetch_factor": 2, "device": "cuda",
                                         "decoder": "turbo", "tensors": "array", **options})

    def expected(self, **options):
        with self.loader(device="cpu", **options) as loader:
            return [host_bits(batch) for batch in loader]

    def torch_loader(self, torch, **options):
        modules = {"torch": torch, "torch.utils": torch.utils, "torch.utils.dlpack": torch.utils.dlpack}
        with mock.patch.dict(sys.modules, modules):
            return self.loader(tensors="torch", **options)


class Values(Cuda):
    def test_as_on_the_host(self):
        for options in ({}, {"dtype": "float32"}, {"image_layout": "nhwc"}, {"keys": "lerobot"}, {"num_workers": 0},
                        {"image_size": (40, 30)}, {"image_size": (30, 20), "resize": "exact"}, {"obs_history": 2},
                        {"color": "bgr"}):
            with self.subTest(**options), self.loader(**options) as loader:
                self.assertEqual([bits(batch) for batch in loader], self.expected(**options))

    def test_decoders(self):
        for decoder in ("auto", "nvjpeg", "hybrid"):
            with self.subTest(decoder), self.loader(decoder=decoder, deterministic=decoder == "hybrid") as loader:
                self.assertEqual([bits(batch) for batch in loader], self.expected())

    def test_marked_frames(self):
        """Frames that the CPU must turn, or whose colours a comment states, are as on the host, among others or alone."""
        reference = common.Reference(self.data)
        images = [reference.image((0, t), "top") for t in range(13)]
        folder, turned = os.path.join(self.work, "robotwin"), self.synth("turned", *self.SYNTH)
        os.mkdir(folder)
        for e, orientation in enumerate((1, 6, 1)):
            common.write_robotwin(f"{folder}/episode{e}.hdf5", [np.ascontiguousarray(i[:, :48]) for i in images], orientation)
        for name in os.listdir(turned):
            with h5py.File(os.path.join(turned, name), "r+") as f:
                for camera in ("top", "wrist"):
                    frames = [np.frombuffer(common.marked_jpeg(i, 6, False), "u1") for i in reference.read(f.filename)["images"][camera]]
                    rows = np.zeros((len(frames), max(map(len, frames))), "u1")
                    for row, frame in zip(rows, frames):
                        row[:len(frame)] = frame
                    del f[f"observations/images/{camera}"]
                    f[f"observations/images/{camera}"] = rows
        for self.data in (folder, turned):
            expected = self.expected(train_split=1)
            for decoder in ("nvjpeg", "hybrid"):
                with self.subTest(self.data, decoder=decoder), self.loader(decoder=decoder, train_split=1) as loader:
                    self.assertEqual([bits(batch) for batch in loader], expected)
                    table = loader.table()
                    self.assertNotIn("pixels differ", table)  # such frames would also be decoded by the CPU
                    if decoder == "nvjpeg":
                        self.assertRegex(table, r"\(\d+ marked orientation or colours\)")
                        self.assertEqual(re.search(r"decoded: (\d+) frames", table)[1] != "0", self.data == folder, table)

    def test_halves(self):
        with self.loader(dtype="float16", device="cuda:0") as loader, \
                self.loader(device="cpu", dtype="float32") as plain:
            for batch, other in zip(loader, plain):
                np.testing.assert_array_equal(host(batch["image"]), np.asarray(other["image"]).astype(np.float16))
        with self.loader(dtype="bfloat16") as loader:
            image = next(iter(loader))["image"]
            self.assertEqual((image.dtype, image.__cuda_array_interface__["typestr"]), ("bfloat16", "<V2"))

    def test_epochs(self):
        expected = self.expected()
        with self.loader() as loader:
            iterator = iter(loader)
            next(iterator)
            state = loader.state_dict()
            first = [bits(batch) for batch in iterator]
            self.assertEqual(first, expected[1:])
            loader.load_state_dict(state)
            self.assertEqual([bits(batch) for batch in loader], expected[1:])
            loader.set_epoch(0)
            self.assertEqual([bits(batch) for batch in loader], expected)

    def test_refused(self):
        for options, error, words in [({"device": "cuda:7"}, weir.Error, '^device="cuda:7": .*no GPU 7'),
                                      ({"device": "tpu"}, ValueError, "unknown device"),
                                      ({"device": "cpu", "dtype": "float16"}, ValueError, "dtype"),
                                      ({"device": "cpu", "decoder": "nvjpeg"}, ValueError,
                                       '^decoder="nvjpeg" .*; add device="cuda" or use decoder="turbo"$'),
                                      ({"decoder": "nvjpeg", "on_warning": "fail"}, ValueError,
                                       '^on_warning="fail": .* decoder="nvjpeg"; use decoder="turbo"$'),
                                      ({"decoder": "hybrid", "on_warning": "fail"}, ValueError, '^on_warning="fail": ')]:
            with self.subTest(**options), self.assertRaisesRegex(error, words):
                self.loader(**options)
        torch = Torch()
        torch.cuda.is_available = lambda: False
        with self.assertRaisesRegex(weir.Error, "has no CUDA"):
            self.torch_loader(torch)

    def test_no_module(self):
        code = f"import weir\nweir.Loader({self.data!r}, device='cuda')\n"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              env={**os.environ, "WEIR_CUDA_MODULE": "/nowhere.so"})
        self.assertIn('weir.Error: device="cuda:0": WEIR_CUDA_MODULE=/nowhere.so cannot be loaded', done.stderr)


class Exchange(Cuda):
    def setUp(self):
        self.opened = self.loader()
        self.addCleanup(self.opened.close)
        self.batch = next(iter(self.opened))
        self.image = self.batch["image"]

    def test_device(self):
        self.assertEqual(self.image.__dlpack_device__(), (2, 0))
        self.assertEqual(self.image.device, "cuda:0")
        self.assertEqual(repr(self.image), "weir.Array(shape=(4, 2, 3, 48, 64), dtype='uint8', device='cuda:0')")

    def test_fields(self):
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
        capsule = self.batch["is_pad"].__dlpack__(max_version=(1, 0))
        at = pointer(capsule, b"dltensor_versioned")
        self.assertEqual(tuple((ctypes.c_int32 * 3).from_address(at + 40)), (2, 0, 2))
        self.assertEqual(tuple((ctypes.c_uint8 * 2).from_address(at + 52)), (6, 8))
        capsule = self.image.__dlpack__()
        at = pointer(capsule, b"dltensor")
        self.assertEqual(ctypes.c_uint64.from_address(at).value, self.image.__cuda_array_interface__["data"][0])

    def test_streams(self):
        """The consumer's stream waits for the batch; -1 means no wait, 0 is an error."""
        stream = fake.weir_fake_stream_new()
        numbers = {key: fake.weir_fake_stream_number(key) for key in (0, 2, stream)}
        fake.weir_fake_watch(True)
        for given, waits in [(None, 0), (1, 0), (2, 2), (stream, stream)]:
            before = fake.weir_fake_calls(STREAM_WAIT, numbers[waits])
            self.image.__dlpack__(stream=given)
            self.assertEqual(fake.weir_fake_calls(STREAM_WAIT, numbers[waits]), before + 1)
        before = [fake.weir_fake_calls(STREAM_WAIT, number) for number in numbers.values()]
        self.image.__dlpack__(stream=-1)
        self.assertEqual([fake.weir_fake_calls(STREAM_WAIT, number) for number in numbers.values()], before)
        fake.weir_fake_watch(False)
        for wrong, error in [(0, ValueError), (-2, ValueError), ("1", TypeError), (1.0, TypeError)]:
            with self.assertRaises(error):
                self.image.__dlpack__(stream=wrong)

    def test_released_behind_its_streams(self):
        """Dropping the last array records an event on each stream that the batch was exported on."""
        streams = [fake.weir_fake_stream_new() for _ in range(3)]
        numbers = [fake.weir_fake_stream_number(stream) for stream in streams]
        capsules = [self.image.__dlpack__(stream=stream) for stream in streams for _ in range(2)]
        fake.weir_fake_watch(True)
        capsules.clear()
        self.assertEqual([fake.weir_fake_calls(RECORD, number) for number in numbers], [0, 0, 0])
        del self.batch, self.image
        self.assertEqual([fake.weir_fake_calls(RECORD, number) for number in numbers], [1, 1, 1])
        fake.weir_fake_watch(False)

    def test_copies(self):
        expected = host(self.image)
        for options in ({}, {"stream": -1}, {"stream": 1}, {"stream": fake.weir_fake_stream_new()}):
            used = fake.weir_fake_used_bytes()
            capsule = self.image.__dlpack__(copy=True, max_version=(1, 0), **options)
            self.assertEqual(fake.weir_fake_used_bytes(), used + self.image.nbytes)
            del capsule
            self.assertEqual(fake.weir_fake_used_bytes(), used)
        with self.loader(keys="lerobot") as loader, self.loader(keys="lerobot", device="cpu") as plain:
            for key, value in next(iter(plain)).items():
                np.testing.assert_array_equal(host(next(iter(loader))[key]), np.asarray(value))
                loader.set_epoch(0)
        np.testing.assert_array_equal(host(self.image), expected)

    def test_refused(self):
        for error, options in [(BufferError, {"dl_device": (1, 0), "copy": False}), (BufferError, {"dl_device": (2, 1)}),
                               (ValueError, {"dl_device": (1, 0), "stream": 1}), (BufferError, {"dl_device": (3, 0)})]:
            with self.subTest(**options), self.assertRaises(error):
                self.image.__dlpack__(**options)

    def test_not_on_the_host(self):
        self.assertFalse(hasattr(self.image, "__array_interface__"))
        with self.assertRaises(BufferError):
            memoryview(self.image)
        for array in (self.image, self.batch["qpos"][0]):
            with self.assertRaisesRegex(TypeError, "on GPU 0"):
                np.asarray(array)
        with self.assertRaisesRegex(TypeError, "on GPU 0"):
            self.batch["qpos"][0][0]
        with self.loader(device="cpu") as loader:
            array = next(iter(loader))["image"]
            self.assertFalse(hasattr(array, "__cuda_array_interface__") or hasattr(array, "__array__"))
            self.assertEqual(array.device, "cpu")

    def test_cuda_interface(self):
        interface = self.image.__cuda_array_interface__
        self.assertEqual((interface["shape"], interface["typestr"], interface["strides"], interface["version"],
                          interface["stream"]), (self.image.shape, "|u1", None, 3, 1))
        copy = ctypes.create_string_buffer(self.image.nbytes)
        self.assertEqual(fake.weir_fake_copy_out(1, copy, interface["data"][0], self.image.nbytes), 0)
        self.assertEqual(copy.raw, host(self.image).tobytes())


class Lifetimes(Cuda):
    def test_all_kept(self):
        expected = self.expected()
        with self.loader() as loader:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                kept = list(loader)
                again = [bits(batch) for batch in loader]
            self.assertEqual(caught, [], "the batches are small")
            self.assertEqual([bits(batch) for batch in kept], expected)
        self.assertEqual(len(again), len(expected))
        del loader
        gc.collect()
        self.assertEqual([bits(batch) for batch in kept], expected)

    def test_two_kept(self):
        expected = self.expected()
        with self.loader() as loader, warnings.catch_warnings():
            warnings.simplefilter("error")
            last, seen = None, []
            for batch in loader:
                last, batch = batch, None
                seen.append(bits(last))
        self.assertEqual(seen, expected)
        self.assertEqual(bits(last), expected[-1])

    def test_all_memory_comes_back(self):
        before = fake.weir_fake_used_bytes()
        with warnings.catch_warnings(), self.loader() as loader:
            warnings.simplefilter("ignore")
            kept = list(loader)
        self.assertGreater(fake.weir_fake_used_bytes(), before)
        del kept[2:]
        gc.collect()
        self.assertGreater(fake.weir_fake_used_bytes(), before)
        kept.clear()
        self.assertEqual(fake.weir_fake_used_bytes(), before)

    def test_late_work(self):
        """A consumer that never waits: its stream reads each batch late, after the batch was dropped."""
        expected = self.expected()
        stream = fake.weir_fake_stream_new()
        with self.loader() as loader:
            for n, batch in enumerate(loader):
                image = batch["image"]
                capsule = image.__dlpack__(stream=stream)
                address, nbytes = image.__cuda_array_interface__["data"][0], image.nbytes
                fake.weir_fake_busy(stream, 20_000_000)
                copy = ctypes.create_string_buffer(nbytes)
                reader = threading.Thread(target=fake.weir_fake_copy_out, args=(stream, copy, address, nbytes))
                reader.start()  # queued after the work, before the batch is dropped
                time.sleep(0.002)
                del capsule, image, batch
                reader.join()
                self.assertEqual(copy.raw, expected[n]["image"][1])

    def test_exception_in_loop(self):
        with self.loader() as loader:
            for _ in range(5):
                with self.assertRaises(KeyError):
                    for batch in loader:
                        batch["no such key"]

    def test_other_threads(self):
        expected = self.expected()
        with self.loader() as loader:
            for n, batch in enumerate(loader):
                self.assertEqual(bits(batch), expected[n])
                values = list(batch.values())
                batch = None
                threads = [threading.Thread(target=values.pop) for _ in range(len(values))]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()

    def test_no_leak(self):
        """1,000 batches, some of them held for a while."""
        kept, n, most = [], 0, 0
        before = fake.weir_fake_used_bytes()
        with self.loader() as loader, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            while n < 1000:
                for batch in loader:
                    n += 1
                    kept.append(batch)
                    while len(kept) > n % 6:
                        kept.pop(n * 7 % len(kept))
                    if n == 250:
                        early = fake.weir_fake_used_bytes()
                    most = max(most, fake.weir_fake_used_bytes()) if n > 250 else 0
            self.assertLessEqual(most, 2 * early)
        kept.clear()
        del batch
        self.assertEqual(fake.weir_fake_used_bytes(), before)

    def test_fork(self):
        expected = self.expected()
        loader = self.loader()
        iterator = iter(loader)
        batch = next(iterator)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with self.assertRaisesRegex(weir.Error, "fork"):
                    next(iterator)
                with self.assertRaisesRegex(weir.Error, "fork"):
                    batch["image"].__dlpack__()
                with self.assertRaisesRegex(weir.Error, "fork"):
                    self.loader()
                with self.assertRaisesRegex(weir.Error, "fork"), weir.stage("test in a child", cuda=True):
                    pass
                batch = iterator = loader = None
                gc.collect()
                with self.loader(device="cpu") as mine:
                    self.assertEqual([host_bits(batch) for batch in mine], expected)
                status = 0
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual([bits(batch)] + [bits(batch) for batch in iterator], expected)
        loader.close()

    def test_spawned(self):
        expected = self.expected()
        for method in ("spawn", "forkserver"):
            context = multiprocessing.get_context(method)
            ours, theirs = context.Pipe()
            process = context.Process(target=first_in_child, args=(self.data, theirs))
            with self.loader() as loader:
                next(iter(loader))
                process.start()
                theirs.close()
                self.assertEqual(ours.recv(), expected[0])
                process.join()
            self.assertEqual(process.exitcode, 0)

    def test_end_of_the_interpreter(self):
        code = ("import sys, weir\n"
                f"loader = weir.Loader({self.data!r}, batch_size=4, device='cuda', decoder='turbo', tensors='array')\n"
                "iterator = iter(loader); batch = next(iterator); kept = [next(iterator) for _ in range(4)]\n"
                "capsule = batch['image'].__dlpack__(stream=2)\n"
                "with weir.stage('a', cuda=True): pass\n"
                "sys.keep = loader, iterator, batch\n")
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class WithTorch(Cuda):
    def test_current_stream_waits(self):
        torch = Torch()
        torch.handle = fake.weir_fake_stream_new()
        number = fake.weir_fake_stream_number(torch.handle)
        with self.torch_loader(torch) as loader:
            fake.weir_fake_watch(True)
            for n, batch in enumerate(loader):
                self.assertIsInstance(batch["image"], Tensor)
                self.assertEqual(fake.weir_fake_calls(STREAM_WAIT, number), n + 1)
            fake.weir_fake_watch(False)
            self.assertRegex(loader.table(), r"20_train_forward_pass +gpu-work +\d")
            self.assertEqual(n + 1, len(loader))

    def test_failing_library(self):
        """No buffer leaks when a tensor cannot be created."""
        torch = Torch()
        torch.handle = fake.weir_fake_stream_new()

        def fail(capsule):
            raise OSError("no tensor")
        torch.utils.dlpack.from_dlpack = fail
        with self.torch_loader(torch) as loader:
            for _ in range(3):
                for _ in range(4):
                    with self.assertRaises(OSError):
                        next(iter(loader))

    def test_says_what_is_slow(self):
        torch = Torch()
        _cuda._said.clear()
        with mock.patch.dict(os.environ), warnings.catch_warnings(record=True) as caught:
            os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
            warnings.simplefilter("always")
            for _ in range(2):
                with self.torch_loader(torch) as loader:
                    next(iter(loader))
        said = [str(w.message) for w in caught]
        self.assertEqual(len(said), 2, said)
        self.assertIn("os.environ['CUDA_DEVICE_MAX_CONNECTIONS'] = '32'", said[0])
        self.assertIn("with torch.cuda.stream(torch.cuda.Stream()):", said[1])

    def test_stages(self):
        with weir.stage("test cuda", cuda=True):
            fake.weir_fake_busy(0, 300_000_000)
        with self.assertWarnsRegex(RuntimeWarning, "not timed on the GPU"):
            for _ in range(2000):  # more than the pool of events, while the GPU is busy
                with weir.stage("test cuda many", cuda=True), weir.stage("test cuda inner", cuda=True):
                    pass
        weir.stage("test cuda").__exit__()
        with weir.stage("test cuda"):
            pass
        deadline = time.monotonic() + 60
        while sum(gpu_row(f"test cuda {name}")[0] for name in ("many", "inner")) < 1023 and time.monotonic() < deadline:
            time.sleep(0.01)
        calls, seconds = gpu_row("test cuda")
        self.assertEqual(calls, 1)
        self.assertGreaterEqual(seconds, 0.300)
        threading.Thread(target=weir.stage("test cuda left", cuda=True).__enter__).start()
        while gpu_row("test cuda left")[0] < 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(gpu_row("test cuda left")[0], 1, "a thread's end must end its open stage")
        with weir.stage("test cuda again", cuda=True):
            pass
        while gpu_row("test cuda again")[0] < 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertIn("GPU test cuda:", weir.table("zh", whole=True))
        with self.loader() as loader:
            for _ in loader:
                with weir.stage("20_train_forward_pass", cuda=True):
                    fake.weir_fake_busy(0, 1_000_000)
            self.assertEqual(len(re.findall("20_train_forward_pass +gpu-work", loader.table())), 1)
        for arguments, keywords in [((), {}), (("a", True), {}), (("a",), {"gpu": True})]:
            with self.assertRaises(TypeError):
                weir.stage(*arguments, **keywords)


class Interrupted(Cuda):
    SYNTH = ["--format", "act-jpeg", "--episodes", "1", "--steps", "16", "--cameras", "top", "--size", "1600x1200"]

    def test_wait(self):
        def on_alarm(number, frame):
            raise InterruptedError
        before = signal.signal(signal.SIGALRM, on_alarm)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        with self.loader(batch_size=16, num_workers=1, shuffle=False) as loader:
            expected = bits(next(iter(loader)))
            for _ in range(100):
                loader.set_epoch(0)
                iterator = iter(loader)
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0.02)
                    next(iterator)
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except InterruptedError:
                    if loader.state_dict()["position"] == 0:
                        break
            else:
                self.fail("no wait was interrupted: signals were only handled after it")
            self.assertEqual(bits(next(iterator)), expected)


def gpu_row(name):
    for line in weir.table(whole=True).splitlines():
        words = line[len(name):].split()
        if line.startswith(name + " ") and words[0] == "gpu-work":
            return int(words[1]), float(words[2][:-1])
    return 0, 0.0


def first_in_child(data, connection):
    with weir.Loader(data, batch_size=4, tensors="array", device="cuda", decoder="turbo") as loader:
        connection.send(bits(next(iter(loader))))


if __name__ == "__main__":
    unittest.main()
