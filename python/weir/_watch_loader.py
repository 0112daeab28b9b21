"""One loader that weir.watch watches."""
import os
import sys
import threading
import weakref

from . import _outputs, _watch_headroom, _watch_hooks, _watch_library, _watch_loop, _watch_static, _watch_trial, _watch_worker
from ._watch_ranks import Ranks, first_rank, ranks
from ._watch_warn import failed, never_fails, printed, warn


_REPLAYS = 2  # watch_read.h


def _reference(value):
    try:
        return weakref.ref(value)
    except TypeError:  # a list, for example
        return lambda: None


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
            self._set("headroom", _REPLAYS if options.headroom == "only" else bool(options.headroom))

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
        self._lines = None  # of the log, for the page
        self._known = threading.local()  # of threads that have a slot; identities of ended threads are used again
        self._copies = False
        self._open = False

    # ---- which loader ----

    def attach(self, loader):
        self._first = self._loader = _reference(loader)
        self._dataset = _reference(loader if self.iterable else _watch_static.attributes(loader).get("dataset"))
        self._kind = self._signature(loader)
        self._iterated = False
        if self.headroom is not None:
            self.headroom.forget()

    @staticmethod
    def _signature(loader):
        own = _watch_static.attributes(loader)
        return [_watch_static.full_name(part) for part in (loader, own.get("dataset"), own.get("collate_fn"))] + [
            _watch_static.number(own.get(name)) for name in ("batch_size", "num_workers")]

    def is_of(self, loader):
        return self._loader() is loader

    def takes_over(self, loader):
        """Whether this loader has been made around the dataset of the watched one, as Accelerate and Lightning do, or is the
        one that such a loader has replaced."""
        if self._first() is not loader:
            if self.iterable or (self._iterated and self._loader() is not None):
                return False
            dataset = self._dataset()
            if dataset is None:
                dataset = _watch_static.attributes(self._loader()).get("dataset")
            if dataset is None or _watch_static.attributes(loader).get("dataset") is not dataset:
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
        own = _watch_static.attributes(loader)
        for key in ("num_workers", "prefetch_factor", "pin_memory", "persistent_workers", "batch_size", "in_order"):
            self._set(key, _watch_static.number(own.get(key)))
        dataset = own.get("dataset")
        self._set("iterable", own.get("_dataset_kind", 0) == 1)
        self._set("dataset_length", len(dataset) if _watch_static.one_of(type(dataset), (list, tuple, range)) else None)
        for key, name in (("dataset", "dataset"), ("collate", "collate_fn"), ("sampler", "sampler")):
            if name in own:
                self._set_text(key, _watch_static.full_name(own[name]))
        self._set_text("torch_version", getattr(sys.modules.get("torch"), "__version__", ""))
        if _watch_loop.count_of(loader, "num_workers") > 0:
            self._set_text("start_method", _start_method(own.get("_DataLoader__multiprocessing_context")))
            if own.get("_iterator") is None and _watch_static.holds_open_hdf5(dataset):  # workers are created now
                self._set("hdf5_opened", 1)

    # ---- the loop ----

    def _on_thread(self):
        if not hasattr(self._known, "slot"):
            self._known.slot = self.library.thread(self.session.segment, self.number, _watch_library.LOOP, -1)

    def _see_copies(self):
        """Times copies to the GPU from the time on when the program uses one."""
        cuda = sys.modules.get("torch.cuda")
        if not self._copies and cuda is not None and cuda.is_initialized():
            self._copies = True
            self._set("cuda", 1)
            _watch_loop.time_copies(self.library, self.hooks())

    def hooks(self):
        """Hooks for batches that the training process loads itself, off until a fetch."""
        if self.session.hooks is None:
            hooks = _watch_hooks.Hooks(self.library, self.session.segment)
            hooks.install(lasting=False)
            self.session.hooks = hooks
        return self.session.hooks

    def began_late(self):
        if not self._told_late:
            self._told_late = True
            warn("{}: persistent workers started before weir.watch; watching begins with the next workers"
                  .format(self.name))

    def first_batch(self, batch):
        self.dtype = _watch_trial.dtype_of(batch)

    @never_fails
    def epoch_began(self, loader):
        if not self._iterated and not self.iterable:
            self.names = _watch_trial.names_of(_watch_static.attributes(loader).get("dataset"))
        self._iterated = True
        self._on_thread()
        if not self.iterable:
            self._settings(loader)
        self._see_copies()
        self.epoch_open()
        self.session.show(self)

    def epoch_open(self):
        if self._open:  # two loops at once: the figures are those of both
            return
        self._open = True
        self.library.epoch_begin(self.number)

    @never_fails
    def started(self, seconds):
        self.library.startup(self.number, seconds)
        self.sample()

    @never_fails
    def sample(self):
        """Begins the time that reports cover, and samples of the loop."""
        self.library.sampling(self.session.segment, 1)
        if self.session.live and self.session.live.paused:
            self.session.live.resume()

    def gave_up(self, error):
        """This epoch is not watched."""
        failed(error)
        self.epoch_ended(False)

    def request_begin(self, ready, due_ready, worker):
        self._on_thread()
        self.library.request_begin(self.number, ready, due_ready, worker)

    def request_due(self, due_ready):
        self.library.request_due(self.number, due_ready)

    @never_fails
    def request_end(self, items):
        self.library.request_end(self.number, items)
        if self.session.live and self.session.live.paused:  # the program has forked within an epoch
            self.session.live.resume()
        if items > 0:
            self.batches += 1
            if self.batches in (1, 2, 10):
                self._see_copies()
                self._set("world_size", ranks()[1])
            if self.session.ranks is not None and self.session.ranks_of is self:
                printed(self.session.ranks.table())

    def pinned(self, original, data, args, keywords):
        """Copies a batch to pinned memory, in the pin thread."""
        self.library.thread(self.session.segment, self.number, _watch_library.PIN, -1)
        return self.library.timed(self.library.number("07c_pin_memory"), original, data, *args, **keywords)

    @never_fails
    def epoch_ended(self, complete):
        """Also called when an iterator is collected: in a worker that has inherited it, this does nothing."""
        if self.session.pid != os.getpid() or _watch_worker.current is not None or not self._open:
            return
        self._open = False
        self.library.epoch_end(self.number, int(complete))
        self.epochs += 1
        if self.session.live:
            self.session.live.epoch()
        if self.batches == 0 or self.session.finished:
            return
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
                warn(opened.why + "; `weir report` compares the ranks afterwards if each has written a log (log=, --log)")
        if session.ranks is not None and session.ranks_of is self and every and self.epochs % every == 0:
            session.ranks.publish()
            printed(session.ranks.table())

    def _is_main(self):
        """With every DataLoader watched, only the one with most batches prints after its epochs."""
        return self.origin is not None or all(each.batches <= self.batches for each in self.session.loaders)

    def is_shown(self):
        """Whether the last table has shown the whole run."""
        return self._shown == (1, self.batches)

    def write_log(self, whole=False):
        """Logs what has happened since the last call, or the whole run. Keeps the lines for the page."""
        if (self.options.log is None and self.options.html is None) or (self._logged == self.batches and not whole):
            return
        self._logged = self.batches
        text = self.session.text(_watch_library.LOG, whole, "en", self.number)
        if self.options.html is not None:
            self._keep(text)
        if self.options.log is None:
            return
        path = self.session.path_of(self.options.log)
        try:
            head = self.session.log_head(path)
            with open(_outputs.checked(path, "log") if head else path, "a") as file:
                file.write(head + text)
        except (OSError, ValueError) as error:
            warn("log {}; nothing more is logged".format(
                "{}: {}".format(path, error.strerror) if isinstance(error, OSError) else error))
            self.options.log = None

    def _keep(self, text):
        import tempfile
        try:
            if self._lines is None:
                self._lines = tempfile.TemporaryFile("w+", encoding="utf-8")
            self._lines.write(text)
        except OSError as error:
            warn("html {}: {}; the page is left out".format(self.options.html, error.strerror))
            self.options.html = None

    def lines(self):
        """The lines of the log so far, if they are kept."""
        if self._lines is None:
            return ""
        self._lines.seek(0)
        return self._lines.read()


def _start_method(context):
    """The name of a context of multiprocessing, or of the default one."""
    import multiprocessing
    context = multiprocessing if context is None else context
    if context is not multiprocessing and _watch_static.module_of(type(context)) != multiprocessing.context.__name__:
        return ""
    return context.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]
