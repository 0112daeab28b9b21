"""The sides of gpu_compare.py. turn(seconds) runs one trial and returns {name: images/s}. After a failure the rate is
None and left_out contains the reason. The peers are those of bench/peers."""
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BATCH_SIZE, CAMERAS = 32, 4
EPOCH_S = 0.35  # long enough that the gap between epochs is negligible
TRIAL_S = 3  # hybrid first tests whether the SMs help
TURN_LIMIT_S = 90  # limit of a trial
FRAME_BYTES = 640 * 480 * 3


def ended(command, limit_s=TURN_LIMIT_S):
    """(output, None), or (None, error line)."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return None, f"{os.path.basename(command[0])} took longer than {limit_s} s"
    if done.returncode == 0:
        return done.stdout, None
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return None, said[-1][:200] if said else f"{os.path.basename(command[0])} ended with {done.returncode}"


class Program:
    """A side that runs a program for each trial."""

    def __init__(self, names, command):
        self.names, self.command, self.left_out, self.how = names, command, None, ""

    def run(self, *more):
        """The JSON that it prints; None after a failure."""
        if self.left_out:
            return None
        out, self.left_out = ended([*self.command, *more])
        return None if self.left_out else json.loads(out)

    def turn(self, seconds):
        found = self.run("--rounds", "1", "--seconds", str(seconds))
        return self.rates(found) if found else {name: None for name in self.names}

    def close(self):
        pass


class RawTurbo(Program):
    def __init__(self, build, data):
        super().__init__(["raw turbo"], [os.path.join(build, "bench/limits"), "--data", data, "--workers", "auto",
                                         "--raw-only", "--json"])

    def rates(self, found):
        return {"raw turbo": found["comparisons"][0]["raw_images_per_s"]["median"]}


class RawNvjpeg(Program):
    """nvJPEG alone on the JPEG engines, in the fastest configuration of a sweep."""

    def __init__(self, build, data):
        super().__init__(["raw nvjpeg"], [os.path.join(build, "bench/nvjpeg"), data, "--engine", "hw", "--cpu", "0",
                                          "--json"])
        self.swept = []

    def sweep(self, seconds, groups="64,128,256", threads="1,2,4"):
        found = self.run("--rounds", "1", "--seconds", str(seconds), "--groups", groups, "--threads", threads,
                         "--outputs", "rgbi,turns")
        rows = [dict(row["sides"][0], rate=row["images_per_s"]["median"]) for row in found["rows"]
                if not row["why_not"]] if found else []
        self.swept = sorted(rows, key=lambda row: -row["rate"])
        if not rows:
            self.left_out = self.left_out or found["rows"][0]["why_not"]
            return None
        best = self.swept[0]
        self.how = f"{best['output']}, groups of {best['group']}, {best['threads']} threads"
        missing = {row["sides"][0]["output"]: row["why_not"] for row in found["rows"] if row["why_not"]}
        self.how += "".join(f"; {output} not measured: {why}" for output, why in missing.items())
        self.command += ["--groups", str(best["group"]), "--threads", str(best["threads"]), "--outputs",
                         "turns" if "turns" in best["output"] else best["output"]]
        return best["rate"]

    def rates(self, found):
        return {"raw nvjpeg": found["rows"][0]["images_per_s"]["median"]}


class RawFrames(Program):
    """Raw frames, in images/s: reads into pinned memory, copies over the bus, and both at once."""

    def __init__(self, build, data):
        super().__init__(["read", "bus", "read and bus"], [os.path.join(build, "bench/pinned_read"), data, "--json"])

    def turn(self, seconds):
        return super().turn(seconds / 2)  # for each of the three

    def rates(self, found):
        found = {kind: series["median"] / FRAME_BYTES for kind, series in found["bytes_per_s"].items()}
        return {"read": found["read"], "bus": found["bus"], "read and bus": found["both"]}


class Weir:
    """`weir run` into GPU memory. The rate is the median of all epochs except the first (hybrid: except the first 3 s).
    An epoch lasts from one epoch's line to the next, so the gap between epochs counts too."""

    def __init__(self, name, build, data, options, guess, extra):
        self.name, self.names, self.rate, self.left_out, self.how = name, [name], guess, None, ""
        self.settle_s = TRIAL_S if "hybrid" in options else 0
        self.command = [os.path.join(build, "weir"), "run", data, "--device", "cuda", "--dtype", "f16", "--image-layout", "nchw",
                        "--mean", "imagenet", "--std", "imagenet", "--train-split", "1", "--batch-size", str(BATCH_SIZE),
                        "--every", "0", "--log", "-", *options, *extra]

    def turn(self, seconds):
        if self.left_out:
            return {self.name: None}
        batches = max(1, round(self.rate * EPOCH_S / (BATCH_SIZE * CAMERAS)))
        epochs = 1 + max(3, math.ceil(seconds / EPOCH_S)) + math.ceil(self.settle_s / EPOCH_S)
        rates, self.left_out = self._epochs([*self.command, "--max-batches", str(batches), "--num-epochs", str(epochs)])
        if self.left_out:
            return {self.name: None}
        self.rate = statistics.median(rates)
        return {self.name: self.rate}

    def _epochs(self, command):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            watch = threading.Timer(TURN_LIMIT_S, process.kill)
            watch.start()
            ends = [(time.perf_counter(), json.loads(line)) for line in process.stdout
                    if line.startswith('{"type":"epoch"')]
            said = process.stderr.read().strip().splitlines()
        watch.cancel()
        if process.returncode == -signal.SIGKILL:
            return None, f"weir took longer than {TURN_LIMIT_S} s"
        if process.returncode != 0:
            return None, said[-1][:200] if said else f"weir ended with {process.returncode}"
        images = [epoch["images_per_s"] * epoch["total_s"] for _, epoch in ends]
        rates = [(images[i] / (ends[i][0] - ends[i - 1][0]), ends[i - 1][0] - ends[0][0]) for i in range(1, len(ends))]
        settled = [rate for rate, after_s in rates if after_s >= self.settle_s]
        settled = settled or [rate for rate, _ in rates[len(rates) // 2:]]  # the run was faster than guessed
        return (settled, None) if settled else (None, "weir printed no epochs")

    def close(self):
        pass
