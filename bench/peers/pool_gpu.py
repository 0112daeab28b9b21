"""The thread pool of thread_pool.py with batches in pinned memory. They are copied to a GPU as u8 nhwc on a separate
stream, and converted there to normalised f16 nchw."""
import itertools

import gpu_batches
import peer
from thread_pool import Pool


def make(config):
    import torch
    from episodes import Episodes
    device = gpu_batches.device_of(config, torch)
    pinned = device.type == "cuda"
    pool = Pool(Episodes(config["data"], config["chunk_size"]), config,
                lambda shape, dtype: torch.zeros(shape, dtype=getattr(torch, dtype), pin_memory=pinned))
    upload = gpu_batches.Upload(device, torch)
    yield len(pool.slots), gpu_batches.synchronize(config, torch)
    for slot in pool.slots:
        pool.arm(slot)
    for slot in itertools.cycle(pool.slots):
        slot.ready.acquire()
        images, qpos, actions = upload(*slot.memory)
        yield gpu_batches.normalised(images.permute(0, 1, 4, 2, 3), torch.float16, torch), qpos, actions
        upload.wait()
        pool.arm(slot)


if __name__ == "__main__":
    peer.serve(make)
