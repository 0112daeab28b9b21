"""Finds HDF5 files that a dataset has opened before its workers are created.

Forked workers share the position of such a file, and the library's cache of it: what they read can be wrong."""
import sys
import types

from ._watch_static import attributes, is_a, parts_of

_DEEP, _MOST = 3, 256  # levels of objects, and objects, that are looked at
_CLOSED = (type, types.ModuleType, types.FunctionType, str, bytes, int, float)


def opened_before(dataset):
    """Whether a dataset, what it wraps, or a list or dict of theirs holds an open file, group or dataset of h5py."""
    h5py = sys.modules.get("h5py")
    kinds = tuple(kind for kind in (getattr(h5py, name, None) for name in ("Group", "Dataset")) if kind is not None)
    level, seen = [dataset], set()
    for _ in range(_DEEP if kinds else 0):
        following = []
        for value in level:
            parts = parts_of(value, _MOST)  # in a container, or among the attributes of an object
            following += [part for part in (list(attributes(value).values()) if parts is None else parts)
                          if not is_a(part, *_CLOSED) and id(part) not in seen]
            seen.update(map(id, following))
        if any(is_a(value, *kinds) and kinds[0].__bool__(value) for value in following):
            return True
        level = following[:_MOST]
    return False
