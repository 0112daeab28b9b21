#!/usr/bin/env python3
"""Compares Weir with other loaders on the same files and samples: bench/peers/run.py [--help]. docs/internals/measuring.md
describes the method. First installs the peers into build/peers-venv (setup.sh); --no-install uses the current
Python."""
import argparse
import importlib.metadata
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CHUNK_SIZE, BATCH_SIZE = 20, 8
PACKAGES = ("numpy", "h5py", "opencv-python-headless", "opencv-python", "opencv", "simplejpeg", "torch", "webdataset",
            "spdl-core", "spdl-io", "torchvision", "lmdb", "tfrecord", "zarr", "numcodecs")


class Kind:
    """A peer: its script, its output, and its configurations, of which the fastest is measured."""

    def __init__(self, name, title, script, output, variants, keep_memory=False, every_count=False,
                 pixels_max=1.0):
        self.name, self.title, self.script, self.output = name, title, script, output
        self.variants, self.keep_memory, self.every_count = variants, keep_memory, every_count
        self.pixels_max = pixels_max  # max mean absolute difference to Weir's pixels, of 255
        self.check_workers = 2 if keep_memory else 0

    def decodes_with(self, config):
        return config.get("decoder", "cv2")


def kinds(cores):
    processes = [{"workers": n} for n in sorted({0, max(1, cores // 4), max(1, cores // 2), cores, 2 * cores})]
    pool = [{"decoder": decoder, "preload": preload} for decoder in ("simplejpeg", "cv2") for preload in (False, True)]
    spdl = [{"decoder": decoder, "workers": n} for decoder in ("simplejpeg", "cv2", "ffmpeg") for n in (cores, 2 * cores)]
    return [Kind("act", "ACT's loader, f32 nchw", "act_loader", "f32", processes),
            Kind("pool", "Python thread pool, u8 nhwc", "thread_pool", "u8", pool, True, True),
            Kind("spdl", "SPDL, u8 nhwc", "spdl_loader", "u8", spdl, True),
            Kind("webdataset", "WebDataset, u8 nhwc", "webdataset_loader", "u8", processes[1:])]


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    add = parser.add_argument
    add("--weir", default=os.path.join(ROOT, "build/release/weir"))
    add("--limits", default=os.path.join(ROOT, "build/release/bench/limits"))
    add("--data", default=os.path.join(ROOT, "build/peers-data"), help="folder of the datasets, made when they are missing")
    add("--qualities", default="95,50", help="of the JPEGs")
    add("--size", default="640x480")
    add("--episodes", type=int, default=6)
    add("--steps", type=int, default=40)
    add("--peers", default="act,pool,spdl,webdataset", help="which, separated by commas")
    add("--workers", default="", help="of weir and the thread pool; default: 1, 2, 4, ... and one per core")
    add("--rounds", type=int, default=9)
    add("--seconds", type=float, default=1.0, help="length of a turn")
    add("--no-install", action="store_true", help="take what this Python can import")
    add("--json", help="write all results here")
    args = parser.parse_args(argv)
    if args.rounds < 1 or args.seconds <= 0:
        parser.error("--rounds must be at least 1, --seconds positive")
    return args


def install(argv):
    """Restarts this program in the virtual environment."""
    subprocess.run(["bash", os.path.join(HERE, "setup.sh")], check=True)
    python = os.path.join(ROOT, "build/peers-venv/bin/python")
    os.execv(python, [python, os.path.abspath(__file__), *argv, "--no-install"])


def make_data(args, quality):
    data = os.path.join(args.data, f"{args.size}-q{quality}-{args.episodes}x{args.steps}")
    if not os.path.isdir(data):
        subprocess.run([args.weir, "synth", data + ".part", "--format", "act-jpeg", "--cameras", "top,left,right,low",
                        "--episodes", str(args.episodes), "--steps", str(args.steps), "--size", args.size,
                        "--quality", str(quality)], check=True, stdout=subprocess.DEVNULL)
        os.rename(data + ".part", data)
    return data


def say(text):
    print(text, file=sys.stderr, flush=True)


def choose(kind, config, variants, seconds):
    """(fastest variant in three short trials, line about all of them); (None, reason) if none works."""
    tried, why = [], ""
    for variant in variants:
        peer = kind_peer(kind, dict(config, **variant))
        rates = [peer.turn(seconds) for _ in range(3)]
        why = why or peer.left_out
        peer.close()
        if all(rates):
            tried.append((max(rates), variant))
    if not tried:
        return None, why
    tried.sort(key=lambda pair: -pair[0])
    return tried[0][1], "; ".join(f"{describe(variant)} {rate:.0f}" for rate, variant in tried)


def describe(variant):
    words = [variant.get("decoder", ""), {True: "in memory", False: "pread"}.get(variant.get("preload"), ""),
             f"{variant['workers']} workers" if "workers" in variant else "",
             f"prefetch {variant['prefetch_factor']}" if "prefetch_factor" in variant else "",
             f"batches of {variant['batch_size']}" if "batch_size" in variant else ""]
    return " ".join(word for word in words if word)


def kind_peer(kind, config):
    from sides import Peer
    return Peer(kind.script, config, kind.keep_memory)


def checked(kind, config, variants, ours):
    """The variants that run here and whose first batch equals Weir's."""
    import check
    kept, why = [], ""
    for variant in {v.get("decoder", "cv2"): v for v in variants}.values():
        batch, left_out = check.peer_batch(kind, dict(config, **dict(variant, batch_size=config["batch_size"])))
        if left_out:
            why = left_out
            say(f"{kind.name}, {kind.decodes_with(variant)}: left out: {left_out}")
            continue
        pixels = check.difference(kind, variant, batch, ours[kind.output])
        say(f"{kind.name}, {kind.decodes_with(variant)}: pixels differ from Weir's by {pixels:.3f} of 255")
        kept.append(variant.get("decoder", "cv2"))
    return [v for v in variants if v.get("decoder", "cv2") in kept], why


def open_kind(kind, config, counts, cores, ours, args):
    """({(name, workers): side} of a peer's best variant, reason why it is omitted)"""
    variants, why = checked(kind, config, kind.variants, ours)
    seconds = min(args.seconds, 0.5)
    base = dict(config, workers=cores)
    best, tried = choose(kind, base, variants, seconds) if variants else (None, why)
    if best is not None and not kind.keep_memory and best["workers"]:
        best, more = choose(kind, base, [dict(best, prefetch_factor=n) for n in (2, 4)], seconds)
        tried = f"{tried}; {more}"
    if best is None:
        return {}, f"{kind.title}: left out: {tried}"
    say(f"{kind.name}: {tried}")
    sides = {}
    for n in counts if kind.every_count else [best["workers"]]:
        sides[kind.name, n] = kind_peer(kind, dict(config, **dict(best, workers=n)))
        sides[kind.name, n].title, sides[kind.name, n].how = kind.title, describe(dict(best, workers=n))
    return sides, None


def open_sides(args, config, counts, cores):
    import check
    from sides import Raw, Weir
    sides, left_out = {}, []
    for n in counts:
        mine = dict(config, workers=n)
        sides["raw", n] = Raw(args.limits, mine)
        for output in ("u8", "f32-nchw"):
            sides[f"weir {output}", n] = Weir(args.weir, mine, output)
    for (name, _), side in sides.items():
        side.title, side.how = {"raw": "raw libjpeg-turbo"}.get(name, name.replace("u8", "u8 nhwc").replace("f32-", "f32 ")), ""
    ours = check.weir_batches(args.limits, config)
    for kind in kinds(cores):
        if kind.name in args.peers.split(","):
            more, why = open_kind(kind, config, counts, cores, ours, args)
            sides.update(more)
            left_out += [why] if why else []
    return dict(sorted(sides.items(), key=lambda item: ["raw", "weir u8", "weir f32-nchw", "pool", "act", "spdl",
                                                         "webdataset"].index(item[0][0]))), left_out


def measure(sides, args):
    """{key: {"title", "how", "rates"}}. A round runs one trial per side; the starting side rotates."""
    order = list(sides)
    for side in sides.values():
        side.turn(min(args.seconds, 0.3))  # warm-up; also Weir's first estimate of its rate
    rates = {key: [] for key in order}
    for i in range(args.rounds):
        say(f"round {i + 1} of {args.rounds}: {len(order)} turns of {args.seconds:g} s")
        first = i * len(order) // args.rounds
        for key in order[first:] + order[:first]:
            rates[key].append(sides[key].turn(args.seconds))
    return {key: {"title": side.title, "how": side.how, "rates": rates[key]} for key, side in sides.items()
            if all(rates[key])}


def compare(args, quality, counts, cores):
    import disk
    import results
    from episodes import Episodes
    data = make_data(args, quality)
    episodes = Episodes(data, CHUNK_SIZE)
    width, height = map(int, args.size.split("x"))
    config = {"data": data, "chunk_size": CHUNK_SIZE, "batch_size": BATCH_SIZE, "width": width, "height": height,
              "shuffle": True, "cameras": len(episodes.cameras), "samples": len(episodes.samples)}
    sides, left_out = open_sides(args, config, counts, cores)
    rates = measure(sides, args)
    left_out += [f"{side.title}: broke: {side.left_out}" for side in sides.values() if side.left_out]
    for side in sides.values():
        side.close()
    block = -(-int(episodes.mean_bytes) // 4096) * 4096
    reads = {"block_bytes": block, "fio": disk.fio(episodes.paths, block, cores, args.seconds),
             "weir": disk.weir(args.weir, data, args.seconds)}
    lines = results.promises(rates, counts, cores)
    results.print_table(quality, rates, counts, cores)
    for line in left_out:
        print(line)
    for name in ("fio", "weir"):
        value = f"{reads[name]:.0f} MB/s" if not isinstance(reads[name], str) else "left out: " + reads[name]
        print(f"cold reads, {name}, blocks of {block} bytes: {value}")
    results.print_promises(lines)
    return {"quality": quality, "mean_jpeg_bytes": episodes.mean_bytes, "cold_reads": reads, "left_out": left_out,
            "loaders": [dict(side, name=name, workers=workers) for (name, workers), side in rates.items()],
            "promises": [dict(zip(("text", "ratio", "target", "met"), line)) for line in lines]}


def machine(weir, data):
    from sides import run_program
    first = run_program([weir, "run", data, "--max-batches", "1", "--train-split", "1", "--log", "-"]).splitlines()[0]
    return {key: json.loads(first)[key] for key in ("weir", "git", "machine", "versions")}


def versions():
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def main(argv):
    args = parse(argv)
    if not args.no_install:
        install(argv)
    for program in (args.weir, args.limits):
        if not os.access(program, os.X_OK):
            sys.exit(f"{program} does not exist: build it with make bench-peers, or pass --weir and --limits")
    cores = len(os.sched_getaffinity(0))
    counts = [int(n) for n in args.workers.split(",")] if args.workers else \
        sorted({1 << i for i in range(cores.bit_length()) if 1 << i <= cores} | {cores})
    qualities = [int(quality) for quality in args.qualities.split(",")]
    about = machine(args.weir, make_data(args, qualities[0]))
    print(f"machine: {about['machine']['cpu_model']}, {cores} usable cores; Weir {about['weir']} ({about['git']})")
    print(f"python:  {sys.version.split()[0]}, " + ", ".join(f"{name} {number}" for name, number in versions().items()))
    print(f"method:  {args.size}, 4 cameras, batches of {BATCH_SIZE}, chunks of {CHUNK_SIZE}, page cache warm; "
          f"{args.rounds} rounds of {args.seconds:g} s a turn")
    found = [compare(args, quality, counts, cores) for quality in qualities]
    if args.json:
        with open(args.json, "w") as out:
            json.dump({"about": about, "python": versions(), "cores": cores, "rounds": args.rounds,
                       "seconds": args.seconds, "results": found}, out, indent=1)


if __name__ == "__main__":
    main(sys.argv[1:])
