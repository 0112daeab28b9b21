"""What weir.watch does in the training process: it times requests for batches, and has workers run its own loop.

Methods of torch's iterators are replaced once. They look for the iterator's Requests, and without them call the original at
once."""
import contextlib
import functools
import sys
import threading
import time
import weakref

from . import _watch_fetch, _watch_import, _watch_library, _watch_static, _watch_worker

_ATTRIBUTE = "_weir_watch"
_TORCH, _TORCHDATA = "torch.utils.data.dataloader", "torchdata.stateful_dataloader.stateful_dataloader"
_ITERATORS = {_TORCH: ("_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"),
              _TORCHDATA: ("_StatefulSingleProcessDataLoaderIter", "_StatefulMultiProcessingDataLoaderIter")}

_creating = threading.RLock()  # held while an iterator of workers is created
_find = None                   # loader -> Watched or None, which never fails


def after_fork():
    """In a child of fork(), whose other threads are gone."""
    global _creating
    _creating = threading.RLock()
    _pins.clear()


# ---- requests ----

class Requests:
    """The requests of one epoch of one iterator. It holds no reference to the iterator, which ends when the loop lets go
    of it."""

    def __init__(self, watched, iterator, size=0, workers=0):
        self.watched, self.size, self.workers = watched, size, workers
        self.in_order = _watch_static.attributes(iterator).get("_in_order", True)
        self._taken = self._queued = 0
        self.is_open = True
        self.held = None
        self.held = watched.headroom.start(iterator, self.workers) if watched.headroom is not None else None

    def __del__(self):
        self.end(False)

    def end(self, complete):
        """The epoch is over: the loop has all batches, or the iterator is gone."""
        if self.is_open:
            self.is_open = False
            if self.held is not None:
                self.held.end(complete)
            self.watched.epoch_ended(complete)

    def begin(self, iterator):
        ready, due_ready, worker = -1, -1, -1
        if self.workers > 0:
            try:
                ready, due_ready, worker = self._look(iterator)
            except Exception:  # a closed queue, or a torch that has other attributes
                pass
        self._queued = ready if due_ready < 0 else 0
        self._taken = 0
        self.watched.request_begin(ready, due_ready, worker)

    def _look(self, iterator):
        """(batches complete and not delivered, whether the one that is due is among them, its worker); -1: not known."""
        tasks = iterator._task_info
        queued = iterator._data_queue.qsize()
        ready = queued + max(len(tasks) - iterator._tasks_outstanding, 0)
        if not self.in_order:
            return ready, int(ready > 0), -1
        due = tasks.get(iterator._rcvd_idx)
        if due is None:
            return ready, -1, -1
        if len(due) > 1:
            return ready, 1, due[0]
        return ready, -1 if queued > 0 else 0, due[0]

    def took(self, number, due):
        """A batch came out of the queue during a request that did not know whether the due one was in it."""
        self._taken += 1
        if self._queued > 0 and (number == due or self._taken >= self._queued):
            self.watched.request_due(int(number == due))
            self._queued = 0

    def next(self, iterator, step):
        if self.held is not None:
            return self.held.next(self, iterator, step)  # calls ordinary outside of windows
        return self.ordinary(iterator, step)

    def ordinary(self, iterator, step):
        self.begin(iterator)
        items = 0
        try:
            batch = step(iterator)
            items = self.size or _watch_static.first_size(batch)
            if self.watched.batches == 0:
                self.watched.first_batch(batch)
        finally:
            self.watched.request_end(items)
        return batch


def _next_of(original):
    @functools.wraps(original)
    def __next__(self):
        requests = self.__dict__.get(_ATTRIBUTE)
        if requests is None or not requests.is_open:
            return original(self)
        try:
            return requests.next(self, original)
        except StopIteration:
            requests.end(True)
            raise
    return __next__


def _get_data_of(original):
    @functools.wraps(original)
    def _get_data(self):
        data = original(self)
        requests = self.__dict__.get(_ATTRIBUTE)
        if requests is not None and requests._queued > 0:
            requests.took(data[0], self._rcvd_idx)
        return data
    return _get_data


# ---- creating iterators ----

class _Loops:
    """While an iterator is created: the loop that its workers run."""

    def __init__(self, watched):
        self.watched = watched

    def __enter__(self):
        _creating.acquire()
        self.before = []
        self._ranks(True)
        for which, (name, attribute) in _watch_worker.LOOPS.items():
            module = sys.modules.get(name)
            loop = getattr(module, attribute, None)
            if loop is None:
                continue
            self.before.append((module, attribute, loop))
            setattr(module, attribute, self._loop(which, loop))

    def _loop(self, which, loop):
        original = _watch_worker.originals.setdefault(which, loop)
        if isinstance(loop, functools.partial) and loop.func is _watch_worker.worker_loop:
            loop = original  # an iterator that is created while another one is
        if self.watched is None:
            return loop
        return functools.partial(_watch_worker.worker_loop, self.watched.token(), which if loop is original else loop)

    def __exit__(self, *exception):
        for module, attribute, loop in self.before:
            setattr(module, attribute, loop)
        self._ranks(False)
        _creating.release()

    def _ranks(self, pause):
        """No thread that talks to other ranks exists during a fork."""
        if self.watched is not None and self.watched.session.ranks is not None:
            self.watched.session.ranks.pause(pause)


def count_of(loader, name):
    """A number among a DataLoader's attributes, such as its workers; 0 if it is not positive."""
    count = _watch_static.attributes(loader).get(name)
    return count if type(count) is int and count > 0 else 0


def _epoch(watched, iterator, loader, is_new=True):
    """An iterator of a watched loader begins an epoch. If its parts are not those that are known, it runs unwatched."""
    try:
        if is_new:
            _see(watched, iterator)
        iterator.__dict__[_ATTRIBUTE] = Requests(watched, iterator, count_of(loader, "batch_size"), iterator._num_workers)
    except Exception as error:
        watched.gave_up(error)


def _see(watched, iterator):
    if iterator._num_workers == 0:
        iterator._dataset_fetcher = _watch_fetch.Fetcher(iterator._dataset_fetcher, watched.library, watched.hooks(),
                                                         around=True)
    pin = _watch_static.attributes(iterator).get("_pin_memory_thread")
    if pin is not None:
        _pins[pin] = watched


def _begin(watched, iterator, loader, create, is_new=True):
    """An epoch whose iterator is created, or whose workers go on."""
    watched.epoch_began(loader)
    began = time.perf_counter()
    try:
        create()
        watched.started(time.perf_counter() - began)
        _epoch(watched, iterator, loader, is_new)
    except BaseException:
        watched.epoch_ended(False)
        raise


def _init_of(original, has_workers):
    @functools.wraps(original)
    def __init__(self, loader, *args, **keywords):
        watched = _find(loader)

        def create():
            with _Loops(watched) if has_workers else contextlib.nullcontext():
                original(self, loader, *args, **keywords)
        if watched is None:
            create()
        else:
            _begin(watched, self, loader, create)
    return __init__


def _reset_of(original):
    @functools.wraps(original)
    def _reset(self, loader, first_iter=False, *args, **keywords):
        """The next epoch of persistent workers; while an iterator is created, it has no Requests yet."""
        watched = None if first_iter else _find(loader)
        if watched is None:
            return original(self, loader, first_iter, *args, **keywords)
        if _ATTRIBUTE not in self.__dict__:
            watched.began_late()
        else:
            self.__dict__.pop(_ATTRIBUTE).end(False)
        _begin(watched, self, loader, lambda: original(self, loader, first_iter, *args, **keywords), is_new=False)
    return _reset


# ---- the pin thread ----

_pins = weakref.WeakKeyDictionary()  # pin thread -> Watched
_pinning = threading.local()


def _pin_of(original):
    @functools.wraps(original)
    def pin_memory(data, *args, **keywords):
        """Called again for each part of a batch; the whole is timed."""
        thread = threading.current_thread()
        watched = None if getattr(_pinning, "inside", False) or type(thread) is not threading.Thread else _pins.get(thread)
        if watched is None:
            return original(data, *args, **keywords)
        _pinning.inside = True
        try:
            return watched.pinned(original, data, args, keywords)
        finally:
            _pinning.inside = False
    return pin_memory


# ---- installing ----

def _replace(owner, name, make):
    """Replaces a function, once, by what make returns for it."""
    original = getattr(owner, name)
    if not hasattr(original, "_weir_timed"):
        timed = make(original)
        timed._weir_timed = True
        setattr(owner, name, timed)


def _patch(name):
    """Replaces the methods of one module's iterators."""
    module = sys.modules[name]
    for each in filter(None, (getattr(module, each, None) for each in _ITERATORS[name])):
        has_workers = "Multi" in each.__name__
        _replace(each, "__init__", functools.partial(_init_of, has_workers=has_workers))
        if has_workers:
            _replace(each, "_reset", _reset_of)
            _replace(each, "_get_data", _get_data_of)
    if name == _TORCH:
        _replace(module._BaseDataLoaderIter, "__next__", _next_of)
        _replace(module._utils.pin_memory, "pin_memory", _pin_of)


def install(find):
    """Watches the iterators of torch and torchdata, imported or not. find: loader -> Watched or None."""
    global _find
    _find = find
    for name in _ITERATORS:
        if name in sys.modules and hasattr(sys.modules[name], _ITERATORS[name][-1]):
            _patch(name)
        _watch_import.after_import(name, _patch)


# ---- copies to the GPU ----

class _ToGpu:
    """A timed method of Tensor. It equals the original, which programs use as a key (__torch_function__)."""

    def __init__(self, original, is_copy, library, hooks):
        self.__wrapped__, self.__name__, self.__doc__ = original, original.__name__, original.__doc__
        self._is_copy, self._library, self._hooks = is_copy, library, hooks

    def __get__(self, tensor, owner=None):
        return self if tensor is None else functools.partial(self, tensor)

    def __call__(self, tensor, *args, **keywords):
        if not self._is_copy(tensor, args, keywords):
            return self.__wrapped__(tensor, *args, **keywords)
        return self._library.timed(self._hooks.number("07_h2d_copy"), self.__wrapped__, tensor, *args, **keywords)

    def __eq__(self, other):
        return other is self or other is self.__wrapped__

    def __hash__(self):
        return hash(self.__wrapped__)

    def __getattr__(self, name):
        return getattr(self.__dict__["__wrapped__"], name)


def _is_gpu(target):
    """Whether this names a GPU, or is a tensor on one."""
    if type(target) is str:
        return target.startswith("cuda")
    if _watch_static.is_tensor(target):
        return _watch_static.of_array(target, "is_cuda") is True
    return type(target) is int or (type(target) is sys.modules["torch"].device and target.type == "cuda")


def _cuda_is_copy(tensor, args, keywords):
    return _watch_static.is_tensor(tensor) and _watch_static.of_array(tensor, "is_cuda") is False


def _to_is_copy(tensor, args, keywords):
    target = args[0] if args else keywords.get("device", keywords.get("other"))
    return target is not None and _cuda_is_copy(tensor, args, keywords) and _is_gpu(target)


def time_copies(library, hooks):
    """Times Tensor.to and Tensor.cuda of this process, from CPU to GPU."""
    tensor = sys.modules["torch"].Tensor
    if "to" in vars(tensor) and isinstance(vars(tensor)["to"], _ToGpu):
        return
    tensor.to = _ToGpu(tensor.to, _to_is_copy, library, hooks)
    tensor.cuda = _ToGpu(tensor.cuda, _cuda_is_copy, library, hooks)
