"""Loops over objects that log each of their attributes' reads and special methods' calls, for watch_calls_tests.py.

    watch_calls.py plain|watch|headroom FOLDER    appends a line for each call to the log of each case in the folder: the
                                                  kind of process, the object, the name"""
import functools
import multiprocessing
import os
import sys

import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler, Sampler, Subset

try:
    from torchdata.stateful_dataloader import StatefulDataLoader
except ImportError:
    StatefulDataLoader = None

os.environ.setdefault("CALLS", os.devnull)  # where calls outside of a case go
SILENT = ("__class__", "__new__", "__init__", "__init_subclass__", "__getattribute__", "__setattr__", "__del__", "__subclasshook__",
          "__class_getitem__", "__getattr__", "__torch_function__", "__torch_dispatch__")


def note(what, name):
    process = "main" if multiprocessing.current_process().name == "MainProcess" else "other"
    file = os.open(os.environ["CALLS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, "{} {} {}\n".format(process, what, name).encode())
    os.close(file)


class Meta(type):
    def __getattribute__(cls, name):
        note("class " + type.__getattribute__(cls, "__qualname__"), name)
        return type.__getattribute__(cls, name)

    def __eq__(cls, other):
        note("class", "__eq__")
        return cls is other

    def __hash__(cls):
        note("class", "__hash__")
        return type.__hash__(cls)

    def __instancecheck__(cls, value):
        note("class", "__instancecheck__")
        return type.__instancecheck__(cls, value)

    def __subclasscheck__(cls, kind):
        note("class", "__subclasscheck__")
        return type.__subclasscheck__(cls, kind)


def noted(name, method):
    @functools.wraps(method)
    def call(self, *arguments, **keywords):
        note(type(self).__qualname__ if type(type(self)) is not Meta else "spied", name)
        return method(self, *arguments, **keywords)
    return call


def spied(kind):
    """Has a class log its special methods, also those that it inherits, and each attribute that is read."""
    for name in dir(kind):
        method = getattr(kind, name)
        if name.startswith("__") and name not in SILENT and callable(method) and not isinstance(method, type):
            setattr(kind, name, noted(name, method))
    label = kind.__qualname__

    def __getattribute__(self, name):
        note(label, "." + name)
        return super(kind, self).__getattribute__(name)

    def __getattr__(self, name):
        note(label, "?" + name)
        raise AttributeError(name)
    kind.__getattribute__ = __getattribute__
    if "__getattr__" not in vars(kind):
        kind.__getattr__ = __getattr__
    return kind


# ---- objects ----

@spied
class Values(dict):
    def __fspath__(self):
        return "values"


@spied
class Path:
    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return self.path


@spied
class Rows(list):
    pass


@spied
class Index:
    def __init__(self, i):
        self.i = i

    def __index__(self):
        return self.i


@spied
class Data(Dataset):
    def __init__(self, n=6):
        self.n, self.folder, self.parts, self.path = n, "/no such", [Values(a=1)], Path(os.devnull)

    def __len__(self):
        return self.n

    def __bool__(self):
        raise RuntimeError("no truth value")

    def __eq__(self, other):
        raise RuntimeError("not comparable")

    __hash__ = None

    def __getitem__(self, i):
        with open(self.path, "rb"):
            return torch.full((2,), float(i))


class WithMeta(Dataset, metaclass=Meta):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return torch.zeros(2)


@spied
class Many(Data):
    def __getitems__(self, indices):
        return [torch.full((2,), float(i)) for i in indices]


@spied
class Stream(IterableDataset):
    def __iter__(self):
        return Items()


@spied
class Items:
    def __init__(self):
        self.n = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.n += 1
        if self.n > 5:
            raise StopIteration
        return Values(x=torch.zeros(3))


@spied
class Saved(Items):
    def state_dict(self):
        return {"n": self.n}

    def load_state_dict(self, state):
        self.n = state["n"]


@spied
class SavedStream(IterableDataset):
    def __iter__(self):
        return Saved()


@spied
class Order(Sampler):
    def __init__(self, n=6):
        self.n = n

    def __len__(self):
        return self.n

    def __iter__(self):
        return iter([Index(i) for i in range(self.n)])


@spied
class Batches(BatchSampler):
    def __init__(self, n=6):
        self.n = n

    def __len__(self):
        return self.n // 2

    def __iter__(self):
        for i in range(0, self.n, 2):
            yield Rows([i, i + 1])


@spied
class Collate:
    def __call__(self, items):
        return Values(all=Rows(items))


@spied
class Init:
    def __call__(self, worker):
        pass


@spied
class Loader(DataLoader):
    pass


@spied
class Computed(DataLoader):
    """A loader whose dataset is a property."""

    @property
    def dataset(self):
        return self.data

    @dataset.setter
    def dataset(self, data):
        self.data = data


@spied
class Delegating:
    """A loader that hands on what it lacks, such as those of Accelerate."""

    def __init__(self, loader):
        self.base_dataloader = loader

    def __getattr__(self, name):
        note("Delegating", "?" + name)
        return getattr(self.base_dataloader, name)

    def __iter__(self):
        return iter(self.base_dataloader)


@spied
class Tensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        note("Tensor", "__torch_function__")
        with torch._C.DisableTorchFunction():
            return function(*arguments, **(keywords or {}))


@spied
class Dispatching(Tensor):
    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), keywords=None):
        note("Dispatching", "__torch_dispatch__")
        return NotImplemented


@spied
class Array(np.ndarray):
    pass


@spied
class Own:
    shape, dtype, nbytes, state_dict = (3, 2), "float32", 24, None


class Opened(Dataset):
    """Opens its file when an attribute of it is read for the first time, and hands on what it lacks to the file."""

    def __init__(self, path, n):
        self.path, self.n = path, n

    def __len__(self):
        return self.n

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if "file" not in self.__dict__:
            self.__dict__["file"] = open(self.path, "rb", buffering=0)
        return getattr(self.__dict__["file"], name)

    def __getitem__(self, i):
        self.seek(8 * i)
        return int.from_bytes(self.read(8), "little")


# ---- cases ----

def workers(method, n=1):
    return dict(num_workers=n, multiprocessing_context=method)


def lists(n):
    return [Values(x=Own(), y=Rows([i])) for i in range(n)]


CASES = {
    "no_workers": lambda: DataLoader(Data(), batch_size=2),
    "shuffled": lambda: DataLoader(Data(), batch_size=2, shuffle=True, num_workers=1, worker_init_fn=Init()),
    "metaclass": lambda: DataLoader(WithMeta(), batch_size=2, num_workers=1),
    "many": lambda: DataLoader(Many(), batch_size=2, num_workers=1),
    "subset": lambda: DataLoader(Subset(Data(), Rows([1, 2, 3])), batch_size=2, num_workers=1),
    "persistent": lambda: DataLoader(Data(), batch_size=2, num_workers=2, persistent_workers=True, collate_fn=Collate()),
    "iterable": lambda: DataLoader(Stream(), batch_size=2, num_workers=1, collate_fn=Collate()),
    "iterable_no_workers": lambda: DataLoader(Stream(), batch_size=None),
    "sampler": lambda: DataLoader(Data(), batch_size=2, sampler=Order(), num_workers=1),
    "batch_sampler": lambda: DataLoader(Data(), batch_sampler=Batches(), num_workers=1, collate_fn=Collate()),
    "batch_sampler_many": lambda: DataLoader(Many(), batch_sampler=Batches()),
    "own_generator": lambda: DataLoader(Data(), batch_size=2, num_workers=1, sampler=RandomSampler(
        Data(), generator=torch.Generator())),
    "subclass": lambda: Loader(Data(), batch_size=2, num_workers=1),
    "property": lambda: Computed(Data(), batch_size=2, num_workers=1),
    "delegating": lambda: Delegating(DataLoader(Data(), batch_size=2, num_workers=1)),
    "rebuilt": lambda: DataLoader(DataLoader(Data(), batch_size=2).dataset, batch_size=3),
    "fork": lambda: DataLoader(Data(), batch_size=2, collate_fn=Collate(), **workers("fork", 2)),
    "spawn": lambda: DataLoader(Data(), batch_size=2, collate_fn=Collate(), worker_init_fn=Init(), **workers("spawn")),
    "forkserver": lambda: DataLoader(Data(), batch_sampler=Batches(), collate_fn=Collate(), **workers("forkserver")),
    "tensors": lambda: DataLoader([torch.zeros(3).as_subclass(Tensor)] * 4, batch_size=None, collate_fn=lambda batch: batch),
    "dispatching": lambda: DataLoader([torch.zeros(3).as_subclass(Dispatching)] * 4, batch_size=None,
                                      collate_fn=lambda batch: batch),
    "arrays": lambda: DataLoader([np.zeros(3).view(Array)] * 4, batch_size=None, collate_fn=lambda batch: batch),
    "any_batches": lambda: lists(4),
    "any_rows": lambda: Rows(lists(3)),
    "any_iterator": Items,
    "any_saved": Saved,
    "any_stream": lambda: Stream(),
    "any_sequence": lambda: Delegating(Rows([Own(), Tensor(), Array((2,))])),
}
if StatefulDataLoader is not None:
    CASES.update(stateful=lambda: StatefulDataLoader(Data(), batch_size=2, num_workers=1),
                 stateful_iterable=lambda: StatefulDataLoader(SavedStream(), batch_size=2, num_workers=1, collate_fn=Collate()),
                 stateful_no_workers=lambda: StatefulDataLoader(SavedStream(), batch_size=2, collate_fn=Collate()))


def loop(mode, case):
    loader = CASES[case]()
    if mode != "plain":
        import weir
        made, loader = loader, weir.watch(loader, every=0, headroom=mode == "headroom")
        assert loader is made or not issubclass(type(made), DataLoader)
    for epoch in range(2):
        for batch in loader:
            batch = None
        if case.startswith("stateful"):
            loader.state_dict()
    if case.startswith("any"):
        str(loader), repr(loader), loader == 3, list(loader), next(iter(loader), None)


def wrong_items(mode, path):
    """How many items of a file that is opened by the first read of an attribute are another item's."""
    with open(path, "wb") as file:
        file.write(b"".join(i.to_bytes(8, "little") for i in range(20000)))
    loader = DataLoader(Opened(path, 20000), batch_size=50, num_workers=4)
    if mode != "plain":
        import weir
        loader = weir.watch(loader, every=0)
    wrong = int((torch.cat(list(loader)) != torch.arange(20000)).sum())
    assert "file" not in vars(loader.dataset)  # it is opened in each worker
    return wrong


if __name__ == "__main__":
    mode, folder = sys.argv[1:3]
    for case in sys.argv[3:] or CASES:
        os.environ["CALLS"] = os.path.join(folder, case)
        loop(mode, case)
    print("WRONG", wrong_items(mode, os.path.join(folder, "opened")))
