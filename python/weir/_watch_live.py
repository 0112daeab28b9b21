"""Live figures of watched loaders, in a file for Prometheus and over HTTP."""
import ctypes
import os
import sys

from ._watch_library import Unavailable, library
from ._watch_ranks import ranks

_here = None  # the Live of this process


def version():
    return getattr(sys.modules.get("weir"), "__version__", "")


def _page():
    """The extension's function that makes pages, or None: then they are plain tables."""
    extension = sys.modules.get("weir._weir")
    try:
        return None if extension is None else extension._live_page()
    except Exception:  # an extension of another version
        return None


def check(address):
    """Raises ValueError if the address is invalid."""
    code, why = library().explained(library().live_check, address.encode())
    if code != 0:
        raise ValueError("serve: " + why)


class Live:
    """Shows loaders. Its thread does not exist during a fork, of which Python would warn, and starts again with the next
    request of a loop."""

    def __init__(self, segment, address, prometheus):
        global _here
        self._library, self.paused = library(), False
        url = ctypes.create_string_buffer(80)
        path = None if prometheus is None else os.fsencode(prometheus)
        rank, world_size = ranks()
        self._try(self._library.live, segment, path, address and address.encode(), rank, world_size, version().encode(),
                  _page(), url, len(url))
        self.url = url.value.decode() or None
        if _here is None:
            os.register_at_fork(before=_pause)
        _here = self

    def _try(self, function, *arguments):
        code, why = self._library.explained(function, *arguments)
        if code != 0:
            raise Unavailable(why)

    def add(self, number):
        self._try(self._library.live_loader, number)

    def epoch(self):
        self._library.live_epoch()

    def resume(self):
        self.paused = False
        self._library.live_pause(0)

    def end(self):
        global _here
        if _here is self:
            _here = False  # keeps the handler of forks
        self._library.live_end()


def _pause():
    if _here and not _here.paused:
        _here.paused = True
        _here._library.live_pause(1)
