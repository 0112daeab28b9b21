"""What every peer's process does. It is started with its configuration as JSON, answers with one line, {"ready": ...} or
{"left_out": why}, and then waits. A line with a number of seconds asks for one turn; the answer is {"images", "seconds"}.
Between turns it is stopped (sides.py) and keeps its batches that are ready, so a turn begins with taking those, uncounted."""
import json
import sys
import time

import numpy as np


def take(batches, seconds, batches_min):
    """Images that were delivered, and the seconds that took; from delivery to delivery."""
    images, n = 0, 0
    start = now = time.perf_counter()
    while now - start < seconds or n < batches_min:
        pixels = next(batches)[0]
        images += pixels.shape[0] * pixels.shape[1]
        n += 1
        now = time.perf_counter()
    return images, now - start


def write_batch(batch, path):
    np.savez(path, **{name: np.asarray(values) for name, values in zip(("images", "qpos", "actions"), batch)})


def serve(make):
    """make(config) is a generator: first the number of batches that it may be ahead, then batches without end, each of
    (images, qpos, actions)."""
    config = json.loads(sys.argv[1])
    try:
        batches = make(config)
        ahead = next(batches)
        if config.get("check"):
            write_batch(next(batches), config["check"])
        print(json.dumps({"ready": True}), flush=True)
    except (ImportError, OSError, RuntimeError) as error:
        print(json.dumps({"left_out": str(error).splitlines()[0][:200]}), flush=True)
        return
    for line in sys.stdin:
        seconds = float(line)
        take(batches, seconds / 5, ahead + 1)
        images, spent = take(batches, seconds, 1)
        print(json.dumps({"images": images, "seconds": spent}), flush=True)
