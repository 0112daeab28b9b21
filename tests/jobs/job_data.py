"""The data and datasets of tests/jobs: real JPEG, HDF5, video and raw files, written on first use, and datasets in the
style of user code, each with one known slow part. Worker processes import this file."""
import os
import shutil
import sys
import tempfile
import threading
import time

import numpy as np
import torch

try:
    import cv2
except ImportError:
    cv2 = None

IMAGES, FILES, FRAMES = 64, 8, 48
CROP = 224


def picture(seed, height=480, width=640):
    """A smooth picture with noise; about 100 KB as JPEG of quality 90."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x / random.uniform(20, 90) + y / random.uniform(20, 90)) for _ in range(3)]
    image = 128 + 80 * np.stack(waves, -1) + random.normal(0, 12, (height, width, 3))
    return np.clip(image, 0, 255).astype(np.uint8)


def write_jpegs(folder):
    from PIL import Image
    for i in range(IMAGES):
        Image.fromarray(picture(i)).save(os.path.join(folder, f"{i:03}.jpg"), quality=90)


def write_png(folder):
    from PIL import Image
    for i in range(16):
        Image.fromarray(picture(i)).save(os.path.join(folder, f"{i:03}.png"))


def write_hdf5(folder, slow_file=None):
    """Episodes with gzip chunks of one frame; the slow file has one chunk for all frames, so each read inflates it whole."""
    import h5py
    for i in range(FILES):
        frames = np.stack([picture(i * FRAMES + t, 96, 128) for t in range(FRAMES)])
        with h5py.File(os.path.join(folder, f"episode_{i}.hdf5"), "w") as file:
            chunk = frames.shape if i == slow_file else (1, *frames.shape[1:])
            file.create_dataset("observations/images/top", data=frames, chunks=chunk, compression="gzip")
            file["action"] = np.random.default_rng(i).normal(size=(FRAMES, 14)).astype(np.float32)


def write_many_keys(folder):
    """One file with many small groups: opening it and finding a key costs more than reading."""
    import h5py
    with h5py.File(os.path.join(folder, "all.hdf5"), "w") as file:
        for i in range(FILES * FRAMES):
            group = file.create_group(f"frame_{i}")
            group["image"] = picture(i, 48, 64)
            group["action"] = np.zeros(14, np.float32)
            for k in range(8):
                group.attrs[f"key{k}"] = k


def write_raw(folder):
    """Large raw frames, for reads that are not in the page cache."""
    for i in range(FILES):
        np.random.default_rng(i).integers(0, 256, (FRAMES, 480, 640, 3), np.uint8).tofile(os.path.join(folder, f"{i}.raw"))


def write_video(folder):
    for i in range(2):
        out = cv2.VideoWriter(os.path.join(folder, f"{i}.mp4"), cv2.VideoWriter_fourcc(*"mp4v"), 30, (640, 480))
        frame = picture(i)
        for t in range(240):
            out.write(np.roll(frame, 3 * t, axis=1))
        out.release()


WRITERS = {"jpeg": write_jpegs, "png": write_png, "hdf5": write_hdf5, "hdf5_slow": lambda f: write_hdf5(f, slow_file=5),
           "keys": write_many_keys, "raw": write_raw, "video": write_video}


def data_folder(name, root=None):
    """The folder of the named data, written if it does not exist. Several processes may call this at once."""
    root = root or os.environ.get("WEIR_JOBS_DATA") or os.path.join(tempfile.gettempdir(), "weir-jobs-data")
    path = os.path.join(root, name)
    if not os.path.isdir(path):
        os.makedirs(root, exist_ok=True)
        part = tempfile.mkdtemp(prefix=name, dir=root)
        WRITERS[name](part)
        try:
            os.rename(part, path)
        except OSError:  # another process was faster
            shutil.rmtree(part)
    return path


def worker_number():
    info = torch.utils.data.get_worker_info()
    return info.id if info else 0


def decode(data):
    if cv2:
        return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    import io
    from PIL import Image
    return np.asarray(Image.open(io.BytesIO(data)))


def spared(option, i):
    """Whether the slow part of item i is left out: always (True), or in every other item ("half")."""
    return bool(option) and (option != "half" or i % 2 == 0)


class Base(torch.utils.data.Dataset):
    """items: length. Options of a job become attributes."""
    data, items = None, 3200

    def __init__(self, **options):
        for name, value in options.items():
            setattr(self, name, value)
        if self.data:
            self.folder = data_folder(self.data)
            self.paths = sorted(os.path.join(self.folder, name) for name in os.listdir(self.folder))

    def __len__(self):
        return self.items


class Jpegs(Base):
    """A JPEG file decoded by OpenCV (Pillow without it), and a crop."""
    data, decoded = "jpeg", False

    def __getitem__(self, i):
        if spared(self.decoded, i):  # decoded in advance
            return torch.from_numpy(picture_cache(i % IMAGES))
        with open(self.paths[i % IMAGES], "rb") as file:
            image = decode(file.read())
        return torch.from_numpy(image[:CROP, :CROP].copy())


CACHE = {}


def picture_cache(i, height=CROP, width=CROP):
    if (i, height) not in CACHE:
        CACHE[i, height] = picture(i, height, width)
    return CACHE[i, height]


class LazyPil(Base):
    """PIL's Image.open returns at once; pixels are decoded where the image is first used."""
    data, decoded = "jpeg", False

    def __getitem__(self, i):
        from PIL import Image
        if spared(self.decoded, i):
            return torch.from_numpy(picture_cache(i % IMAGES))
        image = Image.open(self.paths[i % IMAGES])
        return torch.from_numpy(np.asarray(image)[:CROP, :CROP].copy())


class Small(Base):
    """Frames that are in memory: fast. Base of the jobs whose slow part is elsewhere."""
    side, dtype = 64, "uint8"

    def __getitem__(self, i):
        frame = picture_cache(i % 32, self.side, self.side)
        return torch.from_numpy(frame.astype(self.dtype) if self.dtype != "uint8" else frame)


class Hdf5(Base):
    """h5py with a file per worker, opened on first use. With a lock, one process at a time reads: some code bases do
    so because the HDF5 library of a process allows one thread."""
    data, lock, per_item = "hdf5", None, False

    def __getitem__(self, i):
        import h5py
        number, frame = divmod(i % (FILES * FRAMES), FRAMES)
        if not hasattr(self, "open"):
            self.open = {}
        if self.lock:
            with self.lock:
                image = self.read(h5py, number, frame)
        else:
            image = self.read(h5py, number, frame)
        return torch.from_numpy(image)

    def read(self, h5py, number, frame):
        path = self.paths[number]
        if path not in self.open:
            self.open[path] = h5py.File(path)
        return self.open[path]["observations/images/top"][frame]


class ManyKeys(Base):
    """h5py.File in each __getitem__."""
    data, keep = "keys", False

    def __getitem__(self, i):
        import h5py
        if not spared(self.keep, i) or not hasattr(self, "file"):
            file = h5py.File(self.paths[0])
        else:
            file = self.file
        image = torch.from_numpy(file[f"frame_{i % (FILES * FRAMES)}"]["image"][:])
        if spared(self.keep, i):
            self.file = file
        else:
            file.close()
        return image


class OwnTransform(Small):
    """A transform in Python, written row by row."""
    rounds, side, cheap = 8, CROP, False

    def __getitem__(self, i):
        image = picture_cache(i % 32, self.side, self.side)
        out = image.astype(np.float32)
        for k in range(0 if spared(self.cheap, i) else self.rounds):
            for y in range(self.side):
                out[y] = np.clip(image[y].astype(np.float32) * (1 + 0.01 * k) + k, 0, 255)
        return torch.from_numpy(out[:64, :64].copy())


class Torchvision(Base):
    """torchvision's ColorJitter, GaussianBlur and Resize on PIL images that are in memory."""
    cheap = False

    def __getitem__(self, i):
        import torchvision.transforms as T
        from PIL import Image
        if not hasattr(self, "transforms"):
            rest = [T.Resize(64), T.ToTensor()]
            self.transforms = T.Compose([T.ColorJitter(0.2, 0.2, 0.2, 0.1), *rest]), T.Compose(rest)
        return self.transforms[spared(self.cheap, i)](Image.fromarray(picture_cache(i % 32)))


class SlowWorker(Jpegs):
    """Worker 1 needs extra time for each item, as on a core with a heat problem or with one slow disk."""
    delay_ms, busy = 25, False

    def __getitem__(self, i):
        if worker_number() == 1 and self.delay_ms:
            until = time.perf_counter() + self.delay_ms / 1000
            if not self.busy:
                time.sleep(self.delay_ms / 1000)
            while time.perf_counter() < until:
                pass
        return super().__getitem__(i)


class NicedWorker(Jpegs):
    """Worker 1 runs at nice 5 on the last core, where a process of the job computes."""
    niced = True

    def __getitem__(self, i):
        if self.niced and worker_number() == 1:
            self.niced = False
            os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
            os.nice(5)
        return super().__getitem__(i)


class SleepingFile(Jpegs):
    """One file's reads sleep: a sleep stands for a slow share, and looks like one only to code that times calls."""
    slow, delay_ms = 7, 250

    def __getitem__(self, i):
        if i % IMAGES == self.slow and self.delay_ms:
            with open(self.paths[self.slow], "rb"):
                time.sleep(self.delay_ms / 1000)
        return super().__getitem__(i)


class ColdReads(Base):
    """Raw frames read past the page cache: O_DIRECT, which waits for the storage each time."""
    data, reads, cached = "raw", 24, False
    ITEM = 640 * 480 * 3

    def __getitem__(self, i):
        import mmap
        path = self.paths[i % FILES]
        if not hasattr(self, "buffer"):
            self.buffer = mmap.mmap(-1, 1 << 20)
            self.files = {}
        if path not in self.files:
            self.files[path] = os.open(path, os.O_RDONLY | (0 if self.cached else os.O_DIRECT))
        view = memoryview(self.buffer)[:self.ITEM & ~4095]
        for k in range(self.reads):
            offset = (((i * 7919 + k * 104729) % FRAMES) * self.ITEM) & ~4095
            os.preadv(self.files[path], [view], min(offset, FRAMES * self.ITEM - len(view)) & ~4095)
        return torch.frombuffer(view[:64 * 64 * 3], dtype=torch.uint8).reshape(64, 64, 3).clone()


class Mapped(Base):
    """np.memmap over files that do not fit into the memory of the job's control group."""
    data, reads = "raw", 2

    def __init__(self, **options):
        super().__init__(**options)
        for path in self.paths:  # pages count for the group that reads them first
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def __getitem__(self, i):
        total = np.zeros((64, 64, 3), np.uint8)
        for k in range(self.reads):
            frames = np.memmap(self.paths[(i + k) % FILES], np.uint8, "r").reshape(FRAMES, 480, 640, 3)
            total = np.maximum(total, frames[(i * 31 + k) % FRAMES, ::4, ::4][:64, :64])
        return torch.from_numpy(total)


class Video(Base):
    """cv2.VideoCapture: seeks to a random frame, so it decodes from the key frame on."""
    data, seek = "video", True

    def __getitem__(self, i):
        if not hasattr(self, "open"):
            self.open, self.frame = cv2.VideoCapture(self.paths[0]), 0
        if self.seek or self.frame % 230 == 0:
            self.open.set(cv2.CAP_PROP_POS_FRAMES, (i * 37) % 230 if self.seek else 0)
        self.frame += 1
        return torch.from_numpy(self.open.read()[1][:64, :64].copy())


class AvVideo(Base):
    """PyAV: seeks to the key frame before a random frame and decodes up to it."""
    data, seek = "video", True

    def __getitem__(self, i):
        import av
        with av.open(self.paths[0]) as container:
            stream = container.streams.video[0]
            if self.seek:
                container.seek(int((i * 37) % 230 / 30 / stream.time_base), stream=stream)
            for n, frame in enumerate(container.decode(stream)):
                if not self.seek or n == 3:
                    break
            return torch.from_numpy(frame.to_ndarray(format="rgb24")[:64, :64].copy())


class SmallCv(Base):
    """Many small OpenCV calls, as augmentations are; OpenCV starts each of them on all of its threads."""
    rounds = 60

    def __getitem__(self, i):
        image = picture_cache(i % 8, 64, 64)
        matrix = np.float32([[1, 0.1, 3], [0.1, 1, 3]])
        for _ in range(self.rounds):
            image = cv2.warpAffine(cv2.cvtColor(image, cv2.COLOR_BGR2HSV), matrix, (64, 64))
        return torch.from_numpy(image)


class TorchOps(Base):
    """torch's element-wise operations in a worker, each on as many threads as worker_init_fn sets."""
    rounds = 30

    def __getitem__(self, i):
        image = torch.from_numpy(picture_cache(i % 8)).float()
        for _ in range(self.rounds):
            image = (image * 0.99).clamp_(0, 255)
        return image[:64, :64].byte()


class Uneven(Jpegs):
    """Every 64th item decodes 50 pictures, the others none."""
    even, every, dear = False, 64, 50

    def __getitem__(self, i):
        if self.even or i % self.every:
            return torch.from_numpy(picture_cache(i % 8))
        for k in range(self.dear):
            image = super().__getitem__(i + k)
        return image


class Network(Small):
    """Each item is a request to a server that answers after a delay: latency, without CPU time."""
    address = None

    def __getitem__(self, i):
        import socket
        if not hasattr(self, "server"):
            self.server = socket.create_connection(self.address)
        self.server.sendall(b"%8d" % i)
        left = self.side * self.side * 3
        while left:
            left -= len(self.server.recv(left))
        return super().__getitem__(i)


class Shards(torch.utils.data.IterableDataset):
    """Shards are divided by file: worker 0 gets one with ten times the samples."""

    def __init__(self, even=False, items=800, **_):
        self.even, self.items = even, items
        self.jpegs = Jpegs(items=items)

    def __len__(self):
        return self.items

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        number, count = (info.id, info.num_workers) if info else (0, 1)
        if self.even:
            mine = range(number, self.items, count)
        else:
            large = self.items * 10 // (9 + count)
            rest = (self.items - large) // max(count - 1, 1)
            mine = range(large) if number == 0 else range(large + (number - 1) * rest, large + number * rest)
        for i in mine:
            yield self.jpegs[i]


class Pieces(Base):
    """Items of many small Python objects, which are dear to pickle."""
    pieces = 1500

    def __getitem__(self, i):
        image = torch.from_numpy(picture_cache(i % 32, 64, 64))
        return image, {f"box_{k}": {"x": i + k, "y": str(k), "label": ("a", k)} for k in range(self.pieces)}


def slow_collate(batch):
    """Copies a batch several times, in float64 and with padding."""
    frames = [np.pad(item.numpy().astype(np.float64), ((0, 32), (0, 32), (0, 0))) for item in batch]
    for _ in range(6):
        frames = list(np.stack([frame * 1.0 for frame in frames]))
    return torch.from_numpy(np.stack(frames)[:, :64, :64].astype(np.uint8))


def half_collate(batch):
    """Half the work of slow_collate."""
    return torch.cat(2 * [slow_collate(batch[:len(batch) // 2])])


def list_collate(batch):
    """Keeps the parts of items as lists."""
    return torch.stack([item[0] for item in batch]), [item[1] for item in batch]


def init_threads(number, cv2_threads=None, torch_threads=None):
    if cv2_threads is not None and cv2:
        cv2.setNumThreads(cv2_threads)
    if torch_threads is not None:
        torch.set_num_threads(torch_threads)


def init_dear(number):
    """What imports of a large package and a large table cost in each new worker."""
    until = time.perf_counter() + 0.7
    while time.perf_counter() < until:
        sum(range(1000))


def serve(delay_ms, size):
    """Starts a server for Network in this process; returns its address. Sleeping threads, almost no CPU time."""
    import socket
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(client):
        with client:
            while client.recv(8):
                time.sleep(delay_ms / 1000)
                client.sendall(bytes(size))

    def accept():
        while True:
            threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()


if __name__ == "__main__":
    for name in sys.argv[1:] or WRITERS:
        print(data_folder(name))
