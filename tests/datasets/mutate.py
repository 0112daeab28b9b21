"""Runs weir on randomly damaged small datasets: mutate.py [--weir PROGRAM] [--count N] ...

Runs `weir info`, `weir run --on-error skip` and `weir verify` on each mutant. verify must report an error if and only
if the run skips frames. Allowed results are exit status 0, and 1 with a one-line error. Signals, sanitizer reports,
hangs and silently wrong frames are failures: a delivered frame must equal the original, or what the HDF5 library (h5py,
in a separate process) now reads. Sanitizer reports about the library's code in the HDF5 helper process are ignored,
because weir must survive its crashes. Prints one line per format and keeps the files that failed. Exit status 1: a
mutant failed; 77: no h5py.

To rerun one mutant: --layouts FORMAT --first I --count 1 with the same --seed.
"""
import argparse
import collections
import concurrent.futures
import glob
import io
import json
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
    import xxhash
    from PIL import Image
except ImportError as e:
    print(f"{e}: skipped")
    sys.exit(1 if "CI" in os.environ else 77)

FORMATS = ("act", "act-jpeg", "act-jpeg-nolen", "agilex", "astrobench", "robotwin", "robomind", "robomimic",
           "robomimic-gzip", "libero", "isaaclab")
CPU_MAX_S = 200  # Weir gives the library 60 s of CPU time
OUT_OF_TIME = (signal.SIGXCPU, signal.SIGKILL)
TIMEOUT_S = 3000  # for a process that sleeps forever
FILE_MAX_BYTES = 1 << 30  # max output of a run: an endless loop must not fill the disk
LIBRARY_ENDS = re.compile("the HDF5 library (crashed|exceeded its CPU time limit|did not reply|overwrote its memory)")
LEAKS = "leak:libhdf5\n"  # the library leaks memory when it refuses a file

# ---- a dataset's contents, read with h5py ----


def images_of(path):
    """[(episode group, [camera keys])] of a file of weir synth: all colour images, in order of name."""
    with h5py.File(path, "r") as f:
        demos = sorted(f["data"], key=lambda name: int(name[5:])) if "data" in f else None
        groups = [f"data/{name}" for name in demos] if demos else ["/"]
        out = []
        for group in groups:
            keys = []
            f[group].visit(lambda key: keys.append(key) if is_images(f[group], key) else None)
            out.append((group, sorted(keys)))
        return out


def is_images(group, key):
    item = group[key]
    if not isinstance(item, h5py.Dataset) or "depth" in key:
        return False
    encoded = item.ndim == 1 and (item.dtype.kind == "S" or h5py.check_vlen_dtype(item.dtype))
    return bool(encoded) or (item.dtype == np.uint8 and item.ndim in (2, 4) and item.size > 1000)


def pixels(item, t):
    if item.ndim == 4:
        return np.asarray(item[t], np.uint8)
    return np.asarray(Image.open(io.BytesIO(bytes(item[t]))).convert("RGB"))


def row_bytes(item, t):
    row = item[t]
    return bytes(row) if isinstance(row, (bytes, np.void)) else row.tobytes()


def library_reads(path, cameras):
    """Per episode and step: [hash of the bytes of each camera, hash of the images together]; None where it fails."""
    out = []
    with h5py.File(path, "r") as f:
        for group, keys in cameras:
            steps = min(len(f[group][key]) for key in keys)
            out.append([read_step([f[group][key] for key in keys], t) for t in range(min(steps, 1000))])
    return out


def read_step(items, t):
    try:
        rows = [xxhash.xxh3_64_hexdigest(row_bytes(item, t)) for item in items]
    except Exception:  # h5py raises many types when HDF5 refuses a frame
        return None, None
    try:
        return rows, xxhash.xxh3_64_hexdigest(np.stack([pixels(item, t) for item in items]).tobytes())
    except Exception:
        return rows, None


def library_says(path, cameras):
    """library_reads in a separate process, because HDF5 may crash or hang; None if it does, or refuses the file."""
    try:
        done = subprocess.run([sys.executable, __file__, "--oracle", path], input=json.dumps(cameras), text=True,
                              capture_output=True, timeout=TIMEOUT_S,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_MAX_S,) * 2))
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout) if done.returncode == 0 else None


def structure(path, cameras):
    """The ranges of a file that are not pixels."""
    with open(path, "rb") as f:
        data = f.read()
    is_pixel = np.zeros(len(data), bool)

    def mark(offset, n):
        is_pixel[offset:offset + n] = True

    with h5py.File(path, "r") as f:
        for group, keys in cameras:
            for key in keys:
                item = f[group][key]
                if item.chunks:
                    for i in range(item.id.get_num_chunks()):
                        mark(item.id.get_chunk_info(i).byte_offset, item.id.get_chunk_info(i).size)
                elif h5py.check_vlen_dtype(item.dtype):
                    for t in range(len(item)):
                        mark(data.find(row_bytes(item, t)), len(item[t]))
                else:
                    mark(item.id.get_offset(), item.id.get_storage_size())
    edges = np.flatnonzero(np.diff(np.concatenate([[1], is_pixel, [1]]).astype(int)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2])]


# ---- damage ----


def interesting(rng, size):
    return rng.choice([0, 1, 2, 8, 16, 127, 128, 255, 256, 65535, 65536, 1 << 31, (1 << 31) - 1, (1 << 32) - 1, 1 << 32,
                       1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 2, size, size - 1, size + 1,
                       size // 2])


class Mutator:
    def __init__(self, rng, data, ranges):
        self.rng, self.data, self.ranges = rng, bytearray(data), ranges
        self.aimed = rng.random() < 0.5  # at the structure

    def place(self, n=1):
        """Random offset of n bytes."""
        size = len(self.data)
        if self.aimed:
            a, b = self.rng.choice(self.ranges)
            return max(0, min(self.rng.randrange(a, b), size - n))
        return self.rng.randrange(max(1, size - n + 1))

    def put(self, at, new):
        self.data[at:at + len(new)] = new

    def flip(self):
        for _ in range(self.rng.choice((1, 1, 2, 8))):
            at = self.place()
            self.put(at, bytes([self.data[at] ^ 1 << self.rng.randrange(8)]))

    def scribble(self):
        n = self.rng.randint(1, 16)
        self.put(self.place(n), self.rng.randbytes(n))

    def fill(self):
        n = self.rng.choice((4, 8, 64, 512, 4096))
        n = min(n, len(self.data))
        self.put(self.place(n), bytes([self.rng.choice((0, 0, 255))]) * n)

    def number(self):
        n = self.rng.choice((1, 2, 4, 8))
        value = interesting(self.rng, len(self.data)) & (1 << 8 * n) - 1
        self.put(self.place(n), value.to_bytes(n, "little"))

    def nudge(self):
        n = self.rng.choice((1, 2, 4, 8))
        at = self.place(n)
        value = int.from_bytes(self.data[at:at + n], "little") + self.rng.choice((-16, -8, -1, 1, 8, 16))
        self.put(at, (value & (1 << 8 * n) - 1).to_bytes(n, "little"))

    def swap(self):
        n = min(self.rng.choice((8, 16, 40, 128, 512)), len(self.data) // 2)
        a, b = sorted((self.place(n), self.place(n)))
        if a + n <= b:
            first, second = self.data[a:a + n], self.data[b:b + n]
            self.put(a, second)
            self.put(b, first)

    def copy(self):
        n = min(self.rng.choice((8, 24, 128, 512)), len(self.data))
        at = self.place(n)
        self.put(self.place(n), self.data[at:at + n])

    def address(self):
        """Overwrites 8 bytes with another offset in the file."""
        at = self.place(8)
        self.put(at, struct.pack("<Q", self.place(8)))

    def truncate(self):
        del self.data[self.rng.randrange(len(self.data)):]

    def run(self):
        ways = [self.flip] * 4 + [self.number] * 4 + [self.nudge] * 3 + [self.address] * 3 + [
            self.scribble, self.fill, self.swap, self.copy, self.truncate]
        for _ in range(self.rng.choice((1, 1, 1, 2, 4))):
            if len(self.data) > 16:
                self.rng.choice(ways)()
        return bytes(self.data)


# ---- weir ----


def in_library(report):
    """Whether the first frame that is not the sanitizer's is in libhdf5."""
    frames = [line for line in report.split("allocated by")[0].splitlines() if line.lstrip().startswith("#")]
    frames = [line for line in frames if "libsanitizer" not in line and "sysdeps" not in line]
    return bool(frames) and "libhdf5" in frames[0]


def reports_below(folder):
    """Sanitizer reports of all processes; HDF5 helper processes have no stderr."""
    out = []
    for name in glob.glob(os.path.join(folder, "report*")):
        with open(name, encoding="utf-8", errors="replace") as f:
            out.append(f.read())
        os.remove(name)
    return [report for report in out if "ERROR: " in report and "Sanitizer" in report or "runtime error:" in report]


def limit_weir():
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_MAX_BYTES,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_MAX_S,) * 2)


def weir_says(weir, arguments, folder, out=None):
    """(outcome, stderr): outcome is "fine", "refused" or the fault. Sanitizers write reports to folder; out is a file
    for stdout."""
    log = f"log_path={os.path.join(folder, 'report')}"
    env = {**os.environ, "LSAN_OPTIONS": f"suppressions={leaks.name}:print_suppressions=0",
           "ASAN_OPTIONS": f"halt_on_error=1:detect_leaks=1:exitcode=99:allocator_may_return_null=1:{log}",
           "UBSAN_OPTIONS": f"halt_on_error=1:print_stacktrace=1:exitcode=99:{log}"}
    try:
        done = subprocess.run([weir, *arguments], env=env, capture_output=True, timeout=TIMEOUT_S, errors="replace",
                              preexec_fn=limit_weir)
    except subprocess.TimeoutExpired:
        return "hang", ""
    err = done.stderr
    if out:
        with open(out, "w", encoding="utf-8") as f:
            f.write(done.stdout)
    reports = reports_below(folder)
    ours = [report for report in reports if not in_library(report)]
    if ours or done.returncode == 99:
        return "sanitizer", "\n".join(reports) + err
    if done.returncode < 0:
        return "hang" if -done.returncode in OUT_OF_TIME else f"signal {-done.returncode}", err
    reasons = [line for line in err.splitlines() if line.startswith(f"weir {arguments[0]}: ")]
    if done.returncode == 1 and len(reasons) == 1:
        return "refused" + (" (the library's end)" if LIBRARY_ENDS.search(reasons[0]) else ""), err
    if done.returncode == 0 and not reasons:
        return "fine", err
    if arguments[0] == "verify" and done.returncode == 3 and not err:
        return "refused", err
    return f"exit status {done.returncode} with {len(reasons)} error lines", err


def run_arguments(form, path, sums):
    return ["run", path, "--on-error", "skip", "--batch-size", "1", "--no-shuffle", "--train-split", "1",
            "--num-workers", "1", "--checksums", sums, "--cameras", form.names]


def delivered(sums):
    """{(episode, step): hash of the images, or all their hashes if each camera has a separate tensor}"""
    out = {}
    with open(sums, encoding="utf-8", errors="replace") as f:
        for line in f:
            words = line.split()
            if len(words) > 6 and words[5] != "-":
                pairs = zip(words[6::2], words[7::2])
                images = [(name, value) for name, value in pairs if name.startswith("images")]
                out[tuple(map(int, words[5].split(":")))] = images[0][1] if images[0][0] == "images" else str(images)
    return out


class Format:
    """A small undamaged dataset of one format."""

    def __init__(self, weir, name, folder):
        self.weir, self.name = weir, name
        out = os.path.join(folder, name)
        subprocess.run([weir, "synth", out, "--format", name, "--episodes", "2", "--steps", "5", "--size", "40x24",
                        "--cameras", "top,wrist", "--quality", "60"], check=True, capture_output=True)
        found = [os.path.join(at, file) for at, _, files in os.walk(out) for file in files
                 if file.endswith((".hdf5", ".h5"))]
        self.path = min(found)
        with open(self.path, "rb") as f:
            self.data = f.read()
        facts = json.loads(subprocess.run([weir, "info", self.path, "--json"], check=True, capture_output=True).stdout)
        self.names = ",".join(camera["name"] for camera in facts["cameras"])  # selects damaged cameras too
        self.cameras = images_of(self.path)
        self.ranges = structure(self.path, self.cameras)
        self.rows = library_reads(self.path, self.cameras)
        sums = os.path.join(folder, name + ".sums")
        kind, err = weir_says(weir, run_arguments(self, self.path, sums), folder)
        self.before = delivered(sums)
        truth = {(e, t): step[1] for e, steps in enumerate(self.rows) for t, step in enumerate(steps)}
        if kind != "fine" or self.before != truth:
            raise AssertionError(f"{name}: undamaged, weir says \"{kind}\" and its frames differ from h5py's: {err}")

    def mutant(self, seed, i):
        return Mutator(random.Random(f"{seed} {self.name} {i}"), self.data, self.ranges).run()


def judge_frames(form, path, got):
    """(fault in the delivered frames or None, number of frames that the damage changed)"""
    changed = {at: value for at, value in got.items() if form.before.get(at) != value}
    # After a skipped episode, later ones move up.
    moved = {at for at, value in changed.items()
             if value in [form.before.get((e, at[1])) for e in range(len(form.rows))]}
    changed = {at: value for at, value in changed.items() if at not in moved}
    now = library_says(path, form.cameras) if changed else None
    if not changed or now is None:
        return None, len(changed)
    left_out = len({e for e, _ in form.before}) != len({e for e, _ in got})
    for (e, t), value in changed.items():
        candidates = range(len(now)) if left_out or moved else [e]
        steps = [(now[c][t], form.rows[c][t]) for c in candidates if c < len(now) and t < len(now[c])
                 and t < len(form.rows[c])]
        if any(new[1] == value or new[0] is None for new, _ in steps):
            continue  # the library reads the same frame, or none
        if all(new[0] == old[0] for new, old in steps) and steps:
            return f"episode {e} step {t}: h5py reads the original frame, weir another", len(changed)
        if all(new[1] for new, _ in steps) and steps:
            return f"episode {e} step {t}: the frame is neither the old one nor what h5py reads now", len(changed)
    return None, len(changed)


def try_mutant(form, seed, i, keep):
    """(counts, fault or None)"""
    with tempfile.TemporaryDirectory() as folder:
        path, sums = os.path.join(folder, "episode_0.hdf5"), os.path.join(folder, "sums")
        with open(path, "wb") as f:
            f.write(form.mutant(seed, i))
        counts = collections.Counter()
        for arguments in (["info", path, "--on-error", "skip"], run_arguments(form, path, sums)):
            kind, text = weir_says(form.weir, arguments, folder)
            counts[f"{arguments[0]} {kind}"] += 1
            if kind != "fine" and not kind.startswith("refused"):
                return counts, kept(form, i, path, keep, f"weir {arguments[0]}: {kind}: {text}")
        got = delivered(sums) if kind == "fine" else None
        if got is not None:
            wrong, new = judge_frames(form, path, got)
            counts.update({"frames delivered": len(got), "of them other than before": new})
            counts["frames missing"] += max(0, len(form.before) - len(got))
            if wrong:
                return counts, kept(form, i, path, keep, wrong)
        wrong = judge_verify(form, path, folder, got)
        return counts, kept(form, i, path, keep, wrong) if wrong else None


def judge_verify(form, path, folder, got):
    """The fault in the result of weir verify, or None. got: frames delivered by a run; None if it refused the file."""
    out = os.path.join(folder, "verify.json")
    kind, text = weir_says(form.weir, ["verify", path, "--json", "--cameras", form.names], folder, out)
    if kind != "fine" and not kind.startswith("refused"):
        return f"weir verify: {kind}: {text}"
    with open(out, encoding="utf-8", errors="replace") as f:
        told = json.load(f)
    sound = got is not None and len(got) * len(form.names.split(",")) == told["frames"]  # without bad episodes
    if sound != (kind == "fine" or (told["unreadable"] == told["found"]["episode"] and got is not None)):
        return f"weir verify: {kind}, of {told['frames']} frames; a run delivers {len(got or ())} steps: {told['findings']}"
    return None


def kept(form, i, path, keep, text):
    """Copies the failed file to keep. Returns the text with its path."""
    os.makedirs(keep, exist_ok=True)
    to = os.path.join(keep, f"{form.name}-{i}.hdf5")
    shutil.copy(path, to)
    return f"{form.name} {i} ({to}): {text}"


# ---- all ----

forms = {}
leaks = tempfile.NamedTemporaryFile("w", suffix=".supp")
leaks.write(LEAKS)
leaks.flush()


def attempt(task):
    name, seed, i, keep = task
    return try_mutant(forms[name], seed, i, keep)


def run_format(pool_size, name, args):
    tasks = [(name, args.seed, i, args.keep) for i in range(args.first, args.first + args.count)]
    total, failures = collections.Counter(), []
    with concurrent.futures.ProcessPoolExecutor(pool_size, multiprocessing.get_context("fork")) as pool:
        for counts, wrong in pool.map(attempt, tasks):
            total.update(counts)
            if wrong:
                failures.append(wrong)
                print(f"FAIL: {wrong}", flush=True)
    text = ", ".join(f"{key} {n}" for key, n in sorted(total.items()))
    print(f"{name}: {len(tasks)} mutants: {text}; {len(failures)} failed", flush=True)
    return len(failures)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weir", default=os.environ.get("WEIR_PROGRAM", "weir"))
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--layouts", default=",".join(FORMATS))
    parser.add_argument("--keep", default=os.path.join(tempfile.gettempdir(), "weir-mutants"))
    parser.add_argument("--oracle", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.oracle:
        json.dump(library_reads(args.oracle, json.load(sys.stdin)), sys.stdout)
        return 0
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in args.layouts.split(","):
            forms[name] = Format(args.weir, name, folder)
            failed += run_format(args.jobs, name, args)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
