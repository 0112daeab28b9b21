"""Which part of a distributed run this process is, and the table of all parts."""
import sys

from . import _weir


def distributed():
    """torch.distributed where it is initialised, else None. torch is not imported for it."""
    module = sys.modules.get("torch.distributed")
    return module if module is not None and module.is_available() and module.is_initialized() else None


def ranks():
    """(rank, world_size) of torch.distributed where it is initialised, else of the launcher's environment."""
    module = distributed()
    return (module.get_rank(), module.get_world_size()) if module else _weir._launched(True)[:2]


def local_ranks():
    """(local_rank, local_size, local_cores): of the processes on this machine, by the launcher's environment."""
    return _weir._launched(False)[2:]


def gathered(totals):
    """Of all ranks on rank 0, in their order; None on the others. All ranks call it."""
    module = distributed()
    rank, world_size = ranks()
    everyone = [None] * world_size if rank == 0 else None
    module.gather_object(totals, everyone)
    return everyone


_TITLES = {"en": "slowest rank", "zh": "最慢进程"}


def _slowest(everyone):
    """Stage -> (rank, seconds): who has spent the most in it."""
    slowest = {}
    for rank, totals in enumerate(everyone):
        for name, seconds in totals.items():
            if name not in slowest or seconds > slowest[name][1]:
                slowest[name] = (rank, seconds)
    return slowest


def with_slowest(table, everyone, lang):
    """The table of one rank with a column at the end: of each stage the rank that has spent the most in it, and how much.

    Rows are told by their names, which are followed by spaces; rows of one table follow each other."""
    slowest, lines, inside = _slowest(everyone), [], False
    for line in table.split("\n"):
        names = [name for name in slowest if line.startswith(name + " ")]
        if names:
            rank, seconds = slowest[max(names, key=len)]
            line += f" {f'{rank} {seconds:.3f}s':>16}" if lang == "en" else f" | {_TITLES[lang]}: {rank} {seconds:.2f}s"
        elif lang == "en" and line.startswith("stage ") and not inside:
            line += f" {_TITLES[lang]:>16}"
            inside = True
        lines.append(line)
    return "\n".join(lines)
