"""What PyTorch adds to the windows of weir.profile: its operators, and the ranges of its record_function."""
import collections
import contextlib
import functools
import json
import os
import sys
import tempfile
import threading
import warnings

from . import _weir


def imported():
    """The module torch if the program has imported it, else None."""
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "autograd") else None


def is_recording(torch):
    """Whether torch's profiler records in this process, as far as torch knows, or on this thread."""
    return bool(getattr(torch.autograd.profiler, "_is_profiler_enabled", False) or torch.autograd._profiler_enabled())


def _add_flops(path, events):
    """Adds a last member to a trace, with the FLOPs of operators, which torch does not write."""
    flops = {event.correlation_id(): event.flops() for event in events if event.flops() > 0}
    with open(path, "rb+") as file:
        file.seek(max(0, os.path.getsize(path) - 64))
        start = file.tell()
        file.seek(start + file.read().rindex(b"}"))
        file.write(b', "weir_flops": %s}' % json.dumps(flops).encode())


_left_on = None # torch's profiler that was not stopped on its thread, and that thread


class Windows:
    """torch's own profiler, which records in the windows of one weir.profile, and a hook into record_function.

    torch's profiler covers the thread that starts it and threads of autograd. On other threads, and while it does not
    record, record_function makes ranges of Weir.

    names    of CPU and CUDA: what torch's profiler is to record; empty = nothing, only the hook
    options  its record_shapes, profile_memory, with_stack, with_flops and with_modules
    say      called with a line if operators cannot be recorded; torch's errors never reach the program

    .gpu is whether torch's profiler records GPUs, and therefore has CUPTI.
    """

    def __init__(self, torch, names, options, say):
        self._torch, self._options, self._say = torch, options, say
        activities = torch.autograd.ProfilerActivity
        self.gpu = "CUDA" in names and activities.CUDA in torch.autograd._supported_activities() and torch.cuda.is_available()
        self._activities = [activities.CPU] * ("CPU" in names) + [activities.CUDA] * self.gpu
        self._profiler = None    # of the current window
        self._recording = False  # it has started
        self._in_window = self._failed = False
        self._pid, self._thread = os.getpid(), None
        self._unhook = self._hook(torch.autograd.profiler.record_function)

    def _hook(self, record_function):
        """Returns the function that removes the hook, __exit__ only once the ranges that were entered have ended."""
        enter, leave = record_function.__enter__, record_function.__exit__
        n_open, closed = 0, False

        @functools.wraps(enter)
        def entered(self_):
            nonlocal n_open
            if self._in_window and not (self._recording and self._torch.autograd._profiler_enabled()):
                try:
                    made = _weir.record_function(self_.name)
                except (TypeError, ValueError): # not a name in a trace
                    return enter(self_)
                self_.__dict__.setdefault("_weir_ranges", []).append(made)
                n_open += 1
                made.__enter__()
            return enter(self_)

        @functools.wraps(leave)
        def left(self_, *error):
            nonlocal n_open
            try:
                return leave(self_, *error)
            finally:
                if self_.__dict__.get("_weir_ranges"):
                    self_.__dict__["_weir_ranges"].pop().__exit__()
                    n_open -= 1
                    if closed:
                        unhook()

        def unhook():
            nonlocal closed
            closed = True
            if record_function.__enter__ is entered:
                record_function.__enter__ = enter
            if record_function.__exit__ is left and n_open == 0:
                record_function.__exit__ = leave
        record_function.__enter__, record_function.__exit__ = entered, left
        return unhook

    def _fail(self, why):
        if not self._failed:
            self._say(f"PyTorch operators{' and GPU work' * self.gpu} are not recorded: {why}")
        self._failed = True

    def _try(self, call):
        """Reports the call's error. In a child of fork() it does nothing."""
        if self._pid != os.getpid():
            return
        try:
            call()
        except Exception as error: # torch.profiler has no errors of its own
            profiler, self._profiler, self._recording = self._profiler, None, False
            self._fail(str(error).partition("\n")[0] or type(error).__name__)
            if profiler is not None:
                with contextlib.suppress(Exception):
                    profiler.stop_trace()

    def transit(self, begins, records):
        """Before a window begins, or goes on: begins is whether it warms up or records, records whether it records."""
        self._in_window = begins
        if not begins:
            self._discard()
        elif self._profiler is None and self._activities:
            self._try(self._prepare)
        if records and self._profiler is not None and not self._recording:
            self._try(self._start)

    def _prepare(self):
        global _left_on
        self._thread = threading.get_ident()
        if _left_on is not None and _left_on[1] == self._thread:
            _left_on, profiler = None, _left_on[0]
            profiler.stop_trace()
        if is_recording(self._torch):
            self._fail("torch.profiler is recording in this process; use one at a time")
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore") # torch explains how its own profile accumulates events
            self._profiler = self._torch.profiler._KinetoProfile(activities=self._activities, **self._options, **self._verbose())
            self._profiler.prepare_trace()

    def _verbose(self):
        """Options with which operators have their stacks, if this torch has them."""
        try:
            return {"experimental_config": self._torch._C._profiler._ExperimentalConfig(verbose=self._options["with_stack"])}
        except TypeError:
            return {}

    def _start(self):
        self._profiler.start_trace()
        self._recording = True
        with self._torch.autograd.profiler.record_function("weir.profile"): # before the window; names this thread
            pass

    def _stop(self):
        global _left_on
        if self._thread != threading.get_ident():
            _left_on = self._profiler, self._thread
            self._profiler, self._recording = None, False
            raise RuntimeError("stop() was called on another thread than start(), where torch's profiler is still on")
        profiler, self._profiler, recording, self._recording = self._profiler, None, self._recording, False
        if not recording:
            profiler.start_trace()
        profiler.stop_trace()
        return profiler

    def _discard(self):
        if self._profiler is not None:
            self._try(self._stop)

    def deliver(self, trace):
        """Ends torch's part of a window and adds it to the window's trace."""
        self._in_window = False
        if self._recording:
            self._try(lambda: self._add(trace, self._stop()))

    def _add(self, trace, profiler):
        with tempfile.TemporaryDirectory(prefix="weir-profile-") as folder:
            path = os.path.join(folder, "torch.json")
            if self._torch.autograd.kineto_available():
                profiler.export_chrome_trace(path)
            else:
                with open(path, "w", encoding="utf-8") as file:
                    json.dump({"traceEvents": self._events(profiler.profiler.kineto_results.events())}, file)
            if self._options["with_flops"]:
                _add_flops(path, profiler.profiler.kineto_results.events())
            trace.merge(path)

    def _events(self, events):
        """Kineto's trace events. torch without Kineto, as Debian builds it, writes neither threads nor shapes. Its times are
        cut to whole us, so that operators may seem to end after the ones around them."""
        here = next(event.start_thread_id() for event in events if event.name() == "weir.profile")
        made, open_ends = [], collections.defaultdict(list)
        for event in sorted(events, key=lambda event: (event.start_us(), -event.duration_us(), event.correlation_id())):
            begins, ends, around = event.start_us(), event.start_us() + event.duration_us(), open_ends[event.start_thread_id()]
            while around and around[-1] <= begins:
                around.pop()
            around.append(min([ends, *around[-1:]]))
            tid = threading.get_native_id() if event.start_thread_id() == here else event.start_thread_id()
            made.append(self._event(event, {"pid": self._pid, "tid": tid, "ts": begins, "dur": around[-1] - begins}))
        return made

    @staticmethod
    def _event(event, place):
        if event.name() == "[memory]":
            cpu = event.device_type().name == "CPU"
            args = {"Bytes": event.nbytes(), "Device Type": 0 if cpu else 1, "Device Id": -1 if cpu else event.device_index()}
            return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", **place, "args": args}
        args = {"External id": event.correlation_id(), "Input Dims": event.shapes(), "Call stack": ";".join(event.stack())}
        user = event.scope() == 7 # RecordScope::USER_SCOPE
        return {"ph": "X", "cat": "user_annotation" if user else "cpu_op", "name": event.name(), **place, "args": args}

    def close(self):
        self._in_window = False
        self._unhook()
        self._discard()
