#!/usr/bin/env python3
"""Runs the real pipeline in situations with a known bottleneck, and checks the verdict of each run.

    tests/verdict/situations.py PROGRAM SHIM [--more] [--repeat N] [--only NAME[,NAME...]] [--loops N] [--every N]
        [--list]

SHIM is the compiled tests/verdict/slow.c. The situations are in situation_list.py; --more adds the slow ones, --every
runs only every Nth. --loops runs N concurrent busy loops. A situation passes if the verdict names the expected cause
first. It also passes if other processes took cores, according to the machine line, and the verdict names these first
and the expected cause next; or if the verdict is "cannot tell". Durations are not checked. Situations that this machine
cannot create are skipped, with one line each. Exit status 1: a verdict is wrong."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from situation_list import DATA, MORE, SITUATIONS, STORAGE

CPU = {"neighbours", "too-many-workers", "host", "workers"}  # causes outside the injected one: other processes, the kernel


class Skipped(Exception):
    pass


class Place:
    """The datasets, each created once, and the shim."""

    def __init__(self, weir, shim, folder):
        self.weir, self.shim, self.folder = weir, shim, folder
        self.cores = len(os.sched_getaffinity(0))

    def data(self, name):
        path = self.folder / name
        if not path.exists():
            options = DATA[name]
            if options is None:
                program = Path(self.weir).parent / "bench" / "virtual_episodes"
                if not program.exists():
                    raise Skipped("bench/virtual_episodes is not built")
                subprocess.run([program, path, "4", "40", "320", "240"], check=True)
            elif callable(options):
                options(path)
            elif options.startswith("convert "):
                _, source, *rest = options.split()
                subprocess.run([self.weir, "convert", self.data(source), path] + rest, check=True, capture_output=True)
            else:
                subprocess.run([self.weir, "synth", path] + options.split(), check=True, capture_output=True)
        return path

    def map_of(self, data, camera):
        """A map of the bytes that one camera's reads touch."""
        path = self.folder / f"{data}.{camera}.map"
        if not path.exists():
            env = dict(os.environ, LD_PRELOAD=str(self.shim), WEIR_SLOW_RECORD=str(path))
            subprocess.run([self.weir, "run", self.data(data), "--cameras", camera, "--io", "pread", "--train-split",
                            "1"], check=True, capture_output=True, env=env)
        return path


def in_group(settings, command):
    """(command inside a control group, group). Uses the first setting (folder, file, value) that works."""
    for base, name, value in settings:
        group = Path(base) / f"weir-verdict.{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            if not (group / name).exists():
                raise OSError
            (group / name).write_text(value)
            return ["sh", "-c", f'echo $$ > "{group}/cgroup.procs" && exec "$@"', "sh"] + command, group
        except OSError:
            group.rmdir()
    raise Skipped(f"cannot create a control group with {settings[0][1]} here")


def in_quota(cores, command):
    """Limits a command with a CPU quota (cgroup v1 or v2)."""
    return in_group([("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", str(int(cores * 100000))),
                     ("/sys/fs/cgroup", "cpu.max", f"{int(cores * 100000)} 100000")], command)


def on_slow_disk(limit, folder, command):
    """Limits a command's reads from the folder's disk: ("bps", N) or ("iops", N)."""
    kind, value = limit
    device = os.stat(folder).st_dev
    disk = f"{os.major(device)}:{os.minor(device)}"
    return in_group([("/sys/fs/cgroup/blkio", f"blkio.throttle.read_{kind}_device", f"{disk} {value}"),
                     ("/sys/fs/cgroup", "io.max", f"{disk} r{kind}={value}")], command)


def remove(group):
    """Removes a group, after waiting for its last process, which may end slightly after its parent."""
    for _ in range(100):
        try:
            group.rmdir()
            return
        except OSError:
            time.sleep(0.05)


def verdict_of(place, situation, loops):
    if situation.needs > place.cores:
        raise Skipped(f"needs {situation.needs} cores")
    env = dict(os.environ, LD_PRELOAD=str(place.shim))
    for key, value in situation.env.items():
        if key == "MAP":
            env["WEIR_SLOW_MAP"] = str(place.map_of(situation.data, value))
        else:
            env[key] = str(value)
    if situation.fake is not None:
        module = os.environ.get("WEIR_FAKE_CUDA_MODULE", str(Path(place.weir).parent / "tests/libweir_fake_cuda.so"))
        if not Path(module).exists():
            raise Skipped("the fake GPU is not built")
        env.update(WEIR_CUDA_MODULE=module, WEIR_FAKE_CUDA=situation.fake)
    log = place.folder / "log"
    command = [str(place.weir), "run", str(place.data(situation.data)), "--log", str(log), *situation.options.split()]
    groups = []
    if situation.cores:
        cpus = ",".join(str(c) for c in sorted(os.sched_getaffinity(0))[:situation.cores])
        command = ["taskset", "-c", cpus] + command
    if situation.quota:
        command, group = in_quota(situation.quota, command)
        groups.append(group)
    if situation.disk:
        command, group = on_slow_disk(situation.disk, place.folder, command)
        groups.append(group)
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(loops or situation.loops)]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True)
    finally:
        for loop in busy:
            loop.kill()
            loop.wait()
        for group in groups:
            remove(group)
    if done.returncode:
        sys.exit(f"{situation.name}: {' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    text = done.stdout[done.stdout.index("verdict: "):]
    if situation.steal:
        return with_steal(place, log, situation.steal)
    return [t for t in map(json.loads, log.open(encoding="utf-8")) if t["type"] == "stages"][-1], text


def with_steal(place, log, part):
    """The verdict of weir report after inserting steal, a fraction of the run's cores, into the log of a real run. A
    test cannot make a hypervisor steal cores."""
    records = [json.loads(line) for line in log.open(encoding="utf-8")]
    for record in records:
        if record["type"] == "stages":
            record["machine"]["steal_cores"] = part * record["machine"]["cores_usable"]
    log.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    report = subprocess.run([str(place.weir), "report", str(log)], check=True, capture_output=True, text=True).stdout
    data = subprocess.run([str(place.weir), "report", str(log), "--json"], check=True, capture_output=True, text=True).stdout
    return json.loads(data)["runs"][-1]["reports"][-1], report[report.rindex("verdict: "):]


def is_crowded(table):
    """Whether other processes used at least half of the cores, which makes the verdict unreliable."""
    return table.get("machine", {}).get("others_cores", 0) >= 0.5 * table["machine"]["cores_usable"]


def judge(situation, table):
    """"right", "second" (others really had the cores), "cannot tell", "wrong"."""
    causes = [c["cause"] for c in table["verdict"]["causes"]]
    if causes and causes[0] in situation.expected:
        waited_for = table.get("late", {})
        right = all(waited_for.get(k) == v for k, v in situation.late.items()) and situation.also <= set(causes)
        return "right" if right else "wrong"
    others = table.get("machine", {}).get("others_cores", 0)
    really = others >= 0.1 * table["machine"]["cores_usable"]
    behind = list(causes)
    while behind and behind[0] in (CPU | {"bursts"}) - situation.expected and really:  # waiting for cores delays batches
        behind.pop(0)
    if behind != causes and is_crowded(table):
        behind = [cause for cause in behind if cause not in CPU - situation.expected]
    expected = set(situation.expected)
    if expected & STORAGE:  # the storage probe also waits for cores
        expected.add("storage")
    if "too-few-workers" in expected and really:  # no core is idle for more workers: the workers, then their work
        expected |= {"decode", "inflate"}
        if causes and causes[0] in expected:
            return "second"
    # Waiting for cores makes steps uneven and batches bursty.
    looked_at = behind[:2 if is_crowded(table) else 1]
    if behind != causes and (not behind or expected & set(looked_at) or expected == {"consumer"}):
        return "second"
    if causes and causes[0] == "cannot-tell":
        return "cannot tell"
    return "wrong"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weir")
    parser.add_argument("shim")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--loops", type=int, default=0)
    parser.add_argument("--more", action="store_true")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--data", help="folder that keeps the datasets for later calls")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    only = [name for name in args.only.split(",") if name]
    chosen = [s for s in SITUATIONS + (MORE if args.more or only else []) if not only or s.name in only][::args.every]
    if args.list:
        for s in chosen:
            print(f"{s.name:20} {' or '.join(sorted(s.expected))}")
        return 0
    folder = Path(args.data or tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    counts = {}
    try:
        place = Place(Path(args.weir).resolve(), Path(args.shim).resolve(), folder)
        for situation in chosen:
            for _ in range(args.repeat):
                try:
                    table, text = verdict_of(place, situation, args.loops)
                except Skipped as reason:
                    counts["skipped"] = counts.get("skipped", 0) + 1
                    print(f"skipped      {situation.name}: {reason}", flush=True)
                    break
                result = judge(situation, table)
                for _ in range(2):
                    if result != "wrong" or not is_crowded(table):
                        break
                    counts["again"] = counts.get("again", 0) + 1
                    table, text = verdict_of(place, situation, args.loops)
                    result = judge(situation, table)
                counts[result] = counts.get(result, 0) + 1
                causes = " ".join(c["cause"] for c in table["verdict"]["causes"])
                wait = table["verdict"]["data_wait_fraction"]
                print(f"{result:12} {situation.name:20} {'-' if wait is None else f'{100 * wait:.0f} %':>6}  {causes}", flush=True)
                if result == "wrong" or args.verbose:
                    print("             expected " + " or ".join(sorted(situation.expected)))
                    print("             " + json.dumps(table["verdict"].get("workers_time")))
                    print("".join("             " + line + "\n" for line in text.splitlines()), end="", flush=True)
    finally:
        if not args.data:
            shutil.rmtree(folder)
    print(", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    return 1 if counts.get("wrong") else 0


sys.exit(main())
