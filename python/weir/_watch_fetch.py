"""Times a batch, its items and its collate function, by putting private stand-ins into torch's fetcher.

The dataset itself, get_worker_info().dataset and loader.dataset remain the program's own objects."""
import sys
import threading
import types

from ._watch_static import attribute, in_class, is_a, parts_of

COLLATE = "06_collate"


def _index_of(index):
    """A sample's index as a number; -1 if it is not one."""
    generic = getattr(sys.modules.get("numpy"), "integer", None)
    if generic is not None and is_a(index, generic):
        index = generic.item(index)
    return index if type(index) is int and 0 <= index < 2**63 else -1


class _StandIn:
    """Stands for a part of the program's, as the fetcher sees it."""

    def __init__(self, value, library):
        self._weir = value
        self._weir_begin, self._weir_end = library.item_begin, library.item_end

    def __getattr__(self, name):
        return getattr(self.__dict__["_weir"], name)


class _Dataset(_StandIn):
    """A map-style dataset."""

    def __getitem__(self, index):
        self._weir_begin(index if type(index) is int and 0 <= index < 2**63 else _index_of(index))
        try:
            return self._weir[index]
        finally:
            self._weir_end()

    def __getattr__(self, name):
        found = super().__getattr__(name)
        return self._weir_timed(found) if name == "__getitems__" and type(found) is types.MethodType else found

    def _weir_timed(self, getitems):
        def timed(indices):
            first = parts_of(indices, 1)
            self._weir_begin(_index_of(first[0]) if first else -1)
            try:
                return getitems(indices)
            finally:
                self._weir_end()
        return timed

    def __len__(self):
        return len(self._weir)


class _Iterator(_StandIn):
    """The iterator of an iterable dataset."""

    def __iter__(self):
        return self

    def __next__(self):
        self._weir_begin(-1)
        try:
            return next(self._weir)
        finally:
            self._weir_end()


# torchdata looks for these two in the class of the object (typing.Protocol), and then reads them.
_OPTIONAL = {name: property(lambda self, name=name: getattr(self._weir, name)) for name in ("state_dict", "load_state_dict")}
_classes = {}


def _stand_in(base, value, library):
    """A stand-in that has an optional method if the object has it."""
    names = tuple(name for name in _OPTIONAL
                  if in_class(type(value), name) is not None or attribute(value, name) is not None)
    made = _classes.get((base, names))
    if made is None:
        made = _classes[base, names] = type(base.__name__, (base,), {name: _OPTIONAL[name] for name in names})
    return made(value, library)


class _Collate(_StandIn):
    """The collate function."""

    def __init__(self, function, library, number):
        super().__init__(function, library)
        self._library, self._number = library, number

    def __call__(self, data):
        return self._library.timed(self._number(COLLATE), self._weir, data)


class Fetcher:
    """torch's fetcher with a timed fetch.

    around: whether hooks are on for the time of a fetch alone. first: called once, after the first batch."""
    __slots__ = ("_fetcher", "_library", "_hooks", "_around", "_first", "_batch", "_step")

    def __init__(self, fetcher, library, hooks, around=False, first=None, batch=0, step=1):
        mine = object.__setattr__
        mine(self, "_fetcher", fetcher)
        mine(self, "_library", library)
        mine(self, "_hooks", hooks)
        mine(self, "_around", around)
        mine(self, "_first", first)
        mine(self, "_batch", batch)
        mine(self, "_step", step)
        _put_stand_ins(fetcher, library, hooks)

    def fetch(self, possibly_batched_index):
        library, hooks = self._library, self._hooks
        if self._around:
            hooks.on()
        ident = threading.get_ident()
        # A dataset may iterate this loader for an item of another one.
        outer = (ident, hooks.inside) if hooks.fetching == ident else (0, -1)
        hooks.fetching, hooks.inside = ident, -1
        library.batch_begin(self._batch)
        items = 0
        try:
            data = self._fetcher.fetch(possibly_batched_index)
            items = len(parts_of(possibly_batched_index)) if is_a(possibly_batched_index, list, tuple) else 1
            return data
        finally:
            library.batch_end(items)
            hooks.fetching, hooks.inside = outer
            self._fetched()

    def _fetched(self):
        mine = object.__setattr__
        mine(self, "_batch", self._batch + self._step)
        if self._around:
            self._hooks.off()
        if self._first is not None:
            first = self._first
            mine(self, "_first", None)
            first()

    def __getattr__(self, name):
        return getattr(self._fetcher, name)

    def __setattr__(self, name, value):
        setattr(self._fetcher, name, value)


def _put_stand_ins(fetcher, library, hooks):
    if "dataset_iter" in vars(fetcher):
        itself = fetcher.dataset_iter is fetcher.dataset  # torchdata saves the state of such an object once
        fetcher.dataset_iter = _stand_in(_Iterator, fetcher.dataset_iter, library)
        if itself:
            fetcher.dataset = fetcher.dataset_iter
    else:
        fetcher.dataset = _stand_in(_Dataset, fetcher.dataset, library)
    fetcher.collate_fn = _Collate(fetcher.collate_fn, library, hooks.number)
