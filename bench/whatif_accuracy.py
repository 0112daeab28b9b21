#!/usr/bin/env python3
"""Measures the accuracy of `weir whatif`: runs `weir whatif --check --json` over (dataset, settings) cases and prints
the distribution of the errors of predicted ratios.

    whatif_accuracy.py WEIR [DATA...] [--quick] [--minutes F] [--cuda] [--only TEXT] [--cold] [--json FILE] [--work-dir DIR]

It creates datasets, times each once, and uses steps of 0.5, 1 and 2 times the time to load a batch. DATA are further
datasets, run without a step and with a step of the loading time. --quick runs five cases in 7.5 minutes, one of them on
a GPU if available. --cuda runs all cases on the GPU; --cold drops files from the page cache before each trial. The
cases share --minutes. Exit status 1: no pair was checked."""
import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SYNTH = {
    "q95": ["--format", "act-jpeg", "--size", "640x480", "--cameras", "top,wrist", "--steps", "120"],
    "q50": ["--format", "act-jpeg", "--size", "640x480", "--quality", "50", "--cameras", "top,wrist", "--steps", "120"],
    "small": ["--format", "act-jpeg", "--size", "64x48", "--cameras", "top", "--steps", "400"],
    "raw": ["--format", "act", "--size", "320x240", "--cameras", "top", "--steps", "150"],
    "gzip": ["--format", "robomimic-gzip", "--size", "84x84", "--steps", "100"],
}
CONVERT = {"packed": ("q95", ["--to", "packed"], ".weir"), "zarr": ("raw", ["--to", "zarr"], ""),
           "png": ("small", ["--to", "lmdb", "--codec", "png"], "")}
# Name, dataset, options of weir run, step (multiple of the time to load a batch), whether --quick includes it.
CASES = [
    ("q95, no step", "q95", [], 0, True),
    ("q95, balanced step", "q95", [], 1, True),
    ("q50, step half as long", "q50", ["--batch-size", "16"], 0.5, False),
    ("small frames, balanced step", "small", ["--batch-size", "32"], 1, True),
    ("raw, no step", "raw", [], 0, True),
    ("gzip chunks, balanced step", "gzip", [], 1, False),
    ("packed, floats, step half as long", "packed", ["--dtype", "f32", "--image-layout", "nchw"], 0.5, True),
    ("zarr, step twice as long", "zarr", [], 2, False),
    ("png, one worker, no step", "png", ["--num-workers", "1"], 0, False),
    ("q50, one batch ahead, balanced step", "q50", ["--prefetch", "1", "--batch-size", "4"], 1, False),
]


def run(args, **more):
    return subprocess.run(args, capture_output=True, text=True, check=False, **more)


class Datasets:
    """Datasets, created on first use."""

    def __init__(self, weir, folder):
        self.weir, self.folder, self.made = weir, folder, {}

    def path(self, name):
        if name not in self.made:
            self.made[name] = self.make(name)
        return self.made[name]

    def make(self, name):
        if os.path.exists(name):
            return name
        if name in CONVERT:
            source, options, suffix = CONVERT[name]
            path = os.path.join(self.folder, name + suffix)
            done = run([self.weir, "convert", self.path(source), path, *options])
        else:
            path = os.path.join(self.folder, name)
            done = run([self.weir, "synth", path, "--episodes", "4", *SYNTH[name]])
        if done.returncode != 0:
            sys.exit(f"{name}: {done.stderr.strip()}")
        return path


def batch_ms(weir, path, options):
    """Time to load a batch, without a step."""
    done = run([weir, "run", path, *options, "--seconds", "0.7", "--every", "0", "--log", "-"])
    for line in done.stdout.splitlines():
        line = json.loads(line)
        if line["type"] == "measured" and line["batches"] > 0:
            return 1e3 * line["seconds"] / line["batches"]
    sys.exit(f"{path}: {done.stderr.strip()}")


def check(weir, path, options, times, minutes):
    step = [] if times == 0 else ["--step-ms", f"{times * batch_ms(weir, path, options):.4g}"]
    done = run([weir, "whatif", path, *options, *step, "--check", "--json", "--max-minutes", f"{max(minutes, 0.1):.3f}"])
    if done.returncode != 0:
        print(f"{path}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return []
    found = json.loads(done.stdout)
    for change in found["changes"]:
        if "error" not in change:
            print(f"  {change['name']}: {change['why']}", file=sys.stderr)
    return [dict(change, cold=found["cold"]) for change in found["changes"] if "error" in change]


def percentile(values, part):
    """Percentile by nearest rank; part is a fraction."""
    return sorted(values)[max(math.ceil(part * len(values)) - 1, 0)]


def row(name, pairs):
    if not pairs:
        print(f"{name:<28} {0:>5}")
        return
    errors = [abs(pair["error"]) for pair in pairs]
    print(f"{name:<28} {len(pairs):>5} {100 * statistics.median(errors):>7.1f} % {100 * percentile(errors, 0.9):>7.1f} % "
          f"{100 * max(errors):>7.1f} %")


def report(pairs):
    quiet = [p for p in pairs if not p["noisy"]]
    warm = [p for p in quiet if not p["cold"]]
    print(f"\n{'':<28} {'pairs':>5} {'median':>9} {'90th':>9} {'most':>9}")
    row("warm", warm)
    row("cold", [p for p in quiet if p["cold"]])
    row("noisy (over 5 %)", [p for p in pairs if p["noisy"]])
    print()
    for case in dict.fromkeys(p["case"] for p in pairs):
        row("  " + case[:26], [p for p in warm if p["case"] == case])
    print("\nworst:")
    for p in sorted(warm, key=lambda pair: -abs(pair["error"]))[:5]:
        print(f"  {100 * p['error']:+7.1f} %  predicted {p['predicted']:.2f}, measured {p['measured']:.2f} "
              f"[{p['measured_low']:.2f}, {p['measured_high']:.2f}]: {p['case']}: {p['name']}")


def cases_of(options, gpu):
    cases = [case for case in CASES if case[4] or not options.quick]
    cases += [(f"{os.path.basename(data.rstrip('/'))}, {words}", data, [], times, True)
              for data in options.data for words, times in (("no step", 0), ("balanced step", 1))]
    on_gpu = ["--device", "cuda"]
    if options.cuda:
        cases = [(name, data, more + on_gpu, times, quick) for name, data, more, times, quick in cases]
    elif gpu:
        cases.append(("q95 on the GPU, balanced step", "q95", on_gpu, 1, True))
    if options.cold:
        cases = [(name + ", cold", data, more + ["--cold"], times, quick) for name, data, more, times, quick in cases]
    return [case for case in cases if options.only in case[0]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weir")
    parser.add_argument("data", nargs="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--minutes", type=float, default=0, help="time for all cases (default 20, with --quick 7.5)")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--only", default="", help="run only cases whose name contains this text")
    parser.add_argument("--json", help="write all pairs to this file")
    parser.add_argument("--work-dir", help="folder to keep the datasets in (default temporary)")
    options = parser.parse_args()
    doctor = run([options.weir, "doctor", "--json"])
    gpu = doctor.returncode == 0 and bool(json.loads(doctor.stdout).get("gpus"))
    folder = options.work_dir or tempfile.mkdtemp(prefix="whatif-accuracy-")
    os.makedirs(folder, exist_ok=True)
    datasets, pairs = Datasets(options.weir, folder), []
    if options.work_dir:
        for name in SYNTH:
            if os.path.exists(os.path.join(folder, name)):
                datasets.made[name] = os.path.join(folder, name)
        for name, (_, _, suffix) in CONVERT.items():
            if os.path.exists(os.path.join(folder, name + suffix)):
                datasets.made[name] = os.path.join(folder, name + suffix)
    cases = cases_of(options, gpu)
    end = time.monotonic() + 60 * (options.minutes or (7.5 if options.quick else 20))
    try:
        for number, (name, data, more, times, _) in enumerate(cases):
            path = datasets.path(data)
            weights = [3 if "cuda" in case[2] else 1 for case in cases[number:]]  # slow to start there
            minutes = (end - time.monotonic()) / 60 * weights[0] / sum(weights)
            found = check(options.weir, path, more, times, minutes)
            pairs += [dict(pair, case=name) for pair in found]
            print(f"{name}: {len(found)} pairs", flush=True)
    finally:
        if not options.work_dir:
            shutil.rmtree(folder)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(pairs, out, indent=1)
    report(pairs)
    sys.exit(0 if pairs else 1)


if __name__ == "__main__":
    main()
