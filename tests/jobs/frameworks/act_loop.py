"""ACT's loop: episodes in HDF5, opened in each __getitem__, images as float32, and the network of
weir.examples.imitate_episodes. --data is a folder from `weir synth --format act` or act-jpeg."""
import glob
import os
import sys
import time

import numpy as np
import torch

import common


class Episodes(torch.utils.data.Dataset):
    """As in ACT's utils.py: an item is a random step of an episode, and the actions that follow it, padded."""

    def __init__(self, paths, chunk, items):
        self.paths, self.chunk, self.items = paths, chunk, items

    def __len__(self):
        return self.items

    def __getitem__(self, i):
        import h5py
        with h5py.File(self.paths[i % len(self.paths)]) as root:
            length = len(root["action"])
            start = (i // len(self.paths) * 13) % length
            qpos = root["observations/qpos"][start]
            images = np.stack([self.image(frames[start]) for _, frames in sorted(root["observations/images"].items())])
            action = root["action"][start:start + self.chunk]
        padded = np.zeros((self.chunk, action.shape[1]), np.float32)
        padded[:len(action)] = action
        is_pad = np.arange(self.chunk) >= len(action)
        image = torch.einsum("k h w c -> k c h w", torch.from_numpy(images)) / 255.0
        return image, torch.from_numpy(qpos).float(), torch.from_numpy(padded), torch.from_numpy(is_pad)

    @staticmethod
    def image(frame):
        return job_decode(frame.tobytes()) if frame.ndim == 1 else frame


def job_decode(data):
    return np.ascontiguousarray(common.job_data.decode(data))


def main():
    o = common.options(data="", chunk=20, hidden_dim=64, dim_feedforward=128, device="cpu", pin_memory=0, persistent=1,
                       prefetch_factor=2, seconds=0.0, items=2000)
    import weir
    from weir.examples import act_policy
    paths = sorted(glob.glob(os.path.join(o.data, "*.hdf5")))
    if not paths:
        sys.exit(f"--data {o.data}: no .hdf5 files; create some with weir synth --format act-jpeg")
    dataset = Episodes(paths, o.chunk, o.items)
    loader = torch.utils.data.DataLoader(
        dataset, o.batch_size, shuffle=True, num_workers=o.num_workers, pin_memory=bool(o.pin_memory),
        persistent_workers=bool(o.persistent), prefetch_factor=o.prefetch_factor)
    if o.watch_line:
        loader = weir.watch(loader, log=o.log)
    qpos, action = dataset[0][1], dataset[0][2]
    policy = act_policy.ACT(qpos.shape[-1], action.shape[-1], hidden_dim=o.hidden_dim, dim_feedforward=o.dim_feedforward,
                            chunk_size=o.chunk).to(o.device)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-5)
    losses, begin, steps = [], None, 0
    for batch in common.forever(loader):
        image, qpos, action, is_pad = (x.to(o.device, non_blocking=bool(o.pin_memory)) for x in batch)
        loss = policy.loss(weir.Act(image.float(), qpos, action, is_pad), 10)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if len(losses) == 5 and o.device != "cpu":
            torch.cuda.synchronize()
        begin = time.perf_counter() if len(losses) == 5 else begin
        if (time.perf_counter() - begin >= o.seconds if o.seconds and begin else len(losses) >= o.steps) and len(losses) > 5:
            break
    float(losses[-1])
    seconds, steps = time.perf_counter() - begin, len(losses) - 5
    print(f"{steps / seconds:.2f} steps/s", flush=True)
    common.report(losses[:24])


if __name__ == "__main__":
    main()
