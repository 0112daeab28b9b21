"""Compares each peer's first unshuffled batch with Weir's, before timing."""
import os
import sys
import tempfile

import jpeg
import numpy as np
from sides import Peer, run_program

MEAN, STD = 0.5, 0.25  # used by bench/limits for f32
STATE_MAX = 1e-4


def weir_batches(limits, config):
    """{output: (images, qpos, actions)} of Weir's loader; f32 images are 0..1, normalised with MEAN and STD."""
    batches = {}
    with tempfile.TemporaryDirectory() as folder:
        for output, name in (("u8", "u8"), ("normalised", "f32-nchw")):
            run_program([limits, "--data", config["data"], "--formats", name, "--batch-size", str(config["batch_size"]),
                         "--first-batch", folder])
            batches[output] = [np.load(os.path.join(folder, f"{part}.npy")) for part in ("images", "qpos", "actions")]
    batches["f32"] = [batches["normalised"][0] * np.float32(STD) + np.float32(MEAN), *batches["normalised"][1:]]
    return batches


def peer_batch(kind, config):
    """(batch, None), or (None, reason why the peer is omitted)."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "batch.npz")
        peer = Peer(kind.script, dict(config, shuffle=False, check=path, workers=kind.check_workers))
        why = peer.left_out
        peer.close()
        if why:
            return None, why
        with np.load(path) as saved:
            return [saved[part] for part in ("images", "qpos", "actions")], None


def bgr_only():
    import cv2
    return jpeg.cv2_flags(cv2) == cv2.IMREAD_COLOR


def bgr(kind, config):
    return kind.decodes_with(config) == "cv2" and bgr_only()


def difference(kind, config, theirs, ours):
    """Mean absolute difference of pixels in steps of 1/255. Exits if the batch differs from Weir's."""
    channel = -1 if kind.output == "u8" else 2
    if bgr(kind, config):
        theirs[0] = np.flip(theirs[0], channel)
    for part, a, b in zip(("images", "qpos", "actions"), theirs, ours):
        if a.shape != b.shape or a.dtype != b.dtype:
            sys.exit(f"{kind.name}: {part} are {a.dtype} {a.shape}, Weir's {b.dtype} {b.shape}")
    pixels = float(np.abs(theirs[0].astype(np.float32) - ours[0].astype(np.float32)).mean())
    pixels *= {"u8": 1, "f32": 255, "normalised": 255 * STD}[kind.output]
    state = max(float(np.abs(a - b).max()) for a, b in zip(theirs[1:], ours[1:]))
    if not pixels <= kind.pixels_max:
        sys.exit(f"{kind.name}: pixels differ from Weir's by {pixels:.2f} of 255 on average (at most {kind.pixels_max})")
    if not state <= STATE_MAX:
        sys.exit(f"{kind.name}: state or actions differ from Weir's by {state:.2g}")
    return pixels
