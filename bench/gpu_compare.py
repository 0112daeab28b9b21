#!/usr/bin/env python3
"""Compares Weir on a GPU with the hardware's limits and other loaders: bench/gpu_compare.py --build FOLDER [--help].
docs/internals/measuring.md describes the method. FOLDER is a build folder, or one packed by tests/gpu/pack.sh."""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "peers")]

import gpu_sides  # noqa: E402

DECODERS = ("turbo", "nvjpeg", "hybrid", "auto")
SIDES = ("raw-turbo", "raw-nvjpeg", "turbo", "nvjpeg", "hybrid", "auto", "raw-frames", "frames")
PEERS = ("act_gpu", "pool_gpu", "nvjpeg_torch")
# Targets at quality 95: (side, baselines, min ratio). None: for information only.
PROMISED = [("turbo", ("raw turbo",), 1.3), ("turbo", ("act_gpu",), 10), ("turbo", ("pool_gpu",), 3),
            ("nvjpeg", ("raw nvjpeg",), 0.90), ("nvjpeg", ("nvjpeg_torch",), 6),
            ("hybrid", ("raw turbo", "raw nvjpeg"), 0.85), ("auto", ("raw turbo", "raw nvjpeg"), None)]
LINKS = {"jpeg": 8, "frames": 24}  # links to every episode: 11,520 and 15,360 images


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    add = parser.add_argument
    add("--build", default=os.path.join(os.path.dirname(HERE), "build/release"), help="where weir and bench/limits are")
    add("--data", help="folder of the datasets, which are made when they are missing; default: a temporary one")
    add("--rounds", type=int, default=5)
    add("--seconds", type=float, default=1.2, help="length of a turn")
    add("--qualities", default="95,50", help="of the JPEGs; the first is the one that peers choose their best way by")
    add("--sides", default=",".join(SIDES), help="which, separated by commas: " + ", ".join(SIDES))
    add("--peers", default="none", help="none, all, or names: " + ", ".join(PEERS))
    add("--beside", action="append", default=[], metavar="NAME=FOLDER", help="another build, whose sides of Weir take "
        "turns as well, as 'NAME nvjpeg' and so on; again for more")
    add("--extra", default="", help="more options for weir run, in one argument: --extra='--prefetch 12'")
    add("--json", help="write all results here")
    args = parser.parse_args(argv)
    args.sides = args.sides.split(",")
    args.peers = {"none": [], "all": list(PEERS)}.get(args.peers, args.peers.split(","))
    args.qualities = [int(quality) for quality in args.qualities.split(",")]
    for name in args.sides + args.peers:
        if name not in SIDES + PEERS:
            parser.error(f"{name} is not one of {', '.join(SIDES + PEERS)}")
    args.beside = [other.partition("=")[::2] for other in args.beside]
    for name, folder in args.beside:
        if not name or not os.access(os.path.join(folder, "weir"), os.X_OK):
            parser.error(f"--beside {name}={folder}: must be NAME=FOLDER, with another build in FOLDER/weir")
    if args.rounds < 1 or args.seconds <= 0:
        parser.error("--rounds must be at least 1, --seconds positive")
    return args


def say(text):
    print(text, file=sys.stderr, flush=True)


# ---- data ----

def make_data(args, name, options):
    data = os.path.join(args.data, name)
    if not os.path.isdir(data):
        subprocess.run([os.path.join(args.build, "weir"), "synth", data + ".part", *options, "--cameras",
                        "top,left,right,low"], check=True, stdout=subprocess.DEVNULL)
        os.rename(data + ".part", data)
    return data


def linked(data, times):
    """Creates several links to each episode, so that an epoch is long enough to time and still fits in the page
    cache."""
    folder = data + "-linked"
    if not os.path.isdir(folder):
        names = sorted(os.listdir(data))
        os.makedirs(folder + ".part", exist_ok=True)
        for i in range(times * len(names)):
            os.link(os.path.join(data, names[i % len(names)]), os.path.join(folder + ".part", f"episode_{i}.hdf5"))
        os.rename(folder + ".part", folder)
    return folder


# ---- measuring ----

def measure(sides, args):
    """{name: [images/s of each round]}. A round runs one trial per side; the starting side rotates."""
    rates = {name: [] for side in sides for name in side.names}
    for i in range(args.rounds):
        first = i * len(sides) // args.rounds
        for side in sides[first:] + sides[:first]:
            for name, rate in side.turn(args.seconds).items():
                rates[name].append(rate)
    return rates


def ratios(rates, above, below):
    """Ratios of the rounds in which all were measured. below: the rates of one baseline, or of several combined."""
    pairs = zip(rates.get(above, []), below)
    return [a / b for a, b in pairs if a and b]


def sums(rates, names, join=sum):
    rounds = zip(*(rates[name] for name in names)) if all(name in rates for name in names) else ()
    return [join(values) if all(values) else None for values in rounds]


class Line:
    """A ratio and its target."""

    def __init__(self, text, values, target):
        self.text, self.values, self.target = text, values, target
        self.median = statistics.median(values)

    def verdict(self):
        if self.target is None:
            return ""
        missed = 100 * (1 - self.median / self.target)
        return f">= {self.target:g}  " + (f"missed by {missed:.1f} %" if self.median < self.target else "PASS")

    def json(self):
        return {"text": self.text, "median": self.median, "values": self.values, "target": self.target,
                "met": None if self.target is None else self.median >= self.target}


def jpeg_lines(rates, others):
    found = [(f"{above} / {' + '.join(below)}", ratios(rates, above, sums(rates, below)), target)
             for above, below, target in PROMISED]
    found += [(f"{name} / {other} {name}", ratios(rates, name, sums(rates, (f"{other} {name}",))), None)
              for other in others for name in DECODERS]
    return [Line(*line) for line in found if line[1]]


def frames_lines(rates):
    found = [("frames / smaller of read and bus", ratios(rates, "frames", sums(rates, ("read", "bus"), min)), 0.90),
             ("frames / read and bus at once", ratios(rates, "frames", sums(rates, ("read and bus",))), None)]
    return [Line(*line) for line in found if line[1]]


def spread(values, form):
    return f"{statistics.median(values):{form}} ({min(values):{form}} - {max(values):{form}})"


def report(title, sides, rates, lines):
    """Prints the results, and returns them for the JSON."""
    print(f"\n{title}: images/s, median (min - max)")
    for side in sides:
        for name in side.names:
            values = [rate for rate in rates[name] if rate]
            if values:
                print(f"  {name:<14} {spread(values, '.0f'):<26} {side.how}".rstrip())
        if side.left_out:
            print(f"  {', '.join(side.names)}: left out: {side.left_out}")
    for line in lines:
        print(f"  {line.text:<36} {spread(line.values, '.3f'):<24} {line.verdict()}".rstrip())
    sys.stdout.flush()
    return {"title": title, "rates": rates, "how": {name: side.how for side in sides for name in side.names},
            "swept": [row for side in sides for row in getattr(side, "swept", [])],
            "left_out": {name: side.left_out for side in sides for name in side.names if side.left_out},
            "ratios": [line.json() for line in lines]}


# ---- measurements ----

def weir_sides(args, many, guess, name):
    """A decoder of Weir, as one side per build."""
    guess = guess.get(name) or 400 * len(os.sched_getaffinity(0))
    builds = [("", args.build)] + [(other + " ", build) for other, build in args.beside]
    return [gpu_sides.Weir(label + name, build, many, ["--decoder", name], guess, args.extra) for label, build in builds]


def compare_jpeg(args, quality, open_peers):
    data = make_data(args, f"q{quality}", ["--format", "act-jpeg", "--quality", str(quality), "--episodes", "6",
                                           "--steps", "60"])
    many = linked(data, LINKS["jpeg"])
    sides, guess = [], {}
    if "raw-turbo" in args.sides:
        sides.append(gpu_sides.RawTurbo(args.build, data))
        guess["turbo"] = sides[-1].turn(0.2)["raw turbo"]
    nvjpeg = gpu_sides.RawNvjpeg(args.build, data) if "raw-nvjpeg" in args.sides else None
    if nvjpeg:
        guess["nvjpeg"] = guess["hybrid"] = guess["auto"] = nvjpeg.sweep(min(0.25, args.seconds))
    for name in DECODERS:
        if name == "nvjpeg" and nvjpeg:
            sides.append(nvjpeg)
        if name in args.sides:
            sides += weir_sides(args, many, guess, name)
    sides += open_peers(data)
    say(f"quality {quality}: {args.rounds} rounds of {len(sides)} sides")
    rates = measure(sides, args)
    for side in sides:
        side.close()
    return report(f"quality {quality}", sides, rates, jpeg_lines(rates, [other for other, _ in args.beside]))


def compare_frames(args):
    data = make_data(args, "raw", ["--format", "act", "--episodes", "4", "--steps", "40"])
    sides, guess = [], None
    if "raw-frames" in args.sides:
        sides.append(gpu_sides.RawFrames(args.build, data))
        guess = sides[0].turn(0.2)["read and bus"]
    if "frames" in args.sides:
        sides.append(gpu_sides.Weir("frames", args.build, linked(data, LINKS["frames"]), [],
                                    guess or 1000 * len(os.sched_getaffinity(0)), args.extra))
    say(f"raw frames: {args.rounds} rounds")
    rates = measure(sides, args)
    return report("raw frames", sides, rates, frames_lines(rates))


def doctor(build):
    out, why = gpu_sides.ended([os.path.join(build, "weir"), "doctor"])
    return out.splitlines() if out else [why]


def compare(args):
    start = time.monotonic()
    about = doctor(args.build)
    print("\n".join(line for line in about if line.startswith(("weir ", "  CPU ", "  cores ", "  gpu "))))
    print(f"method:  640x480, 4 cameras, batches of {gpu_sides.BATCH_SIZE} in the GPU's memory, f16 nchw, normalised; "
          f"{args.rounds} rounds of {args.seconds:g} s a turn; ratios are of one round"
          + (f"; weir run with {shlex.join(args.extra)}" if args.extra else ""), flush=True)
    peers = None
    if args.peers:
        try:
            from gpu_peers import Peers
            peers = Peers(args)
        except ImportError as error:
            print(f"peers: left out: {error}")
    found = []
    if set(args.sides) - {"raw-frames", "frames"} or args.peers:
        found += [compare_jpeg(args, quality, peers.open if peers else lambda data: []) for quality in args.qualities]
    if set(args.sides) & {"raw-frames", "frames"}:
        found.append(compare_frames(args))
    print(f"\n{time.monotonic() - start:.0f} s; targets are stated for quality 95")
    return {"about": about, "python": sys.version.split()[0], "packages": peers.versions if peers else {},
            "beside": dict(args.beside), "rounds": args.rounds, "seconds": args.seconds, "extra": args.extra,
            "results": found}


def main(argv):
    args = parse(argv)
    args.extra = shlex.split(args.extra)
    args.build = os.path.abspath(args.build)
    if not os.access(os.path.join(args.build, "weir"), os.X_OK):
        sys.exit(f"{args.build}/weir does not exist: build it, or pass another folder with --build")
    with tempfile.TemporaryDirectory() as folder:
        args.data = args.data or folder
        os.makedirs(args.data, exist_ok=True)
        found = compare(args)
    if args.json:
        with open(args.json, "w") as out:
            json.dump(found, out, indent=1)
    return 1 if any(set(result["left_out"]) - set(PEERS) for result in found["results"]) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
