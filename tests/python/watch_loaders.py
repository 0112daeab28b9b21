"""Loaders of many constructions, whose batches, exceptions and random numbers watch_tests.py compares with and without a watch.

    watch_loaders.py plain|watch|headroom|windows|all [CASE...]    prints a JSON object: case -> what the training loop saw

headroom: as users get it; windows: with windows of headroom in these short loops, counted under the key "windows"."""
import copy
import io
import json
import os
import pickle
import random
import sys
import tempfile
import threading
import warnings

import numpy as np
import torch
from torch.utils.data import (BatchSampler, ConcatDataset, DataLoader, Dataset, IterableDataset, RandomSampler,
                              SequentialSampler, Subset, TensorDataset, WeightedRandomSampler, get_worker_info)

MODE = sys.argv[1] if __name__ == "__main__" else "plain"
case = None  # the name of the one that runs


def watch(loader, **options):
    if MODE in ("plain", "all"):
        return loader
    import weir
    if MODE == "windows":  # else loaders of this line continue each other, with one window for all
        options.setdefault("name", case)
    watched = weir.watch(loader, every=0, headroom=MODE in ("headroom", "windows"), **options)
    assert (watched is loader) == isinstance(loader, DataLoader)
    return watched


# ---- datasets ----

class Numbers(Dataset):
    """Items with random numbers of each library, drawn in the worker."""

    def __init__(self, n=40, fails=None):
        self.n, self.fails = n, fails

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i == self.fails:
            raise KeyError("item", i)
        info = get_worker_info()
        assert info is None or type(info.dataset) in (Numbers, Batched, Reading, Subset, ConcatDataset)
        return torch.tensor([i, random.random(), np.random.rand(), float(torch.rand(()))], dtype=torch.float64)


class Batched(Numbers):
    def __getitems__(self, indices):
        return [super(Batched, self).__getitem__(i) * 2 for i in indices]


class Reading(Numbers):
    """Reads files by open and np.load, whose results must be what they are without a watch."""

    def __init__(self, folder):
        super().__init__()
        self.folder, self.opens = folder, open
        np.save(os.path.join(folder, "a.npy"), np.arange(40.0))

    def __getitem__(self, i):
        path = os.path.join(self.folder, "a.npy")
        with self.opens(path, "rb") as one, open(path, mode="rb") as two, io.open(path, "rb", buffering=0) as three:
            sizes = [len(file.read()) for file in (one, two, three)]
        return torch.tensor([np.load(path, mmap_mode=None)[i], *sizes], dtype=torch.float64)


class Stream(IterableDataset):
    def __init__(self, n=23, fails=False):
        self.n, self.fails = n, fails

    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        for i in range(first, self.n, step):
            if self.fails and i == 7:
                raise OSError(5, "stream")
            yield torch.tensor([i, random.random()], dtype=torch.float64)


class StatefulStream(IterableDataset):
    """An iterator that torchdata saves and loads."""

    def __init__(self, n=40):
        self.n, self.i = n, 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.i >= self.n:
            self.i = 0
            raise StopIteration
        self.i += 1
        return torch.tensor([self.i])

    def state_dict(self):
        return {"i": self.i}

    def load_state_dict(self, state):
        self.i = state["i"]


class Lazy(torch.utils.data.Sampler):
    """Draws from the global generator while the loop runs."""

    def __init__(self, n=40):
        self.n = n

    def __len__(self):
        return self.n

    def __iter__(self):
        for _ in range(self.n):
            yield int(torch.randint(self.n, ()))


class CountingSampler(BatchSampler):
    """Its length is that of an epoch which it draws."""

    def __len__(self):
        return sum(1 for _ in self)


class MyLoader(DataLoader):
    def __iter__(self):
        for batch in super().__iter__():
            yield batch + 1


def pairs(items):
    return {"x": torch.stack(items), "n": len(items), "r": torch.rand(())}


def init(worker):
    random.seed(worker)


def fails_in_worker_1(worker):
    if worker == 1:
        raise RuntimeError("init failed")


# ---- iterables that are no DataLoader ----

class Batches:
    """Batches of an epoch, from memory of their own or a buffer that is used again. draws: "first" or "each" batch."""

    def __init__(self, n=150, depth=0, draws=None, fails=None):
        self.n, self.draws, self.fails = n, draws, fails
        self.buffers = np.zeros((depth, 4)) if depth else None

    def __iter__(self):
        for i in range(self.n):
            if i == self.fails:
                raise KeyError("batch", i)
            drawn = random.random() if self.draws == "each" or (self.draws == "first" and i == 0) else 0
            if self.buffers is None:
                yield {"x": torch.full((4,), i + drawn), "n": i}
                continue
            buffer = self.buffers[i % len(self.buffers)]
            buffer[:] = i + drawn
            yield buffer


def again_and_again(iterable):
    """An iterator that several loops share, which draw nothing."""
    seen = [plain(batch) for batch, _ in zip(iterable, range(75))]
    for _ in range(4):
        for n, batch in enumerate(iterable):
            seen.append(plain(batch))
            if n == 17:
                break
    return [seen, [[plain(a), plain(b)] for a, b in zip(iterable, iterable)]]


# ---- the loop ----

def plain(value):
    if isinstance(value, torch.Tensor):
        return [str(value.dtype), value.tolist()]
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return repr(value)


def without_frames(text):
    """An exception's text without the lines of a traceback, which name weir's frames too."""
    return [line for line in str(text).split("\n") if line and not line.startswith(" ")]


def train(loader, epochs=2, stop=None):
    """What a loop sees: batches, exceptions, and random numbers of its own between them."""
    seen = []
    for _ in range(epochs):
        try:
            for n, batch in enumerate(loader):
                seen.append([plain(batch), random.random(), float(np.random.rand()), float(torch.rand(()))])
                if n == stop:
                    break
            n = batch = None
        except Exception as error:
            seen.append([type(error).__name__, without_frames(error)])
    return seen


CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def simple(name, make, **options):
    CASES[name] = lambda: train(watch(make()), **options)


simple("map", lambda: DataLoader(Numbers(), batch_size=4))
simple("map_shuffled", lambda: DataLoader(Numbers(), batch_size=4, shuffle=True))
simple("workers_1", lambda: DataLoader(Numbers(), batch_size=4, num_workers=1))
simple("workers_2_shuffled", lambda: DataLoader(Numbers(), batch_size=4, num_workers=2, shuffle=True))
simple("workers_3_drop_last", lambda: DataLoader(Numbers(), batch_size=3, num_workers=3, drop_last=True))
simple("iterable", lambda: DataLoader(Stream(), batch_size=4))
simple("iterable_workers", lambda: DataLoader(Stream(), batch_size=4, num_workers=3))
simple("iterable_unbatched", lambda: DataLoader(Stream(), batch_size=None, num_workers=2))
simple("iterable_fails", lambda: DataLoader(Stream(fails=True), batch_size=4, num_workers=2))
simple("batch_sampler", lambda: DataLoader(
    Numbers(), batch_sampler=BatchSampler(SequentialSampler(range(40)), 3, False), num_workers=2))
simple("counting_sampler", lambda: DataLoader(
    Numbers(), batch_sampler=CountingSampler(RandomSampler(range(40)), 3, False), num_workers=2))
simple("unbatched", lambda: DataLoader(Numbers(9), batch_size=None, num_workers=2))
simple("indices_as_sampler", lambda: DataLoader(TensorDataset(torch.arange(40)), batch_size=None, num_workers=1,
                                                sampler=BatchSampler(RandomSampler(range(40)), 4, False)))
simple("collate", lambda: DataLoader(Numbers(), batch_size=4, collate_fn=pairs, num_workers=2))
simple("fork", lambda: DataLoader(Numbers(), batch_size=4, num_workers=2, multiprocessing_context="fork"))
simple("spawn", lambda: DataLoader(Numbers(), batch_size=4, num_workers=2, multiprocessing_context="spawn"), epochs=1)
simple("forkserver", lambda: DataLoader(Numbers(), batch_size=4, num_workers=2, collate_fn=pairs,
                                        multiprocessing_context="forkserver"), epochs=1)
simple("persistent", lambda: DataLoader(Numbers(), batch_size=4, num_workers=2, persistent_workers=True), epochs=3)
simple("persistent_iterable", lambda: DataLoader(Stream(), batch_size=4, num_workers=2, persistent_workers=True), epochs=3)
simple("persistent_early_break", lambda: DataLoader(Numbers(), batch_size=4, num_workers=2, persistent_workers=True),
       epochs=3, stop=4)
simple("pin_memory", lambda: DataLoader(Numbers(), batch_size=4, num_workers=2, pin_memory=True))
simple("init", lambda: DataLoader(Numbers(), batch_size=4, num_workers=2, worker_init_fn=init))
simple("init_fails", lambda: DataLoader(Numbers(), batch_size=4, num_workers=2, worker_init_fn=fails_in_worker_1))
simple("generator", lambda: DataLoader(Numbers(), batch_size=4, num_workers=2, shuffle=True,
                                       generator=torch.Generator().manual_seed(5)))
simple("lazy_sampler", lambda: DataLoader(Numbers(), batch_size=4, num_workers=2, sampler=Lazy()))
simple("replacement", lambda: DataLoader(Numbers(), batch_size=4, num_workers=2, sampler=RandomSampler(
    range(40), replacement=True, num_samples=64)))
simple("weighted", lambda: DataLoader(Numbers(), batch_size=4, num_workers=2, sampler=WeightedRandomSampler(
    [1.0] * 40, 48)))
simple("timeout", lambda: DataLoader(Numbers(), batch_size=4, num_workers=2, timeout=60))
simple("prefetch_1", lambda: DataLoader(Numbers(), batch_size=2, num_workers=2, prefetch_factor=1))
simple("prefetch_4", lambda: DataLoader(Numbers(), batch_size=2, num_workers=2, prefetch_factor=4))
simple("subclass", lambda: MyLoader(Numbers(), batch_size=4, num_workers=1))
simple("subset_concat", lambda: DataLoader(Subset(ConcatDataset([Numbers(20), Numbers(20)]), range(3, 37)), batch_size=4,
                                           num_workers=2))
simple("getitems", lambda: DataLoader(Batched(), batch_size=4, num_workers=2))
simple("list", lambda: DataLoader([3, 1, 4, 1, 5, 9, 2, 6], batch_size=3, num_workers=1))
simple("fails", lambda: DataLoader(Numbers(fails=21), batch_size=4, num_workers=2))
simple("fails_without_workers", lambda: DataLoader(Numbers(fails=21), batch_size=4))
simple("early_break", lambda: DataLoader(Numbers(), batch_size=4, num_workers=2, shuffle=True), epochs=3, stop=4)
simple("long", lambda: DataLoader(Numbers(400), batch_size=2, num_workers=2, shuffle=True), epochs=3)


simple("batches", lambda: Batches(), epochs=3)
simple("batches_fail", lambda: Batches(fails=147), epochs=3)
simple("batches_early_break", lambda: Batches(), epochs=3, stop=60)
simple("batches_drawn_first", lambda: Batches(draws="first"), epochs=3)
simple("batches_drawn_each", lambda: Batches(draws="each"), epochs=3)
simple("batches_of_one_buffer", lambda: Batches(depth=1), epochs=3)
simple("batches_of_20_buffers", lambda: Batches(depth=20), epochs=3)
simple("batches_of_100_buffers", lambda: Batches(depth=100), epochs=3)
simple("a_generator", lambda: iter(Batches()))
CASES["shared_generator"] = lambda: again_and_again(watch(iter(Batches(400))))
CASES["shared_generator_fails"] = lambda: train(watch(iter(Batches(150, fails=120))), 3)


@case
def in_order_false():
    if not hasattr(DataLoader(Numbers()), "in_order"):
        return "absent"
    return train(watch(DataLoader(Numbers(), batch_size=4, num_workers=1, in_order=False)))


@case
def reading():
    with tempfile.TemporaryDirectory() as folder:
        seen = [train(watch(DataLoader(Reading(folder), batch_size=4, num_workers=n))) for n in (0, 1)]
        return [seen, len(open(os.path.join(folder, "a.npy"), "rb").read())]


@case
def two_at_once():
    one = watch(DataLoader(Numbers(), batch_size=4, num_workers=1, shuffle=True))
    two = watch(DataLoader(Numbers(20), batch_size=2, num_workers=1))
    return [[plain(a), plain(b), random.random()] for a, b in zip(one, two)]


@case
def twice_at_once():
    loader = watch(DataLoader(Numbers(), batch_size=4, num_workers=1, shuffle=True))
    return [[plain(a), plain(b), random.random()] for a, b in zip(loader, loader)]


@case
def on_another_thread():
    seen = []
    thread = threading.Thread(target=lambda: seen.extend(
        train(watch(DataLoader(Numbers(), batch_size=4, num_workers=1)), 1)))
    thread.start()
    thread.join()
    return seen


@case
def copied():
    loader = watch(DataLoader(Numbers(), batch_size=4, num_workers=1, collate_fn=pairs))
    first = train(loader, 1)
    return [first, train(copy.deepcopy(loader), 1), train(pickle.loads(pickle.dumps(loader)), 1),
            loader.collate_fn is pairs, type(loader.dataset).__name__, sorted(vars(loader))]


@case
def unwatched():
    watch(DataLoader(Numbers(), batch_size=4, num_workers=1))
    return train(DataLoader(Numbers(), batch_size=4, num_workers=1))


def stateful(dataset, workers, **options):
    try:
        from torchdata.stateful_dataloader import StatefulDataLoader
    except ImportError:
        return "torchdata is not installed"
    loader = watch(StatefulDataLoader(dataset, batch_size=4, num_workers=workers, **options))
    seen, state = [], None
    for n, batch in enumerate(loader):
        seen.append(plain(batch))
        if n == 3:
            state = loader.state_dict()
            break
    again = watch(StatefulDataLoader(dataset, batch_size=4, num_workers=workers, **options), name="again")
    again.load_state_dict(state)
    return [seen, repr(state), train(again, 1), repr(again.state_dict())]


for workers in (0, 2):
    CASES["stateful_%d" % workers] = lambda workers=workers: stateful(Numbers(), workers, shuffle=True)
    CASES["stateful_stream_%d" % workers] = lambda workers=workers: stateful(StatefulStream(), workers)
    CASES["stateful_plain_stream_%d" % workers] = lambda workers=workers: stateful(Stream(), workers)


def run(name):
    random.seed(1)
    np.random.seed(2)
    torch.manual_seed(3)
    seen = CASES[name]()
    return [seen, random.random(), float(np.random.rand()), float(torch.rand(()))]


def count_windows():
    """Makes windows of headroom as small and as frequent as can be. Returns a list that grows by one per window."""
    from weir import _watch_headroom
    _watch_headroom._WARM, _watch_headroom._LEAST, _watch_headroom._BETWEEN = 1, 1, 0
    collect, windows = _watch_headroom.Epoch._collect, []

    def counted(*arguments):
        windows.append(1)
        return collect(*arguments)
    _watch_headroom.Epoch._collect = counted
    return windows


def main():
    global case
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL = 0.2  # how long an epoch that has failed waits for its workers
    windows = count_windows() if MODE == "windows" else []
    seen, windows_of = {}, {}
    if MODE == "all":
        from weir import _watch
        _watch.watch_all(_watch.Options(every=0))
    for case in sys.argv[2:] or CASES:
        before = len(windows)
        seen[case] = run(case)
        windows_of[case] = len(windows) - before
    print(json.dumps(dict(seen, windows=windows_of) if MODE == "windows" else seen))


if __name__ == "__main__":
    main()
