"""Bindings to libweir_watch.so, the C side of weir.watch.

Functions are called with the GIL held (ctypes.PyDLL): most take less time than it takes to release it. Those that wait
for other ranks or threads release it (ctypes.CDLL)."""
import ctypes
import os
import sys
import warnings

_INT, _TEXT, _WATCH, _DOUBLE = ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_double

# Roles of threads, and kinds of stages and reports, as in prof/watch/watch.h and analyze/watch/watch_report.h.
LOOP, WORKER, FEEDER, PIN = range(4)
WORK, INCLUSIVE, WAIT = range(3)
TABLE, VERDICT, JSON, LOG, PAGE, TRIAL = range(6)

_FUNCTIONS = {
    "create": (_WATCH, ctypes.c_char_p, ctypes.c_size_t),
    "open": (_WATCH, _INT, _INT, ctypes.c_char_p, ctypes.c_size_t),
    "fd": (_INT, _WATCH),
    "loader": (_INT, _WATCH, _TEXT),
    "set": (_INT, _WATCH, _INT, _TEXT, _DOUBLE),
    "set_text": (_INT, _WATCH, _INT, _TEXT, _TEXT),
    "unseen": (None, _WATCH, _TEXT),
    "thread": (_INT, _WATCH, _INT, _INT, _INT),
    "stage": (_INT, _TEXT, _INT),
    "begin": (None, _INT),
    "end": (None,),
    "batch_begin": (None, ctypes.c_int64),
    "batch_end": (None, _INT),
    "item_begin": (None, ctypes.c_int64),
    "item_end": (None,),
    "path": (None, _TEXT),
    "epoch_begin": (None, _INT),
    "epoch_end": (None, _INT, _INT),
    "startup": (None, _INT, _DOUBLE),
    "request_begin": (None, _INT, _INT, _INT, _INT),
    "request_due": (None, _INT, _INT),
    "request_end": (None, _INT, _INT),
    "headroom": (None, _INT, _INT),
    "report": (_INT, _WATCH, _INT, _INT, _INT, _TEXT, ctypes.POINTER(ctypes.c_void_p)),
    "free": (None, ctypes.c_void_p),
    "write": (_INT, _TEXT, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t),
    "sampling": (None, _WATCH, _INT),
    "sigterm": (_INT, ctypes.CFUNCTYPE(None)),
    "sigterm_take": (_INT,),
    "sigterm_end": (None,),
    "launched": (None, ctypes.POINTER(_INT), ctypes.POINTER(_INT)),
    "ranks": (_INT, _WATCH, _INT, _INT, _INT, _TEXT, _INT, ctypes.c_char_p, ctypes.c_size_t),
    "ranks_publish": (None,),
    "ranks_table": (_INT, ctypes.POINTER(ctypes.c_void_p)),
    "ranks_pause": (None, _INT),
    "ranks_end": (_INT, _DOUBLE, ctypes.POINTER(ctypes.c_void_p)),
    "live_check": (_INT, _TEXT, ctypes.c_char_p, ctypes.c_size_t),
    "live": (_INT, _WATCH, _TEXT, _TEXT, _INT, _INT, _TEXT, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t,
             ctypes.c_char_p, ctypes.c_size_t),
    "live_loader": (_INT, _INT, ctypes.c_char_p, ctypes.c_size_t),
    "live_epoch": (None,),
    "live_pause": (None, _INT),
    "live_end": (None,),
    "metrics": (_INT, _WATCH, _INT, _INT, _TEXT, ctypes.POINTER(ctypes.c_void_p)),
}
_WAITING = ("sampling", "write", "ranks_pause", "ranks_end", "live", "live_loader", "live_pause", "live_end")


def warn(text, level=2):
    """A warning, of which programs that make warnings exceptions see the text alone."""
    try:
        warnings.warn(text, RuntimeWarning, stacklevel=level)
    except RuntimeWarning:
        print(text, file=sys.stderr)


class Unavailable(Exception):
    """The library cannot be used; the text says why, in one line."""


class Library:
    """The functions of the library, without their prefix weir_watch_."""

    def __init__(self, path):
        try:
            functions, waiting = ctypes.PyDLL(path), ctypes.CDLL(path)
            for name, (result, *arguments) in _FUNCTIONS.items():
                function = getattr(waiting if name in _WAITING else functions, "weir_watch_" + name)
                function.restype, function.argtypes = result, arguments
                setattr(self, name, function)
        except (OSError, AttributeError) as error:
            raise Unavailable("weir.watch: its library cannot be loaded: {}; install weir-loader, or set "
                              "WEIR_WATCH_LIBRARY to the path of libweir_watch.so".format(error)) from None

    def created(self):
        """A new segment."""
        return self._segment(self.create)

    def opened(self, pid, fd):
        """The segment that process pid created as its file fd."""
        return self._segment(self.open, pid, fd)

    def _segment(self, function, *arguments):
        segment, why = self.explained(function, *arguments)
        if not segment:
            raise Unavailable(why or "weir.watch: no shared memory")
        return segment

    @staticmethod
    def explained(function, *arguments):
        """(result of a function, the line with which it explains a failure)"""
        why = ctypes.create_string_buffer(512)
        result = function(*arguments, why, len(why))
        return result, why.value.decode("utf-8", "replace")

    def text(self, segment, number, what, whole, lang):
        """A report as text; empty if there is nothing to report."""
        return self.made(self.report, segment, number, what, whole, lang.encode())

    def metrics_text(self, segment, rank, world_size, version):
        """The metrics of all loaders, in the classic text format."""
        return self.made(self.metrics, segment, rank, world_size, version.encode())

    def made(self, function, *arguments):
        """The text that a function makes; empty if it makes none."""
        found = ctypes.c_void_p()
        function(*arguments, ctypes.byref(found))
        if not found.value:
            return ""
        try:
            return ctypes.string_at(found.value).decode("utf-8", "replace")
        finally:
            self.free(found)

    def rank(self):
        """(rank, world_size) from the launcher's environment."""
        rank, world_size = _INT(), _INT()
        self.launched(ctypes.byref(rank), ctypes.byref(world_size))
        return rank.value, world_size.value

    def time_stages(self):
        """Has weir.stage of the extension time its stages in this process's segment too. Returns whether it can."""
        extension = sys.modules.get("weir._weir")
        try:
            if extension is not None:
                extension._watch_stages(*(ctypes.cast(function, ctypes.c_void_p).value
                                          for function in (self.stage, self.begin, self.end)))
        except Exception:  # an extension of another version
            return False
        return True

    def number(self, name, kind=WORK):
        """The number of a stage, for begin. The calling thread must have a slot."""
        return self.stage(name.encode("utf-8", "replace"), kind)

    def timed(self, zone, function, *arguments, **keywords):
        """A call, timed as a stage unless its number is -1."""
        if zone < 0:
            return function(*arguments, **keywords)
        self.begin(zone)
        try:
            return function(*arguments, **keywords)
        finally:
            self.end()


_library = None


def library():
    """The library, loaded once. Raises Unavailable."""
    global _library
    if _library is None:
        if not sys.platform.startswith("linux"):
            raise Unavailable("weir.watch needs Linux")
        if not getattr(sys, "_is_gil_enabled", lambda: True)():  # its calls rely on it
            raise Unavailable("weir.watch: this Python runs without the GIL, which the watch needs: set PYTHON_GIL=1")
        _library = Library(os.environ.get("WEIR_WATCH_LIBRARY")
                           or os.path.join(os.path.dirname(os.path.abspath(__file__)), "libweir_watch.so"))
    return _library
