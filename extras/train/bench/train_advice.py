#!/usr/bin/env python3
"""Measures how much common performance advice speeds up `weir train`.

    extras/train/bench/train_advice.py DATA [--weir PROGRAM] [--device cuda] [--rounds 3] [--epochs 3] [-- OPTION...]

Interleaves the settings, and compares each one's time per sample with that of no setting. Prints the median ratio of
the rounds (min - max), the shares of the step, and the data wait."""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def settings(o, width, height, camera):
    rows = [("none", []),
            ("smaller images", ["--image-size", f"{width // 2}x{height // 2}"]),
            ("fewer cameras", ["--cameras", camera]),
            ("larger batch", ["--batch-size", str(o.batch_size * 4)]),
            ("smaller batch", ["--batch-size", str(max(o.batch_size // 2, 1))]),
            ("accumulation", ["--grad-accumulation", "4"]),
            ("smaller hidden sizes", ["--hidden-dim", "256", "--dim-feedforward", "1600"]),
            ("smaller chunk", ["--chunk-size", "10"])]
    if o.device != "cpu":
        rows += [("mixed precision", ["--amp"]), ("JPEGs decoded by the GPU", ["--decoder", "nvjpeg"]),
                 ("JPEGs decoded by both", ["--decoder", "hybrid"])]
    return rows


def train(o, options):
    """(seconds of training per sample without the first epoch, last table)"""
    with tempfile.NamedTemporaryFile() as log:
        command = [o.weir, "train", o.data, "--device", o.device, "--lr", "1e-5", "--num-epochs", str(o.epochs), "--every", "0",
                   "--log", log.name, "--train-split", "1", "--batch-size", str(o.batch_size), *options, *o.more]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=300)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: {done.stderr.strip().splitlines()[-1]}")
        lines = [json.loads(line) for line in open(log.name, encoding="utf-8")]
    epochs = [line for line in lines if line["type"] == "epoch"][1:]
    return (statistics.median(e["train_s"] / (e["samples_per_s"] * e["total_s"]) for e in epochs),
            [line for line in lines if line["type"] == "stages"][-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data")
    parser.add_argument("--weir", default=os.path.join(HERE, "../../../build/release/weir"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3, help="epochs per trial; the first is not timed")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--only", help="only settings with one of these comma-separated words in their names")
    parser.add_argument("more", nargs="*", help="options of weir train, after --")
    o = parser.parse_args()
    info = json.loads(subprocess.run([o.weir, "info", o.data, "--json"], stdout=subprocess.PIPE, check=True).stdout)
    camera = info["cameras"][0]
    rows = settings(o, camera["width"], camera["height"], camera["name"])
    if o.only:
        rows = rows[:1] + [row for row in rows[1:] if any(word in row[0] for word in o.only.split(","))]
    taken = {name: [] for name, _ in rows}
    tables = {}
    for turn in range(o.rounds):
        for name, options in rows if turn % 2 == 0 else rows[::-1]:
            seconds, tables[name] = train(o, options)
            taken[name].append(seconds)
    print(f"{'':26}{'ms a sample':>12}{'times faster':>24}   data wait, forward, backward, optimiser of the step")
    for name, _ in rows:
        ratios = sorted(a / b for a, b in zip(taken["none"], taken[name]))
        share = tables[name]["verdict"]["step_shares"]
        parts = ", ".join(f"{100 * share[part]:.0f} %" for part in ("data_wait", "forward", "backward", "optimizer"))
        faster = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} - {ratios[-1]:.2f})"
        print(f"{name:26}{1e3 * statistics.median(taken[name]):12.3f}{faster:>24}   {parts}")


if __name__ == "__main__":
    main()
