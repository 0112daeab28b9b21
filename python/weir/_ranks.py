"""This process's rank in a distributed run, and the table of all ranks."""
from . import _weir
from ._watch_ranks import distributed, store


def ranks():
    """(rank, world_size) from torch.distributed if initialised, else from the launcher's environment."""
    module = distributed()
    return (module.get_rank(), module.get_world_size()) if module else _weir._launched(True)[:2]


def local_ranks():
    """(local_rank, local_size, local_cores) on this machine, from the launcher's environment."""
    return _weir._launched(False)[2:]


def gathered(totals):
    """On rank 0 a list of all ranks' values; None on the others. All ranks must call it."""
    module = distributed()
    rank, world_size = ranks()
    everyone = [None] * world_size if rank == 0 else None
    module.gather_object(totals, everyone)
    return everyone


_TITLES = {"en": "slowest rank", "zh": "最慢进程"}


def _slowest(everyone):
    """Stage -> (rank, seconds) of the slowest rank."""
    slowest = {}
    for rank, totals in enumerate(everyone):
        for name, seconds in totals.items():
            if name not in slowest or seconds > slowest[name][1]:
                slowest[name] = (rank, seconds)
    return slowest


def with_slowest(table, everyone, lang):
    """Appends a column to one rank's table: the slowest rank of each stage, and its time.

    A row starts with the name of its stage, followed by a space."""
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
