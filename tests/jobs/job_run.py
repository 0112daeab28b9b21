"""Runs a job of job_list.py in a process of its own, on its cores and in its control groups, for judge.py."""
import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Skipped(Exception):
    """This machine cannot create the job; says why."""


@contextlib.contextmanager
def group_of(settings, why):
    """A control group with the first setting (folder, file, value) that works; removed at the end."""
    for base, name, value in settings:
        group = Path(base) / f"weir-jobs.{os.getpid()}.{threading.get_ident()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            if not (group / name).exists():
                raise OSError
            (group / name).write_text(value)
        except OSError:
            group.rmdir()
            continue
        try:
            yield ["sh", "-c", f'echo $$ >"{group}/cgroup.procs" && exec "$@"', "sh"]
        finally:
            remove(group)
        return
    raise Skipped(f"no control group with {why} here")


def remove(group):
    for _ in range(100):  # its last process can end slightly after its parent
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.05)


def quota_of(cores):
    period = int(cores * 100000)
    return group_of([("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", str(period)), ("/sys/fs/cgroup", "cpu.max", f"{period} 100000")],
                    "a CPU quota")


def disk_of(rate, folder):
    device = os.stat(folder).st_dev
    disk = f"{os.major(device)}:{os.minor(device)}"
    return group_of([("/sys/fs/cgroup/blkio", "blkio.throttle.read_bps_device", f"{disk} {rate}"),
                     ("/sys/fs/cgroup", "io.max", f"{disk} rbps={rate}")], "a limit of the storage")


def memory_of(size):
    return group_of([("/sys/fs/cgroup/memory", "memory.limit_in_bytes", str(size)), ("/sys/fs/cgroup", "memory.max", str(size))],
                    "a limit of the memory")


def cpu_seconds(cores):
    """Seconds of these cores' work so far, without idle time and waiting for storage."""
    ticks = 0
    with open("/proc/stat", encoding="ascii") as file:
        for line in file:
            name, *fields = line.split()[:9]
            if name[:3] == "cpu" and name[3:].isdigit() and int(name[3:]) in cores:
                ticks += sum(map(int, fields)) - int(fields[3]) - int(fields[4])
    return ticks / os.sysconf("SC_CLK_TCK")


class Machine:
    """The Python with torch, the program, and what the machine has."""

    def __init__(self, o):
        self.weir, self.python = o.weir, o.python
        self.env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", PYTHONWARNINGS="ignore", PYTHONUNBUFFERED="1")
        if o.pythonpath:
            self.env["PYTHONPATH"] = o.pythonpath
        if o.data:
            self.env["WEIR_JOBS_DATA"] = o.data
        self.data = self.env.setdefault("WEIR_JOBS_DATA", os.path.join(tempfile.gettempdir(), "weir-jobs-data"))
        self.cores = sorted(os.sched_getaffinity(0))
        self.thread = threading.local()  # .cores: those of the calling thread's jobs
        code = """
import importlib.util, json
has = {name for name in ("torch", "cv2", "torchvision", "av", "h5py", "PIL", "numpy") if importlib.util.find_spec(name)}
cuda, version = False, None
if "torch" in has:
    import torch
    cuda, version = torch.cuda.is_available(), torch.__version__
print(json.dumps({"has": sorted(has), "cuda": cuda, "torch": version}))
"""
        done = subprocess.run([self.python, "-c", code], env=self.env, capture_output=True, text=True)
        found = json.loads(done.stdout) if done.returncode == 0 else {"has": [], "cuda": False, "torch": None}
        self.has, self.torch = set(found["has"]) | ({"cuda"} if found["cuda"] else set()), found["torch"]

    def check(self, job):
        needs = job.needs - {"quota", "disk", "memory"}
        needs |= {"h5py"} if job.dataset["kind"] in ("Hdf5", "ManyKeys") else set()
        missing = needs - self.has
        if missing:
            raise Skipped("needs " + " and ".join(sorted(missing)))

    def cpus(self, job):
        return getattr(self.thread, "cores", self.cores)[:job.cores] if job.cores else self.cores


class Run:
    """A job that runs; a context. .pid is the training process. After the context, .result is its line of JSON, and
    .others the cores that other processes used on average."""

    def __init__(self, machine, job, o, method, seed, changes=(), advice=None, watch=None, seconds=None,
                 options=()):
        self.machine, self.job, self.stack = machine, job, contextlib.ExitStack()
        effective = job.after(advice) if advice else job
        program = [str(HERE / "train.py"), job.name, "--method", method, "--seed", str(seed), "--seconds",
                   str(seconds or o.seconds), "--warm-up", str(o.warm_up)]
        if o.cuda or "cuda" in job.needs:
            program += ["--device", "cuda"]
        if advice:
            program += ["--advice", advice]
        if changes:
            program += ["--set", *changes]
        if watch:
            program = ["-m", "weir", "watch", "--json", str(watch), *options] + program
        self.effective = effective
        self.cores = machine.cpus(effective)
        self.place = ["taskset", "-c", ",".join(map(str, self.cores))]
        if o.nice:  # niceness counts within a session, and that of the session's group between them
            self.place = ["sh", "-c", f'echo {o.nice} 2>/dev/null >/proc/self/autogroup; exec nice -n {o.nice} "$@"', "sh"] + self.place
        self.command = self.place + [machine.python] + program

    def __enter__(self):
        job, machine = self.effective, self.machine
        try:
            for limit in ((quota_of, job.quota), (memory_of, job.memory)):
                if limit[1]:
                    self.command = self.stack.enter_context(limit[0](limit[1])) + self.command
            if job.disk:
                self.command = self.stack.enter_context(disk_of(job.disk, machine.data)) + self.command
            for _ in range(job.loops):
                loop = subprocess.Popen(self.place + ["sh", "-c", "while :; do :; done"], start_new_session=True)
                self.stack.callback(loop.wait)
                self.stack.callback(loop.kill)
            self.errors = self.stack.enter_context(tempfile.TemporaryFile("w+"))
            self.begin = time.perf_counter(), cpu_seconds(self.cores)
            self.process = subprocess.Popen(self.command, env=machine.env, stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                            start_new_session=True)
            self.stack.callback(self.stop)
            self.pid = self.process.pid  # taskset and sh execute the next program in their place
            self.lines = []
            for line in self.process.stdout:
                self.lines.append(line)
                if line.strip() == "training":
                    break
        except BaseException:
            self.stack.close()
            raise
        return self

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()

    def finish(self):
        self.lines += list(self.process.stdout)
        _, status, used = os.wait4(self.pid, 0)  # with the workers
        self.status = self.process.returncode = os.waitstatus_to_exitcode(status)
        wall, busy = time.perf_counter() - self.begin[0], cpu_seconds(self.cores) - self.begin[1]
        self.others = 0 if self.effective.loops else max(0.0, (busy - used.ru_utime - used.ru_stime) / wall)
        self.errors.seek(0)
        self.stderr = self.errors.read()
        self.result = next((json.loads(line) for line in reversed(self.lines) if line.startswith('{"job"')), None)
        if self.status or not self.result:
            raise RuntimeError(f"{' '.join(self.command)}: exit status {self.status}\n{''.join(self.lines)}{self.stderr[-2000:]}")
        return self.result

    def __exit__(self, *_):
        self.stack.close()
