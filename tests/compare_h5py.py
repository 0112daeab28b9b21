#!/usr/bin/env python3
"""Compares every value and every frame that weir delivers with what h5py, Pillow and numpy read from the same files.

Usage: compare_h5py.py [DATASET...]     $WEIR_PROGRAM is the program
       compare_h5py.py --synthetic      every layout and every storage case, made for the purpose
Without arguments: the datasets below $WEIR_DATA/episodes. Exit status 77: nothing to compare with.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

try:
    import h5py  # noqa: F401
    import numpy as np
    import xxhash

    import h5_cases
    from h5_reference import Dataset
except ImportError as missing:
    print(f"skipped: {missing}; install python3-h5py python3-numpy python3-pil python3-xxhash")
    sys.exit(1 if "CI" in os.environ else 77)

WEIR = os.environ["WEIR_PROGRAM"]
WORK = tempfile.TemporaryDirectory()

# Batch size, frames of history, chunk of actions, workers, with an index file.
RUNS = [(1, 1, 20, 1, False), (4, 3, 5, 3, False), (5, 2, 7, 0, True), (5, 2, 7, 2, True)]


class Different(Exception):
    pass


def weir(*arguments):
    done = subprocess.run([WEIR, *arguments], capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout, done.stderr


def options_of(case):
    options = list(case.get("options", []))
    for option, name in (("--cameras", "cameras"),):
        if case.get(name):
            options += [option, ",".join(case[name])]
    for name, keys in (case.get("keys") or {}).items():
        if keys:
            options += [f"--{name}-keys", ",".join(keys)]
    return options


def expected_lines(dataset, batch, history, chunk):
    samples = dataset.samples()
    for number, first in enumerate(range(0, len(samples), batch)):
        taken = samples[first : first + batch]
        names = ",".join(f"{e}:{t}" for e, t in taken)
        line = f"epoch 1 train {number} samples {names}"
        for name, tensor in dataset.tensors(taken, history, chunk).items():
            line += f" {name} {xxhash.xxh3_64_hexdigest(np.ascontiguousarray(tensor).tobytes())}"
        yield line


def compare_run(path, case, dataset, run):
    batch, history, chunk, workers, index = run
    sums = os.path.join(WORK.name, "sums")
    arguments = ["--batch-size", batch, "--obs-history", history, "--chunk-size", chunk, "--num-workers", workers]
    arguments += ["--no-shuffle", "--train-split", 1, "--checksums", sums, *options_of(case)]
    if index:
        arguments += ["--index", os.path.join(WORK.name, "index")]
    status, _, errors = weir("run", path, *map(str, arguments))
    if status != 0:
        raise Different(f"exit status {status}: {errors.strip()}")
    with open(sums, encoding="utf-8") as lines:
        got = lines.read().splitlines()
    wanted = list(expected_lines(dataset, batch, history, chunk))
    for theirs, ours in zip(wanted, got):
        if theirs != ours:
            at = next(i for i, (a, b) in enumerate(zip(theirs.split(), ours.split())) if a != b)
            raise Different(f"{run}: {' '.join(theirs.split()[:5])}: {theirs.split()[at - 1]} differs")
    if len(wanted) != len(got):
        raise Different(f"{run}: {len(got)} batches instead of {len(wanted)}")
    return len(got)


def compare_info(path, case):
    """The storage kinds are those expected, and only those go through the library that must."""
    status, out, errors = weir("info", path, "--json", *options_of(case))
    if status != 0:
        raise Different(f"info: exit status {status}: {errors.strip()}")
    kinds = [kind for camera in json.loads(out)["cameras"] for kind in camera["storage"]]
    library = case.get("library", False)
    if library is not None and any(kind["library"] for kind in kinds) != library:
        raise Different(f"info: through the library: {not library}; {kinds}")
    if case.get("storage") and not any(case["storage"] in kind["kind"] for kind in kinds):
        raise Different(f"info: no {case['storage']!r} in {kinds}")
    if case.get("layout") and case["layout"] not in json.loads(out)["layouts"]:
        raise Different(f"info: layout {json.loads(out)['layouts']}")


def compare_refusal(path, case):
    for command in ("run", "info"):
        if command == "info" and case.get("run_only"):
            continue
        status, _, errors = weir(command, path, *options_of(case))
        lines = [line for line in errors.splitlines() if line.startswith(f"weir {command}: ")]
        if status != 1 or len(lines) != 1:
            raise Different(f"{command}: exit status {status}: {errors.strip()}")
        for part in case["refused"]:
            if part not in lines[0]:
                raise Different(f"{command}: no {part!r} in {errors.strip()}")
    return 0


def compare(name, path, case):
    """Prints a line; False when something differs."""
    index = os.path.join(WORK.name, "index")
    if os.path.exists(index):
        os.remove(index)
    dataset = None
    try:
        if case.get("refused"):
            compare_refusal(path, case)
            print(f"{name}: refused, as it should be")
            return True
        dataset = Dataset(path, case.get("cameras"), case.get("keys"))
        compare_info(path, case)
        batches = sum(compare_run(path, case, dataset, run) for run in RUNS)
        print(f"{name}: {len(dataset.episodes)} episodes, {len(dataset.samples())} steps, {batches} batches equal")
        return True
    except Different as difference:
        print(f"{name}: DIFFERENT: {difference}")
        return False
    finally:
        if dataset:
            dataset.close()


def real_datasets():
    found = sorted(glob.glob(os.path.join(os.environ.get("WEIR_DATA", "../shared/data"), "episodes", "*")))
    if not found:
        print("skipped: no datasets; set WEIR_DATA")
        sys.exit(77)
    for path in found:
        yield os.path.basename(path), path, {}
        if "astrobench" in path:
            yield os.path.basename(path) + ", depth", path, {"cameras": ["main", "depth_main"]}


def main():
    if "--synthetic" in sys.argv:
        cases = h5_cases.cases(WORK.name, weir)
    elif sys.argv[1:]:
        cases = [(path, path, {}) for path in sys.argv[1:]]
    else:
        cases = real_datasets()
    results = [compare(*case) for case in cases]
    print(f"{len(results)} datasets, {results.count(False)} different")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
