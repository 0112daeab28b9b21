"""torch.distributed, if the program uses it, and the table over the ranks of a watched job: which is slow, and why."""
import functools
import os
import sys
import threading

from ._watch_import import after_import
from ._watch_library import library
from ._watch_static import attributes

_LAST_S = 10.0  # time that rank 0 waits for the last figures of others
_DISTRIBUTED = "torch.distributed.distributed_c10d"

_seen = None  # (PID, rank, world_size) of torch.distributed, which may have ended since


def distributed():
    """torch.distributed if initialised, else None."""
    module = sys.modules.get("torch.distributed")
    return module if module is not None and module.is_available() and module.is_initialized() else None


def store():
    """(host, port) of torch.distributed's default store; (None, 0) if MASTER_ADDR names one, or there is none."""
    module = None if os.environ.get("MASTER_ADDR") else sys.modules.get("torch.distributed")
    try:
        found = module.distributed_c10d._get_default_store()
        while hasattr(found, "underlying_store"):
            found = found.underlying_store
        return found.host, found.port
    except (AttributeError, RuntimeError, ValueError):
        return None, 0


def ranks():
    """(rank, world_size) from torch.distributed if it is or was initialised, else from the launcher's environment."""
    global _seen
    module = distributed()
    if module is not None:
        _seen = os.getpid(), module.get_rank(), module.get_world_size()
    if is_rank():
        return _seen[1:]
    return library().rank()


def first_rank():
    return ranks()[0] == 0


def is_rank():
    """Whether this process is, or was, a rank of torch.distributed. ranks() must have been called before that ends."""
    return _seen is not None and _seen[0] == os.getpid()


def before_store_ends(function):
    """Calls a function before the program ends torch.distributed, and with it the store that rank 0 serves. That of
    torchrun's agent remains."""
    def patch(name):
        world, original = sys.modules[name].GroupMember, sys.modules[name].destroy_process_group
        if hasattr(original, "_weir_original"):
            return

        @functools.wraps(original)
        def destroy_process_group(group=None, *args, **keywords):
            if group is None or group is world.WORLD:
                function()
            return original(group, *args, **keywords)
        destroy_process_group._weir_original = True
        for module in list(sys.modules.values()):
            if attributes(module).get("destroy_process_group") is original:
                module.destroy_process_group = destroy_process_group

    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        return
    if hasattr(sys.modules.get(_DISTRIBUTED), "destroy_process_group"):
        patch(_DISTRIBUTED)
    after_import(_DISTRIBUTED, patch)


class Ranks:
    """Compares one watched loader of this rank with those of the others."""

    def __init__(self, library, segment, number):
        self._library, self._number = library, number
        self._lock = threading.RLock()  # two of the calls below release the GIL
        self._rank, world_size = ranks()
        host, port = store()
        self.failed, self.why = library.explained(library.ranks, segment, number, self._rank, world_size,
                                                  host and host.encode(), port)

    def _text(self, function, *arguments):
        with self._lock:
            return self._library.made(function, *arguments)

    def publish(self):
        with self._lock:
            self._library.ranks_publish()

    def table(self):
        """Rank 0: the next table if all ranks have reported, else an empty text. Cheap."""
        return self._text(self._library.ranks_table) if self._rank == 0 else ""

    def pause(self, yes):
        with self._lock:
            self._library.ranks_pause(int(yes))

    def end(self):
        return self._text(self._library.ranks_end, _LAST_S)
