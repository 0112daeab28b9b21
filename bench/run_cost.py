#!/usr/bin/env python3
"""Measures the cost of timing and recording in `weir run`: images/s without timing, with it, and with every step
recorded. run_cost.py WEIR DATA [--rounds N] [--workers N,auto] [--json]. Runs are interleaved, and medians are over
ratios within a round, so that other load affects all three alike."""
import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile

KINDS = {
    "no timing": ["--no-timing"],
    "aggregates": [],
    "recording": ["--profile", None, "--schedule", "active=1000000000"],
    "recording, shapes and memory": ["--profile", None, "--schedule", "active=1000000000", "--record-shapes",
                                     "--profile-memory"],
}


def measure(weir, data, workers, epochs, extra):
    folder = tempfile.mkdtemp()
    args = [folder if arg is None else arg for arg in extra]
    done = subprocess.run([weir, "run", data, "--num-workers", workers, "--num-epochs", str(epochs), "--every", "0",
                           "--log", "-", *args], capture_output=True, text=True)
    shutil.rmtree(folder)
    if done.returncode != 0:
        sys.exit(done.stderr)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    dropped = sum(w["dropped"] for line in lines if line["type"] == "profile" for w in line["windows"])
    rates = [line["images_per_s"] for line in lines if line["type"] == "epoch"][1:]  # the first epoch fills caches
    return statistics.median(rates), dropped


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weir")
    parser.add_argument("data")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--workers", default="1,auto")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    results = []
    for workers in args.workers.split(","):
        rates = {kind: [] for kind in KINDS}
        dropped = 0
        for _ in range(args.rounds):
            for kind, extra in KINDS.items():
                rate, lost = measure(args.weir, args.data, workers, args.epochs, extra)
                rates[kind].append(rate)
                dropped += lost
        for kind in KINDS:
            costs = [100 * (1 - mine / none) for mine, none in zip(rates[kind], rates["no timing"])]
            results.append({"workers": workers, "kind": kind, "images_per_s": statistics.median(rates[kind]),
                            "cost_percent": statistics.median(costs), "n": len(costs), "dropped": dropped})
    if args.json:
        print(json.dumps(results, indent=1))
        return
    print("workers  kind                            images/s   cost, median of pairs")
    for r in results:
        print(f"{r['workers']:>7}  {r['kind']:<30}  {r['images_per_s']:8.0f}   {r['cost_percent']:+.2f} %")
    lost = sum(r["dropped"] for r in results)
    print(f"{lost} records dropped" if lost else "no record was dropped")


if __name__ == "__main__":
    main()
