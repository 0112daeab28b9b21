"""Sides of the comparison: turn(seconds) runs one trial and returns images/s, or None after a failure."""
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

ANSWER_S = 120  # limit of a peer's reply
HERE = os.path.dirname(os.path.abspath(__file__))
# Otherwise glibc maps and unmaps every image that OpenCV allocates, and page faults take a third of its time.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 25), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)}


class Peer:
    """A process of bench/peers/SCRIPT.py (protocol: peer.py). It is stopped between trials with all its workers, so
    that prefetching does not slow down other sides. It has a separate process group in this session: if this program
    dies, the kernel ends the group even though it is stopped."""

    def __init__(self, script, config, keep_memory=False):
        self.config = config
        env = dict(os.environ, PYTHONWARNINGS="ignore", **(KEEP_MEMORY if keep_memory else {}))
        self.stderr = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, script + ".py"), json.dumps(config)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr,
                                        text=True, env=env, process_group=0)
        answer = self._answer()
        self.left_out = None if answer.get("ready") else answer.get("left_out", "ended while starting")
        self._signal(signal.SIGSTOP)

    def _signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def _answer(self):
        watch = threading.Timer(ANSWER_S, self._signal, [signal.SIGKILL])
        watch.start()
        line = self.process.stdout.readline()
        watch.cancel()
        if line:
            return json.loads(line)
        self.stderr.seek(0)
        said = self.stderr.read().strip().splitlines()
        return {"left_out": said[-1][:200] if said else "ended without a word"}

    def turn(self, seconds):
        if self.left_out:
            return None
        self._signal(signal.SIGCONT)
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        answer = self._answer()
        self._signal(signal.SIGSTOP)
        self.left_out = answer.get("left_out")
        return None if self.left_out else answer["images"] / answer["seconds"]

    def close(self):
        self._signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.stderr.close()


def run_program(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed: {done.stderr.strip() or done.returncode}")
    return done.stdout


class Weir:
    """`weir run`, started for each trial. The rate excludes the first epoch (warm-up) and the last (workers cannot
    prefetch the next epoch). Epochs have full batches only."""

    left_out = None

    def __init__(self, program, config, output, more=()):
        self.images_per_batch = config["batch_size"] * config["cameras"]
        self.batches_max = max(1, config["samples"] // config["batch_size"])  # full batches per epoch
        self.rate = 300.0 * config["workers"]
        form = ["--dtype", "f32", "--image-layout", "nchw"] if output == "f32-nchw" else []
        self.command = [program, "run", config["data"], "--num-workers", str(config["workers"]), "--batch-size",
                        str(config["batch_size"]), "--chunk-size", str(config["chunk_size"]), "--obs-history", "1",
                        "--train-split", "1", "--every", "0", "--log", "-", *form, *more]

    def turn(self, seconds):
        batches = min(self.batches_max, max(1, round(self.rate * seconds / 2 / self.images_per_batch)))
        epochs = 2 + max(1, math.ceil(self.rate * seconds / (batches * self.images_per_batch)))
        ends = self._epoch_ends([*self.command, "--max-batches", str(batches), "--num-epochs", str(epochs)])
        rate = (epochs - 2) * batches * self.images_per_batch / (ends[-2] - ends[0])
        self.rate = min(rate, 3 * self.rate)  # a few prefetched batches can inflate it
        return rate

    @staticmethod
    def _epoch_ends(command):
        """Times at which the epochs' lines arrive. The gaps between epochs count too, unlike in the epochs' own
        times."""
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            ends = [time.perf_counter() for line in process.stdout if line.startswith('{"type":"epoch"')]
            said = process.stderr.read()
        if process.returncode != 0:
            sys.exit(f"{command[0]} failed: {said.strip() or process.returncode}")
        return ends

    def close(self):
        pass


class Raw:
    """libjpeg-turbo alone on frames in memory: bench/limits --raw-only."""

    left_out = None

    def __init__(self, program, config):
        self.command = [program, "--data", config["data"], "--workers", str(config["workers"]), "--raw-only",
                        "--rounds", "1", "--json"]

    def turn(self, seconds):
        out = run_program([*self.command, "--seconds", str(seconds)])
        return json.loads(out)["comparisons"][0]["raw_images_per_s"]["median"]

    def close(self):
        pass
