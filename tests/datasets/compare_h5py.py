"""Compares Weir's batches with the same samples read by h5py, numpy and Pillow (tests/datasets/reference.py).

    compare_h5py.py [--weir PROGRAM] DIR...          these folders or files
    compare_h5py.py [--weir PROGRAM] --data          the episodes below $WEIR_DATA; --long: with more options each
    compare_h5py.py [--weir PROGRAM] --synth         a small dataset of each format of `weir synth`
    compare_h5py.py [--weir PROGRAM] --synthetic     each storage of HDF5, in some layout, made with h5py
                                                     (h5_cases.py, h5_special.py); --every: in every layout

Recomputes every line of `weir run --checksums`. Prints one line per dataset. Exit status 1: a dataset differs, and its
line names the first difference; 77: a module or the data is missing.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile

try:
    import reference
except ImportError as e:
    print(f"{e}: skipped")
    sys.exit(1 if "CI" in os.environ else 77)

CPU_MAX_S = 300  # limits CPU time, not wall time, which depends on the machine
FORMATS = ("act", "act-jpeg", "act-jpeg-nolen", "agilex", "astrobench", "robotwin", "robomind", "robomimic",
           "robomimic-gzip", "libero", "isaaclab")


class Difference(Exception):
    pass


def run_weir(weir, arguments, status=0):
    """Returns stdout; if status is not 0, the error line."""
    done = subprocess.run([weir, *arguments], capture_output=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_MAX_S,) * 2))
    out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    if done.returncode != status:
        raise Difference(f"weir {' '.join(arguments)}: exit status {done.returncode}, not {status}: {err.strip()}")
    return out if status == 0 else err.strip()


def checksums(weir, path, options, workers, more=()):
    with tempfile.NamedTemporaryFile("r", suffix=".txt") as f:
        run_weir(weir, ["run", path, "--train-split", "1", "--num-workers", str(workers), "--checksums", f.name,
                        *options.arguments(), *more])
        return f.read().splitlines()


def parse_samples(text):
    return [tuple(map(int, sample.split(":"))) for sample in text.split(",")] if text != "-" else []


def first_difference(data, samples, line):
    """Describes the first tensor that differs."""
    place = ", ".join(f"{data.episodes[e].path} {data.episodes[e].group} (episode {e}) t {t}" for e, t in samples)
    words = line.split()
    for name, value in reference.hashes(data.tensors(samples)) if samples else []:
        if name not in words:
            return f"{place}: no tensor {name} in: {line}"
        if words[words.index(name) + 1] != value:
            return f"{place}: tensor {name} is {words[words.index(name) + 1]}, should be {value}"
    return f"{place}: unexpected line: {line}"


def expected_line(data, number, samples):
    text = ",".join(f"{e}:{t}" for e, t in samples)
    tensors = " ".join(f"{name} {value}" for name, value in reference.hashes(data.tensors(samples)))
    return f"epoch 1 train {number} samples {text} {tensors}"


def compare_in_order(data, lines, skip):
    """--batch-size 1 --no-shuffle: each sample once, in file order; an unreadable sample leaves its batch empty."""
    samples = data.samples()
    if len(lines) != len(samples):
        raise Difference(f"{len(lines)} lines, {len(samples)} samples")
    for i, (sample, line) in enumerate(zip(samples, lines)):
        if skip and not data.is_readable(sample):
            if not line.startswith(f"epoch 1 train {i} samples - "):
                raise Difference(f"sample {sample} is unreadable, but weir wrote: {line}")
        elif line != expected_line(data, i, [sample]):
            raise Difference(first_difference(data, [sample], line))


def compare_shuffled(data, lines):
    """Batches of several samples, which the lines name. Each sample must appear once."""
    seen = []
    for i, line in enumerate(lines):
        samples = parse_samples(line.split()[5])
        if line != expected_line(data, i, samples):
            raise Difference(first_difference(data, samples, line))
        seen += samples
    if sorted(seen) != data.samples():
        raise Difference(f"{len(seen)} samples delivered of {len(data.samples())}, or one twice")


def compare(weir, path, options, workers=2, shuffled=False, skip=False, more=()):
    """Runs Weir on path and compares its checksums. Returns the number of lines, or raises Difference."""
    more = (*more, "--batch-size", "3") if shuffled else (*more, "--batch-size", "1", "--no-shuffle")
    more = (*more, "--on-error", "skip") if skip else more
    lines = checksums(weir, path, options, workers, more)
    data = reference.Dataset(path, options)
    try:
        if shuffled:
            compare_shuffled(data, lines)
        else:
            compare_in_order(data, lines, skip)
    finally:
        data.close()
    return len(lines)


# ---- existing datasets ----


def depth_options(path):
    """Options that name all cameras; none without a depth camera."""
    data = reference.Dataset(path)
    names = tuple(c.name for c in data.episodes[0].cameras)
    has_depth = any(c.depth for c in data.episodes[0].cameras)
    return [reference.Options(cameras=names[::-1])] if has_depth else []


def compare_dataset(weir, path, long):
    lines = compare(weir, path, reference.Options())
    runs = 1
    others = [reference.Options(bgr=True, chunk_size=7), reference.Options(planar_floats=True)]
    if not long:
        others = [reference.Options(bgr=True, chunk_size=7, planar_floats=True)]
    for options in depth_options(path) + others:
        lines += compare(weir, path, options, workers=0)
        runs += 1
    if not long:
        lines += compare(weir, path, reference.Options(obs_history=2), 3, shuffled=True)
        runs += 1
    for workers in (1, 3) if long else ():
        lines += compare(weir, path, reference.Options(obs_history=3, chunk_size=3), workers)
        lines += compare(weir, path, reference.Options(obs_history=2), workers, shuffled=True)
        runs += 2
    data = reference.Dataset(path)
    layouts = "/".join(sorted({e.layout for e in data.episodes}))
    print(f"{path}: {layouts}, {len(data.episodes)} episodes, {len(data.samples())} steps, {len(data.names)} cameras: "
          f"{lines} lines of {runs} runs are equal", flush=True)


def data_folders():
    root = os.path.join(os.environ.get("WEIR_DATA", ""), "episodes")
    if "WEIR_DATA" not in os.environ or not os.path.isdir(root):
        print("skipped: $WEIR_DATA does not name a folder with episodes")
        sys.exit(77)
    return [os.path.join(root, name) for name in sorted(os.listdir(root))]


def synth_folders(weir, work):
    for name in FORMATS:
        out = os.path.join(work, name)
        run_weir(weir, ["synth", out, "--format", name, "--episodes", "2", "--steps", "7", "--size", "72x40"])
        yield out


def compare_folders(weir, paths, long):
    """Returns the number of folders that differ."""
    failed = 0
    for path in paths:
        try:
            compare_dataset(weir, path, long)
        except Difference as e:
            print(f"FAIL: {path}: {e}", flush=True)
            failed += 1
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weir", default=os.environ.get("WEIR_PROGRAM", "weir"))
    parser.add_argument("--data", action="store_true")
    parser.add_argument("--synth", action="store_true")
    parser.add_argument("--synthetic", action="store_true")
    parser.add_argument("--every", action="store_true")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--only", default="", help="run only cases whose name contains this")
    parser.add_argument("--stride", type=int, default=1, help="run only every Nth case")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("dirs", nargs="*")
    args = parser.parse_args()
    failed = compare_folders(args.weir, args.dirs + (data_folders() if args.data else []), args.long)
    if args.synth:
        with tempfile.TemporaryDirectory() as work:
            failed += compare_folders(args.weir, synth_folders(args.weir, work), args.long)
    if args.synthetic:
        import h5_run
        failed += h5_run.run_all(args.weir, args.only, args.every, args.jobs, args.stride)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
