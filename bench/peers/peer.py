"""What every peer's process does. It is started with its configuration as JSON, answers with one line, {"ready": ...} or
{"left_out": why}, and then waits. A line with a number of seconds asks for one turn; the answer is {"images", "seconds"}.
Between turns it is stopped (sides.py) and keeps its batches that are ready, so a turn begins with taking those, uncounted."""
import json
import sys
import time

import numpy as np


def take(batches, seconds, batches_min, finish):
    """Images that were delivered, and the seconds that took; from delivery to delivery, or to the end of finish()."""
    images, n = 0, 0
    start = now = time.perf_counter()
    while now - start < seconds or n < batches_min:
        pixels = next(batches)[0]
        images += pixels.shape[0] * pixels.shape[1]
        n += 1
        now = time.perf_counter()
    if finish:
        finish()
        now = time.perf_counter()
    return images, now - start


def on_host(values):
    return values.float().cpu().numpy() if hasattr(values, "cpu") else np.asarray(values)


def write_batch(batch, path):
    np.savez(path, **{name: on_host(values) for name, values in zip(("images", "qpos", "actions"), batch)})


def serve(make):
    """make(config) is a generator: first the number of batches that it may be ahead, then batches without end, each of
    (images, qpos, actions). Batches in a GPU's memory: first (number, function that waits until the GPU is done)."""
    config = json.loads(sys.argv[1])
    try:
        batches = make(config)
        first = next(batches)
        ahead, finish = first if isinstance(first, tuple) else (first, None)
        if config.get("check"):
            write_batch(next(batches), config["check"])
        print(json.dumps({"ready": True}), flush=True)
    except (ImportError, OSError, RuntimeError) as error:
        print(json.dumps({"left_out": str(error).splitlines()[0][:200]}), flush=True)
        return
    for line in sys.stdin:
        seconds = float(line)
        take(batches, seconds / 5, ahead + 1, finish)
        # on a GPU several batches may come at once: enough of them that it does not matter
        images, spent = take(batches, seconds, ahead if finish else 1, finish)
        print(json.dumps({"images": images, "seconds": spent}), flush=True)
