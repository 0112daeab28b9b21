"""SPDL: its pipeline runs a thread pool over samples. Its decoder is FFmpeg, but any function that releases the GIL
works; run.py tries several and reports the fastest. Bytes are read with os.pread, batches filled in place."""
import itertools
import os

import jpeg
import numpy as np
import peer


def jobs(episodes, config):
    """Endless (batch, row, sample). A batch is allocated when its first sample is requested."""
    order = episodes.order(config["shuffle"])
    shape = (config["batch_size"], len(episodes.cameras), config["height"], config["width"], 3)
    while True:
        images = np.empty(shape, np.uint8)
        for row, number in enumerate(itertools.islice(order, config["batch_size"])):
            yield images, row, episodes.samples[number]


def make(config):
    from episodes import Episodes
    from spdl.pipeline import PipelineBuilder
    episodes = Episodes(config["data"], config["chunk_size"])
    decode = jpeg.decoder(config["decoder"])
    files = [os.open(path, os.O_RDONLY) for path in episodes.paths]

    def load(job):
        images, row, (e, t) = job
        for camera, places in enumerate(episodes.places[e]):
            offset, length = places[t]
            decode(os.pread(files[e], length, offset), images[row, camera])
        return images, episodes.state_of(e, t), episodes.actions_of(e, t)

    def collate(rows):
        return rows[0][0], np.stack([row[1] for row in rows]), np.stack([row[2] for row in rows])

    ahead = 3
    pipeline = (PipelineBuilder().add_source(jobs(episodes, config))
                .pipe(load, concurrency=config["workers"], output_order="input")
                .aggregate(config["batch_size"]).pipe(collate).add_sink(ahead)
                .build(num_threads=config["workers"] + 1))
    with pipeline.auto_stop():
        # Batches in flight: the sink's, and one in each of the three stages before it.
        yield ahead + 3
        for batch in pipeline:
            yield batch


if __name__ == "__main__":
    peer.serve(make)
