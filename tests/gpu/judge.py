#!/usr/bin/env python3
"""Judges a log of weir run, for gpu.sh: judge.py memory|step LOG. Exit status 1: a check failed.

memory: neither the host's peak nor the GPU's memory keeps growing: from the first half of the tables (without the
        first) to the second it grows at most once. The driver allocates a block of its own on first use, at any time.
step:   prints data wait and hidden copies of each epoch except the first, which starts with empty queues. For
        information only: a machine's speed cannot fail."""
import json
import sys
import tempfile

GROWTH_MAX_BYTES = 4 << 20
WAIT_MAX, HIDDEN_MIN = 0.01, 0.95


def lines(path, kind):
    with open(path) as log:
        return [line for line in map(json.loads, log) if line["type"] == kind]


def grows(what, values):
    if len(values) < 5 or None in values:
        print(f"{what}: cannot judge: the log has {len(values)} values, too few or incomplete")
        return True
    half = len(values) // 2
    growth = max(values[half:]) - max(values[1:half])
    steps = sum(value > max(values[1:half + i]) for i, value in enumerate(values[half:]))
    print(f"{what}: {max(values[1:half]) / 1e6:.1f} MB in the first half, {max(values[half:]) / 1e6:.1f} MB in the second")
    return growth > GROWTH_MAX_BYTES and steps > 1


def memory(path):
    host = [line["peak_rss_bytes"] for line in lines(path, "epoch")]
    gpu = [line["gpu"].get("memory_used_bytes") for line in lines(path, "stages") if not line.get("final")]
    return [grows("the host's peak", host), grows("the GPU's memory, all programs", gpu)].count(True)


def step(path):
    for line in lines(path, "epoch")[1:]:
        wait, hidden = line["data_wait_fraction"], line["copy_overlap_fraction"]
        verdicts = ["PASS" if wait < WAIT_MAX else "missed",
                    "no copies" if hidden is None else "PASS" if hidden >= HIDDEN_MIN else "missed"]
        print(f"epoch {line['epoch']}: data wait {100 * wait:.2f} % (< 1 % {verdicts[0]}), copies hidden "
              f"{100 * (hidden or 0):.1f} % (>= 95 % {verdicts[1]})")
    return 0


def self_test():
    """Constant memory and a single step pass; growing or missing memory of the host or the GPU fails."""
    def faults(host, gpu):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as log:
            for i in range(8):
                used = {} if gpu is None else {"memory_used_bytes": 10**9 + (gpu(i) if callable(gpu) else gpu * i)}
                lines = ({"type": "epoch", "peak_rss_bytes": 10**8 + host * i}, {"type": "stages", "gpu": used})
                log.writelines(json.dumps(line) + "\n" for line in lines)
            log.flush()
            return memory(log.name)
    found = [faults(*growth) for growth in ((0, 0), (0, 10**7), (10**7, 0), (10**7, 10**7), (0, None), (0, lambda i: 10**7 * (i > 5)))]
    print(found)
    return found != [0, 1, 1, 2, 1, 0]


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    if len(sys.argv) != 3 or sys.argv[1] not in ("memory", "step"):
        sys.exit(__doc__)
    sys.exit(1 if {"memory": memory, "step": step}[sys.argv[1]](sys.argv[2]) else 0)
