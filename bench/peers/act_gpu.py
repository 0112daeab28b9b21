"""ACT's loader (act_loader.py) with batches on a GPU, like ACT's training loop: DataLoader's pinned memory, .to(device,
non_blocking=True), then normalisation to f32."""
import act_loader
import gpu_batches
import peer


def make(config):
    import torch
    device = gpu_batches.device_of(config, torch)
    ahead, loader = act_loader.loader(config, pin_memory=device.type == "cuda")
    yield ahead, gpu_batches.synchronize(config, torch)
    for images, qpos, actions in loader:
        images, qpos, actions = (tensor.to(device, non_blocking=True) for tensor in (images, qpos, actions))
        yield (images - gpu_batches.MEAN) / gpu_batches.STD, qpos, actions


if __name__ == "__main__":
    peer.serve(make)
