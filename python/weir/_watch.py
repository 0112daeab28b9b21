"""weir.watch: sees into the training job that people already have, without changing it."""
import atexit
import functools
import json
import os
import sys
import threading
import weakref

from . import _watch_children, _watch_headroom, _watch_library, _watch_loop, _watch_trial, _watch_worker
from ._watch_hooks import call_cost_ns
from ._watch_hdf5 import opened_before
from ._watch_library import Unavailable
from ._watch_other import wrapper
from ._watch_ranks import Ranks, before_store_ends, is_rank, ranks

_MAX_LOADERS = 16  # of one segment (watch.h)


def _caller():
    """(level for _watch_library.warn, frame) of the program that has called this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("weir."):
        level, frame = level + 1, frame.f_back
    return level, frame


def _line():
    """Where the program has called this package."""
    frame = _caller()[1]
    return frame.f_code.co_filename, frame.f_lineno


def _warn(text):
    """Warns at the line of the program that has called this package."""
    _watch_library.warn(text if text.startswith("weir.watch") else "weir.watch: " + text, _caller()[0])


_told = set()


def _failed(error):
    """Warns of a failure of the watch itself, once per text."""
    text = str(error) if isinstance(error, Unavailable) else "{}: {}; what runs now is not watched".format(
        type(error).__name__, error)
    if text not in _told:
        _told.add(text)
        _warn(text)


def _never_fails(method):
    """A part of the watch whose failure is a warning: the loop goes on."""
    @functools.wraps(method)
    def guarded(*arguments):
        try:
            return method(*arguments)
        except Exception as error:
            return _failed(error)
    return guarded


def _printed(text):
    if text:
        try:
            print(text, end="" if text.endswith("\n") else "\n", flush=True)
        except (OSError, ValueError):  # a closed stdout
            pass


def _in_thread(function, *arguments):
    """A function's result, on a thread of its own, which has no slot."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function(*arguments)))
    thread.start()
    thread.join()
    return found[0] if found else 0.0


def _type_name(value):
    kind = value if isinstance(value, type) or hasattr(value, "__qualname__") else type(value)
    return "{}.{}".format(getattr(kind, "__module__", ""), getattr(kind, "__qualname__", "?"))


def _reference(value):
    try:
        return weakref.ref(value)
    except TypeError:  # a list, for example
        return lambda: None


class Options:
    """How to watch a loader."""

    def __init__(self, every=1, log=None, headroom=False, lang="en"):
        if not isinstance(every, int) or isinstance(every, bool) or every < 0:
            raise ValueError("every must be a number of epochs, 0 or more, not {!r}".format(every))
        if lang not in ("en", "zh"):
            raise ValueError("lang must be 'en' or 'zh', not {!r}".format(lang))
        if log is not None:
            log = os.path.abspath(log)
        if headroom not in (False, True, "only"):
            raise ValueError("headroom must be True or False, not {!r}".format(headroom))
        self.every, self.log, self.headroom, self.lang = every, log, headroom, lang


class Session:
    """The segment of this process, and its watched loaders."""

    def __init__(self):
        self.library = _watch_library.library()
        self.loaders = []
        self.all = None  # Options for every DataLoader, or None
        self.json = None
        self.interrupted = False
        self._lock = threading.RLock()
        self._begin()
        atexit.register(self.finish)
        self.child = _watch_children.is_child()
        if self.child:
            _watch_children.at_end(self.finish)

    def _begin(self):
        self.segment, self.pid = self.library.created(), os.getpid()
        self.fd = self.library.fd(self.segment)
        self.hooks = None
        self.ranks = self.ranks_of = None
        self._logs = set()  # begun
        self.finished = self._written = False
        _watch_worker.forked = (self.pid, self.segment)
        self.times_stages = self.library.time_stages()
        self.zone_ns = _in_thread(call_cost_ns, self.library, self.segment)

    def here(self):
        """Whether this process watches. A child of fork() that trains begins with a segment of its own; workers do not
        watch their own loaders."""
        if _watch_worker.current is not None:
            return False
        if self.pid == os.getpid():
            return True
        self._lock = threading.RLock()
        _watch_loop.after_fork()
        self._begin()
        for watched in self.loaders:
            watched.begin()
        self.child = True
        _watch_children.at_end(self.finish)
        return True

    def watched(self, loader):
        """The Watched of a DataLoader, or None."""
        if not self.here():
            return None
        with self._lock:
            found = self.known(loader) or next((each for each in self.loaders if each.takes_over(loader)), None)
            return self.add(loader, self.all) if found is None and self.all is not None else found

    def known(self, loader):
        """The Watched that sees this very DataLoader now, or None."""
        return next((each for each in self.loaders if each.is_of(loader)), None)

    def add(self, loader, options, name=None, iterable=False, line=None):
        """A new Watched, or None if there is no room for another one. line: of the program, if that has asked for it."""
        origin = None if line is None else (name, line, tuple(vars(options).values()))
        with self._lock:
            for watched in self.loaders:
                if watched.origin == origin and watched.is_like(loader):  # such as a loader of each epoch's validation
                    watched.attach(loader)
                    return watched
            if len(self.loaders) >= _MAX_LOADERS:
                if len(self.loaders) == _MAX_LOADERS:
                    _warn("{} loaders are watched, the maximum; others run unwatched".format(_MAX_LOADERS))
                    self.loaders.append(_Nobody())
                return None
            watched = Watched(self, loader, options, name or self._name(loader, iterable), iterable, origin)
            self.loaders.append(watched)
            return watched

    def _name(self, loader, iterable):
        dataset = loader if iterable else loader.dataset
        name = type(dataset).__name__
        same = sum(each.name.split(" #")[0] == name for each in self.loaders)
        return "{} #{}".format(name, same + 1) if same else name

    def used(self):
        return [watched for watched in self.loaders if watched.batches > 0]

    def text(self, what, whole, lang, number=-1):
        return self.library.text(self.segment, number, what, whole, lang)

    def by_wait(self):
        """The used loaders, the one that is waited for most first."""
        used = self.used()
        return used if len(used) < 2 else sorted(used, reverse=True,
                                                 key=lambda each: _watch_trial.reported(self, each)["watch"]["wait_s"])

    def table(self, lang, whole, all_loaders=False):
        """The table of the loader that is waited for most, and the first lines of the others' verdicts; or all tables."""
        used = self.by_wait()
        shown = used if all_loaders else used[:1]
        text = "\n".join(self.text(_watch_library.TABLE, whole, lang, each.number) for each in shown)
        others = "".join("  {}: {}\n".format(each.name, self._verdict(each, lang).partition("\n")[0])
                         for each in used[len(shown):])
        return text + (others and "\nother loaders:\n" + others)

    def verdict(self, lang, all_loaders=False):
        """The verdict on the loader that is waited for most, or on each loader after its name."""
        used = self.by_wait()
        if not all_loaders or len(used) < 2:
            return self._verdict(used[0], lang) if used else ""
        return "\n".join("loader {}:\n{}".format(each.name, self._verdict(each, lang)) for each in used)

    def _verdict(self, watched, lang):
        return self.text(_watch_library.VERDICT, True, lang, watched.number)

    def finish(self):
        """At exit: the table of the whole run, what weir.Loader gives, the log and the JSON file. A signal meanwhile calls
        this again, for what is left."""
        if self.pid != os.getpid() or _watch_worker.current is not None or self._written:
            return
        used = self.used()
        if not self.finished:
            self.finished = True
            self.library.sampling(self.segment, 0)
            if used and first_rank():
                self._print_end(used)
        if self._written:
            return
        self._written = True
        for watched in sorted(used, key=lambda each: each.batches):  # the last line is that of the rank
            watched.write_log(True)
        if used and self.json is not None:
            self._write_json()
        self.end_ranks()

    def end_ranks(self):
        """The last table over ranks: at exit, or before their store ends."""
        if self.ranks is None or self.pid != os.getpid() or _watch_worker.current is not None:
            return
        last, self.ranks = self.ranks, None
        if not self.ranks_of.options.every:
            last.publish()
        _printed(last.end())

    def print(self, text):
        _printed(_watch_children.heading() + text if text and self.child and not is_rank() else text)

    def path_of(self, path):
        """The path of this process's file. run.jsonl is run.rank3.jsonl on rank 3, and run.pid123.jsonl in a process that
        the program has started and that is no rank."""
        (rank, world_size), path = ranks(), os.fsdecode(path)
        base, end = os.path.splitext(path)
        return "".join((base, ".rank{}".format(rank) if world_size > 1 else "",
                        ".pid{}".format(self.pid) if self.child and not is_rank() else "", end))

    def log_head(self, path):
        """The line with which this process begins its part of a log."""
        if path in self._logs:
            return ""
        self._logs.add(path)
        rank, world_size = ranks()
        used = {"host": os.uname().nodename, "pid": self.pid, "rank": rank, "world_size": world_size}
        version = getattr(sys.modules.get("weir"), "__version__", "")
        return json.dumps({"type": "run", "weir": version, "used": used}, separators=(",", ":")) + "\n"

    def _print_end(self, used):
        if not (len(used) == 1 and used[0].is_shown()):
            self.print(self.table(used[0].options.lang, True))
        if self.interrupted or self.child or getattr(sys, "last_type", None) is not None:
            return
        try:
            tried = _watch_trial.measure(self, used)
        except (Exception, KeyboardInterrupt):  # the report is complete without it
            return
        if tried is not None:
            _printed(self.text(_watch_library.TRIAL, True, "en", tried.number))

    def _write_json(self):
        path, (first, *others) = self.path_of(self.json), self.by_wait()
        text = self.text(_watch_library.JSON, True, "en", first.number)
        if others:
            reports = [_watch_trial.reported(self, each) for each in others]
            text = json.dumps(dict(json.loads(text), other_loaders=reports), indent=2) + "\n"
        try:
            with open(path, "w") as file:
                file.write(text)
        except OSError as error:
            _warn("--json {}: {}".format(path, error.strerror))


class _Nobody:
    """Stands for the loaders for which there is no room."""
    batches, origin, name = 0, None, ""

    def begin(self):
        pass

    def is_of(self, loader):
        return False

    takes_over = is_like = is_of


class Watched:
    """A watched loader, under its number in the segment."""

    def __init__(self, session, loader, options, name, iterable, origin):
        self.session, self.library, self.name, self.iterable = session, session.library, name, iterable
        self.origin, self.headroom = origin, None  # origin: None for a loader that only watch_all watches
        self.batches = self.epochs = 0
        self._told_late = False
        self.names, self.dtype = [], "uint8"  # possible paths of the data, and the type of its images
        self.attach(loader)
        self.begin()
        self.change(options)

    def change(self, options, name=None):
        """Watches as options say, from the next epoch on."""
        self.options = options
        if name:
            self.name = name
            self._set_text("name", name)
        if bool(options.headroom) != (self.headroom is not None):
            self.headroom = self._measures_headroom(options.headroom == "only") if options.headroom else None
            self._set("headroom", bool(options.headroom))

    def _measures_headroom(self, only):
        if only:
            return _watch_headroom.ReplayOnly(self)
        if self.iterable:
            from ._watch_other import OtherHeadroom
            return OtherHeadroom(self)
        return _watch_headroom.Headroom(self)

    def begin(self):
        """Registers the loader in the session's segment."""
        self.number = self.library.loader(self.session.segment, self.name.encode("utf-8", "replace"))
        self._set("zone_ns", self.session.zone_ns)
        self.batches = self.epochs = 0
        self._shown, self._logged = None, 0
        self._thread = None
        self._copies = False
        self._open = False

    # ---- which loader ----

    def attach(self, loader):
        self._first = self._loader = _reference(loader)
        self._dataset = _reference(getattr(loader, "dataset", loader))
        self._kind = self._signature(loader)
        self._iterated = False

    @staticmethod
    def _signature(loader):
        parts = [loader] + [getattr(loader, name, None) for name in ("dataset", "collate_fn")]
        return [_type_name(part) for part in parts] + [repr(getattr(loader, name, None))
                                                       for name in ("batch_size", "num_workers")]

    def is_of(self, loader):
        return self._loader() is loader

    def takes_over(self, loader):
        """Whether this loader has been made around the dataset of the watched one, as Accelerate and Lightning do, or is the
        one that such a loader has replaced."""
        if self._first() is not loader:
            if self.iterable or (self._iterated and self._loader() is not None):
                return False
            dataset = self._dataset() or getattr(self._loader(), "dataset", None)
            if dataset is None or getattr(loader, "dataset", None) is not dataset:
                return False
        self._loader = _reference(loader)
        return True

    def wrapped(self, made):
        """Other iterables are in use as long as their wrapper or an epoch."""
        self._first = self._loader = _reference(made)

    def is_like(self, loader):
        """Whether this loader can continue the figures of one that is gone."""
        return self._loader() is None and self._first() is None and not self._open \
            and self._kind == self._signature(loader)

    def token(self):
        return self.session.pid, self.session.fd, self.number

    # ---- settings ----

    def _set(self, key, value):
        if value is not None:
            self.library.set(self.session.segment, self.number, key.encode(), float(value))

    def _set_text(self, key, value):
        if value:
            self.library.set_text(self.session.segment, self.number, key.encode(), str(value).encode("utf-8", "replace"))

    def _settings(self, loader):
        for key in ("num_workers", "prefetch_factor", "pin_memory", "persistent_workers", "batch_size", "in_order"):
            value = getattr(loader, key, None)
            if isinstance(value, (int, float)):
                self._set(key, value)
        is_iterable = getattr(loader, "_dataset_kind", 0) == 1
        self._set("iterable", is_iterable)
        sampler = getattr(loader, "_index_sampler", None)
        if not is_iterable and _watch_headroom.is_known(sampler):
            self._set("dataset_length", _length(loader.dataset))
            self._set("batches_per_epoch", _length(sampler))
        self._set_text("dataset", _type_name(loader.dataset))
        self._set_text("collate", _type_name(loader.collate_fn))
        self._set_text("sampler", _type_name(loader.sampler))
        self._set_text("torch_version", getattr(sys.modules.get("torch"), "__version__", ""))
        if loader.num_workers > 0:
            self._set_text("start_method", _start_method(loader))
            if getattr(loader, "_iterator", None) is None and opened_before(loader.dataset):  # workers are created now
                self._set("hdf5_opened", 1)

    # ---- the loop ----

    def _on_thread(self):
        ident = threading.get_ident()
        if self._thread != ident:
            self.library.thread(self.session.segment, self.number, _watch_library.LOOP, -1)
            self._thread = ident

    def _see_copies(self):
        """Times copies to the GPU from the time on when the program uses one."""
        cuda = sys.modules.get("torch.cuda")
        if not self._copies and cuda is not None and cuda.is_initialized():
            self._copies = True
            self._set("cuda", 1)
            _watch_loop.time_copies(self.library, self.hooks())

    def hooks(self):
        if self.session.hooks is None:
            self.session.hooks = _watch_loop.new_hooks(self.library, self.session.segment)
        return self.session.hooks

    def began_late(self):
        if not self._told_late:
            self._told_late = True
            _warn("{}: its persistent workers were started before; what they do is seen from the next workers on"
                  .format(self.name))

    def first_batch(self, batch):
        self.dtype = _watch_trial.dtype_of(batch)

    @_never_fails
    def epoch_began(self, loader):
        if not self._iterated and not self.iterable:
            self.names = _watch_trial.names_of(loader.dataset)
        self._iterated = True
        self._on_thread()
        if not self.iterable:
            self._settings(loader)
        self._see_copies()
        self.epoch_open()

    def epoch_open(self):
        if self._open:  # two loops at once: the figures are those of both
            return
        self._open = True
        self.library.epoch_begin(self.number)

    @_never_fails
    def started(self, seconds):
        self.library.startup(self.number, seconds)
        self.library.sampling(self.session.segment, 1)

    def gave_up(self, error):
        """This epoch is not watched."""
        _failed(error)
        self.epoch_ended(False)

    def request_begin(self, ready, due_ready, worker):
        self._on_thread()
        self.library.request_begin(self.number, ready, due_ready, worker)

    def request_due(self, due_ready):
        self.library.request_due(self.number, due_ready)

    @_never_fails
    def request_end(self, items):
        self.library.request_end(self.number, items)
        if items > 0:
            self.batches += 1
            if self.batches in (1, 2, 10):
                self._see_copies()
                self._set("world_size", ranks()[1])
            if self.session.ranks is not None and self.session.ranks_of is self:
                _printed(self.session.ranks.table())

    def pinned(self, original, data, args, keywords):
        """Copies a batch to pinned memory, in the pin thread."""
        self.library.thread(self.session.segment, self.number, _watch_library.PIN, -1)
        zone = self.library.number("07c_pin_memory")
        if zone < 0:
            return original(data, *args, **keywords)
        self.library.begin(zone)
        try:
            return original(data, *args, **keywords)
        finally:
            self.library.end()

    @_never_fails
    def epoch_ended(self, complete):
        """Also called when an iterator is collected: in a worker that has inherited it, this does nothing."""
        if self.session.pid != os.getpid() or _watch_worker.current is not None or not self._open:
            return
        self._open = False
        self.library.epoch_end(self.number, int(complete))
        self.epochs += 1
        if self.batches == 0 or self.session.finished:
            return
        if self.options.log is not None:
            self.write_log()
        self._publish()
        if self.options.every and self.epochs % self.options.every == 0 and first_rank() and self._is_main():
            self._shown = (self.epochs, self.batches)
            self.session.print(self.session.text(_watch_library.TABLE, False, self.options.lang, self.number))

    def _publish(self):
        """Sends this rank's figures after every N epochs; without such tables, only at the end."""
        session, every = self.session, self.options.every
        if ranks()[1] == 1 or not self._is_main():
            return
        if session.ranks_of is None:
            session.ranks_of, opened = self, Ranks(self.library, session.segment, self.number)
            session.ranks = None if opened.failed else opened
            if opened.failed and first_rank():
                _warn(opened.why)
        if session.ranks is not None and session.ranks_of is self and every and self.epochs % every == 0:
            session.ranks.publish()
            _printed(session.ranks.table())

    def _is_main(self):
        """With every DataLoader watched, only the one with most batches prints after its epochs."""
        return self.origin is not None or all(each.batches <= self.batches for each in self.session.loaders)

    def is_shown(self):
        """Whether the last table has shown the whole run."""
        return self._shown == (1, self.batches)

    def write_log(self, whole=False):
        """Logs what has happened since the last call, or the whole run."""
        if self.options.log is None or (self._logged == self.batches and not whole):
            return
        self._logged = self.batches
        path = self.session.path_of(self.options.log)
        try:
            with open(path, "a") as file:
                file.write(self.session.log_head(path) + self.session.text(_watch_library.LOG, whole, "en", self.number))
        except OSError as error:
            _warn("log {}: {}; nothing more is logged".format(path, error.strerror))
            self.options.log = None


def _length(value):
    try:
        return len(value)
    except Exception:  # a dataset without a length, or one that cannot tell it now
        return None


def _start_method(loader):
    import multiprocessing
    context = getattr(loader, "multiprocessing_context", None) or multiprocessing
    try:
        return context.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]
    except (AttributeError, TypeError):
        return ""


# ---- ranks ----

def first_rank():
    return ranks()[0] == 0


# ---- the interface ----

_session = None
_is_refused = False
_all = None  # (Options, path of --json) for every DataLoader, or None


def session():
    """The session, opened when first asked for; None, after one warning, if this machine cannot watch."""
    global _session, _is_refused
    if _session is None and not _is_refused:
        try:
            here = Session()
            if _all is not None:
                here.all, here.json = _all
            _install()
            _session = here
        except Exception as error:
            _is_refused = True
            _failed(error)
        else:
            if not here.times_stages:
                _warn("the extension weir._weir is of another version: weir.stage is not seen; install weir-loader again")
    return _session


def _install():
    _watch_loop.install(_find)
    before_store_ends(_end_ranks)


def _end_ranks():
    if _session is not None:
        _session.end_ranks()


@_never_fails
def _find(loader):
    """The Watched of a loader whose iterator is created. A failure of the watch leaves the loader unwatched."""
    here = None if _watch_worker.current is not None else session()
    return here and here.watched(loader)


def watch(loader, *, every=1, log=None, headroom=False, name=None):
    """Watches a DataLoader of torch, inside its workers too, and returns the same object.

        loader = weir.watch(DataLoader(dataset, batch_size=8, num_workers=4))

    After each epoch, and at exit, a table is printed: what each worker's time went into, how long the loop waited, and a
    verdict with what to change. Batches, their order, random numbers and exceptions remain the same.

    loader    a torch.utils.data.DataLoader of any kind, or torchdata's StatefulDataLoader. It may be wrapped afterwards
              (Accelerate, Lightning): a loader that is made around the same dataset is watched in its place. For any other
              iterable (a generator, tf.data, DALI) a wrapper is returned, which sees waits, steps and headroom alone
    every     epochs between tables; 0 = only at exit. In a distributed run only rank 0 prints
    log       a file to which lines in JSON are appended, for `weir report`; with ranks, run.jsonl is run.rank3.jsonl, and
              in a process that the program has started, run.pid123.jsonl
    headroom  now and then hold back some batches and hand them out without waits, to see how fast training would be with
              loading for free. No batch is replayed, dropped or reordered; where running ahead could change training, a
              warning says why it is refused
    name      of the loader in tables

    If the watch cannot work, a RuntimeWarning says why, and the loader runs as it is."""
    options = Options(every, log, headroom)
    if type(loader).__module__.split(".")[0] == "weir" and hasattr(loader, "verdict"):
        raise TypeError("weir.watch: a weir.Loader measures itself: print(loader.table())")
    inner = _data_loader(loader)
    if inner is None and not hasattr(loader, "__iter__") and not hasattr(loader, "__next__"):
        raise TypeError("weir.watch needs a DataLoader or another iterable, not {!r}".format(loader))
    if inner is not None:
        _watch_inner(inner, options, name)
        return loader
    watched = _watch_other(loader, options, name)
    return loader if watched is None else watched


@_never_fails
def _watch_other(iterable, options, name):
    """A wrapper of an iterable that is no DataLoader, or None."""
    here = session()
    watched = here.add(iterable, options, name, True, _line()) if here is not None and here.here() else None
    if watched is None:
        return None
    made = wrapper(iterable, watched)
    watched.wrapped(made)
    return made


@_never_fails
def _watch_inner(inner, options, name):
    here = session()
    if here is None or not here.here():
        return
    known = here.known(inner)
    if known is not None:
        known.change(options, name)
    else:
        known = here.add(inner, options, name, line=_line())
    if known is not None and getattr(inner, "_iterator", None) is not None and inner.num_workers > 0:
        known.began_late()


def _data_loader(loader):
    """The DataLoader that is watched: itself, or the one in a wrapper of Lightning Fabric; None for other iterables."""
    module = sys.modules.get("torch.utils.data")
    for each in (loader, getattr(loader, "_dataloader", None)) if module is not None else ():
        if isinstance(each, module.DataLoader):
            return each
    return None


def watch_all(options, json=None, now=True):
    """Watches every DataLoader of this process, and of those that it starts. now: returns the session; otherwise the first
    DataLoader opens it."""
    global _all
    _all = options, json
    _watch_children.hand_down(options, json)
    _install()
    return session() if now else None


def stage_begin(name):
    """Begins a stage of weir.stage on this thread; without a watch this does nothing."""
    worker = _watch_worker.current
    here = worker if worker is not None else _session
    if here is None or (worker is None and here.pid != os.getpid()):
        _stages.open.append(False)
        return
    zone = here.library.number(name)
    _stages.open.append(zone >= 0)
    if zone >= 0:
        here.library.begin(zone)


def stage_end():
    """Ends the innermost stage of this thread."""
    if _stages.open.pop():
        _watch_library.library().end()


class _Stages(threading.local):
    def __init__(self):
        self.open = []


_stages = _Stages()


def is_worker():
    """Whether this process is a watched worker."""
    return _watch_worker.current is not None


def active():
    """The session if it has figures, or None."""
    return _session if _session is not None and _session.pid == os.getpid() and _session.used() else None
