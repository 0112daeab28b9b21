#!/usr/bin/env python3
"""Compares Weir across formats, and with each format's usual reader and OpenCV, on the same samples:
bench/peers/formats.py [--help]. `weir convert` creates the copies. docs/internals/measuring.md describes the method. Uses
whatever of lmdb, tfrecord, zarr 2, torch and cv2 is installed."""
import argparse
import json
import os
import statistics
import subprocess
import sys

from run import BATCH_SIZE, CHUNK_SIZE, ROOT, describe, make_data, machine, say, versions
from sides import Peer, Weir

# name, --to, --codec, the format's usual reader
COPIES = [("hdf5", "hdf5", "keep", None), ("hdf5-vlen", "hdf5-vlen", "keep", None), ("lmdb", "lmdb", "keep", "lmdb"),
          ("tfrecord", "tfrecord", "keep", "tfrecord"), ("packed", "packed", "keep", None),
          ("zarr blosc", "zarr", "raw", "zarr"), ("packed raw", "packed", "raw", None), ("hdf5 raw", "hdf5", "raw", None)]
# min ratios of a copy's images/s to HDF5 with the same codec, to its reader, and to its reader in processes
OF_HDF5, OF_READER, OF_PROCESSES = 0.9, 1.0, 1.5


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    add = parser.add_argument
    add("--weir", default=os.path.join(ROOT, "build/release/weir"))
    add("--data", default=os.path.join(ROOT, "build/peers-data"), help="folder of the datasets, made when they are missing")
    add("--size", default="640x480")
    add("--quality", type=int, default=95)
    add("--episodes", type=int, default=6)
    add("--steps", type=int, default=40)
    add("--copies", default=",".join(name for name, *_ in COPIES), help="which, separated by commas")
    add("--workers", type=int, default=len(os.sched_getaffinity(0)))
    add("--rounds", type=int, default=9)
    add("--seconds", type=float, default=0.5, help="length of a turn")
    add("--json", help="write all results here")
    args = parser.parse_args(argv)
    if args.rounds < 1 or args.seconds <= 0 or args.workers < 1:
        parser.error("--rounds and --workers must be at least 1, --seconds positive")
    return args


def make_copy(args, data, name, to, codec):
    """(path of the copy, created if missing; None), or (None, error)."""
    copy = f"{data}-{name.replace(' ', '-')}" + {"zarr": ".zarr", "packed": ".weir", "lmdb": ".lmdb"}.get(to, "")
    if not os.path.exists(copy):
        done = subprocess.run([args.weir, "convert", data, copy, "--to", to, "--codec", codec], capture_output=True, text=True)
        if done.returncode:
            return None, done.stderr.strip().splitlines()[-1]
    return copy, None


def variants(reader, cores):
    """Configurations of a reader with different numbers of threads or processes."""
    if reader is None:
        return {}
    counts = sorted({max(1, cores // 2), cores, 2 * cores})
    decoder = "cv2"
    return {mode: [{"mode": mode, "workers": n, "decoder": decoder} for n in counts] for mode in ("threads", "processes")}


def best_peer(config, tries, seconds):
    """The fastest configuration, started; (None, reason) if none works."""
    tried, why = [], ""
    for variant in tries:
        peer = Peer("format_loader", dict(config, **variant), variant["mode"] == "threads")
        rates = [peer.turn(seconds) for _ in range(3)]
        why = why or peer.left_out
        peer.close()
        if all(rates):
            tried.append((max(rates), variant))
    if not tried:
        return None, why
    best = max(tried, key=lambda pair: pair[0])[1]
    peer = Peer("format_loader", dict(config, **best), best["mode"] == "threads")
    peer.how = f"{best['mode']}: {describe(best)}"
    return peer, None


def check_pixels(config, data, copy):
    """Compares the reader's first batch with that of the source HDF5 file."""
    import check
    first = {}
    for name, settings in (("reader", dict(config, mode="threads", workers=1, decoder="cv2")),
                           ("hdf5", dict(config, script="thread_pool", decoder="cv2", preload=False, workers=1))):
        import numpy as np
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "batch.npz")
            peer = Peer(settings.pop("script", "format_loader"), dict(settings, shuffle=False, check=path))
            why = peer.left_out
            peer.close()
            if why:
                return why
            with np.load(path) as saved:
                first[name] = saved["images"].astype(np.float32)
    if config["format"] == "zarr" and check.bgr_only():
        first["reader"] = first["reader"][..., ::-1]
    apart = float(abs(first["reader"] - first["hdf5"]).mean())
    return None if apart <= 1 else f"its pixels differ from the HDF5 file's by {apart:.2f} of 255"


def open_sides(args, config, data):
    sides, left_out = {}, []
    for name, to, codec, reader in COPIES:
        if name not in args.copies.split(","):
            continue
        copy, why = make_copy(args, data, name, to, codec)
        if why:
            left_out.append(f"{name}: left out: {why}")
            continue
        mine = dict(config, data=copy, workers=args.workers)
        for decoded, more in (("decoded", []), ("bytes only", ["--decoder", "null"])):
            sides[name, "weir", decoded] = side = Weir(args.weir, mine, "u8", more)
            side.how = f"{args.workers} workers"
        theirs = dict(config, data=data, copy=copy, format=reader, shuffle=True)
        why = check_pixels(theirs, data, copy) if reader else None
        if why:
            left_out.append(f"{name}, its own reader: left out: {why}")
            continue
        for mode, tries in variants(reader, args.workers).items():
            for decoded in ("decoded", "bytes only"):
                if decoded == "bytes only":
                    tries = [dict(variant, decoder="none") for variant in tries]
                peer, why = best_peer(theirs, tries, min(args.seconds, 0.4))
                if peer:
                    sides[name, mode, decoded] = peer
                else:
                    left_out.append(f"{name}, {mode}, {decoded}: left out: {why}")
    return sides, left_out


def measure(sides, args):
    order, rates = list(sides), {key: [] for key in sides}
    for side in sides.values():
        side.turn(min(args.seconds, 0.3))
    for i in range(args.rounds):
        say(f"round {i + 1} of {args.rounds}: {len(order)} turns of {args.seconds:g} s")
        first = i * len(order) // args.rounds
        for key in order[first:] + order[:first]:
            rates[key].append(sides[key].turn(args.seconds))
    return {key: found for key, found in rates.items() if all(found)}


def ratio(rates, above, below):
    if above not in rates or below not in rates:
        return None
    return statistics.median(a / b for a, b in zip(rates[above], rates[below]))


def promises(rates):
    """[(text, ratio, target, met)]"""
    lines = []
    for name, _, _, _ in COPIES:
        for decoded in ("decoded", "bytes only"):
            mine = (name, "weir", decoded)
            base = "hdf5 raw" if name.endswith("raw") else "hdf5"
            found = [(f"{name}, {decoded}: of {base}", ratio(rates, mine, (base, "weir", decoded)), OF_HDF5)]
            if name in (base, "zarr blosc"):  # no other copy has this compression
                found = []
            for mode, target in (("threads", OF_READER), ("processes", OF_PROCESSES)):
                found.append((f"{name}, {decoded}: of its own reader in {mode}", ratio(rates, mine, (name, mode, decoded)), target))
            lines += [(text, value, target, value >= target) for text, value, target in found if value is not None]
    return lines


def main(argv):
    args = parse(argv)
    data = make_data(args, args.quality)
    from episodes import Episodes
    episodes = Episodes(data, CHUNK_SIZE)
    width, height = map(int, args.size.split("x"))
    config = {"chunk_size": CHUNK_SIZE, "batch_size": BATCH_SIZE, "width": width, "height": height,
              "cameras": len(episodes.cameras), "samples": len(episodes.samples)}
    about = machine(args.weir, data)
    print(f"machine: {about['machine']['cpu_model']}, {args.workers} workers; Weir {about['weir']} ({about['git']})")
    print(f"python:  {sys.version.split()[0]}, " + ", ".join(f"{name} {number}" for name, number in versions().items()))
    print(f"method:  {args.size}, quality {args.quality}, {len(episodes.cameras)} cameras, batches of {BATCH_SIZE}, page cache warm; "
          f"{args.rounds} rounds of {args.seconds:g} s a turn")
    sides, left_out = open_sides(args, config, data)
    rates = measure(sides, args)
    print(f"\n{'copy':<12} {'reader':<10} {'':<11} images/s: median (min - max)")
    for (name, reader, decoded), found in rates.items():
        text = f"{statistics.median(found):.0f} ({min(found):.0f} - {max(found):.0f})"
        print(f"{name:<12} {reader:<10} {decoded:<11} {text:<30} {sides[name, reader, decoded].how}")
    left_out += [f"{key}: broke: {side.left_out}" for key, side in sides.items() if side.left_out]
    for side in sides.values():
        side.close()
    for line in left_out:
        print(line)
    lines = promises(rates)
    for text, value, target, met in lines:
        print(f"{'PASS' if met else 'MISS'}  {text}: {value:.3f} (target {target:g})")
    if args.json:
        with open(args.json, "w") as out:
            json.dump({"about": about, "python": versions(), "rounds": args.rounds, "seconds": args.seconds, "left_out": left_out,
                       "rates": [{"copy": key[0], "reader": key[1], "what": key[2], "images_per_s": found} for key, found in rates.items()],
                       "promises": [dict(zip(("text", "ratio", "target", "met"), line)) for line in lines]}, out, indent=1)


if __name__ == "__main__":
    main(sys.argv[1:])
