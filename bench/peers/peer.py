"""Main loop of every peer's process. It starts with its configuration as JSON, prints one line, {"ready": ...} or
{"left_out": reason}, and waits. An input line with a number of seconds requests one trial; the reply is {"images",
"seconds"}. Between trials sides.py stops the process, which holds its ready batches; a trial first drains them,
untimed."""
import json
import sys
import time

import numpy as np


def take(batches, seconds, batches_min, finish):
    """(delivered images, seconds), timed from delivery to delivery, or to the end of finish()."""
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
    """make(config) is a generator. It first yields the number of prefetched batches, or with batches in GPU memory
    (number, function that waits for the GPU). Then it yields endless batches (images, qpos, actions)."""
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
        # a GPU may deliver several batches at once, so take enough that this does not matter
        images, spent = take(batches, seconds, ahead if finish else 1, finish)
        print(json.dumps({"images": images, "seconds": spent}), flush=True)
