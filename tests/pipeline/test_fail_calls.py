"""Injects failures into the calls of `weir run` one by one (memory, reads, files, threads, processes; see
fail_calls.c), in the program and in its HDF5 helper processes: test_fail_calls.py [--weir PROGRAM] [--library FILE]
[--stride N] ...

Each run must end with exit status 0 and the complete output of a healthy run, including all checksums, or with exit
status 1 and one line that names the failed resource and does not blame the data. Partial data, crashes and hangs are
failures. Prints one line per set of runs. Exit status 1: a run was wrong; 77: the library is not built.

To repeat one run: --only alloc:helper:37+ --data act-jpeg --workers 2
"""
import argparse
import concurrent.futures
import itertools
import os
import re
import struct
import subprocess
import sys
import tempfile

TIMEOUT_S = 120
BLAMES = re.compile("repair|remove|damaged|corrupt|not an HDF5 file|truncated|record it again|is it complete|is it incomplete|is the file complete|correct the file|makes no sense|invalid|copy it again|copy the file again|write it again")
SAYS = {"alloc": "memory", "read": "Input/output error", "open": "ulimit -n", "thread": "ulimit -u", "fork": "ulimit -u",
        "walk": "Input/output error"}
FORMATS = ("act-jpeg", "astrobench", "robomimic-gzip", "library", "lerobot")


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--weir", default=os.environ.get("WEIR_PROGRAM", "build/release/weir"))
    p.add_argument("--library", default="build/release/tests/libweir_fail_calls.so")
    p.add_argument("--calls", nargs="+", default=["alloc"], choices=sorted(SAYS))
    p.add_argument("--who", nargs="+", default=["program", "helper"])
    p.add_argument("--data", nargs="+", default=list(FORMATS[:3]), help=", ".join(FORMATS))
    p.add_argument("--workers", nargs="+", default=["0", "2"])
    p.add_argument("--first", type=int, default=1)
    p.add_argument("--last", type=int, default=500)
    p.add_argument("--stride", type=int, default=1)
    p.add_argument("--modes", nargs="+", default=["", "+"], help="'': only the Kth call; +: also all later ones")
    p.add_argument("--command", help="weir's arguments instead of run's; {}: the data, {new}: a new path")
    p.add_argument("--any-output", action="store_true", help="allow different output")
    p.add_argument("--on-error", default="fail")
    p.add_argument("--only", help="CALL:WHO:K[+]")
    p.add_argument("--quick", action="store_true", help="a few runs of each kind, replacing the options above")
    p.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--verbose", action="store_true")
    return p.parse_args()


def through_library(weir, path):
    """Frames with a filter that only the HDF5 library supports, so that workers request each from its process."""
    import h5py
    plain = path + ".plain"
    subprocess.run([weir, "synth", plain, "--format", "act", "--episodes", "3", "--steps", "4", "--size", "32x24",
                    "--cameras", "top"], check=True, capture_output=True)
    os.makedirs(path)
    for name in sorted(os.listdir(plain)):
        with h5py.File(os.path.join(plain, name)) as old, h5py.File(os.path.join(path, name), "w") as new:
            new.attrs["sim"] = False
            for key in ("observations/qpos", "observations/qvel", "action"):
                new[key] = old[key][:]
            images = old["observations/images/top"][:]
            new.create_dataset("observations/images/top", data=images, chunks=(1,) + images.shape[1:], scaleoffset=0)


def make(weir, folder, data):
    path = os.path.join(folder, data)
    if os.path.exists(path):
        return path
    if data == "library":
        through_library(weir, path)
        return path
    if data == "lerobot":
        sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "datasets"))
        import test_claims
        return test_claims.lerobot(path, n=2)[0]
    if data in ("zarr", "lmdb"):
        subprocess.run([weir, "convert", make(weir, folder, "act-jpeg"), f"{path}.{data}", "--to", data], check=True,
                       capture_output=True)
        os.symlink(f"{path}.{data}", path)
        return path
    subprocess.run([weir, "synth", path, "--format", data, "--episodes", "6", "--steps", "6", "--size", "64x48",
                    "--cameras", "top,wrist"], check=True, capture_output=True)
    files = sorted(os.listdir(path))
    for i, name in enumerate(files[1:]):  # in subfolders, like many recordings
        below = os.path.join(path, f"day_{i % 3}")
        os.makedirs(below, exist_ok=True)
        os.rename(os.path.join(path, name), os.path.join(below, name))
    return path


class Case:
    """One dataset with one configuration."""

    def __init__(self, o, path, workers):
        self.o, self.path, self.workers = o, path, workers
        status, out, err, sums = self.run("alloc:program:0")
        assert status == 0, err
        self.healthy, self.sums_lines = out, sums
        assert sums or o.command, "no checksums"

    def run(self, fail, count=None):
        with tempfile.TemporaryDirectory() as work:
            sums = os.path.join(work, "sums")
            command = (self.o.command or "").replace("{}", self.path).replace("{new}", os.path.join(work, "new"))
            args = command.split() or \
                ["run", self.path, "--num-workers", self.workers, "--batch-size", "5", "--checksums", sums,
                 "--on-error", self.o.on_error]
            env = dict(os.environ, LD_PRELOAD=os.path.abspath(self.o.library), WEIR_FAIL=fail,
                       MALLOC_PERTURB_="165", **({"WEIR_FAIL_COUNT": count} if count else {}))
            try:
                done = subprocess.run([self.o.weir] + args, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                                      timeout=TIMEOUT_S, errors="replace", cwd=work)
            except subprocess.TimeoutExpired:
                return "hangs", "", "", ""
            text = open(sums).read() if os.path.exists(sums) else ""
            return done.returncode, done.stdout, done.stderr, text

    def wrong(self, fail):
        """The fault of a run with this failure injected, or None."""
        status, out, err, sums = self.run(fail)
        lines = [line for line in err.splitlines() if line.startswith("weir")]
        if status == 0 and self.o.on_error == "skip" and "the storage failed to read" in out:
            return None
        if status == 0:
            if sums != self.sums_lines:
                return f"exit status 0, but different checksums\n{err}"
            if self.o.command and not self.o.any_output and re.sub("[0-9.]+", "", out) != re.sub("[0-9.]+", "", self.healthy):
                return f"exit status 0, but different output\n{out}\n{err}"
            return f"exit status 0, but: {lines[0]}" if lines else None
        if status != 1:
            return f"exit status {status}\n{err}"
        if len(lines) != 1:
            return f"{len(lines)} lines, not 1\n{err}"
        if SAYS[fail.split(":")[0]] not in lines[0]:
            return f"does not name the failed resource: {lines[0]}"
        if BLAMES.search(lines[0]):
            return f"blames the data: {lines[0]}"
        if self.o.verbose:
            print(f"    {fail}: {lines[0]}")
        return None

    def count(self, call):
        """The number of calls by the program, and by the helper that makes the most."""
        with tempfile.TemporaryDirectory() as work:
            path = os.path.join(work, "count")
            self.run(f"{call}:program:0", path)
            with open(path, "rb") as f:
                return dict(zip(("program", "helper"), struct.unpack("=QQ", f.read())))


def plans(o):
    """The options of each set of runs."""
    if not o.quick:
        return [o]
    quick = (("act-jpeg", "2", "fail", ["alloc"], 23), ("astrobench", "0", "skip", ["alloc"], 67),
             ("robomimic-gzip", "0", "fail", ["alloc"], 47), ("library", "2", "substitute", ["alloc"], 67),
             ("act-jpeg", "0", "fail", ["open", "read", "thread", "fork", "walk"], 13),
             ("lerobot", "0", "fail", ["alloc"], 7),
             ("act-jpeg", "2", "skip", ["open", "read", "thread"], 29))
    found = [argparse.Namespace(**dict(vars(o), data=[data], workers=[workers], on_error=on_error, calls=calls,
                                       stride=stride)) for data, workers, on_error, calls, stride in quick]
    # after startup, the HDF5 library lacks the memory to report that it has none
    late = dict(vars(o), data=["act-jpeg"], workers=["0"], who=["helper"], first=2000, last=4000, stride=97)
    others = dict(vars(o), data=["act-jpeg"], workers=["0"])
    return found + [argparse.Namespace(**late),
                    argparse.Namespace(**dict(others, command="info {}", stride=71)),
                    # JSON must not be called broken when memory is lacking
                    argparse.Namespace(**dict(others, data=["zarr"], command="info {}.zarr", who=["program"], stride=23)),
                    argparse.Namespace(**dict(others, data=["lmdb"], command="info {}.lmdb", who=["program"], stride=23, any_output=True)),
                    argparse.Namespace(**dict(others, command="verify {} --num-workers 2", stride=71)),
                    argparse.Namespace(**dict(others, command="synth {new} --episodes 1 --steps 2 --size 32x24 --threads 2",
                                              any_output=True, stride=41))]


def try_all(o, folder, pool):
    """(number of runs, number of wrong runs)"""
    n = failed = 0
    for data, workers in itertools.product(o.data, o.workers):
        case = Case(o, make(o.weir, folder, data), workers)
        for call in o.calls:
            counts = case.count(call)
            for who in o.who:
                last = min(o.last, counts[who])
                fails = [f"{call}:{who}:{k}{mode}" for k in range(o.first, last + 1, o.stride) for mode in o.modes]
                fails = [o.only] if o.only else fails
                found = [(f, w) for f, w in zip(fails, pool.map(case.wrong, fails)) if w]
                n, failed = n + len(fails), failed + len(found)
                how = o.command or f"{data}, {workers} workers, --on-error {o.on_error}"
                print(f"{how}: {len(fails)} failures of {call} in the {who}, "
                      f"of {counts[who]} calls: {len(found)} wrong", flush=True)
                for fail, why in found:
                    print(f"  {fail}: {why}".rstrip().replace("\n", "\n      "))
                if o.only:
                    return n, failed
    return n, failed


def main():
    o = options()
    o.weir = os.path.abspath(o.weir)
    if not os.path.exists(o.library):
        print(f"skipped: {o.library} does not exist")
        return 77
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        tried = [try_all(plan, folder, pool) for plan in plans(o)]
    n, failed = (sum(numbers) for numbers in zip(*tried))
    print(f"{n} checks, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
