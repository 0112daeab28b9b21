#!/usr/bin/env python3
"""Random programs against the package: wrong types, early exits, threads, forks, two loaders, exceptions inside stages.

random_programs.py [COUNT [SEED]] runs programs SEED, SEED + 1, ... in separate processes. It counts programs that
crash, hang, raise an unsuitable error, or leak a thread, process or file descriptor. PYTHONPATH contains the package,
WEIR_PROGRAM is the program. To reproduce a failure, pass COUNT 1 and its seed, which also prints the steps."""
import collections
import concurrent.futures
import contextlib
import faulthandler
import functools
import gc
import importlib.util
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings

SECONDS = 120  # limit for one program, which normally takes 1 or 2
# Allowed errors. UnicodeError, a ValueError, is not: it does not name the argument.
ANSWERS = (ValueError, TypeError, OSError, MemoryError, OverflowError, RuntimeError, IndexError, BufferError)
NO_ANSWERS = (UnicodeError, NotImplementedError, RecursionError)
# Python's messages for errors in internal code, which callers must not see.
WORDS = ("cannot unpack", "not enough values", "too many values", "NoneType", "not subscriptable", "bad argument type")


class Planned(Exception):
    """Raised by the programs themselves."""


class Odd:
    """Raises Planned from every special method."""

    def refuse(self, *arguments):
        raise Planned

    __iter__ = __index__ = __int__ = __float__ = __bool__ = __fspath__ = __len__ = __getitem__ = __hash__ = refuse
    __str__ = __repr__ = __eq__ = __call__ = refuse


class Names:
    """os.PathLike with an invalid __fspath__."""

    def __fspath__(self):
        return 7


def junk():
    values = [None, True, -1, 0, 1, 7, 2**31 - 1, 2**31, 2**63, -2**63, 2**100, 0.5, 1e300, float("nan"), float("inf"),
              -0.0, "", "x", "a\0b", "\udcff", "8x8+0+0", "top=8x8+0+0", "x" * 100000, "cuda", "en", b"en", b"\xff", [],
              [1], ["top"], ["top", None], [["top"]], (), (32,), (32, 24), (0, 0), (-1, 5), ("a", "b"), (1, 2, 3), {},
              {"weir": 1}, {1: 2}, set(), object(), Odd(), Names(), Odd, len, lambda *a: None, Ellipsis, 1j,
              iter("ab"), bytearray(b"x"), memoryview(b"abcd")]
    with contextlib.suppress(ImportError):
        import numpy
        values += [numpy.int64(3), numpy.float32(0.5), numpy.bool_(True), numpy.zeros(3), numpy.array(["top"])]
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        values += [torch.float32, torch.uint8, torch.zeros(2), torch.device("cpu"), torch.tensor(2)]
    return values


class Program:
    def __init__(self, seed, data, work):
        self.here = threading.local()  # one generator per thread, so that a seed reproduces the steps
        self.here.random = random.Random(seed)
        self.begun = time.monotonic()
        self.data, self.work = data, work
        if seed % 8 == 0 and importlib.util.find_spec("torch"):
            import torch  # noqa: F401
        import weir
        self.weir = weir
        self.junk = junk()
        self.loaders, self.iterators, self.kept, self.profiles = [], [], [], []
        self.faults = []
        self.steps = [getattr(self, name) for name in dir(self) if name.startswith("do_")]

    # ---- running ----

    @property
    def random(self):
        if not hasattr(self.here, "random"):  # a thread not started by do_thread
            self.here.random = random.Random(0)
        return self.here.random

    def note(self, text):
        os.write(2, (f"{text}"[:2000] + "\n").encode(errors="replace"))

    def step(self, deep=0):
        step = self.random.choice(self.steps)
        self.note(f"{time.monotonic() - self.begun:7.3f} {threading.get_ident() % 1000:4} {'  ' * deep}{step.__name__}")
        try:
            step(deep)
        except Planned:
            pass
        except ANSWERS as error:
            self.judge(error)
        except Exception as error:
            self.fault(error)

    def judge(self, error):
        try:
            text = str(error)
        except Planned:
            return
        self.note(f"     {type(error).__name__}: {text}")
        if isinstance(error, NO_ANSWERS) or any(word in text for word in WORDS):
            self.fault(error)

    def fault(self, error):
        self.faults.append(f"{type(error).__name__}: {error}")
        self.note("FAULT " + " ".join(traceback.format_exception(error)).replace("\n", " | ")[-1500:])

    def run(self):
        for _ in range(self.random.randint(4, 16)):
            self.step()

    # ---- values ----

    def any(self):
        return self.random.choice(self.junk)

    def one(self, things):
        """A random one of things; raises Planned if there are none."""
        with contextlib.suppress(IndexError):
            return self.random.choice(things)
        raise Planned

    def arguments(self):
        good = {"batch_size": [1, 3, 8], "shuffle": [True, False], "num_workers": [0, 1, 2, "auto", None],
                "prefetch_factor": [None, 1, 4], "drop_last": [True], "seed": [0, 1], "image_layout": ["nhwc", "nchw"],
                "dtype": ["uint8", "float32"], "chunk_size": [1, 20, 100], "obs_history": [1, 3],
                "cameras": ["top", ["wrist"]],
                "image_size": [(16, 16)], "keys": ["weir", "act", "lerobot"], "tensors": ["auto", "array"],
                "split": ["train", "val"], "train_split": [0.5, 1.0], "sampling": ["timestep", "episode"],
                "max_batches": [0, 1, 2], "decode_cache": ["8M"], "on_error": ["skip", "substitute"],
                "io": ["auto", "pread", "mmap", "uring"], "index": [os.path.join(self.work, "index")]}
        chosen = {}
        for _ in range(self.random.randint(0, 4)):
            name = self.random.choice(list(good))
            chosen[name] = self.random.choice(good[name])
        if self.random.random() < 0.3:
            names = list(good) + ["device", "decoder", "crop", "normalize", "pad", "action_offset", "color",
                                  "qpos_keys", "action_keys", "image_keys", "file_split", "wrap", "rank", "world_size",
                                  "path", "deterministic", "allow_ragged", "batchsize", "workers"]
            chosen[self.random.choice(names)] = self.any()
        return chosen

    # ---- steps ----

    def do_open(self, deep):
        path = self.random.choice(self.data)
        self.loaders.append(self.weir.Loader(**{"path": path, **self.arguments()}))

    do_open_more = do_open_again = do_open

    def do_next(self, deep):
        if not self.iterators or self.random.random() < 0.3:
            self.iterators.append(iter(self.one(self.loaders)))
        for _ in range(self.random.randint(1, 6)):
            batch = next(self.random.choice(self.iterators), None)
            if self.random.random() < 0.3:
                self.kept.append(batch)

    do_next_again = do_next

    def do_epoch(self, deep):
        stop = self.random.randint(0, 8)
        for i, batch in enumerate(self.one(self.loaders)):
            with self.weir.stage(self.random.choice(["20_train_forward_pass", "21_backward", "mine"])):
                if deep < 3 and self.random.random() < 0.1:
                    self.step(deep + 1)
                if i == stop and self.random.random() < 0.5:
                    raise Planned
            if i == stop:
                break

    def do_two_loaders(self, deep):
        for n, _ in enumerate(zip(self.one(self.loaders), self.one(self.loaders))):
            if n == 5:
                break

    def do_close(self, deep):
        loader = self.one(self.loaders)
        loader.close()
        if self.random.random() < 0.5:
            with contextlib.suppress(ValueError):
                self.loaders.remove(loader)

    def do_drop(self, deep):
        kept = self.random.choice([self.loaders, self.iterators, self.kept, self.profiles])
        if kept:
            kept.pop(self.random.randrange(len(kept)))
        gc.collect()

    def do_state(self, deep):
        loader = self.one(self.loaders)
        state = loader.state_dict()
        repr(state)
        if self.random.random() < 0.7:
            state = {**state, "settings": dict(state["settings"])}
            part = self.random.choice([state, state["settings"]])
            part[self.random.choice(list(part))] = self.any()
            if self.random.random() < 0.3:
                part.pop(self.random.choice(list(part)))
        self.random.choice(self.loaders).load_state_dict(state)

    def do_junk_state(self, deep):
        self.one(self.loaders).load_state_dict(self.any())

    def do_junk_call(self, deep):
        """Calls any function of the module or method of an object with random arguments."""
        things = [self.weir] * 2 + self.loaders[-1:] + self.profiles[-1:] + [self.weir.stage("mine")]
        for batch in self.kept[-1:]:
            things += batch.values() if isinstance(batch, dict) else [batch]
        thing = self.random.choice(things)
        if "torch" in type(thing).__module__:
            raise Planned
        made_by_weir = ("Array", "Average", "Averages", "Dataset", "KernelClocks")
        public = ([n for n in thing.__all__ if n not in made_by_weir] if thing is self.weir else
                  [n for n in dir(thing) if not n.startswith("_")])
        special = [n for n in ("__enter__", "__exit__", "__getitem__", "__len__", "__iter__", "__repr__", "__dlpack__",
                               "__array_interface__", "__call__") if n in dir(thing)]
        function = getattr(thing, self.random.choice(list(public) + special * (thing is not self.weir)))
        if not callable(function):
            return
        named = {}
        if self.random.random() < 0.2:
            named[self.random.choice(["lang", "name", "path", "cuda", "n", "activities", "schedule"])] = self.any()
        made = function(*[self.any() for _ in range(self.random.randint(0, 3))], **named)
        if isinstance(made, self.weir.Loader):
            self.loaders.append(made)

    do_junk_call_again = do_junk_call_more = do_junk_call

    def do_stages(self, deep):
        names = ["mine", "20_train_forward_pass", "other"]
        with self.weir.stage(self.random.choice(names)), self.weir.record_function("range"):
            with self.weir.stage(self.random.choice(names)):
                if deep < 3:
                    self.step(deep + 1)
                if self.random.random() < 0.5:
                    raise Planned
        self.weir.log_timing("logged", self.random.random())

    def do_stray_stage(self, deep):
        stage = self.weir.stage(self.random.choice(["mine", "other"]))
        for _ in range(self.random.randint(1, 3)):
            self.random.choice([stage.__enter__, stage.__exit__])()

    def do_generator(self, deep):
        def generate():
            with self.weir.stage("generator"), self.weir.record_function("generator"):
                yield
                self.step(3)
                yield
        generator = generate()
        for _ in range(self.random.randint(0, 3)):
            next(generator, None)
        if self.random.random() < 0.5:
            self.kept.append(generator)

    def do_decorator(self, deep):
        @self.weir.stage("decorated")
        def recurse(n):
            return recurse(n - 1) if n else self.step(3)
        recurse(self.random.randint(0, 40))

    def do_report(self, deep):
        lang = self.random.choice(["en", "zh"])
        call = self.random.choice([self.weir.table, self.weir.verdict, self.weir.print_timing_stats])
        call(lang)
        for loader in self.loaders[-1:]:
            self.random.choice([loader.table, loader.verdict])(lang)

    def do_thread(self, deep):
        if deep > 1:
            return
        kind = self.random.choice(["step", "left in a stage", "daemon"])

        numbers = random.Random(self.random.random())

        def work():
            self.here.random = numbers
            if kind == "left in a stage":
                self.weir.stage("left").__enter__()
            for _ in range(3):
                self.step(deep + 2)
        thread = threading.Thread(target=work, daemon=kind == "daemon")
        thread.start()
        if self.random.random() < 0.4:
            thread.join()

    do_thread_again = do_thread

    def do_fork(self, deep):
        if deep > 2:
            return
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])  # logging's at-fork functions would not survive it
        child = os.fork()
        if child == 0:
            status = 3
            try:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
                for _ in range(self.random.randint(1, 4)):
                    self.step(3)
                status = 4 if self.faults else 0
            finally:
                os._exit(status)
        until, status = time.monotonic() + SECONDS / 3, None
        while status is None:
            with contextlib.suppress(Planned):  # raised by on_alarm
                signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
                done, ended = os.waitpid(child, os.WNOHANG)
                status = ended if done else None
                if not done and time.monotonic() > until:
                    os.kill(child, signal.SIGABRT)  # faulthandler prints its stack
                    until += SECONDS
                time.sleep(0.001)
        if status:
            self.faults.append(f"a child of fork() ended with status {status:#x}")

    do_fork_again = do_fork

    def do_profile(self, deep):
        weir = self.weir
        arguments = {"with_stack": True, "record_shapes": True, "profile_memory": True}
        arguments = {name: value for name, value in arguments.items() if self.random.random() < 0.3}
        if self.random.random() < 0.6:
            steps = self.random.randint(0, 2)
            arguments["schedule"] = weir.schedule(wait=steps, warmup=1, active=1 + steps)
        if self.random.random() < 0.3:
            arguments["on_trace_ready"] = lambda p: self.step(3)
        with weir.profile(**arguments) as prof:
            self.profiles.append(prof)
            for _ in range(self.random.randint(0, 5)):
                self.step(deep + 2)
                prof.step()

    def do_profile_calls(self, deep):
        prof = self.one(self.profiles) if self.profiles and self.random.random() < 0.8 else self.weir.profile()
        if prof not in self.profiles:
            self.profiles.append(prof)
        for _ in range(self.random.randint(1, 4)):
            call = self.random.choice([prof.start, prof.step, prof.stop, prof.key_averages,
                                       lambda: prof.key_averages().table(),
                                       lambda: prof.export_chrome_trace(os.path.join(self.work, "trace.json")),
                                       lambda: prof.export_stacks(os.path.join(self.work, "stacks"))])
            try:
                call()
            except self.weir.Error as error:
                self.judge(error)

    def do_memory(self, deep):
        import numpy
        batches = [kept for kept in self.kept if isinstance(kept, (dict, self.weir.Act))]
        batch = self.one(batches[-3:])
        for value in batch.values() if isinstance(batch, dict) else batch:
            how = self.random.randint(0, 4)
            if how == 0:
                self.kept.append(numpy.asarray(value))
            elif how == 1 and isinstance(value, self.weir.Array):
                self.kept.append(memoryview(value))
            elif how == 2 and hasattr(value, "__dlpack__"):
                self.kept.append(value.__dlpack__())
            elif how == 3:
                self.kept.append(value[0])
            else:
                int(numpy.asarray(value).astype(numpy.float64).sum())

    def do_signal(self, deep):
        def on_alarm(number, frame):
            raise Planned
        if threading.current_thread() is not threading.main_thread() or deep > 1:
            return
        before = signal.signal(signal.SIGALRM, on_alarm)
        try:
            signal.setitimer(signal.ITIMER_REAL, self.random.random() / 50)
            for _ in range(3):
                self.step(deep + 1)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def do_many_loaders(self, deep):
        if self.random.random() < 0.5:
            return
        for _ in range(6):
            loader = self.weir.Loader(self.data[0], batch_size=4, num_workers=1)
            next(iter(loader))

    # ---- the end ----

    def end(self):
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and thread.ident:  # None if a signal interrupted start()
                thread.join()
        for prof in self.profiles:
            with contextlib.suppress(Exception):
                prof.stop()
        for loader in self.loaders:
            with contextlib.suppress(Exception):
                loader.close()
        for kept in (self.loaders, self.iterators, self.kept, self.profiles):
            kept.clear()
        gc.collect()


def open_now():
    """The process's open file descriptors by kind, threads, and children."""
    files = collections.Counter()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            files[os.readlink(f"/proc/self/fd/{number}").split(":")[0]] += 1
    children = collections.Counter()
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/children", encoding="ascii") as file:
            for child in file.read().split():
                with open(f"/proc/{child}/stat", encoding="ascii", errors="replace") as stat:
                    children[" ".join(stat.read().split()[1:3])] += 1
    return files, collections.Counter(threads=len(os.listdir("/proc/self/task"))), children


def more_than(before):
    """What the process has in addition to before. Waits up to 10 s: a joined thread may still be ending."""
    until = time.monotonic() + 10
    while True:
        now = open_now()
        more = [f"{n} {name}" for kind, was in zip(now, before) for name, n in (kind - was).items()]
        if not more or time.monotonic() > until:
            return "left behind: " * bool(more) + ", ".join(more)
        time.sleep(0.01)


def one(seed, data, work):
    faulthandler.enable()
    faulthandler.dump_traceback_later(SECONDS - 10, exit=True)
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, lambda number, frame: None)
    program = Program(seed, data, work)
    warnings.simplefilter("always")
    warnings.showwarning = lambda message, *rest: program.note(f"     warning: {message}")
    for path in data:  # allocates everything that lives as long as the process
        with program.weir.Loader(path, batch_size=4, num_workers=1) as loader:
            next(iter(loader))
    with program.weir.profile(), program.weir.stage("first"):
        pass
    del loader
    gc.collect()
    before = open_now()
    program.run()
    if seed % 10 == 9:  # exits with everything open
        sys.exit(1 if program.faults else 0)
    program.end()
    left = more_than(before)
    if left:
        program.faults.append(left)
        program.note(f"FAULT {left}")
    sys.exit(1 if program.faults else 0)


def make_data(work):
    program = os.environ["WEIR_PROGRAM"]
    run = functools.partial(subprocess.run, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    path = os.path.join(work, "hdf5")
    run([program, "synth", path, "--episodes", "3", "--steps", "13", "--cameras", "top,wrist", "--size", "64x48"])
    made = [path]
    for form in ("packed", "tfrecord", "zarr", "lmdb"):
        with contextlib.suppress(subprocess.CalledProcessError):  # not built in
            run([program, "convert", path, os.path.join(work, form), "--to", form])
            made.append(os.path.join(work, form))
    return made


def run_program(seed, data, work):
    """(exit status or "a hang", stderr)"""
    folder = os.path.join(work, str(seed))
    os.mkdir(folder)
    command = [sys.executable, os.path.abspath(__file__), "--one", str(seed), folder, data[0], data[seed % len(data)]]
    try:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=SECONDS,
                              cwd=folder, env={**os.environ, "PYTHONHASHSEED": "0"})
        return done.returncode, done.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired as error:
        return "a hang", (error.stderr or b"").decode(errors="replace")
    finally:
        shutil.rmtree(folder)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    work = tempfile.mkdtemp(prefix="weir-programs-")
    failed = []
    try:
        data = make_data(work)
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            seeds = range(first, first + count)
            for seed, (status, text) in zip(seeds, pool.map(lambda seed: run_program(seed, data, work), seeds)):
                if status == 0:
                    if count == 1:
                        print(text)
                    continue
                failed.append(seed)
                faults = "\n".join(line for line in text.splitlines() if line.startswith("FAULT"))
                print(f"program {seed}: {status}\n{text[-6000:] if count == 1 or not faults else faults}", flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{count} programs, {len(failed)} failed{': ' if failed else ''}{' '.join(map(str, failed))}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(int(sys.argv[2]), sys.argv[4:], sys.argv[3])
    main()
