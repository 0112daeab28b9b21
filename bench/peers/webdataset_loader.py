"""WebDataset: the same JPEGs in tar files (shards of 10 samples), decoded with cv2 in WebLoader's worker processes.
Shards are drawn with replacement and samples shuffled in a buffer, as its documentation advises."""
import glob
import io
import json
import os
import tarfile

import peer

SHARD_SAMPLES = 10


def add(tar, name, data):
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))


def write_shards(episodes, folder):
    """Creates the shards in folder unless they exist; returns their paths."""
    part = folder + ".part"
    if not os.path.isdir(folder):
        os.makedirs(part, exist_ok=True)
        for first in range(0, len(episodes.samples), SHARD_SAMPLES):
            with tarfile.open(os.path.join(part, f"{first:06d}.tar"), "w") as tar:
                for e, t in episodes.samples[first:first + SHARD_SAMPLES]:
                    write_sample(episodes, tar, e, t)
        os.rename(part, folder)
    return sorted(glob.glob(os.path.join(folder, "*.tar")))


def write_sample(episodes, tar, e, t):
    key = f"episode{e:05d}-{t:05d}"
    with open(episodes.paths[e], "rb") as file:
        for camera, places in zip(episodes.cameras, episodes.places[e]):
            offset, length = places[t]
            file.seek(offset)
            add(tar, f"{key}.{camera}.jpg", file.read(length))
    state = {"qpos": episodes.state_of(e, t).tolist(), "actions": episodes.actions_of(e, t).tolist()}
    add(tar, f"{key}.json", json.dumps(state).encode())


def make(config):
    import cv2
    import jpeg
    import numpy as np
    import torch
    import webdataset as wds
    from episodes import Episodes
    episodes = Episodes(config["data"], config["chunk_size"])
    shards = write_shards(episodes, config["data"].rstrip("/") + "-tars")
    flags = jpeg.cv2_flags(cv2)

    def decode(sample):
        images = [cv2.imdecode(np.frombuffer(sample[f"{camera}.jpg"], np.uint8), flags) for camera in episodes.cameras]
        state = json.loads(sample["json"])
        return (torch.from_numpy(np.stack(images)), torch.tensor(state["qpos"]), torch.tensor(state["actions"]))

    shuffle, workers = config["shuffle"], config["workers"]
    dataset = wds.WebDataset(shards, resampled=shuffle, shardshuffle=False, empty_check=False)
    if shuffle:
        dataset = dataset.shuffle(100)
    factor = config.get("prefetch_factor", 2)
    options = {"persistent_workers": True, "prefetch_factor": factor} if workers else {}
    loader = wds.WebLoader(dataset.map(decode), batch_size=config["batch_size"], num_workers=workers, **options)
    yield workers * factor
    yield from loader


if __name__ == "__main__":
    peer.serve(make)
