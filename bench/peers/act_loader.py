"""ACT's loader as people run it: every item opens its episode with h5py, decodes with cv2.imdecode and becomes float; torch's
DataLoader with worker processes collates. Only the sampler is ours: every (episode, t) once an epoch, as Weir, in place of
one start per episode, and without the pause that a DataLoader makes between epochs."""
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
    """The batches that it may be ahead, and the DataLoader."""
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
