"""What the peers whose batches end in a GPU's memory share. With "device": "cpu" in their configuration they run without a
GPU, to be tried."""
MEAN, STD = 0.5, 0.25  # as bench/limits normalises


def device_of(config, torch):
    if config["device"] == "cuda" and not torch.cuda.is_available():
        raise RuntimeError(f"torch {torch.__version__} has no CUDA here")
    return torch.device(config["device"])


def synchronize(config, torch):
    """A function that waits until the GPU has done all that was queued."""
    return torch.cuda.synchronize if config["device"] == "cuda" else lambda: None


def normalised(images, dtype, torch):
    """Images of 0..255, in any order of memory, as a dense tensor of their own on their device."""
    out = torch.empty(images.shape, dtype=dtype, device=images.device)
    return out.copy_(images).sub_(255 * MEAN).div_(255 * STD)


class Upload:
    """Copies of pinned memory to the GPU, on a stream of their own."""

    def __init__(self, device, torch):
        self.device, self.torch = device, torch
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self.event = torch.cuda.Event() if self.stream else None

    def __call__(self, *tensors):
        """The tensors on the GPU; what the current stream does next waits for them."""
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
        """Until the last copies have passed: their memory may be written to."""
        if self.event:
            self.event.synchronize()
