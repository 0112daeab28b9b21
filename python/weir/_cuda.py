"""CUDA state from torch, and one-time warnings about slow settings."""
import ctypes
import glob
import importlib.util
import os
import sys
import warnings

from . import _weir

_said = set()
_opened = {}


def torch_for(tensors, on_gpu):
    """torch, or None for weir.Array."""
    if tensors == "array" or (tensors == "auto" and "torch" not in sys.modules
                              and importlib.util.find_spec("torch") is None):
        return None
    import torch
    import torch.utils.dlpack
    if not on_gpu or torch.cuda.is_available():
        return torch
    if tensors == "torch":
        raise _weir.Error("tensors='torch' with device='cuda': this torch has no CUDA (torch.cuda.is_available() is "
                          "False); install a CUDA build of torch, or use tensors='array'")
    return None


def _torch():
    """torch if it is imported and already uses CUDA, else None."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and hasattr(torch, "cuda") and torch.cuda.is_initialized() else None


def _say(key, text):
    if key not in _said:
        _said.add(key)
        warnings.warn(text, RuntimeWarning, stacklevel=4)


def prepare(device, decoder):
    """The device's full name, before a loader opens it."""
    torch = _torch()
    if torch is not None and "CUDA_DEVICE_MAX_CONNECTIONS" not in os.environ:
        _say("connections", "CUDA was initialised before weir, with its default of 8 queues to the GPU, so work on one "
             "stream can wait for other streams: alongside kernels of 20 ms the JPEG engines of an H200 decoded 7,208 "
             "images/s instead of 33,334. Before the first use of torch.cuda, add: "
             "os.environ['CUDA_DEVICE_MAX_CONNECTIONS'] = '32'")
    if decoder in ("auto", "nvjpeg", "hybrid"):
        _open("libnvjpeg.so.13")
    if device == "cuda" and torch is not None:
        return f"cuda:{torch.cuda.current_device()}"
    return device


def _open(name):
    """Loads a library, if necessary from NVIDIA's PyPI packages, so that later dlopen calls find it by name."""
    if name in _opened:
        return
    _opened[name] = None
    found = [path for folder in sys.path
             for path in glob.glob(os.path.join(glob.escape(folder), "nvidia", "*", "lib", name))]
    for path in [name, *found]:
        try:
            _opened[name] = ctypes.CDLL(path)
            return
        except OSError:
            pass


class Stream:
    """Returns torch's current stream on the batches' GPU as a number, for each batch."""

    def __init__(self, torch, device):
        self._current = torch.cuda.current_stream
        self._device = torch.device(device)

    def __call__(self):
        stream = self._current(self._device).cuda_stream
        if stream == 0:
            _say("stream", "the training loop is on the legacy default stream; many short kernels there slow down the "
                 "GPU's JPEG engines: with kernels of 0.1 ms an H200 decoded 3,000 to 3,400 images/s, on a separate "
                 "stream 32,700. Around the loop add: with torch.cuda.stream(torch.cuda.Stream()):")
        return stream


def current():
    """(GPU, stream) for stages timed on a GPU: torch's current ones, else GPU 0 and its legacy default stream."""
    torch = _torch()
    if torch is None:
        return 0, 0
    device = torch.cuda.current_device()
    raw = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)  # 10 times faster
    return device, raw(device) if raw else torch.cuda.current_stream(device).cuda_stream
