"""The usual Python readers of other formats, on copies by `weir convert`: python-lmdb and tfrecord with cv2.imdecode,
and zarr 2, which stores pixels. "mode" threads: the thread pool of thread_pool.py, with these readers instead of
os.pread; processes: torch's DataLoader. "decoder" none: frames are read but not decoded. State and actions come from
the source HDF5 files and are in memory."""
import glob
import os
import random
import threading

import numpy as np
import peer
from thread_pool import Pool


class Lmdb:
    """One key per frame."""

    def __init__(self, path, episodes):
        import lmdb
        self.options = {"subdir": os.path.isdir(path), "readonly": True, "lock": False, "readahead": False}
        self.lmdb, self.path, self.cameras, self.local = lmdb, path, episodes.cameras, threading.local()

    def __getstate__(self):
        return {"path": self.path, "cameras": self.cameras, "options": self.options}

    def __setstate__(self, state):
        import lmdb
        self.__dict__.update(state, lmdb=lmdb, local=threading.local())

    def frame(self, e, camera, t):
        if not hasattr(self.local, "transaction"):
            # a process may open an environment only once
            self.local.transaction = self._environment().begin(buffers=True)
        return self.local.transaction.get(f"e{e:08d}/{t:08d}/{self.cameras[camera]}".encode())

    opened, opening = {}, threading.Lock()

    def _environment(self):
        with self.opening:
            key = os.getpid(), self.path
            if key not in self.opened:
                self.opened[key] = self.lmdb.open(self.path, **self.options)
            return self.opened[key]


class Zarr:
    """Chunks of one frame, with pixels compressed by blosc."""

    def __init__(self, path, episodes):
        import zarr
        self.group = zarr.open(path, "r")
        ends = self.group["meta/episode_ends"][:]
        self.starts = [0, *ends[:-1].tolist()]
        self.arrays = [self.group[f"data/{camera}"] for camera in episodes.cameras]

    def frame(self, e, camera, t):
        return self.arrays[camera][self.starts[e] + t]


class Tfrecord:
    """A record is an episode. The reader can only parse whole records, so the last ones are cached."""

    def __init__(self, path, episodes):
        from tfrecord.reader import tfrecord_iterator
        self.iterator, self.cameras = tfrecord_iterator, episodes.cameras
        self.file = sorted(glob.glob(os.path.join(path, "*.tfrecord*")))[0]
        self.kept, self.parsing = {}, threading.Lock()
        self.spans = self._spans()

    def _spans(self):
        """Offsets of the records, in the form of the package's index tool."""
        spans, at = [], 0
        with open(self.file, "rb") as file:
            while header := file.read(12):
                length = int.from_bytes(header[:8], "little")
                spans.append((at, at + length + 16))
                at += length + 16
                file.seek(at)
        return spans

    def __getstate__(self):
        return {key: value for key, value in self.__dict__.items() if key not in ("parsing", "kept")}

    def __setstate__(self, state):
        self.__dict__.update(state, parsing=threading.Lock(), kept={})

    def parse(self, e):
        from tfrecord import example_pb2
        with open(self.file, "rb") as file:
            file.seek(self.spans[e][0] + 12)
            data = file.read(self.spans[e][1] - self.spans[e][0] - 16)
        example = example_pb2.Example()
        example.ParseFromString(data)
        return [list(example.features.feature[f"steps/observation/{camera}"].bytes_list.value) for camera in self.cameras]

    def frame(self, e, camera, t):
        with self.parsing:
            if e not in self.kept:
                self.kept = {key: self.kept[key] for key in list(self.kept)[-2:]}
                self.kept[e] = self.parse(e)
            return self.kept[e][camera][t]


READERS = {"lmdb": Lmdb, "zarr": Zarr, "tfrecord": Tfrecord}


def by_episode(episodes, seed=0):
    """Every sample once per epoch, episode by episode, because the format is read in records."""
    numbers, source = {}, random.Random(seed)
    for number, (e, _) in enumerate(episodes.samples):
        numbers.setdefault(e, []).append(number)
    while True:
        for e in source.sample(sorted(numbers), len(numbers)):
            yield from source.sample(numbers[e], len(numbers[e]))


def decoder_of(config):
    if config["decoder"] == "none":  # copies the bytes, like a read
        return (lambda data, out: None) if config["format"] == "zarr" else lambda data, out: bytes(data)
    if config["format"] == "zarr":
        return lambda data, out: np.copyto(out, data)
    import jpeg
    return jpeg.decoder(config["decoder"])


class FormatPool(Pool):
    def __init__(self, episodes, config):
        self.reader = READERS[config["format"]](config["copy"], episodes)
        super().__init__(episodes, dict(config, preload=False))
        if config["format"] == "tfrecord" and config["shuffle"]:
            self.order = by_episode(episodes)

    def _files(self):
        return self.reader.frame

    def _decoder(self):
        return decoder_of(self.config)


def threads(config, episodes):
    pool = FormatPool(episodes, config)
    yield len(pool.slots)
    yield from pool.batches()


def processes(config, episodes):
    import torch
    reader, decode = READERS[config["format"]](config["copy"], episodes), decoder_of(config)
    shape = (len(episodes.cameras), config["height"], config["width"], 3)

    def item(number):
        e, t = episodes.samples[number]
        images = np.empty(shape, np.uint8)
        for camera in range(shape[0]):
            decode(reader.frame(e, camera, t), images[camera])
        return tuple(map(torch.from_numpy, (images, episodes.state_of(e, t), episodes.actions_of(e, t))))

    class Samples(torch.utils.data.Dataset):
        def __len__(self):
            return len(episodes.samples)

        def __getitem__(self, number):
            return item(number)

    class Records(torch.utils.data.IterableDataset):
        def __iter__(self):
            info = torch.utils.data.get_worker_info()
            for number in by_episode(episodes, info.id if info else 0) if config["shuffle"] else episodes.order(False):
                yield item(number)

    workers, factor = config["workers"], config.get("prefetch_factor", 2)
    options = {"persistent_workers": True, "prefetch_factor": factor} if workers else {}
    if config["format"] == "tfrecord":
        dataset = Records()
    else:
        dataset = Samples()
        options["sampler"] = episodes.order(config["shuffle"])
    yield workers * factor
    yield from torch.utils.data.DataLoader(dataset, batch_size=config["batch_size"], num_workers=workers, **options)


def make(config):
    from episodes import Episodes
    episodes = Episodes(config["data"], config["chunk_size"])
    yield from {"threads": threads, "processes": processes}[config["mode"]](config, episodes)


if __name__ == "__main__":
    peer.serve(make)
