#!/usr/bin/env python3
"""Compares the MB/s of raw frames through `weir run` with fio on the same files: disk_rate.py WEIR DATA [--rounds N]
[--depth N] [--workers N] [--json]. DATA: `weir synth DATA --format act --size 640x480`, several times larger than the
disk's cache. fio reads randomly with O_DIRECT, blocks of one frame and the same depth; the faster of one and two
processes counts. Each round interleaves all configurations; ratios are within a round. --decoder null only reads."""
import argparse
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys

WAYS = {  # name: (options of weir run, state of the page cache)
    "uring, direct": (["--io", "uring", "--direct"], "direct"),
    "pread, direct": (["--io", "pread", "--direct"], "direct"),
    "uring, cold": (["--io", "uring", "--cold"], "cold"),
    "pread, cold": (["--io", "pread", "--cold"], "cold"),
    "mmap, cold": (["--io", "mmap", "--cold"], "cold"),
    "pread, warm": (["--io", "pread"], "warm"),
    "mmap, warm": (["--io", "mmap"], "warm"),
    "uring, warm": (["--io", "uring"], "warm"),
}


def weir_rate(args, options, kind):
    """MB/s of the last epoch. In warm runs the first epoch fills the cache."""
    command = [args.weir, "run", args.data, "--decoder", "null", "--no-timing", "--log", "-", "--num-epochs",
               "2" if kind == "warm" else "1", "--io-depth", str(args.depth), *options]
    if args.workers:
        command += ["--num-workers", args.workers]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    epochs = [line for line in lines if line["type"] == "epoch"]
    if kind != "direct" and epochs[-1]["reads"] != kind:
        sys.exit(f"a {kind} epoch had {epochs[-1]['reads']} reads: is memory too small, or DATA in memory?")
    report = [line for line in lines if line["type"] == "stages"][-1]
    per_epoch = report["io"]["read_bytes"] / len(epochs)
    return per_epoch / epochs[-1]["total_s"] / 1e6


def fio_rate(args, jobs, block):
    files = sorted(glob.glob(os.path.join(args.data, "**", "*.hdf5"), recursive=True))
    command = ["fio", "--name=read", "--filename=" + ":".join(files), "--rw=randread", f"--bs={block}", "--direct=1",
               "--ioengine=io_uring", "--fixedbufs=1", f"--iodepth={max(1, args.depth // jobs)}", f"--numjobs={jobs}",
               "--group_reporting", "--time_based", f"--runtime={args.seconds}", "--readonly", "--norandommap",
               "--randrepeat=0", "--output-format=json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)["jobs"][0]["read"]["bw_bytes"] / 1e6


def frame_bytes(args):
    done = subprocess.run([args.weir, "run", args.data, "--decoder", "null", "--no-timing", "--log", "-", "--max-batches",
                           "1", "--num-workers", "0"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    report = [json.loads(line) for line in done.stdout.splitlines()][-1]
    return -(-report["io"]["read_bytes"] // report["io"]["reads"] // 4096) * 4096


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weir")
    parser.add_argument("data")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--depth", type=int, default=64)
    parser.add_argument("--seconds", type=int, default=2, help="duration of an fio trial")
    parser.add_argument("--workers", help="workers of weir run (default auto)")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    block = frame_bytes(args)
    has_fio = shutil.which("fio") is not None
    if not has_fio:
        print("fio is not installed: omitting its rows", file=sys.stderr)
    turns = {way: [] for way in WAYS}
    if has_fio:
        turns = {"fio, 1 process": [], "fio, 2 processes": []} | turns
    for _ in range(args.rounds):
        for way, rates in turns.items():
            rates.append(weir_rate(args, *WAYS[way]) if way in WAYS else fio_rate(args, int(way.split()[1]), block))
    beside = {"warm": turns["pread, warm"]}
    if has_fio:
        limit = [max(pair) for pair in zip(turns["fio, 1 process"], turns["fio, 2 processes"])]
        beside |= {"direct": limit, "cold": limit}
    results = []
    for way, rates in turns.items():
        kind = WAYS[way][1] if way in WAYS else None
        ratios = [mine / other for mine, other in zip(rates, beside.get(kind, []))]
        results.append({"way": way, "n": len(rates), "min": min(rates), "median": statistics.median(rates),
                        "max": max(rates), "ratio": statistics.median(ratios) if ratios else None, "values": rates})
    if args.json:
        print(json.dumps({"block_bytes": block, "depth": args.depth, "results": results}, indent=1))
        return
    print(f"blocks of {block} bytes, depth {args.depth}, {args.rounds} rounds; MB/s")
    print("way                   min   median      max   of fio (direct, cold) or of pread (warm)")
    for r in results:
        ratio = "" if r["ratio"] is None else f"{r['ratio']:.2f}"
        print(f"{r['way']:<18} {r['min']:6.0f}   {r['median']:6.0f}   {r['max']:6.0f}   {ratio}")


if __name__ == "__main__":
    main()
