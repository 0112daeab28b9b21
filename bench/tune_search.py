#!/usr/bin/env python3
"""Compares `weir tune` with an exhaustive search: tune_search.py WEIR [--quick] [--work DIR] [--rounds N] [--seconds F]
[--repeats N] [--cases "a;b"] [--json FILE].

A case is a dataset (from `weir synth`), a number of cores (by affinity) and a training step. The exhaustive search runs
one trial per round of every combination of workers (1, 2, 4, .. cores, 1.5 x cores), prefetch (1, 2, 4, 8, 16) and I/O
engine. `weir tune` runs several times with trials of the same length. Final rounds then compare its settings with the
three best of the exhaustive search.

`ratio` is the worst repeat's images/s relative to the best of the three, as the median over rounds; `least` and `most`
are its min and max. `time` is the longest repeat's time relative to the exhaustive search's. Neither side uses the
decode cache. Targets: a ratio of 0.97, 15 % of the time, and repeats that agree or tie (within 3 %, or 1 between least
and most).

--quick: four cases, two rounds, three repeats, trials of 0.25 s: under 9 minutes on 16 cores."""
import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

PREFETCH = [1, 2, 4, 8, 16]
FINAL_ROUNDS, TOP = 7, 3
DATASETS = {  # name: options of weir synth
    "jpeg": ["--format", "act-jpeg", "--episodes", "16", "--steps", "100", "--size", "320x240", "--cameras", "top,wrist"],
    "large": ["--format", "act-jpeg", "--episodes", "8", "--steps", "60", "--size", "640x480", "--cameras", "top,low,left_wrist,right_wrist"],
    "raw": ["--format", "act", "--episodes", "8", "--steps", "100", "--size", "320x240", "--cameras", "top,wrist"],
    "gzip": ["--format", "robomimic-gzip", "--episodes", "8", "--steps", "100", "--size", "160x120"],
}
# name: dataset, fraction of the cores, step as a multiple of a batch's loading time (0: no step), further options
CASES = {
    "jpeg": ("jpeg", 1, 0, []),
    "jpeg, step": ("jpeg", 1, 2, []),
    "raw": ("raw", 1, 0, []),
    "raw, half the cores": ("raw", 0.5, 0, []),
    "jpeg, half the cores, step": ("jpeg", 0.5, 1.5, []),
    "large, f32": ("large", 1, 0, ["--dtype", "f32"]),
    "large, step as long": ("large", 1, 1, []),
    "gzip": ("gzip", 1, 0, []),
    "raw, step": ("raw", 1, 2, []),
}
QUICK = ["jpeg", "jpeg, step", "raw", "raw, half the cores"]


class Case:
    def __init__(self, args, name, data, cpus, options):
        self.args, self.name, self.data, self.cpus, self.options = args, name, data, cpus, options

    def weir(self, *words):
        command = [self.args.weir, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              preexec_fn=lambda: os.sched_setaffinity(0, self.cpus))
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    def turn(self, setting, seconds=None):
        """images/s of one process."""
        workers, prefetch, engine, *depth = setting
        more = ["--io-depth", str(depth[0])] if depth and depth[0] else []
        lines = self.weir("run", self.data, *self.options, "--num-workers", str(workers), "--prefetch", str(prefetch), "--io", engine, *more,
                          "--seconds", str(seconds or self.args.seconds), "--every", "0", "--log", "-").splitlines()
        return next(line["images_per_s"] for line in map(json.loads, lines) if line["type"] == "measured")

    def rounds(self, settings, n):
        """Rates of each setting. Round r starts with setting r."""
        rates = {s: [] for s in settings}
        for r in range(n):
            for i in range(len(settings)):
                s = settings[(i + r) % len(settings)]
                rates[s].append(self.turn(s))
        return rates

    def tune(self):
        began = time.monotonic()
        found = json.loads(self.weir("tune", self.data, *self.options, "--min-seconds", str(self.args.seconds), "--max-cache", "0", "--json"))
        s = found["candidates"][found["chosen"]]["setting"]
        return (s["num_workers"], s["prefetch"], s["io"], s["io_depth"] or 0), time.monotonic() - began, found


def engines(weir):
    rows = json.loads(subprocess.run([weir, "doctor", "--json"], capture_output=True, text=True, check=True).stdout)["io"]
    return [r["name"] for r in rows if r["present"] and r["name"] != "null"]


def worker_counts(cores):
    counts = {1, cores, cores + cores // 2}
    n = 2
    while n < cores:
        counts.add(n)
        n *= 2
    return sorted(counts)


def ratios(a, b):
    return [x / y for x, y in zip(a, b)]


def is_tie(a, b):
    r = ratios(a, b)
    return abs(statistics.median(r) - 1) <= 0.03 or min(r) <= 1 <= max(r)


def text(setting):
    workers, prefetch, engine, depth = setting
    return f"{workers} workers, prefetch {prefetch}, {engine}" + (f" depth {depth}" if depth else "")


def run_case(args, name, case):
    grid = [(w, p, e, 0) for w, p, e in itertools.product(worker_counts(len(case.cpus)), PREFETCH, engines(args.weir))]
    began = time.monotonic()
    rates = case.rounds(grid, args.rounds)
    exhaustive_s = time.monotonic() - began
    top = sorted(grid, key=lambda s: -statistics.median(rates[s]))[:TOP]
    tuned = [case.tune() for _ in range(args.repeats)]
    chosen = [t[0] for t in tuned]
    final = case.rounds(list(dict.fromkeys(top + chosen)), FINAL_ROUNDS)
    best = max(top, key=lambda s: statistics.median(final[s]))
    worst = min(chosen, key=lambda s: statistics.median(ratios(final[s], final[best])))
    ratio = ratios(final[worst], final[best])
    agree = all(a == b or is_tie(final[a], final[b]) for a, b in itertools.combinations(set(chosen), 2))
    return {"case": name, "cores": len(case.cpus), "options": case.options, "cells": len(grid), "best": text(best),
            "best_images_per_s": statistics.median(final[best]), "ratio": statistics.median(ratio), "least": min(ratio), "most": max(ratio),
            "exhaustive_s": exhaustive_s, "tune_s": [t[1] for t in tuned], "time": max(t[1] for t in tuned) / exhaustive_s,
            "turns": [t[2]["turns"] for t in tuned], "chosen": [text(s) for s in chosen], "agree": agree,
            "paths": [t[2]["path"] for t in tuned]}


def print_row(row):
    settings = "; ".join(f"{row['chosen'].count(s)} x {s}" for s in dict.fromkeys(row["chosen"]))
    print(f"| {row['case']} | {row['cores']} | {row['best_images_per_s']:,.0f} ({row['best']}) | {row['ratio']:.3f} ({row['least']:.3f} - {row['most']:.3f}) "
          f"| {row['exhaustive_s']:.0f} s, {row['cells']} cells | {statistics.median(row['tune_s']):.1f} s | {100 * row['time']:.1f} % "
          f"| {settings} | {'yes' if row['agree'] else 'NO'} |", flush=True)


def step_options(case, part):
    """A step of part times the time to load a batch of 8 samples with one worker per core."""
    if not part:
        return []
    cores = len(case.cpus)
    lines = case.weir("run", case.data, *case.options, "--num-workers", str(cores), "--seconds", "0.5", "--every", "0", "--log", "-").splitlines()
    measured = next(line for line in map(json.loads, lines) if line["type"] == "measured")
    return ["--step-ms", f"{max(part * 8 * 1000 / measured['samples_per_s'], 0.1):.2g}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weir")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--work")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--cases")
    parser.add_argument("--json")
    args = parser.parse_args()
    args.weir = os.path.abspath(args.weir)
    args.rounds = args.rounds or (2 if args.quick else 3)
    args.seconds = args.seconds or (0.25 if args.quick else 0.5)
    args.repeats = args.repeats or (3 if args.quick else 5)
    names = [n.strip() for n in args.cases.split(";")] if args.cases else QUICK if args.quick else list(CASES)
    cpus = sorted(os.sched_getaffinity(0))
    work = args.work or tempfile.mkdtemp(prefix="tune_search_")
    rows = []
    print(f"{len(cpus)} cores, trials of {args.seconds} s, {args.rounds} rounds, {args.repeats} repeats")
    print("| case | cores | best of the exhaustive search, images/s | ratio, worst repeat (least - most) | exhaustive search | weir tune "
          "| longest, of that | settings taken | agree |\n|---|---|---|---|---|---|---|---|---|", flush=True)
    for name in names:
        dataset, part, step, options = CASES[name]
        data = os.path.join(work, dataset)
        if not os.path.isdir(data):
            subprocess.run([args.weir, "synth", data, *DATASETS[dataset]], check=True, stdout=subprocess.DEVNULL)
        case = Case(args, name, data, set(cpus[:max(1, round(len(cpus) * part))]), list(options))
        case.options += step_options(case, step)
        rows.append(run_case(args, name, case))
        print_row(rows[-1])
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)
    if not args.work:
        shutil.rmtree(work)
    print(f"{sum(r['ratio'] >= 0.97 for r in rows)} of {len(rows)} cases reach 0.97 of the best, {sum(r['time'] <= 0.15 for r in rows)} in 15 % of the "
          f"time, {sum(r['agree'] for r in rows)} agree")


if __name__ == "__main__":
    main()
