"""What weir.watch does inside a worker process of a DataLoader.

worker_loop takes the place of torch's: it prepares the process and calls torch's loop with its arguments untouched."""
import importlib
import multiprocessing.queues
import os
import sys
import threading

from . import _watch_fetch, _watch_library
from ._watch_hooks import Hooks

# Loops by name: (module, attribute). A loop that pickles by its own name travels as itself.
LOOPS = {
    "torch": ("torch.utils.data._utils.worker", "_worker_loop"),
    "torchdata": ("torchdata.stateful_dataloader.stateful_dataloader", "_worker_loop"),
}
_WORKER_ID, _NUM_WORKERS = 10, 11  # positions among the loop's arguments, the same from torch 1.13 on

current = None  # this process's Worker
forked = None   # (pid, segment) that a forked worker inherits
originals = {}  # name -> loop


class Worker:
    """The watch of this worker process."""

    def __init__(self, library, segment, loader, number, workers):
        self.library, self.segment, self.loader, self.worker, self.workers = library, segment, loader, number, workers
        self.hooks = Hooks(library, segment)

    def watch(self, loop):
        """Installs all hooks. loop: torch's worker loop, whose fetcher is timed."""
        self.library.thread(self.segment, self.loader, _watch_library.WORKER, self.worker)
        self.library.time_stages()
        self.hooks.install()
        self._time_fetcher(loop)
        self._time_pickling()

    def _time_fetcher(self, loop):
        from torch.utils.data import _DatasetKind
        create, code = _DatasetKind.create_fetcher, getattr(loop, "__code__", None)

        def create_fetcher(*args, **keywords):
            fetcher = create(*args, **keywords)
            if sys._getframe(1).f_code is not code:  # another loader, which the dataset uses
                return fetcher
            try:
                self._note_threads()
                return _watch_fetch.Fetcher(fetcher, self.library, self.hooks, first=self._note_threads,
                                            batch=self.worker, step=self.workers)
            except Exception as error:  # a torch that has other attributes
                _warn(error)
                return fetcher
        _DatasetKind.create_fetcher = staticmethod(create_fetcher)

    def _note_threads(self):
        """Threads that libraries use in this worker, for the verdict."""
        torch, cv2 = sys.modules.get("torch"), sys.modules.get("cv2")
        if self.worker != 0:
            return
        if torch is not None:
            self.library.set(self.segment, self.loader, b"torch_threads", torch.get_num_threads())
        if hasattr(cv2, "getNumThreads"):
            self.library.set(self.segment, self.loader, b"cv2_threads", cv2.getNumThreads())

    def _time_pickling(self):
        pickler, library, number = multiprocessing.queues._ForkingPickler, self.library, self.hooks.number
        main, known = threading.main_thread().ident, threading.local()

        class Timed(pickler):
            """Pickles in the thread that sends batches."""

            @classmethod
            def dumps(cls, value, protocol=None):
                if not hasattr(known, "zone"):
                    if threading.get_ident() != main:
                        library.thread(self.segment, self.loader, _watch_library.FEEDER, self.worker)
                    known.zone = number("06b_pickle")
                return library.timed(known.zone, pickler.dumps, value, protocol)
        multiprocessing.queues._ForkingPickler = Timed


def _warn(error):
    why = str(error).replace("weir.watch: ", "", 1) if isinstance(error, _watch_library.Unavailable) \
        else "{}: {}".format(type(error).__name__, error)
    _watch_library.warn("weir.watch: a worker is not watched: " + why)


def loop_of(which):
    """A loop by its name, or itself."""
    if not isinstance(which, str):
        return which
    if which not in originals:
        module, name = LOOPS[which]
        originals[which] = getattr(importlib.import_module(module), name)
    return originals[which]


def _begin(token, loop, arguments):
    global current
    pid, fd, loader = token
    if pid == os.getpid():
        raise _watch_library.Unavailable("it is a thread of the training process")
    for name, original in originals.items():  # a forked worker has inherited the replacement
        module = sys.modules.get(LOOPS[name][0])
        if module is not None:
            module._worker_loop = original
    library = _watch_library.library()
    segment = forked[1] if forked is not None and forked[0] == pid else library.opened(pid, fd)
    current = Worker(library, segment, loader, arguments[_WORKER_ID], arguments[_NUM_WORKERS])
    current.watch(loop)


def worker_loop(token, which, *arguments, **keywords):
    """token: (pid, fd) of the segment, and the loader's number. which: the loop to run."""
    loop = loop_of(which)
    try:
        _begin(token, loop, arguments)
    except Exception as error:  # the worker works, unwatched
        _warn(error)
    return loop(*arguments, **keywords)
