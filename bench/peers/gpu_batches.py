"""Shared by the peers that deliver batches in GPU memory. "device": "cpu" in their configuration tests them without a
GPU."""
MEAN, STD = 0.5, 0.25  # used by bench/limits


def device_of(config, torch):
    if config["device"] == "cuda" and not torch.cuda.is_available():
        raise RuntimeError(f"torch {torch.__version__} has no CUDA here")
    return torch.device(config["device"])


def synchronize(config, torch):
    """Returns a function that waits for all queued GPU work."""
    return torch.cuda.synchronize if config["device"] == "cuda" else lambda: None


def normalised(images, dtype, torch):
    """Normalises images of 0..255, in any memory order, into a new dense tensor on the same device."""
    out = torch.empty(images.shape, dtype=dtype, device=images.device)
    return out.copy_(images).sub_(255 * MEAN).div_(255 * STD)


class Upload:
    """Copies pinned memory to the GPU on a separate stream."""

    def __init__(self, device, torch):
        self.device, self.torch = device, torch
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self.event = torch.cuda.Event() if self.stream else None

    def __call__(self, *tensors):
        """Returns the tensors on the GPU; the current stream waits for the copies."""
        if not self.stream:
            return [tensor.clone() for tensor in tensors]
        with self.torch.cuda.stream(self.stream):
            copies = [tensor.to(self.device, non_blocking=True) for tensor in tensors]
            self.event.record()
        current = self.torch.cuda.current_stream(self.device)
        current.wait_event(self.event)
        for copy in copies:
            copy.record_stream(current)
        return copies

    def wait(self):
        """Waits until the last copies are done and their source memory may be reused."""
        if self.event:
            self.event.synchronize()
