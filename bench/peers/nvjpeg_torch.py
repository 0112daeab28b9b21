"""PyTorch with batched nvJPEG. Threads read the JPEGs of a batch (unless all are in memory); other threads, each with
its own stream, decode the batch with torchvision.io.decode_jpeg and convert it to normalised f16. Batches come in
order."""
import collections
import itertools
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import gpu_batches
import numpy as np
import peer

READERS = 4


class Source:
    """Compressed batches."""

    def __init__(self, episodes, config, torch):
        self.episodes, self.torch = episodes, torch
        self.files = [os.open(path, os.O_RDONLY) for path in episodes.paths]
        self.order, self.batch_size = episodes.order(config["shuffle"]), config["batch_size"]
        states = [[function(e, t) for e, t in episodes.samples] for function in (episodes.state_of, episodes.actions_of)]
        self.states, self.actions = (np.stack(rows) for rows in states)
        self.kept = [self._read(e, t) for e, t in episodes.samples] if config["preload"] else None

    def _read(self, e, t):
        return [self.torch.frombuffer(os.pread(self.files[e], *reversed(places[t])), dtype=self.torch.uint8)
                for places in self.episodes.places[e]]

    def next_numbers(self):
        return list(itertools.islice(self.order, self.batch_size))

    def read(self, numbers):
        """(JPEGs of a batch, states, actions)"""
        rows = [self.kept[number] if self.kept else self._read(*self.episodes.samples[number]) for number in numbers]
        return list(itertools.chain(*rows)), self.states[numbers], self.actions[numbers]


class Decoder:
    def __init__(self, device, torch):
        from torchvision.io import ImageReadMode, decode_jpeg
        self.device, self.torch, self.decode_jpeg, self.mode = device, torch, decode_jpeg, ImageReadMode.RGB
        self.cuda, self.local = device.type == "cuda", threading.local()

    def _batch(self, jpegs, qpos, actions):
        images = self.torch.stack(self.decode_jpeg(jpegs, mode=self.mode, device=self.device))
        images = images.view(len(qpos), -1, *images.shape[1:])
        state = [self.torch.from_numpy(rows).to(self.device) for rows in (qpos, actions)]
        return gpu_batches.normalised(images, self.torch.float16, self.torch), *state

    def decode(self, read):
        """(batch, event that marks its completion)"""
        if not self.cuda:
            return self._batch(*read.result()), None
        if not hasattr(self.local, "stream"):
            self.local.stream = self.torch.cuda.Stream(self.device)
        with self.torch.cuda.stream(self.local.stream):
            batch = self._batch(*read.result())
            return batch, self.local.stream.record_event()


def make(config):
    import torch
    from episodes import Episodes
    device = gpu_batches.device_of(config, torch)
    decoder = Decoder(device, torch)
    source = Source(Episodes(config["data"], config["chunk_size"]), config, torch)
    readers, decoders = ThreadPoolExecutor(READERS), ThreadPoolExecutor(config["workers"])

    def begin():
        return decoders.submit(decoder.decode, readers.submit(source.read, source.next_numbers()))
    ahead = config["workers"] + 2
    yield ahead, gpu_batches.synchronize(config, torch)
    begun = collections.deque(begin() for _ in range(ahead))
    while True:
        batch, event = begun.popleft().result()
        begun.append(begin())
        if event:
            torch.cuda.current_stream(device).wait_event(event)
        yield batch


if __name__ == "__main__":
    peer.serve(make)
