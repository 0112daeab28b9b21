#!/usr/bin/env python3
"""Compares the rates of random images from S3 at several latencies:
remote_peers.py WEIR PROXY [--delays-ms 0,5,50] [--rounds N]. PROXY: build/release/bench/delay_proxy.

Sides, each in a process of its own, interleaved: weir.Loader on local disk and on S3; h5py over s3fs in as many
processes, with s3fs's blocks of 50 MB and with blocks of 64 KiB; Lance, with batches of 8 and of 256. All decode JPEGs
of 320x240 (29 KB) with libjpeg-turbo. nginx serves the objects and lists of S3 that these need, without checking
signatures. A trial is a warm-up batch and then --seconds; opening is timed apart.
LeRobot's streaming reader needs the Hub's API, so it is not among the sides.
Needs nginx, and weir, h5py, s3fs, pylance and simplejpeg in this Python."""
import argparse
import collections
import multiprocessing
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
import xml.sax.saxutils

from remote_rates import free_port, start_proxy

STEPS, EPISODES, BATCH, PROCESSES = 4000, 6, 8, 2
KEY = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "AWS_REGION": "us-east-1"}

# ---- servers ----


def list_of(root, prefix):
    """S3's list of the objects below a prefix."""
    text = "<ListBucketResult><IsTruncated>false</IsTruncated>"
    for path in sorted(pathlib.Path(root).rglob("*")):
        key, st = str(path.relative_to(root)), path.stat()
        if path.is_file() and key.startswith(prefix):
            text += (f"<Contents><Key>{xml.sax.saxutils.escape(key)}</Key><Size>{st.st_size}</Size><ETag>\"{int(st.st_mtime):x}-{st.st_size:x}\""
                     "</ETag><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>")
    return text + "</ListBucketResult>"


def serve(scratch, root, port):
    lists = ""
    for i, prefix in enumerate(("h5/", "frames.lance/_versions/")):
        pathlib.Path(scratch, f"{i}.xml").write_text(list_of(root, prefix))
        lists += f"~^{prefix.replace('/', '(/|%2F)')} /{i}.xml; "
    temp = "".join(f"{kind}_temp_path {scratch}/temp; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    pathlib.Path(scratch, "nginx.conf").write_text(
        f"daemon off; pid {scratch}/pid; error_log {scratch}/log; worker_processes 1; events {{ worker_connections 4096; }}\n"
        f"http {{ access_log off; keepalive_requests 1000000; {temp} map $arg_prefix $list {{ {lists} }}\n"
        f"server {{ listen 127.0.0.1:{port} backlog=4096; root {os.path.dirname(root)};\n"
        f"location ~ xml$ {{ root {scratch}; }} location / {{ if ($list) {{ rewrite ^ $list? last; }} }} }} }}\n")
    return subprocess.Popen(["nginx", "-e", f"{scratch}/log", "-c", f"{scratch}/nginx.conf"])


# ---- sides: functions that return a function which reads one batch of images ----


def weir_side(o):
    import weir

    loader = weir.Loader(o.local if o.side == "weir local" else "s3://bucket/h5", batch_size=BATCH, num_workers=PROCESSES, seed=1)

    def forever():
        while True:
            yield from loader

    batches = forever()
    return lambda: len(next(batches)["image"])


def h5py_side(o):
    import h5py
    import s3fs
    import simplejpeg

    options = {"default_block_size": 64 << 10, "default_cache_type": "readahead"} if "64" in o.side else {}
    store = s3fs.S3FileSystem(key="x", secret="y", endpoint_url=os.environ["AWS_ENDPOINT_URL"], **options)
    rows = [h5py.File(store.open(f"bucket/h5/episode_{i}.hdf5"))["observations/images/1"] for i in range(EPISODES)]

    def batch():
        for _ in range(BATCH):
            simplejpeg.decode_jpeg(bytes(random.choice(rows)[random.randrange(STEPS)]))
        return BATCH

    return batch


def lance_side(o):
    import lance
    import simplejpeg

    n = 256 if "256" in o.side else BATCH
    options = {"endpoint": os.environ["AWS_ENDPOINT_URL"], "allow_http": "true", "region": "us-east-1",
               "virtual_hosted_style_request": "false"}
    data = lance.dataset("s3://bucket/frames.lance", storage_options=options)

    def batch():
        for image in data.take(random.sample(range(STEPS * EPISODES), n), columns=["image"])["image"]:
            simplejpeg.decode_jpeg(image.as_py())
        return n

    return batch


SIDES = {"weir local": weir_side, "weir": weir_side, "h5py s3fs": h5py_side, "h5py s3fs 64K": h5py_side, "lance 8": lance_side,
         "lance 256": lance_side}


def measure(o, queue):
    begin = time.monotonic()
    batch = SIDES[o.side](o)
    batch()
    opened, images = time.monotonic(), 0
    while time.monotonic() < opened + o.seconds:
        images += batch()
    queue.put((images / (time.monotonic() - opened), opened - begin))


def trial(o):
    """(images/s, seconds to the first batch)"""
    context = multiprocessing.get_context("spawn")
    queue, n = context.Queue(), 1 if "weir" in o.side else PROCESSES
    processes = [context.Process(target=measure, args=(o, queue)) for _ in range(n)]
    for process in processes:
        process.start()
    found = [queue.get(timeout=300) for _ in processes]
    for process in processes:
        process.join()
    return sum(rate for rate, _ in found), max(opened for _, opened in found)


# ---- the comparison ----


def write_lance(root):
    import h5py
    import lance
    import pyarrow

    images = [bytes(row) for i in range(EPISODES) for row in h5py.File(f"{root}/h5/episode_{i}.hdf5")["observations/images/1"]]
    lance.write_dataset(pyarrow.table({"image": pyarrow.array(images, pyarrow.large_binary())}), f"{root}/frames.lance")


def compare(o, scratch, root):
    port, rates, sides = free_port(), collections.defaultdict(list), list(SIDES)
    servers, ports = [serve(scratch, root, port)], {0: port}
    for ms in filter(None, o.delays):
        server, ports[ms] = start_proxy(o, port, ms)
        servers.append(server)
    time.sleep(1)
    o.local = f"{root}/h5"
    try:
        for number in range(o.rounds):
            for ms in o.delays:
                os.environ.update(KEY, AWS_ENDPOINT_URL=f"http://127.0.0.1:{ports[ms]}")
                for o.side in sides[number:] + sides[:number]:
                    rates[o.side, ms].append(trial(o))
                    print(f"{ms} ms, {o.side}: {rates[o.side, ms][-1][0]:.0f} images/s", file=sys.stderr, flush=True)
    finally:
        for server in servers:
            server.terminate()
    print("| images/s (seconds to the first batch) | " + " | ".join(f"{ms} ms" for ms in o.delays) + " |")
    print("|---|" + "---|" * len(o.delays))
    for side in SIDES:
        cells = [[statistics.median(column) for column in zip(*rates[side, ms])] for ms in o.delays]
        print(f"| {side} | " + " | ".join(f"{rate:,.0f} ({opened:.1f})" for rate, opened in cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weir")
    parser.add_argument("proxy")
    parser.add_argument("--delays-ms", dest="delays", default=[0, 5, 50], type=lambda text: [int(ms) for ms in text.split(",")])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--server-cores")
    o = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o755)
        root = f"{scratch}/served/bucket"
        subprocess.run([o.weir, "synth", f"{root}/h5", f"--episodes={EPISODES}", f"--steps={STEPS}", "--size=320x240", "--cameras=1"],
                       check=True, stdout=subprocess.DEVNULL)
        write_lance(root)
        compare(o, scratch, root)


if __name__ == "__main__":
    main()
