"""The public names of the package weir without its extension: weir.watch, and stages in what it watches."""
import functools
import sys

from . import _metrics, _watch, _watch_library

reason = ""  # why the extension is not loaded
__version__ = "0"
__all__ = ["Error", "Stage", "metrics", "print_timing_stats", "stage", "table", "verdict"]


class Error(RuntimeError):
    """An error of weir."""


class Stage:
    """A stage of the table: a context manager and decorator, created by weir.stage."""

    def __init__(self, name):
        if not isinstance(name, str):
            raise TypeError("a stage's name must be a str, not {!r}".format(type(name)))
        self.name = name

    def __enter__(self):
        _watch.stage_begin(self.name)
        return self

    def __exit__(self, *exception):
        _watch.stage_end()

    def __call__(self, function):
        @functools.wraps(function)
        def timed(*args, **keywords):
            with self:
                return function(*args, **keywords)
        return timed


def stage(name, *, cuda=False):
    """Times a part of the loop, or of the dataset in a worker, for weir.watch."""
    return Stage(name)


def table(lang="en", *, whole=False, all_loaders=False):
    """The table of the watched loader that the loop waits for most."""
    session = _watch.active()
    return session.table(lang, whole, all_loaders) if session is not None else ""


def verdict(lang="en", *, all_loaders=False):
    """The bottleneck of the watched loader that the loop waits for most, and advice."""
    session = _watch.active()
    if session is None:
        raise Error("no loader is watched, or none has delivered a batch yet")
    return session.verdict(lang, all_loaders)


def metrics():
    return _metrics.since_last(_watch.metrics())


metrics.__doc__ = _metrics.DOC


def print_timing_stats(lang="en", *, whole=False, all_loaders=False):
    """Prints table(lang, whole=whole)."""
    print(table(lang, whole=whole, all_loaders=all_loaders), end="")


def warn_of_version():
    """Warns if the extension can be loaded, but is of another version, and lets go of it. Workers of spawn stay silent."""
    if sys.modules.pop("weir._weir", None) is None:
        return
    vars(sys.modules["weir"]).pop("_weir", None)
    process = sys.modules.get("multiprocessing.process")
    if process is None or not getattr(process.current_process(), "_inheriting", False):  # set while spawn imports __main__
        _watch_library.warn("weir: its extension weir._weir is of another version ({}): only weir.watch and weir.stage "
                            "work; install weir-loader again".format(reason), 4)


def missing(name):
    """Raises an error for a name that needs the extension."""
    if name.startswith("_"):
        raise AttributeError("module 'weir' has no attribute {!r}".format(name))
    if sys.version_info < (3, 11):
        why = "needs Python 3.11 or newer; this is Python {}.{}".format(*sys.version_info[:2])
    else:
        why = "needs weir's extension, which is not loaded ({})".format(reason)
    raise AttributeError("weir.{} {}; weir.watch works without it".format(name, why))
