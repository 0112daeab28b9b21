"""weir.watch: sees into the training job that people already have, without changing it."""
import atexit
import json
import os
import sys
import threading

from . import (_metrics, _outputs, _watch_children, _watch_library, _watch_live, _watch_loop, _watch_static, _watch_trial,
               _watch_worker)
from ._watch_hooks import call_cost_ns
from ._watch_loader import Watched
from ._watch_other import wrapper
from ._watch_ranks import before_store_ends, first_rank, is_rank, ranks
from ._watch_warn import failed, line_of_program, never_fails, printed, warn


def _in_thread(function, *arguments):
    """A function's result, on a thread of its own, which has no slot."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function(*arguments)), name="weir.watch")  # numbers are the program's
    thread.start()
    thread.join()
    return found[0] if found else 0.0


class Options:
    """How to watch a loader."""

    def __init__(self, every=1, log=None, headroom=False, lang="en", serve=None, prometheus=None, html=None):
        if not isinstance(every, int) or isinstance(every, bool) or every < 0:
            raise ValueError("every must be a number of epochs, 0 or more, not {!r}".format(every))
        if lang not in ("en", "zh"):
            raise ValueError("lang must be 'en' or 'zh', not {!r}".format(lang))
        self.serve, self.prometheus = _metrics.address(serve), _path("prometheus", prometheus)
        if self.serve is not None:
            _watch_live.check(self.serve)
        if headroom not in (False, True, "only"):
            raise ValueError("headroom must be True or False, not {!r}".format(headroom))
        self.every, self.log, self.headroom, self.lang = every, _path("log", log), headroom, lang
        self.html = _path("html", html)

    def outputs(self, prefix=""):
        """The files that it names: (label, kind, path)."""
        return [(prefix + kind, kind, path) for kind, path in (("log", self.log), ("html", self.html),
                                                               ("prometheus", self.prometheus)) if path is not None]


def _path(name, path):
    if path is not None and not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError("{} must be the path of a file, not {!r}".format(name, path))
    return None if path is None else os.path.abspath(path)


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
        self.ranks = self.ranks_of = self.live = None
        self._logs = set()  # begun
        self._is_full = False
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
            watched = Watched(self, loader, options, name or self._name(loader, iterable), iterable, origin)
            if watched.number < 0:
                if not self._is_full:
                    warn("{} loaders are watched, the maximum; others run unwatched".format(len(self.loaders)))
                self._is_full = True
                return None
            self.loaders.append(watched)
            return watched

    def _name(self, loader, iterable):
        name = _watch_static.name_of(type(loader if iterable else _watch_static.attributes(loader).get("dataset", loader)))
        same = sum(each.name.split(" #")[0] == name for each in self.loaders)
        return "{} #{}".format(name, same + 1) if same else name

    @never_fails
    def show(self, watched):
        """Shows a loader that begins an epoch, if one is to be shown. A process that is no rank has no address of its
        own."""
        address, prometheus = watched.options.serve, watched.options.prometheus
        if self.child and not is_rank():
            address = None
        try:
            if self.live is None and (address is not None or prometheus is not None):
                self.live = False
                prometheus = prometheus and _outputs.checked(self.path_of(prometheus), "prometheus")
                self.live = _watch_live.Live(self.segment, address, prometheus)
                if self.live.url is not None:
                    print("weir.watch: live figures: {}/".format(self.live.url), file=sys.stderr)
            if self.live:
                self.live.add(watched.number)
        except (_watch_library.Unavailable, ValueError) as error:
            warn("no live figures: {}".format(error))

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
            elif not used:
                self._say_nothing_was_seen()
        if self._written:
            return
        self._written = True
        for watched in sorted(used, key=lambda each: each.batches):  # the last line is that of the rank
            watched.write_log(True)
        self._write_pages()
        if used and self.json is not None:
            self._write_json()
        if self.live:
            self.live.end()
        self.end_ranks()

    def end_ranks(self):
        """The last table over ranks: at exit, or before their store ends."""
        if self.ranks is None or self.pid != os.getpid() or _watch_worker.current is not None:
            return
        last, self.ranks = self.ranks, None
        if not self.ranks_of.options.every:
            last.publish()
        printed(last.end())

    def print(self, text):
        printed(_watch_children.heading() + text if text and self.child and not is_rank() else text)

    def path_of(self, path):
        """The path of this process's file. run.jsonl is run.rank3.jsonl on rank 3, and run.pid123.jsonl in a process that
        the program has started and that is no rank."""
        (rank, world_size), path = ranks(), os.fsdecode(path)
        base, end = os.path.splitext(path)
        return "".join((base, ".rank{}".format(rank) if world_size > 1 else "",
                        ".pid{}".format(self.pid) if self.child and not is_rank() else "", end))

    def log_head(self, path):
        """The line with which this process begins its part of a log, the first time."""
        if path in self._logs:
            return ""
        self._logs.add(path)
        return self.run_line()

    def run_line(self):
        rank, world_size = ranks()
        used = {"host": os.uname().nodename, "pid": self.pid, "rank": rank, "world_size": world_size}
        version = getattr(sys.modules.get("weir"), "__version__", "")
        return json.dumps({"type": "run", "weir": version, "used": used}, separators=(",", ":")) + "\n"

    def _say_nothing_was_seen(self):
        """For the command, whose script may start other programs."""
        if self.all is not None and not (self.child or self.interrupted or _watch_children.started) and first_rank():
            print("weir.watch: no DataLoader of this process delivered a batch; programs that the script starts are not "
                  "watched", file=sys.stderr)

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
            printed(self.text(_watch_library.TRIAL, True, "en", tried.number))

    def _write_json(self):
        path, (first, *others) = self.path_of(self.json), self.by_wait()
        text = self.text(_watch_library.JSON, True, "en", first.number)
        if others:
            reports = [_watch_trial.reported(self, each) for each in others]
            for each in reports:
                del each["schema"]  # of the document
            text = json.dumps(dict(json.loads(text), other_loaders=reports), indent=2) + "\n"
        try:
            _outputs.write(path, "json", text)
        except (OSError, ValueError) as error:
            warn("--json {}".format(error))

    def _write_pages(self):
        """The loaders of a page, the one that is waited for most last: it is the one that is unfolded."""
        pages = {}
        for watched in reversed(self.by_wait()):
            if watched.options.html is not None:
                pages.setdefault(self.path_of(watched.options.html), []).append(watched)
        for path, shown in pages.items():
            try:
                from ._weir import _page
                _outputs.write(path, "html", _page("".join(self.run_line() + each.lines() for each in shown),
                                                   shown[-1].options.lang))
            except ImportError:
                warn("html {}: needs weir's extension; weir report LOG --html makes it from the log".format(path))
            except (OSError, RuntimeError, ValueError) as error:
                warn("html {}".format(error))


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
            failed(error)
        else:
            if not here.times_stages:
                warn("the extension weir._weir is of another version: weir.stage is not seen; install weir-loader again")
    return _session


def _install():
    _watch_loop.install(_find)
    before_store_ends(_end_ranks)


def _end_ranks():
    if _session is not None:
        _session.end_ranks()


@never_fails
def _find(loader):
    """The Watched of a loader whose iterator is created. A failure of the watch leaves the loader unwatched."""
    here = None if _watch_worker.current is not None else session()
    return here and here.watched(loader)


def watch(loader, *, every=1, log=None, html=None, headroom=False, serve=None, prometheus=None, name=None):
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
    html      a file for the same as a web page, at exit; with ranks, one file per rank, like log
    headroom  now and then hold back some batches and hand them out without waits, to see how fast training would be with
              loading for free. No batch is replayed, dropped or reordered; where running ahead could change training, a
              warning says why it is refused
    serve     True: a page and metrics for Prometheus on http://127.0.0.1:9464, or an address (docs/live.md), for all watched
              loaders of the process
    prometheus  file for the same metrics, rewritten after each epoch and every 10 s
    name      of the loader in tables

    If the watch cannot work, a RuntimeWarning says why, and the loader runs as it is."""
    options = Options(every, log, headroom, serve=serve, prometheus=prometheus, html=html)
    _check_outputs(options)
    if not isinstance(name, (str, type(None))):
        raise TypeError("name must be a str, not {!r}".format(name))
    kind = type(loader)
    if _watch_static.module_of(kind).startswith("weir.") and _watch_static.in_class(kind, "verdict") is not None:
        raise TypeError("weir.watch: a weir.Loader measures itself: print(loader.table())")
    inner = _data_loader(loader)
    if inner is None and all(_watch_static.in_class(kind, name) is None for name in ("__iter__", "__next__")):
        raise TypeError("weir.watch needs a DataLoader or another iterable, not {}".format(_watch_static.full_name(loader)))
    if inner is not None:
        _watch_inner(inner, options, name)
        return loader
    watched = _watch_other(loader, options, name)
    return loader if watched is None else watched


def _check_outputs(options):
    """Raises ValueError if an output is the script, a file of another kind, or another output of this process."""
    others = [] if _session is None else [each for watched in _session.loaders for each in watched.options.outputs()]
    if _session is not None and _session.json is not None:
        others.append(("--json", "json", _session.json))
    script = _watch_static.attributes(sys.modules["__main__"]).get("__file__")
    _outputs.check([*dict.fromkeys(others), *options.outputs()], [("the script", script)] if type(script) is str else ())


@never_fails
def _watch_other(iterable, options, name):
    """A wrapper of an iterable that is no DataLoader, or None."""
    here = session()
    watched = here.add(iterable, options, name, True, line_of_program()) if here is not None and here.here() else None
    if watched is None:
        return None
    made = wrapper(iterable, watched)
    watched.wrapped(made)
    return made


@never_fails
def _watch_inner(inner, options, name):
    here = session()
    if here is None or not here.here():
        return
    known = here.known(inner)
    if known is not None:
        known.change(options, name)
    else:
        known = here.add(inner, options, name, line=line_of_program())
    if known is not None and _watch_static.attributes(inner).get("_iterator") is not None \
            and _watch_loop.count_of(inner, "num_workers") > 0:
        known.began_late()


def _data_loader(loader):
    """The DataLoader that is watched: itself, or the one in a wrapper of Lightning Fabric or Accelerate; None for other
    iterables."""
    own = _watch_static.attributes(loader)
    inside = (loader, own.get("_dataloader"), own.get("base_dataloader")) if "torch.utils.data" in sys.modules else ()
    return next(filter(_watch_static.is_loader, inside), None)


def watch_all(options, json=None, now=True):
    """Watches every DataLoader of this process, and of those that it starts. now: returns the session; otherwise the first
    DataLoader opens it."""
    global _all
    _all = options, json
    _watch_children.hand_down(options, json)
    _install()
    return session() if now else None


_stages = threading.local()


def stage_begin(name):
    """Begins a stage of weir.stage on this thread; without a watch this does nothing."""
    worker = _watch_worker.current
    here = worker if worker is not None else _session
    zone = -1 if here is None or (worker is None and here.pid != os.getpid()) else here.library.number(name)
    vars(_stages).setdefault("open", []).append(zone >= 0)
    if zone >= 0:
        here.library.begin(zone)


def stage_end():
    """Ends the innermost stage of this thread."""
    if _stages.open.pop():
        _watch_library.library().end()


def is_worker():
    """Whether this process is a watched worker."""
    return _watch_worker.current is not None


def metrics():
    """Metrics of the watched loaders, as a list of texts."""
    here = active()
    return [] if here is None else [here.library.metrics_text(here.segment, *ranks(), _watch_live.version())]


def active():
    """The session if it has figures, or None."""
    return _session if _session is not None and _session.pid == os.getpid() and _session.used() else None
