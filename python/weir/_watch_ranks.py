"""The table over the ranks of a watched job: which rank is slow, and why."""
import ctypes
import os

from ._distributed import distributed, store

_LAST_S = 10.0  # time that rank 0 waits for the last figures of others


def ranks():
    """(rank, world_size) from torch.distributed if initialised, else from the launcher's environment."""
    module = distributed()
    if module is not None:
        return module.get_rank(), module.get_world_size()
    for rank, size in (("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"),
                       ("SLURM_PROCID", "SLURM_NTASKS")):
        try:
            found = int(os.environ[rank]), int(os.environ[size])
        except (KeyError, ValueError):
            continue
        if 0 <= found[0] < found[1]:
            return found
    return 0, 1


class Ranks:
    """Compares one watched loader of this rank with those of the others."""

    def __init__(self, library, segment, number):
        self._library, self._number = library, number
        self._rank, world_size = ranks()
        host, port = store()
        why = ctypes.create_string_buffer(256)
        self.failed = library.ranks(segment, number, self._rank, world_size, host and host.encode(), port, why, len(why)) != 0
        self.why = why.value.decode("utf-8", "replace")

    def _text(self, function, argument):
        found = ctypes.c_void_p()
        if function(argument, ctypes.byref(found)) != 1 or not found.value:
            return ""
        try:
            return ctypes.string_at(found.value).decode("utf-8", "replace")
        finally:
            self._library.free(found)

    def publish(self):
        self._library.ranks_publish()

    def table(self):
        """Rank 0: the next table if all ranks have reported, else an empty text. Cheap."""
        return self._text(self._library.ranks_table, 0) if self._rank == 0 else ""

    def pause(self, yes):
        self._library.ranks_pause(int(yes))

    def end(self):
        return self._text(self._library.ranks_end, _LAST_S)
