"""Nothing remains of a watched job, however it ends: processes, shared memory, files, threads, memory, slots.

WEIR_WATCH_EPOCHS: how many epochs test_many_epochs runs (default 60; 1,000 take minutes)."""
import concurrent.futures
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest

from watch_tests import DATASET, HAVE_TORCH, environment

EPOCHS = int(os.environ.get("WEIR_WATCH_EPOCHS", "60"))
LIMIT_S = 60
JOB_LIMIT_S = 300
METHODS = ("fork", "spawn", "forkserver")

LOOK = """
import faulthandler, json, gc, signal, threading, multiprocessing
faulthandler.enable()
if __name__ == "__main__": signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell job ignores it
from weir import _watch
torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL = 0.2  # how long an epoch that has failed waits for its workers
class Data(Data):
    fails = None
    def __getitem__(self, i):
        if i == self.fails: raise LookupError("mine")
        return super().__getitem__(i)
def files(): return len(os.listdir("/proc/self/fd"))
def rss_kb(): return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS"))
def look():
    "What this process holds; files that the sampling thread opens for a moment do not count."
    gc.collect()
    looks = []
    for _ in range(20):
        looks.append(files())
        time.sleep(0.01)
    return {"files": min(looks), "rss_kb": rss_kb(), "segment_kb": os.fstat(_watch.active().fd).st_blocks // 2,
            "threads": len(os.listdir("/proc/self/task"))}
"""


def processes_of(session):
    """Processes of a session that have not ended, with their names."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as file:
                before, after = file.read().rsplit(")", 1)
        except OSError:
            continue
        state, _, _, its = after.split()[:4]
        if int(its) == session and state != "Z":
            found[int(pid)] = before.split("(", 1)[1]
    return found


def shared_memory():
    """Entries of torch's shared memory whose processes have ended."""
    names = [re.match(r"torch_(\d+)_", name) for name in os.listdir("/dev/shm")]
    return {name.string for name in names if name and not os.path.exists("/proc/" + name.group(1))}


class Job:
    """A program in a session of its own."""

    def __init__(self, code, *arguments):
        self.folder = tempfile.TemporaryDirectory()
        path = os.path.join(self.folder.name, "train.py")
        with open(path, "w") as file:
            file.write(DATASET + LOOK + textwrap.dedent(code))
        self.errors = open(os.path.join(self.folder.name, "stderr"), "w+")
        self.process = subprocess.Popen([sys.executable, path, *arguments], stdout=subprocess.PIPE, stderr=self.errors,
                                        env=environment(), start_new_session=True, universal_newlines=True)
        self.limit = threading.Timer(JOB_LIMIT_S, self.abort)
        self.limit.daemon = True
        self.limit.start()

    def abort(self):
        """Ends a job that hangs; faulthandler prints the stacks of all its processes to stderr."""
        for pid in processes_of(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGABRT)
            time.sleep(0.5)  # so that their stacks do not mix

    def until(self, text):
        for line in self.process.stdout:
            if line.startswith(text):
                return line[len(text):].strip()
        raise AssertionError("no %r\n%s" % (text, self.stderr()))

    def stderr(self):
        self.errors.seek(0)
        return self.errors.read()

    def end(self, status):
        """(rest of the output, processes left) once the job has ended; torch's workers look every 5 s for their parent."""
        found = self.process.wait()
        self.limit.cancel()
        end = time.monotonic() + LIMIT_S
        while processes_of(self.process.pid) and time.monotonic() < end:
            time.sleep(0.1)
        left = processes_of(self.process.pid)
        if left:
            os.killpg(self.process.pid, signal.SIGKILL)
        rest, errors = self.process.stdout.read(), self.stderr()
        self.errors.close()
        self.process.stdout.close()
        self.folder.cleanup()
        if found != status:
            raise AssertionError("exit status %d, not %d\n%s%s" % (found, status, rest, errors))
        return rest, left


@unittest.skipUnless(HAVE_TORCH, "torch is not installed")
class Leaks(unittest.TestCase):
    def setUp(self):
        self.before = shared_memory()

    def tearDown(self):
        self.assertEqual(shared_memory() - self.before, set())

    def of_each_method(self, check, methods=METHODS):
        """Calls check(method) for each start method, at the same time."""
        with concurrent.futures.ThreadPoolExecutor(len(methods)) as pool:
            list(pool.map(check, methods))

    def ends(self, code, method, signals, status):
        """Starts a job, sends (signal, to the whole process group) when it has its batches, and returns its output."""
        job = Job(code, method)
        job.until("ready")
        for number, to_all in signals:
            (os.killpg if to_all else os.kill)(job.process.pid, number)
        out, left = job.end(status)
        self.assertEqual(left, {}, method)
        return out

    LOOP = """
    if __name__ == "__main__":
        loader = weir.watch(DataLoader(Data(10 ** 6), batch_size=4, num_workers=2, multiprocessing_context=sys.argv[1]))
        for n, batch in enumerate(loader):
            if n == 4: print("ready", flush=True)
            time.sleep(0.01)
    """

    def test_parent_killed(self):
        """Without forkserver, whose workers remain without a watch too: they look for the server, not for the parent."""
        self.of_each_method(lambda method: self.ends(self.LOOP, method, [(signal.SIGKILL, False)], -signal.SIGKILL),
                            METHODS[:2])

    def test_ctrl_c(self):
        def check(method):
            out = self.ends(self.LOOP, method, [(signal.SIGINT, True)], -signal.SIGINT)
            self.assertIn("00_TOTAL_batch", out, method)
        self.of_each_method(check)

    def test_worker_killed(self):
        """The loop gets torch's own exception, which depends on when the worker died. The table remains; it comes first if
        the exception ended the epoch."""
        code = """
        if __name__ == "__main__":
            loader = weir.watch(DataLoader(Data(10 ** 6), batch_size=4, num_workers=2, multiprocessing_context=sys.argv[1]))
            print("ready", flush=True)
            try:
                for n, batch in enumerate(loader):
                    if n == 4: os.kill(multiprocessing.active_children()[0].pid, 9)
            except (RuntimeError, OSError, EOFError) as error: print("RAISED", type(error).__name__)
        """

        def check(method):
            out = self.ends(code, method, [], 0)
            self.assertIn("RAISED ", out)
            self.assertIn("00_TOTAL_batch", out)
        self.of_each_method(check)

    EPOCHS = """
    if __name__ == "__main__":
        method, persistent, epochs, fails = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
        data = Data(16)
        data.fails = 9 if fails else None
        loader = weir.watch(DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context=method,
                                       persistent_workers=bool(persistent)), every=0)
        looks, failed = [], 0
        for epoch in range(epochs):
            try:
                for batch in loader: pass
            except LookupError: failed += 1
            if epoch in (epochs // 3, epochs - 1): looks.append(look())
        print("LOOKS", json.dumps(looks), flush=True)
        assert failed == fails * epochs
    """

    def epochs(self, method, persistent, epochs, fails):
        job = Job(self.EPOCHS, method, str(int(persistent)), str(epochs), str(int(fails)))
        first, last = json.loads(job.until("LOOKS"))
        _, left = job.end(0)
        what = "%s, persistent %d, %d epochs, fails %d: %s %s" % (method, persistent, epochs, fails, first, last)
        if "WEIR_WATCH_EPOCHS" in os.environ:
            print(what, flush=True)
        self.assertEqual(left, {}, what)
        for key in ("files", "threads"):
            self.assertLessEqual(last[key], first[key], what)
        self.assertLess(last["segment_kb"] - first["segment_kb"], 64, what)  # a worker's slot takes 12 or more
        self.assertLess(last["rss_kb"] - first["rss_kb"], 4096, what)

    def test_many_epochs(self):
        """A spawned worker imports torch, which takes seconds; one that persists does it once."""
        def check(method):
            self.epochs(method, True, EPOCHS, False)
            self.epochs(method, False, EPOCHS if method == "fork" else max(4, EPOCHS // 20), False)
        self.of_each_method(check)

    def test_exceptions_in_workers(self):
        self.epochs("fork", False, 12, True)


if __name__ == "__main__":
    unittest.main()
