#!/usr/bin/env python3
"""weir top on jobs that look like PyTorch's from outside: processes with the names of DataLoader workers. Figures, JSON,
errors, new workers, the end of a job, keys on a terminal, and commands with their exit status and signals. With a Python
that has torch (WEIR_TORCH_PYTHON, or this one), also on a real job.

    test_top.py WEIR [FOLDER]

FOLDER has a stand-in for libnvidia-ml.so.1 (tests/fakes/fake_nvml.c)."""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

import checks
from checks import check

LIMIT_S = 240

# A main process that sleeps, and two workers that wait for a pipe. Prints "ready" when all have their names.
# argv: seconds of an epoch, after which new workers replace the old ones (0: never).
JOB = r"""
import ctypes, os, select, signal, sys, time
name = ctypes.CDLL(None).prctl
def worker(done):
    name(15, b"pt_data_worker")
    os.write(done, b"x")
    parent = os.getppid()
    while os.getppid() == parent:
        sum(range(20000))
        select.select([idle], [], [], 0.05)
def begin():
    done, ends = os.pipe()
    children = []
    for _ in range(2):
        child = os.fork()
        if child == 0:
            worker(ends)
            os._exit(0)
        children.append(child)
    for _ in range(2):
        os.read(done, 1)
    return children
idle, other = os.pipe()
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
epoch_s = float(sys.argv[1])
children = begin()
print("ready", flush=True)
while True:
    time.sleep(epoch_s or 1000)
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    children = begin()
"""


class Job:
    def __init__(self, epoch_s=0, shell=False, code=JOB, env=None):
        command = [sys.executable, "-c", code, str(epoch_s)]
        if shell:
            command = ["sh", "-c", '"$@"; exit 0', "sh", *command]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True,
                                        env={**os.environ, **(env or {})})
        self.pid = self.process.pid

    def __enter__(self):
        assert self.process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


def top(weir, *arguments, **options):
    return subprocess.run([weir, "top", *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT_S,
                          stdin=subprocess.DEVNULL, **options)


# ---- figures ----

def once(weir):
    with Job(shell=True) as job:
        done = top(weir, "--once", "--seconds", 3, job.pid)
        check("a job below a shell", done.returncode == 0 and not done.stderr, done)
        for part in ("python", "machine: ", "on core  core-wait  storage  lock  sleep  idle", "\nmain ", "\nworker 0 ",
                     "\nworker 1 ", "\nverdict: "):
            check(f"{part!r} is printed", part in done.stdout, done.stdout)
        workers = [line.split() for line in done.stdout.splitlines() if line.startswith("worker ")]
        idle = [float(cells[8].rstrip("%")) for cells in workers]
        check("workers that wait for a pipe are idle, as far as they get cores", all(share > 5 for share in idle), workers)


def schema(weir):
    with Job() as job:
        done = top(weir, "--json", "--seconds", 4, job.pid)
        check("--json succeeds", done.returncode == 0, done)
        document = json.loads(done.stdout)
        check("one object of this version", document["schema"] == 1 and document["type"] == "top", document)
        check("one job", [entry["pid"] for entry in document["jobs"]] == [job.pid], document)
        entry = document["jobs"][0]
        expected = {"pid": int, "command": str, "rank": None, "world_size": None, "local_rank": None, "ended": bool,
                    "other_user": bool, "seconds": float, "machine": dict, "main": dict, "other_thread": (int, float),
                    "workers_begun": int, "workers": list, "verdict": dict}
        for key, kind in expected.items():
            check(f"{key} is {kind}", entry[key] is None if kind is None else isinstance(entry[key], kind), entry[key])
        check("no pin thread, perhaps a GPU", entry["pin_thread"] is None and "gpu" in entry, entry)
        check("seconds", 2 < entry["seconds"] < 60, entry["seconds"])
        for process in [entry["main"], *entry["workers"]]:
            times = process["time"]
            check("times", set(times) == {"on_core", "core_wait", "storage", "lock", "sleep", "idle", "other"} and
                  abs(sum(times.values()) - 1) < 1e-6, times)
            check("memory and threads", process["pss_bytes"] > 0 and process["threads"] == 1, process)
            check("reads", process["storage_bytes_per_s"] >= 0 and process["cached_bytes_per_s_estimate"] >= 0, process)
        verdict = entry["verdict"]
        check("a verdict", verdict["ready"] and verdict["causes"] and
              verdict["certainty"] in ("sure", "likely", "unsure") and isinstance(verdict["advice"], list), verdict)
        check("a cause", {"cause", "certainty", "evidence"} <= set(verdict["causes"][0]), verdict)
        check("machine", entry["machine"]["cores"] >= 1 and entry["machine"]["others_cores"] >= 0, entry["machine"])
        check("no rank", document["slowest_rank"] is None, document)


def new_workers(weir):
    with Job(epoch_s=0.7) as job:
        entry = json.loads(top(weir, "--json", "--seconds", 6, job.pid).stdout)["jobs"][0]
        check("new workers are followed", entry["workers_begun"] >= 4 and len(entry["workers"]) <= 4, entry)


def two_jobs(weir):
    with Job() as first, Job() as second:
        document = json.loads(top(weir, "--json", "--seconds", 3).stdout)
        pids = [entry["pid"] for entry in document["jobs"]]
        check("all jobs of the user", {first.pid, second.pid} <= set(pids), pids)


def lines(weir):
    with Job() as job:
        with subprocess.Popen([weir, "top", str(job.pid)], stdout=subprocess.PIPE, text=True,
                              stdin=subprocess.DEVNULL) as process:
            line = process.stdout.readline()
            check("a line per second", re.match(r" +\d+ s  process \d+  main: .*2 workers: ", line), line)
            os.killpg(job.pid, signal.SIGKILL)
            rest = process.stdout.read()
        check("the end of the job ends the command", process.returncode == 0, rest)
        check("with its last verdict", "(has ended)" in rest and "\nverdict: " in rest, rest)


def gpu(weir):
    if len(sys.argv) < 3:
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        opened = "held = open(%r, 'w')\n" % os.path.join(folder, "nvidia0")  # the job looks as if it used CUDA
        with Job(code=JOB.replace("def worker", opened + "def worker")) as job:
            env = {**os.environ, "LD_LIBRARY_PATH": sys.argv[2]}
            entry = json.loads(top(weir, "--json", "--seconds", 4, job.pid, env=env).stdout)["jobs"][0]
            check("a GPU by NVML", entry["gpu"] and entry["gpu"]["name"] == "Fake GPU" and entry["gpu"]["index"] == 0 and
                  abs(entry["gpu"]["busy"] - 0.37) < 1e-6 and entry["gpu"]["to_gpu_bytes_per_s"] == 2e9, entry["gpu"])
            done = top(weir, "--once", "--seconds", 3, job.pid, env=env)
            check("its line", "\nGPU 0:   Fake GPU; busy 37 %; memory 10 GiB of 80 GiB; PCIe " in done.stdout, done.stdout)
        with Job() as job:
            entry = json.loads(top(weir, "--json", "--seconds", 3, job.pid, env=env).stdout)["jobs"][0]
            check("a job without CUDA has no GPU", entry["gpu"] is None, entry["gpu"])


def ranks(weir):
    with Job(env={"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}) as one, \
            Job(env={"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}) as zero:
        jobs = [entry for entry in json.loads(top(weir, "--json", "--seconds", 3).stdout)["jobs"]
                if entry["pid"] in (one.pid, zero.pid)]
        check("jobs in the order of their ranks", [(j["rank"], j["world_size"], j["local_rank"], j["pid"]) for j in jobs] ==
              [(0, 2, 0, zero.pid), (1, 2, 1, one.pid)], jobs)


# ---- Weir's own programs ----

@contextlib.contextmanager
def own_job(*arguments, threads=()):
    """A program of Weir, when it has threads with these names."""
    with subprocess.Popen([*map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + LIMIT_S
            while not set(threads) <= set(names_of_threads(process.pid)) and process.poll() is None:
                assert time.monotonic() < end, names_of_threads(process.pid)
                time.sleep(0.05)
            yield process
        finally:
            process.kill()


def names_of_threads(pid):
    names = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/comm", encoding="utf-8") as file:
                names.append(file.read().strip())
    return names


def own_programs(weir):
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "data")
        subprocess.run([weir, "synth", data, *"--episodes 2 --steps 8 --size 64x48".split()], check=True,
                       stdout=subprocess.DEVNULL)
        workers = ["weir-w0", "weir-w1"]
        with own_job(weir, "run", data, "--step-ms", 20, "--num-workers", 2, "--seconds", LIMIT_S,
                     threads=workers) as job:
            done = top(weir, "--once", "--seconds", 3, job.pid)
            names = re.findall(r"(?m)^(\S+) +\d+ +\d+%", done.stdout)
            check("weir run has a row per thread", done.returncode == 0 and names == ["consumer", *workers], done)
            check("and is named", "\nWeir's loader: the workers are threads of this process\n" in done.stdout, done.stdout)
            entries = json.loads(top(weir, "--json", "--seconds", 3).stdout)["jobs"]
            (entry,) = [entry for entry in entries if entry["pid"] == job.pid]
            check("without a PID too", entry["loader"] == "weir" and len(entry["workers"]) == 2, entry)
            check("its simulated step sleeps", entry["main"]["time"]["sleep"] > 0.05, entry["main"])
            check("its workers wait for a free batch", all(worker["time"]["lock"] == 0 for worker in entry["workers"]) and
                  sum(worker["time"]["idle"] for worker in entry["workers"]) > 0.05, entry["workers"])
        with own_job(weir, "run", data, "--num-workers", 0, "--seconds", LIMIT_S, threads=["weir-watchdog"]) as job:
            done = top(weir, "--once", "--seconds", 3, job.pid)
            check("without workers", done.returncode == 0 and "\nconsumer " in done.stdout and
                  "\nWeir's loader: the consumer's thread does all the work\n" in done.stdout and "PyTorch" not in done.stdout, done)
        if "\n  train " not in subprocess.run([weir, "--help"], capture_output=True, text=True, check=True).stdout:
            return
        with own_job(weir, "train", data, *"--num-workers 2 --num-epochs 100000 --hidden-dim 8".split(),
                     *"--dim-feedforward 8 --image-size 32x24".split(), threads=workers) as job:
            done = top(weir, "--once", "--seconds", 3, job.pid)
            check("weir train has them too", done.returncode == 0 and
                  re.findall(r"(?m)^(\S+) +\d+ +\d+%", done.stdout) == ["consumer", *workers], done)


# ---- errors ----

def errors(weir):
    gone = subprocess.Popen(["true"])
    gone.wait()
    for status, text, arguments in (
            (1, f"no process {gone.pid} exists, or /proc hides it", [gone.pid]),
            (1, f"process {os.getpid()} is not a training job", [os.getpid()]),
            (2, "12x: not a PID; to start a command, use weir top -- 12x", ["12x"]),
            (2, "-1", ["-1"]),
            (2, "give a PID or a command, not both", ["1", "--", "true"]),
            (2, "no command after --", ["--"]),
            (1, "cannot start /nowhere/python: No such file or directory; check the name and $PATH",
             ["--", "/nowhere/python"])):
        done = top(weir, *arguments)
        check(f"{arguments}: status {status}, one line", done.returncode == status and text in done.stderr and
              done.stderr.startswith("weir top: ") and done.stderr.count("\n") <= status and not done.stdout, done)


# ---- commands ----

def commands(weir):
    done = top(weir, "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    check("exit status and streams", done.returncode == 7 and done.stdout == "out\n" and
          done.stderr.startswith("err\nweir top: the command ran no training job"), done)
    done = top(weir, "--", "sh", "-c", "kill -9 $$")
    check("death by a signal", done.returncode == 137, done)
    done = top(weir, "--seconds", "1", "--", "sh", "-c", "read x; exit 3", )
    check("standard input", done.returncode == 3, done)


def with_sigint():
    """A shell that starts tests in the background ignores SIGINT, and no shell below it could trap it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def signals(weir):
    trap = "trap 'echo got; exit 5' USR1; trap 'echo int; exit 6' INT; echo on; while :; do sleep 0.05; done"
    for number, said, status in ((signal.SIGUSR1, "got\n", 5), (signal.SIGINT, "int\n", 6), (signal.SIGTERM, "", 143)):
        with subprocess.Popen([weir, "top", "--", "sh", "-c", trap], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True, stdin=subprocess.DEVNULL, preexec_fn=with_sigint) as process:
            process.stdout.readline()
            process.send_signal(number)
            rest = process.stdout.read()
        check(f"{number!r} is passed on", rest == said and process.returncode == status, (rest, process.returncode))


def watched_command(weir):
    done = subprocess.run([weir, "top", "--", sys.executable, "-c", JOB.replace("1000)", "5); os._exit(4)"), "0"],
                          capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL)
    check("a job's status and output", done.returncode == 4 and done.stdout == "ready\n", done)
    check("its figures and verdict", "\nworker 1 " in done.stderr and "\nverdict: " in done.stderr, done.stderr)


# ---- the terminal ----

class Terminal:
    def __init__(self, arguments, rows=24, columns=100):
        self.text = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm"
            os.environ.pop("COLUMNS", None)
            os.execv(arguments[0], arguments)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def until(self, pattern):
        """Reads until the pattern appears in what was written since the last call."""
        end = time.monotonic() + LIMIT_S
        start = len(self.text)
        while not re.search(pattern, self.text[start:], re.S):
            if time.monotonic() > end or not self.read():
                return False
        return True

    def read(self):
        if not select.select([self.fd], [], [], 5)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.text += data.decode(errors="replace")
        return bool(data)

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def end(self):
        while self.read():
            pass
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def keys(weir):
    with Job() as job:
        screen = Terminal([weir, "top", str(job.pid)])
        check("the alternate screen", screen.until(r"\033\[\?1049h"), screen.text)
        check("figures of each worker", screen.until(r"worker 0 .*worker 1 .*q: quit"), screen.text)
        screen.press("1")
        check("1: all workers in one row", screen.until(r"2 workers +.*q: quit"), screen.text)
        screen.press("M")
        check("M: one row per worker again", screen.until(r"worker \d .*q: quit"), screen.text)
        screen.press("h")
        check("h: help", screen.until(r"Keys.*by memory.*h: back"), screen.text)
        screen.press("h")
        check("h: back", screen.until(r"main .*q: quit"), screen.text)
        before = len(screen.text)
        screen.press("q")
        status = screen.end()
        check("q: quits", status == 0, status)
        last = screen.text[before:]
        check("the terminal is restored, and the figures stay", re.search(r"\033\[\?1049l.*worker 1 .*verdict: ", last, re.S),
              last)


def narrow(weir):
    with Job(shell=True) as job:
        done = top(weir, "--once", "--seconds", 3, job.pid, env={**os.environ, "COLUMNS": "40"})
        long = [line for line in done.stdout.splitlines() if len(line) > 40 and not line.startswith("  /")]
        check("40 columns: the most important ones", not long and re.search(r"(?m)^process +(?:pid +)?on core +core-wait +idle$", done.stdout), done)
        screen = Terminal([weir, "top", str(job.pid)], rows=12, columns=40)
        check("figures", screen.until("q: quit"), screen.text)
        start = len(screen.text)
        check("next figures", screen.until("q: quit.*\033.J"), screen.text)
        frame = re.sub(r"\033\[[0-9;?]*[A-Za-z]", "", screen.text[start:]).replace("\r", "").split("\n")
        check("no line of the screen is wrapped by the terminal", len(frame) <= 12 and max(map(len, frame)) <= 40, frame)
        screen.press("q")
        screen.end()


def suspended(weir):
    with Job() as job:
        screen = Terminal(["/bin/sh", "-c", f"set -m; {weir} top {job.pid}; echo stopped; fg; echo over $?"])
        check("figures", screen.until("q: quit"), screen.text)
        screen.press("\x1a")
        check("Ctrl-Z restores the terminal, and fg continues",
              screen.until(r"\033\[\?1049l.*stopped.*\033\[\?1049h.*q: quit"), screen.text)
        screen.press("q")
        screen.end()
        check("it quits as before", "over 0" in screen.text, screen.text)


def ctrl_c_with_a_command(weir):
    trap = "n=0; trap 'n=$((n+1))' INT; echo on; for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done; echo ints $n; exit 9"
    screen = Terminal([weir, "top", "--", "bash", "-c", trap])
    check("the command runs", screen.until("on\r\n"), screen.text)
    screen.press("\x03")
    status = screen.end()
    check("the terminal's Ctrl-C reaches the command once", "ints 1\r\n" in screen.text and status == 9,
          (status, screen.text))


# ---- torch ----

TRAIN = """
import sys, time, torch
from torch.utils.data import DataLoader, Dataset
class D(Dataset):
    def __len__(self): return 10 ** 9
    def __getitem__(self, i):
        return torch.zeros(4)
if __name__ == "__main__":
    torch.set_num_threads(1)
    for k, batch in enumerate(DataLoader(D(), batch_size=2, num_workers=2, multiprocessing_context=sys.argv[1])):
        time.sleep(0.05)
        if k == 3: print("ready", flush=True)
"""


def torch_jobs(weir):
    python = os.environ.get("WEIR_TORCH_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode:
        print("skipped: a job with torch (WEIR_TORCH_PYTHON names a Python that has it)")
        return
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(TRAIN)
        script.flush()
        for method in ("fork", "spawn", "forkserver"):
            with subprocess.Popen([python, script.name, method], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  text=True, start_new_session=True) as process:
                try:
                    check(f"{method}: the job trains", process.stdout.readline() == "ready\n")
                    entry = json.loads(top(weir, "--json", "--seconds", 3, process.pid).stdout)["jobs"][0]
                finally:
                    os.killpg(process.pid, signal.SIGKILL)
            check(f"{method}: main process and workers", entry["pid"] == process.pid and len(entry["workers"]) == 2, entry)
            check(f"{method}: the step sleeps", entry["main"]["time"]["sleep"] > 0.3, entry["main"])


def main():
    weir = os.path.abspath(sys.argv[1])
    for test in (once, schema, new_workers, two_jobs, gpu, ranks, lines, own_programs, errors, commands, signals, watched_command, keys, narrow, suspended,
                 ctrl_c_with_a_command, torch_jobs):
        test(weir)
    sys.exit(checks.failed())


main()
