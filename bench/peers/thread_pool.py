"""A loader that an expert would write in Python: threads, because the decoders release the GIL; episodes opened once
and read with os.pread at h5py's offsets (or all JPEGs in memory); pixels decoded straight into preallocated batches. A
job is one camera of one sample, so that a sample's cameras decode on different cores."""
import itertools
import os
import queue
import threading

import jpeg
import numpy as np
import peer


class Slot:
    """The memory of one batch, allocated by zeros, and the number of its finished jobs."""

    def __init__(self, shape, state_dim, actions_shape, zeros):
        self.memory = (zeros(shape, "uint8"), zeros((shape[0], state_dim), "float32"),
                       zeros((shape[0], *actions_shape), "float32"))
        self.images, self.qpos, self.actions = (np.asarray(memory) for memory in self.memory)
        self.rows = [self.images[i, camera] for i in range(shape[0]) for camera in range(shape[1])]
        self.ready = threading.Semaphore(0)
        self.done = None


class Pool:
    def __init__(self, episodes, config, zeros=np.zeros):
        self.episodes, self.config = episodes, config
        self.order = episodes.order(config["shuffle"])
        self.jobs = queue.SimpleQueue()
        self.decode = self._decoder()
        self.read = self._memory() if config["preload"] else self._files()
        states = [[function(e, t) for e, t in episodes.samples] for function in (episodes.state_of, episodes.actions_of)]
        self.states, self.actions = (np.stack(rows) for rows in states)
        n, cameras = config["batch_size"], len(episodes.cameras)
        self.images_per_batch = n * cameras
        # At least four images in flight per thread, like Weir's default.
        ahead = max(2, -(-4 * config["workers"] // self.images_per_batch))
        shape = (n, cameras, config["height"], config["width"], 3)
        self.slots = [Slot(shape, self.states.shape[1], self.actions.shape[1:], zeros) for _ in range(ahead + 1)]
        for _ in range(config["workers"]):
            threading.Thread(target=self._work, daemon=True).start()

    def _decoder(self):
        return jpeg.decoder(self.config["decoder"])

    def _files(self):
        files = [os.open(path, os.O_RDONLY) for path in self.episodes.paths]
        return lambda e, camera, t: os.pread(files[e], *reversed(self.episodes.places[e][camera][t]))

    def _memory(self):
        read = self._files()
        kept = [[[read(e, camera, t) for t in range(len(places))] for camera, places in enumerate(cameras)]
                for e, cameras in enumerate(self.episodes.places)]
        return lambda e, camera, t: kept[e][camera][t]

    def _work(self):
        last = self.images_per_batch - 1
        while True:
            slot, row, e, camera, t = self.jobs.get()
            self.decode(self.read(e, camera, t), slot.rows[row])
            if next(slot.done) == last:  # a C iterator: atomic under the GIL
                slot.ready.release()

    def arm(self, slot):
        numbers = list(itertools.islice(self.order, self.config["batch_size"]))
        slot.done = itertools.count()
        slot.qpos[:], slot.actions[:] = self.states[numbers], self.actions[numbers]
        cameras = len(self.episodes.cameras)
        for i, (e, t) in enumerate(self.episodes.samples[number] for number in numbers):
            for camera in range(cameras):
                self.jobs.put((slot, i * cameras + camera, e, camera, t))

    def batches(self):
        for slot in self.slots:
            self.arm(slot)
        for slot in itertools.cycle(self.slots):
            slot.ready.acquire()
            yield slot.images, slot.qpos, slot.actions
            self.arm(slot)


def make(config):
    from episodes import Episodes
    pool = Pool(Episodes(config["data"], config["chunk_size"]), config)
    yield len(pool.slots)
    yield from pool.batches()


if __name__ == "__main__":
    peer.serve(make)
