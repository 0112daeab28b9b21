"""ACT's loader in its usual form: every item opens its episode with h5py, decodes with cv2.imdecode and converts to
float; torch's DataLoader collates in worker processes. Only the sampler is different: like Weir, it draws every
(episode, t) once per epoch, not one start per episode, and it avoids DataLoader's pause between epochs."""
import peer


def dataset_of(episodes, torch):
    import cv2
    import h5py
    import jpeg
    import numpy as np
    from episodes import normalised, padded
    flags = jpeg.cv2_flags(cv2)

    class EpisodicDataset(torch.utils.data.Dataset):
        def __len__(self):
            return len(episodes.samples)

        def __getitem__(self, index):
            episode, start_ts = episodes.samples[index]
            with h5py.File(episodes.paths[episode], "r") as root:
                qpos = root["/observations/qpos"][start_ts]
                images = [root[f"/observations/images/{camera}"][start_ts] for camera in episodes.cameras]
                action = root["/action"][start_ts:start_ts + episodes.chunk_size]
            images = np.stack([cv2.imdecode(image, flags) for image in images], axis=0)
            image_data = torch.einsum("k h w c -> k c h w", torch.from_numpy(images)) / 255.0
            qpos_data = torch.from_numpy(normalised(qpos, episodes.qpos_stats))
            action_data = torch.from_numpy(normalised(padded(action, episodes.chunk_size), episodes.action_stats))
            return image_data, qpos_data, action_data

    return EpisodicDataset()


def loader(config, pin_memory=False):
    """(number of prefetched batches, DataLoader)"""
    import torch
    from episodes import Episodes
    episodes = Episodes(config["data"], config["chunk_size"])
    workers, factor = config["workers"], config.get("prefetch_factor", 2)
    options = {"persistent_workers": True, "prefetch_factor": factor} if workers else {}
    return workers * factor, torch.utils.data.DataLoader(dataset_of(episodes, torch), batch_size=config["batch_size"],
                                                         sampler=episodes.order(config["shuffle"]), num_workers=workers,
                                                         pin_memory=pin_memory, **options)


def make(config):
    ahead, batches = loader(config)
    yield ahead
    yield from batches


if __name__ == "__main__":
    peer.serve(make)
