"""weir.profile and related names: torch.profiler's interface on Weir's profiler."""
import atexit
import collections
import enum
import json
import operator
import os
import warnings
import weakref

from . import _arguments, _outputs, _ranks, _torch_windows, _watch_warn, _weir


def _warn(line, category=RuntimeWarning):
    """Warns at the line that called this package."""
    warnings.warn(line, category, stacklevel=_watch_warn.caller()[0] - 1)


class ProfilerActivity(enum.Enum):
    """Activities to record: CPU (stages, ranges, the loader's workers, memory), CUDA (GPU work)."""
    CPU = 0
    CUDA = 1


class ProfilerAction(enum.Enum):
    """Action in a step, as torch.profiler.ProfilerAction. A custom schedule returns it."""
    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


_ACTIONS = tuple(ProfilerAction)


_NOTHING = ("no ranges in this window: weir.profile records PyTorch's operators where torch is imported, record_function, "
            "weir.stage, loaders and GPUs\n")


def _time_text(us):
    return f"{us / 1e6:.3f}s" if us >= 1e6 else f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


class Average(collections.namedtuple("Average", "key self_cpu_time_total cpu_time_total self_device_time_total "
                                     "device_time_total self_cpu_memory_usage cpu_memory_usage "
                                     "self_device_memory_usage device_memory_usage count device_type input_shapes "
                                     "stack is_user_annotation flops")):
    """A row of weir.profile.key_averages(), with torch's names: times in us, memory in bytes.

    name is the key; cpu_time and device_time are means per call. Names with cuda for device are those of older torch
    (cuda_time_total); times with _str are text (cpu_time_str). device_type is "cpu" or "cuda"; input_shapes (JSON) and
    stack (frames, innermost first, joined by ;) are "" unless rows are grouped by them. flops is torch's estimate for
    operators with one (with_flops), else 0.
    """
    __slots__ = ()
    name = property(operator.attrgetter("key"))
    cpu_time = property(lambda self: self.cpu_time_total / self.count if self.count else 0.0)
    device_time = property(lambda self: self.device_time_total / self.count if self.count else 0.0)


for _field in ("device_time", "device_time_total", "self_device_time_total", "device_memory_usage",
               "self_device_memory_usage"):
    setattr(Average, _field.replace("device", "cuda"), property(operator.attrgetter(_field)))
for _field in ("time", "time_total"):
    for _where in ("cpu_", "cuda_", "device_") + ("self_cpu_", "self_cuda_", "self_device_") * (_field == "time_total"):
        setattr(Average, _where + _field + "_str",
                property(lambda self, name=_where + _field: _time_text(getattr(self, name))))


class Averages(list):
    """Result of weir.profile.key_averages(): a list of weir.Average; str() gives its table."""

    def __init__(self, made):
        super().__init__(map(Average._make, made.rows()))
        self._made = made

    def __str__(self):
        return self.table()

    def table(self, sort_by=None, row_limit=100, header=None, top_level_events_only=False):
        """torch's table as text; for a window without ranges, one line that lists what weir.profile records.

        sort_by     "self_cpu_time_total", "cpu_time_total", "cpu_time", "count", "cpu_memory_usage",
                    "self_cpu_memory_usage", and with cuda or device for cpu; None = by first appearance
        row_limit   -1 = all rows
        header      a title
        top_level_events_only  only rows whose first call was not inside another range
        """
        limit = operator.index(row_limit)
        if not -1 <= limit < 2**31:
            raise ValueError(f"row_limit must be a number of rows, or -1 for all, not {row_limit!r}")
        if sort_by is not None and not isinstance(sort_by, str):
            raise ValueError(f"sort_by must be a name such as 'self_cpu_time_total', not {sort_by!r}")
        return self._made.table(sort_by, limit, header, top_level_events_only) or _NOTHING


class _Schedule:
    """Result of weir.schedule: maps a step's number to its ProfilerAction."""

    def __init__(self, numbers):
        self._numbers = numbers
        self(0)

    def __call__(self, step):
        return _ACTIONS[_weir._schedule_action(self._numbers, step)]

    def __repr__(self):
        names = ("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait")
        return f"weir.schedule({', '.join(f'{name}={n}' for name, n in zip(names, self._numbers))})"


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """Selects the steps that weir.profile records, as torch.profiler.schedule does. In each cycle it skips wait steps,
    records and drops warmup steps, and records active steps.

    repeat           cycles; 0 = no limit
    skip_first       steps before the first cycle
    skip_first_wait  nonzero: the first cycle has no wait steps

        schedule(wait=1, warmup=1, active=2, repeat=1)      # steps 2 and 3
    """
    made = _Schedule(tuple(map(operator.index, (wait, warmup, active, repeat, skip_first, skip_first_wait))))
    if warmup == 0:
        _warn("weir.schedule(warmup=0): the first recorded step includes the cost of starting to record; give warmup=1",
              UserWarning)
    return made


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """For on_trace_ready: writes each trace as DIR/WORKER.UNIXNS.pt.trace.json, or .json.gz, where
    `tensorboard --logdir` finds it. Creates the folder.

    worker_name   unique per process; None = HOST_PID. Characters other than letters, digits, - and _ become -
    """
    folder = _arguments.path("dir_name", dir_name)
    if worker_name is not None and not isinstance(worker_name, str):
        raise ValueError(f"worker_name must be a str, not {worker_name!r}")

    def handler(prof):
        prof.export_chrome_trace(_weir._trace_path(folder, worker_name, use_gzip))
    return handler


def _activities(activities):
    """Names of weir's or torch.profiler's activities."""
    known = [activity.name for activity in ProfilerActivity]
    try:
        names = {getattr(activity, "name", None) for activity in activities}
    except TypeError:
        names = {None}
    if not names or not names <= set(known):
        raise ValueError("activities must be a list of weir.ProfilerActivity.CPU and weir.ProfilerActivity.CUDA, not "
                         f"{activities!r}")
    return names


def _function(name, value, example):
    if value is not None and not callable(value):
        raise ValueError(f"{name} must be a function, such as {example}, not {value!r}")
    return value


def _steps_needed(schedule, made):
    """Number of steps after which the first window of a schedule is complete; None if that is far more than `made`, or
    unknown, because only Weir's and torch's schedules may be called again."""
    known = isinstance(schedule, _Schedule) or getattr(schedule, "__module__", None) == "torch.profiler.profiler"
    for step in range(made + 100000) if known else ():
        if schedule(step).name == "RECORD_AND_SAVE":
            return step + 1
    return None


_owner = None # (process, id, weak reference) of the running profile, which alone uses torch's profiler


@atexit.register
def _at_exit():
    """Ends torch's profiler of a profile that was never stopped, before torch's libraries are torn down."""
    prof = _owner[2]() if _owner is not None else None
    if prof is not None:
        prof._end_torch()


class profile(_weir._Profiler):
    """Records chosen steps of a training loop, with the interface of torch.profiler.profile.

        with weir.profile(schedule=weir.schedule(wait=1, warmup=1, active=3, repeat=1),
                          on_trace_ready=weir.tensorboard_trace_handler("runs/a")) as prof:
            for batch in loader:
                with weir.stage("20_train_forward_pass"):
                    loss = model(batch)
                prof.step()
        print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))

    A trace contains the steps (ProfilerStep#N), PyTorch's operators if torch is imported, weir.stage and record_function
    (weir's and torch's) of all Python threads, waits for batches (TensorBoard's DataLoader) and the stages of each loader's
    worker threads. With CUDA it also contains the kernels, copies and CUDA calls of the whole process, including torch's.

    Operators are recorded by torch's own profiler, which runs underneath, in the same windows and on the same clock: on
    the thread that calls start, step and stop, and on threads of autograd, as in torch.profiler. It then records the GPU
    too: CUPTI has one user at a time.

    Give 5 to 10 warm-up steps, in which kernels compile and caches fill, and 10 to 20 active ones. Ranges end when their
    work is queued: to see ranges and kernels aligned, call torch.cuda.synchronize() (Taichi: ti.sync()) before step().
    SummaryWriter.add_graph() draws a model's graph and has nothing to do with profiling.

    activities      list of ProfilerActivity, weir's or torch.profiler's; None = CPU, and CUDA where GPUs can be
                    recorded. If CUDA is requested but unavailable (no module, no driver, another tool has CUPTI), one
                    RuntimeWarning gives the reason, and only the CPU is recorded
    schedule        weir.schedule(...) or any function from a step's number to a ProfilerAction; None = everything from
                    start to stop, without steps
    on_trace_ready  called with this object in the step() or stop() that ends a window
    record_shapes   shapes of operators' inputs, and of the loader's images and batches, for group_by_input_shape
    profile_memory  memory that operators and the loader's batches take, and with CUDA the GPU's
    with_stack      call stacks of stages, ranges and waits for batches (for workers, of C functions), for
                    group_by_stack_n and export_stacks. With PyTorch's operators also every call of a Python function, as
                    a range; without them, timing every call would cost more than short calls take
    with_flops      FLOPs of operators, as torch estimates them: matrix products, 2D convolutions, mul and add
    with_modules    module hierarchy of operators in TorchScript models, as torch records it
    operators       False: without PyTorch's operators, at the cost of Weir's ranges alone, and with the GPU recorded by
                    Weir; for a program that itself starts torch.profiler, which can run only once

    .step_num is the current step's number, .current_action its ProfilerAction. The averages and exports cover the last
    finished window. One profile runs at a time, and one thread calls start, step and stop.
    """

    _torch = None # while it runs

    @_arguments.suggesting
    def __init__(self, *, activities=None, schedule=None, on_trace_ready=None, record_shapes=False,
                 profile_memory=False, with_stack=False, with_flops=False, with_modules=False, operators=True):
        super().__init__()
        self.activities = None if activities is None else _activities(activities)
        self.schedule = _function("schedule", schedule, "weir.schedule(wait=1, warmup=1, active=3)")
        self.on_trace_ready = _function("on_trace_ready", on_trace_ready, "weir.tensorboard_trace_handler(folder)")
        self.record_shapes = bool(record_shapes)
        self.profile_memory = bool(profile_memory)
        self.with_stack = bool(with_stack)
        self.with_flops = bool(with_flops)
        self.with_modules = bool(with_modules)
        self.operators = bool(operators)
        self.step_num = 0
        self.current_action = self._action(0)
        self._running = self._started = False
        self._trace = None

    def _action(self, step):
        if self.schedule is None:
            return ProfilerAction.RECORD
        action = self.schedule(step)
        if type(action) is ProfilerAction:
            return action
        try:
            return ProfilerAction(getattr(action, "value", action))
        except ValueError:
            raise ValueError(f"schedule({step}) returned {action!r}, not a ProfilerAction") from None

    def _begin_torch(self, without=()):
        """Lets torch record, if the program has imported it; without the named activities."""
        torch = _torch_windows.imported()
        if torch is not None:
            names = (self.activities or set(ProfilerActivity.__members__)).difference(without) if self.operators else ()
            options = {name: getattr(self, name) for name in ("record_shapes", "profile_memory", "with_stack", "with_flops",
                                                              "with_modules")}
            self._torch = _torch_windows.Windows(torch, names, options, _warn)

    def _transit_torch(self, previous):
        """Before the change from one step's action to current_action. A window that is delivered ends in _window."""
        if self._torch is None:
            self._begin_torch({"CUDA"})
        if self._torch is not None and previous is not ProfilerAction.RECORD_AND_SAVE:
            action = self.current_action
            cut = previous is ProfilerAction.RECORD and action is ProfilerAction.WARMUP
            self._torch.transit(not cut and action is not ProfilerAction.NONE,
                                action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE))

    def _gpu(self):
        """Whether Weir records GPUs: not where torch does. True while another tool uses CUPTI: it may end before the first
        window, and otherwise the profiler reports it then."""
        if (self.activities is not None and "CUDA" not in self.activities) or (self._torch and self._torch.gpu):
            return False
        torch = _torch_windows.imported()
        if torch is not None and _torch_windows.is_recording(torch) and torch.cuda.is_initialized():
            _warn("GPU work is not recorded: torch.profiler is recording in this process, and CUPTI has one user "
                  "at a time")
            return False
        why, is_another_tool = _weir._gpu_check() or (None, False)
        if why is not None and not is_another_tool and self.activities is not None:
            _warn(f"GPU work is not recorded: {why}")
        return why is None or is_another_tool

    def _say(self):
        for line in self._messages().split("\n")[:-1]:
            _warn(line)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind=None, error=None, trace=None):
        self._finish(kind is None)

    def start(self):
        """Begins step 0 of the schedule, or after stop() the step in which it stopped; without a schedule, begins
        recording."""
        self._check()
        if self._running:
            raise _weir.Error("the profile is already running; stop it first")
        global _owner
        if _owner is not None and _owner[0] == os.getpid():
            raise _weir.Error("this process already has an open profiler; close it first")
        _owner = os.getpid(), id(self), weakref.ref(self)
        try:
            self._begin_torch()
            gpu = self._gpu()
            self._transit_torch(ProfilerAction.NONE)
            self._open(gpu, self.record_shapes, self.profile_memory, self.with_stack, self.schedule is not None,
                       self.step_num, self.current_action.value)
            self._running = self._started = True
        finally:
            if not self._running:
                self._end_torch()
        self._say()

    def step(self):
        """Ends a step and begins the next one. If a window ends with the step, calls on_trace_ready in between."""
        self._check()
        if not self._running:
            raise _weir.Error("the profile is not running; call start() first, or use it in a with statement")
        previous, action = self.current_action, self._action(self.step_num + 1)
        self.step_num += 1
        self.current_action = action
        try:
            if self.schedule is not None:
                self._transit_torch(previous)
            self._advance(action.value)
        finally:
            self._say()

    def stop(self):
        """Ends recording. An open window ends here, and on_trace_ready is called."""
        self._finish(True)

    def _finish(self, warn):
        self._check()
        if not self._running:
            return
        self._running = False
        try:
            self._close()
        finally:
            self._end_torch()
            self._say()
        if warn and self._trace is None and self.on_trace_ready is not None:
            _warn(self._why_nothing())

    def _end_torch(self):
        global _owner
        torch, self._torch = self._torch, None
        if torch is not None:
            torch.close()
        if _owner is not None and _owner[:2] == (os.getpid(), id(self)):
            _owner = None

    def __del__(self):
        self._end_torch()

    def _window(self, trace):
        if self._torch is not None:
            self._torch.deliver(trace)
        if self.activities == {"CUDA"}:
            trace.keep_gpu()
        trace.set_metadata(self._metadata())
        self._trace = trace
        try:
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        finally:
            if self._running:
                self._transit_torch(ProfilerAction.NONE)

    def _metadata(self):
        try:
            rank, world_size = _ranks.ranks()
        except ValueError: # an invalid launcher environment must not lose the trace
            rank, world_size = 0, 1
        members = [_weir._loader_text()] if _weir._loader_text() else []
        members += [f'"{name}": 1' for name in ("with_flops", "with_modules") if getattr(self, name)]
        if world_size > 1:
            module = _ranks.distributed()
            info = {"backend": module.get_backend() if module else "unknown", "rank": rank, "world_size": world_size,
                    "pg_count": 0, "pg_config": [], "nccl_version": "unknown"}
            members.append(f'"distributedInfo": {json.dumps(info)}')
        return ", ".join(members)

    def _last(self):
        if self._trace is None:
            raise _weir.Error(self._why_nothing())
        return self._trace

    def _why_nothing(self):
        if self._running:
            return "nothing is recorded yet: no window has ended; stop the profile first, or make this call in on_trace_ready"
        if not self._started:
            return "nothing is recorded: the profile was not started; use it in a with statement, or call start() and stop()"
        needed = _steps_needed(self.schedule, self.step_num)
        if self.schedule is None or (needed is not None and needed <= self.step_num):
            return "nothing was recorded: the window was dropped, for which a RuntimeWarning gave the reason"
        return (f"nothing was recorded, because the program made only {self.step_num} steps, and the schedule's first window "
                f"ends {f'after {needed}' if needed else 'later'}; call step() more often, or use a shorter schedule")

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0):
        """Averages of the last window by name, as in torch.profiler: a weir.Averages.

        group_by_input_shape  also group by input shapes (record_shapes)
        group_by_stack_n      also group by this many innermost stack frames (with_stack)
        """
        frames = operator.index(group_by_stack_n)
        if not 0 <= frames < 2**31:
            raise ValueError(f"group_by_stack_n must be a number of frames, not {group_by_stack_n!r}")
        return Averages(self._last().averages(group_by_input_shape, frames))

    def export_chrome_trace(self, path, use_python_export=False):
        """Writes the last window as a trace file for Perfetto, TensorBoard or HTA, compressed if path ends in .gz.
        use_python_export is accepted for torch.profiler's tensorboard_trace_handler and has no effect."""
        self._last().export(_outputs.checked(_arguments.path("path", path), "trace"))

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Writes one line per stack for flamegraph.pl (with_stack); metric is "self_cpu_time_total" or
        "self_cuda_time_total"."""
        if not isinstance(metric, str):
            raise ValueError(f"metric must be 'self_cpu_time_total' or 'self_cuda_time_total', not {metric!r}")
        self._last().stacks(_outputs.checked(_arguments.path("path", path), "stacks"), metric)


for _class in (ProfilerActivity, ProfilerAction, Average, Averages, profile):
    _class.__module__ = "weir"
for _function_ in (schedule, tensorboard_trace_handler):
    _function_.__module__ = "weir"
