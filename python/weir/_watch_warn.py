"""Failures of weir.watch are warnings, and what it prints ends no program."""
import functools
import sys

from . import _watch_library


def caller():
    """(level for _watch_library.warn, frame) of the program that has called this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("weir."):
        level, frame = level + 1, frame.f_back
    return level, frame


def line_of_program():
    """Where the program has called this package."""
    frame = caller()[1]
    return frame.f_code.co_filename, frame.f_lineno


def warn(text):
    """Warns at the line of the program that has called this package."""
    _watch_library.warn(text if text.startswith("weir.watch") else "weir.watch: " + text, caller()[0])


_told = set()


def failed(error):
    """Warns of a failure of the watch itself, once per text."""
    text = str(error) if isinstance(error, _watch_library.Unavailable) else "{}: {}; the loader runs unwatched".format(
        type(error).__name__, error)
    if text not in _told:
        _told.add(text)
        warn(text)


def never_fails(method):
    """A part of the watch whose failure is a warning: the loop goes on."""
    @functools.wraps(method)
    def guarded(*arguments):
        try:
            return method(*arguments)
        except Exception as error:
            return failed(error)
    return guarded


def printed(text):
    if text:
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        text = text.encode(encoding, "replace").decode(encoding)  # an ASCII terminal lacks the Chinese table's characters
        try:
            print(text, end="" if text.endswith("\n") else "\n", flush=True)
        except (OSError, ValueError):  # a closed stdout
            pass
