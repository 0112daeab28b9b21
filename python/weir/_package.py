"""The public names of the package weir where its extension is loaded."""
import atexit
import collections
import functools
import glob
import importlib.util
import os
import re
import struct
import sys
import types
import warnings
import weakref

from . import _arguments, _cuda, _loops, _metrics, _outputs, _ranks, _watch, _weir
from ._clocks import KernelClocks, KernelStage, kernel_clocks
from ._profiler import (Average, Averages, ProfilerAction, ProfilerActivity, profile, schedule,
                        tensorboard_trace_handler)
from ._weir import Array, Error, RecordFunction, Stage, log_timing, record_function, stage

__all__ = ["Act", "Array", "Average", "Averages", "Camera", "Dataset", "Episode", "Error", "KernelClocks",
           "KernelStage", "Loader", "ProfilerAction", "ProfilerActivity",
           "RecordFunction", "Stage", "StageStats", "kernel_clocks", "log_timing", "metrics",
           "print_timing_stats", "profile", "record_function", "reset", "schedule", "stage", "stats", "table",
           "tensorboard_trace_handler", "verdict"]
__version__ = _weir.version

_MOTION = ("MotionClip", "MotionLibrary", "MotionState", "motion_state")
if hasattr(_weir, "_Motion"):
    from ._motion import MotionClip, MotionLibrary, MotionState, motion_state
    __all__ += _MOTION


def missing(name):
    """Raises AttributeError for a name that the package lacks."""
    if name in _MOTION:
        raise AttributeError(f"weir.{name}: this weir was built without it; build it with WEIR_WITH_MOTION=ON")
    raise AttributeError(f"module 'weir' has no attribute {name!r}")


Act = collections.namedtuple("Act", "image qpos action is_pad")
Act.__doc__ = "A batch with keys='act', in the order of ACT's training loop."
Episode = collections.namedtuple("Episode", "path group steps layout")
Episode.__doc__ = "An episode: file, group in it ('' = the whole file), number of steps, name of the layout."
Camera = collections.namedtuple("Camera", "name codec width height")
Camera.__doc__ = "A camera: codec of its stored frames, and size of its images in a batch."
StageStats = collections.namedtuple("StageStats", "stage kind side calls total own mean min p50 p90 p99 max cpu")
StageStats.__doc__ = """A row of the stage table. Times are in seconds: total of all calls, own without the stages inside
them, the others per call; cpu is the CPU time of own, None if unknown."""

_KEYS = {"weir": 0, "act": 1, "lerobot": 2}
_CPU_DTYPES = ("uint8", "float32")
_KEYWORDS = [_arguments.Keyword(row) for row in _weir._loader_keywords()]
# Other keywords are by name only.
_POSITIONAL = ("batch_size", "shuffle", "num_workers", "prefetch_factor", "drop_last", "seed", "device", "dtype",
               "image_layout", "chunk_size", "obs_history", "cameras", "image_size", "rank", "world_size", "keys")


def _find_libavcodec():
    """Names PyAV's libavcodec for H.264 and HEVC videos, because a machine with PyAV may have no other."""
    try:
        spec = importlib.util.find_spec("av") if "WEIR_LIBAVCODEC" not in os.environ else None
    except ValueError: # a module without a specification
        return
    if spec is None or not spec.origin:
        return
    folder = os.path.join(os.path.dirname(os.path.dirname(spec.origin)), "av.libs")
    for path in glob.glob(os.path.join(glob.escape(folder), "libavcodec*.so.*")):
        version = re.search(r"\.so\.(\d+)", path)
        if version and 58 <= int(version[1]) <= 62:
            os.environ["WEIR_LIBAVCODEC"] = path


class Dataset:
    """A loader's data.

    path        as given
    episodes    list of Episode
    cameras     list of Camera
    statistics  dict of qpos_mean, qpos_std, action_mean, action_std: lists of float, over the training episodes (n - 1).
                Batches are normalised with these, with deviations of at least 0.01
    """

    def __init__(self, path, about):
        self.path = path
        self.episodes = [Episode(*episode) for episode in about["episodes"]]
        self.cameras = [Camera(*camera) for camera in about["cameras"]]
        self.statistics = about["statistics"]

    def __len__(self):
        """Number of steps in all episodes."""
        return sum(episode.steps for episode in self.episodes)

    def __repr__(self):
        return f"weir.Dataset({self.path!r}: {len(self.episodes)} episodes, {len(self)} steps, " \
               f"cameras {', '.join(camera.name for camera in self.cameras)})"


class Loader(_weir._Loader):
    __doc__ = _arguments.documented("""Shuffled batches of a folder of episodes, or of one file.

        for batch in weir.Loader("episodes/", batch_size=8):
            image, qpos, action, is_pad = (batch[key] for key in ("image", "qpos", "action", "is_pad"))

    Each `for` is one epoch; worker threads prefetch into the next one. The order depends on the seed and the epoch,
    never on workers. After a loop that ended early, the next one starts the next epoch.

    path              HDF5, TFRecord (RLDS), Zarr or LMDB; `weir info PATH` describes it
    keys              form of a batch, with n, cameras, H, W = samples, cameras, height, width:
      "weir"          dict: image (n, cameras, 3, H, W), or one image/CAMERA each where sizes differ, depth likewise, qpos
                      (n, dim), action (n, chunk_size, dim), is_pad (n, chunk_size)
      "act"           named tuple (image, qpos, action, is_pad), in the order of ACT's loop
      "lerobot"       of a LeRobot dataset, dict of what LeRobotDataset's items give after default_collate: all features
                      by name, KEY_is_pad for keys of delta_timestamps, task. Of other data, dict:
                      observation.images.CAMERA (n, 3, H, W), observation.state, action, action_is_pad
    tensors           "auto" = torch tensors if torch is installed (on a GPU: with CUDA), else weir.Array; "torch"; "array"
    delta_timestamps  delta_indices in seconds, as LeRobotDataset takes them; for LeRobot datasets
    every             epochs between tables that the loader prints itself; 0 = none. In a distributed run only rank 0
                      prints, also which rank is slow and why, as soon as all ranks have reported (docs/distributed.md)
    serve             True: a page and metrics for Prometheus on http://127.0.0.1:9464 while the loader is open; or an
                      address (docs/live.md). The attribute url has the result. Loaders with equal serve and prometheus
                      share them
    prometheus        file for the same metrics, rewritten after each epoch and every 10 s
    ...

    With on_error="skip" or "substitute", RuntimeWarnings count the bad frames: at the first one, then at the end of each
    epoch with more. A batch's memory is yours while you hold a tensor of it. Held batches take memory of their own; beyond
    100 MB one RuntimeWarning reports it. In a child of fork() the loader raises weir.Error; open one there instead.

    Batches arrive complete, from the loader's own worker threads: do not wrap the loader in a DataLoader.

    On a GPU torch's current stream waits for each batch, and the memory is reused after that stream's work when the last
    tensor goes. If another stream uses a batch, call torch.cuda.current_stream().wait_stream(other) before that;
    tensor.record_stream(other) has no effect here.
    """, _KEYWORDS)

    __class_getitem__ = classmethod(types.GenericAlias)

    __init__ = _arguments.initializer(_KEYWORDS, _POSITIONAL, {"keys": "'weir'", "tensors": "'auto'", "every": "0", "serve": "None",
                                                                        "prometheus": "None",
                                                                        "delta_timestamps": "None"})

    def _start(self, path, given):
        keys, tensors, every = (given.pop(name) for name in ("keys", "tensors", "every"))
        live = _metrics.address(given.pop("serve")), given.pop("prometheus")
        device = given["device"] = str(given["device"])
        on_gpu = device != "cpu"
        mode = _arguments.choice("keys", keys, _KEYS)
        _arguments.choice("tensors", tensors, {"auto": 0, "torch": 1, "array": 2})
        if given["rank"] is None and given["world_size"] is None:
            given["rank"], given["world_size"] = _ranks.ranks()
        elif given["rank"] is None or given["world_size"] is None:
            raise ValueError("rank and world_size must be given together")
        if not isinstance(every, int) or every < 0:
            raise ValueError(f"every must be a number of epochs, 0 or more, not {_arguments.shown(every)}")
        self._every, self._epochs, self._prints = every, 0, given["rank"] == 0
        self._process = os.getpid()
        if given["normalize"] is None:
            given["normalize"] = keys != "lerobot"
        given["dtype"] = _arguments.dtype(given["dtype"]) or ("uint8" if keys == "weir" else "float32")
        if not on_gpu:
            _arguments.choice("dtype", given["dtype"], dict.fromkeys(_CPU_DTYPES))
        data = _arguments.path("path", path)
        given["episodes"] = _arguments.episodes(given["episodes"])
        timestamps = given.pop("delta_timestamps")
        info = keys == "lerobot" or timestamps is not None
        if info:
            server = given["endpoint"], bool(given["anonymous"])
            info = _arguments.lerobot_info(data, lambda url: self._read(url, *server),
                                           lambda path: self._first(path, *server))
        make = Act if keys == "act" else None
        if keys == "lerobot" and info:
            make = _arguments.lerobot_keys(info, timestamps)
        given["delta_indices"] = _arguments.windows(given["delta_indices"], timestamps, data, info)
        self.batch_size = given["batch_size"]
        self._path = os.fsdecode(data)
        self._split = given["split"]
        torch = _cuda.torch_for(tensors, on_gpu)
        if on_gpu:
            device = given["device"] = _cuda.prepare(device, given["decoder"])
        _find_libavcodec()
        values = {keyword.name: keyword.value(given[keyword.name]) for keyword in _KEYWORDS
                  if not keyword.is_default(given[keyword.name])}
        self._open(data, values, _ranks.local_ranks(), mode, torch and torch.utils.dlpack.from_dlpack,
                   torch and torch.bool, hasattr(torch, "uint16"), make,
                   _cuda.Stream(torch, device) if on_gpu and torch else None)
        self.dataset = Dataset(self._path, self._describe())
        self.url = self._show(*live, given) if any(live) else None
        global _opened_any
        _opened_any = True
        _open_loaders.append(weakref.ref(self, _open_loaders.remove))
        self._patience = 10.0  # seconds to wait for the last table over ranks
        if every and given["world_size"] > 1:
            self._join_ranks(given["rank"], given["world_size"])

    def _show(self, address, prometheus, given):
        """Shows live figures, and returns their URL or None."""
        try:
            if prometheus is not None:
                prometheus = _outputs.checked(_metrics.path_of_rank(_arguments.path("prometheus", prometheus), given["rank"],
                                                                    given["world_size"]), "prometheus")
            return self._open_live(prometheus, address, _ranks.local_ranks()[0])
        except BaseException:
            self.close()
            raise

    def _join_ranks(self, rank, world_size):
        global _joined
        _joined += 1
        why = self._open_ranks(rank, world_size, f"loader{_joined}", *_ranks.store())
        if why and rank == 0:
            warnings.warn(why, RuntimeWarning, stacklevel=5)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if exception[0] is not None:
            self._patience = 0.1
        self.close()

    def __repr__(self):
        return f"weir.Loader({self._path!r}, {len(self)} batches of {self.batch_size})"

    def _epoch_ended(self):
        self._epochs += 1
        if self._every and self._epochs % self._every == 0:
            table = self._published()
            if self._prints:
                print(table, end="", flush=True)

    def _ranks_reported(self, wait=0.0):
        table = self._ranks_table(wait)
        if table:
            print(table, end="", flush=True)

    def _ranks_end(self):
        self._ranks_reported(self._patience)

    def __getitem__(self, index):
        """Raises TypeError: a loader is not a Dataset."""
        raise TypeError("a weir.Loader yields complete batches from its own workers: iterate over it without a "
                        "DataLoader (for batch in loader)")

    def state_dict(self):
        """Position in the run, as a dict of numbers and strings. load_state_dict accepts it in a loader with the same
        data, seed and batch size, and any number of workers."""
        position, settings = self._settings()
        return {"weir": 1, "position": position, "split": self._split, "settings": settings}

    def load_state_dict(self, state):
        """Resumes after the last batch delivered when the state was taken, in the middle of its epoch."""
        parts = [state.get(name) for name in ("weir", "position", "settings")] if isinstance(state, dict) else []
        if [type(part) for part in parts] != [int, int, dict] or parts[0] != 1 or not 0 <= parts[1] < 2**63:
            raise ValueError(f"load_state_dict needs a result of weir.Loader.state_dict, not {_arguments.shown(state)}")
        _, settings = self._settings()
        for name, now in [("split", self._split), *settings.items()]:
            then = state.get("split") if name == "split" else parts[2].get(name)
            if name == _TRAIN_SPLIT and type(then) is int and 0 <= then < 2**64:
                then = _float_of(then)  # older states contain the float's bits
            if type(then) is type(now) and then == now:
                continue
            if "-of-" in name:  # identifies data
                why = "by another version of weir" if then is None else f"with another {name.replace('-', ' ')}"
                raise ValueError(f"load_state_dict: the state was saved {why}, which changes the batches; open the "
                                 "loader with the same data and settings")
            raise ValueError(f"load_state_dict: the state has {_setting(name, then)}, the loader "
                             f"{_setting(name, now)}, which changes the batches; open the loader with the same "
                             "settings")
        self._resume(parts[1])

    def _settings(self):
        """(number of the next batch, settings that determine the sample order)"""
        position, settings = self._state()
        settings[_TRAIN_SPLIT] = _float_of(settings[_TRAIN_SPLIT])
        return position, settings


_TRAIN_SPLIT = "--train-split"


def _float_of(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def _setting(name, value):
    """A state's setting as an argument of weir.Loader."""
    argument = name.lstrip("-").replace("-", "_")
    if argument == "no_shuffle":
        return f"shuffle={not value}"
    return f"{argument}={_arguments.shown(value)}"


_joined = 0  # loaders with a table over ranks, in this process
_open_loaders = []


_opened_any = False


def _all_open():
    """Open loaders; in a child of fork() without the parent's."""
    loaders, here = [reference() for reference in _open_loaders], os.getpid()
    return [loader for loader in loaders if loader is not None and not loader.closed and loader._process == here]


def _steps(loader, whole):
    """(batches, seconds of their steps, seconds of those spent waiting); zeros for a loader in use."""
    try:
        return loader._steps(whole)
    except Error:
        return 0, 0.0, 0.0


def _most_waited_for(loaders, whole):
    """The loader that the loop waits for most; without significant waits, the one whose steps take the most time. None
    before the first batch."""
    steps = {loader: _steps(loader, whole) for loader in loaders}
    used = [loader for loader in loaders if steps[loader][0] > 0]
    if not used:
        return None
    waited = max(used, key=lambda loader: steps[loader][2])
    if steps[waited][2] >= _weir._least["data_wait"] * sum(step[1] for step in steps.values()):
        return waited
    return max(used, key=lambda loader: steps[loader][1])


def _judged(whole, all_loaders):
    """The loaders to report on."""
    loaders = _all_open()
    if all_loaders:
        return loaders
    judged = _most_waited_for(loaders, whole)
    if judged is None and loaders and _loops.of(_weir._loop(whole)) is None:
        judged = loaders[-1]
    return [judged] if judged is not None else []


def _of_loaders(loaders, text):
    """The text of each loader; if several are open, a line with its name precedes it."""
    n = len(_all_open())
    if n == 1:
        return text(loaders[0])
    which = ", the one that the loop waits for most" if len(loaders) == 1 else ""
    return "\n".join(f"{loader._path}, split={loader._split!r}, one of {n} open loaders{which}:\n{text(loader)}"
                     for loader in loaders)


@atexit.register
def _close_all():
    """Stops all threads before the process ends."""
    _weir._warn_of_left_open()
    for reference in list(_open_loaders):
        loader = reference()
        if loader is not None:
            try:
                loader.close()
            except Error:
                pass


def _check_lang(lang):
    if lang not in ("en", "zh"):
        raise ValueError(f"lang must be 'en' or 'zh', not {lang!r}")


def _loop_verdict(whole):
    """Verdict from the loop's stages alone; empty without stages."""
    loop = _loops.of(_weir._loop(whole))
    return _loops.verdict(loop, _weir._workers(), _opened_any) if loop else ""


def _never_entered():
    """A line about a stage that is only created; empty if there is none, or if it may run in DataLoader's workers."""
    name = None if _weir._workers() else _weir._never_entered()
    return f"weir.stage({name!r}) was created but never entered: use `with weir.stage({name!r}):`\n" if name else ""


def table(lang="en", *, whole=False, all_loaders=False):
    """The stage table since the last table, as text, after the verdict. An open loader adds its queue, reads and slow
    files. With weir.watch, the table of the watched loader that the loop waits for most comes first.

    lang         "en", or "zh": the classic table format
    whole        since the start or weir.reset(); does not affect the next table
    all_loaders  one table per open or watched loader, not only for the one that the loop waits for most"""
    _check_lang(lang)
    watched, loaders = _watch.active(), _judged(whole, all_loaders)
    if watched is not None:
        own = _weir._table(lang, whole) if _loops.of(_weir._loop(whole)) is not None else ""
        of_loaders = _of_loaders(loaders, lambda loader: loader.table(lang, whole=whole)) if loaders else own
        return watched.table(lang, whole, all_loaders) + (of_loaders and "\n" + of_loaders)
    if loaders:
        return _of_loaders(loaders, lambda loader: loader.table(lang, whole=whole))
    judged = _loop_verdict(whole) or _never_entered()
    return (judged and _weir._wrapped(judged) + "\n") + _weir._table(lang, whole)


def verdict(lang="en", *, all_loaders=False):
    """The run's bottleneck, evidence and advice, as text, since the start or weir.reset(). Covers the open loader that
    the loop waits for most, or all with all_loaders=True. Without one it covers a loader watched by weir.watch, else it
    names the loop's slowest stage and breaks down the loop's time."""
    _check_lang(lang)
    loaders = _judged(True, all_loaders)
    if loaders:
        return _of_loaders(loaders, lambda loader: loader.verdict(lang))
    if _watch.active() is not None:
        return _watch.active().verdict(lang, all_loaders)
    text = _loop_verdict(True)
    if not text:
        raise Error("no loader is open, and no stage was timed" + (_never_entered() and "; " + _never_entered().strip()))
    return text


def metrics():
    return _metrics.since_last([text for loader in _all_open() for text in _texts(loader)] + _watch.metrics())


metrics.__doc__ = _metrics.DOC


def _texts(loader):
    try:
        return [loader._metrics()]
    except Error:  # in use by another thread
        return []


def stats():
    """The stages since the start or weir.reset(), as a list of StageStats in table order. A stage has one row per side
    that runs it: workers, the loop ("consumer"), helper threads, the GPU."""
    return [StageStats(*row) for row in _weir._stats(True)]


def reset():
    """Restarts all timing, including the GPU's: later tables, verdicts and stats start here."""
    global _opened_any
    _weir._reset()
    _opened_any = bool(_all_open())
    for loader in _all_open():
        loader._reset()


def print_timing_stats(lang="en", *, whole=False, all_loaders=False):
    """Prints table(lang, whole=whole, all_loaders=all_loaders).

    If torch.distributed is initialised, all ranks must call this: they send their stage times to rank 0, which prints its
    own table with the slowest rank of each stage. Otherwise each process prints its own table, with its rank."""
    _check_lang(lang)
    rank, world_size = _ranks.ranks()
    if world_size == 1 or _ranks.distributed() is None:
        if world_size > 1:
            print(f"rank {rank} / {world_size}:")
        print(table(lang, whole=whole, all_loaders=all_loaders), end="")
        return
    totals = {}
    for row in map(StageStats._make, _weir._stats(whole)):
        if row.side != "gpu":
            totals[row.stage] = totals.get(row.stage, 0) + row.total
    everyone = _ranks.gathered(totals)
    text = table(lang, whole=whole, all_loaders=all_loaders)
    if rank == 0:
        print(_ranks.with_slowest(text, everyone, lang), end="")


def _process_began():
    """Called when the process times its first stage. In a DataLoader worker it warns that the training process's tables
    lack these stages."""
    module = sys.modules.get("torch.utils.data")
    worker = module.get_worker_info() if module is not None else None
    if worker is None or _watch.is_worker() or not (_weir._worker_began() and (worker.id == 0 or "fork" in _start_method())):
        return
    warnings.warn("stages in DataLoader's worker processes are not in the table of the training process: "
                  "weir.watch(loader) shows them", RuntimeWarning, stacklevel=2)


def _children():
    """PIDs of this process's multiprocessing children, such as workers of a DataLoader, and of their fork server."""
    process, server = (sys.modules.get(f"multiprocessing.{name}") for name in ("process", "forkserver"))
    pids = [child.pid for child in process.active_children()] if process else []
    pids.append(getattr(getattr(server, "_forkserver", None), "_forkserver_pid", None))
    return [pid for pid in pids if pid]


def _start_method():
    import multiprocessing
    return multiprocessing.get_start_method(allow_none=True) or "fork"


def _decorate(timer, function):
    @functools.wraps(function)
    def timed(*args, **keywords):
        with timer:
            return function(*args, **keywords)
    return timed


_weir._set_callbacks(_decorate, _process_began, _children, _cuda.current, os.path.join(os.path.dirname(__file__), "_"))
