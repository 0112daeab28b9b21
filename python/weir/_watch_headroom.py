"""How fast training is without waits for data: some batches are held back, and handed out at once.

No batch is replayed, dropped or reordered. The sampler advances earlier than it would, by as many batches as are held, so a
sampler that draws from the global random generators during an epoch is refused: the loop's own draws would change.
Iterables that are no DataLoader: _watch_other."""
import collections
import os
import random
import resource
import sys

from ._watch_static import attributes, first_size, in_class, module_of, name_of, sizes_of
from ._watch_warn import warn

MOST, _LEAST = 32, 4       # batches in a window
_WARM = 12                  # batches of an epoch before a window
_BETWEEN = 30               # windows' lengths between windows
_MOST_BYTES = 1 << 30

# Samplers of torch that draw from the global generators before the first batch at most.
_KNOWN = ("SequentialSampler", "RandomSampler", "WeightedRandomSampler", "SubsetRandomSampler", "DistributedSampler",
          "_InfiniteConstantSampler", "BatchSampler")


def is_known(sampler):
    """Whether a sampler is torch's own."""
    kind = type(sampler)
    if name_of(kind) not in _KNOWN or not module_of(kind).startswith("torch.utils.data"):
        return False
    return name_of(kind) != "BatchSampler" or is_known(sampler.sampler)


def _draws_from_own_generator(sampler):
    """Whether a RandomSampler draws from the program's generator again and again."""
    own = attributes(attributes(sampler).get("sampler", sampler))
    return is_known(sampler) and own.get("generator") is not None and \
        (own.get("replacement") is True or own.get("_num_samples") is not None)


def random_states():
    """The states of all global random generators of the CPU."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    state = numpy.random.get_state() if hasattr(numpy, "random") else None
    return (torch.get_rng_state().numpy().tobytes() if hasattr(torch, "get_rng_state") else None, random.getstate(),
            state and (state[1].tobytes(), state[2:]))


def free_bytes(shared):
    """Memory that held batches may take. shared: they are in shared memory."""
    limit = _MOST_BYTES
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    limit = min(limit, int(line.split()[1]) * 1024 // 20)
        if shared:
            system = os.statvfs("/dev/shm")
            limit = min(limit, system.f_bavail * system.f_frsize // 4)
    except (OSError, ValueError):
        pass
    return limit


def most_held(batch):
    """How many batches like this may be held back."""
    parts = sizes_of(batch, [])
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    most = MOST if files == resource.RLIM_INFINITY or not parts else min(MOST, files // 4 // len(parts))
    return most if not sum(parts) else min(most, free_bytes(True) // sum(parts))


class Headroom:
    """The windows of one watched loader."""

    def __init__(self, watched):
        self.watched = watched
        self.since = _BETWEEN * MOST  # batches since the last window
        self.refused = False
        self.forget()

    def forget(self):
        """Another loader continues: what was observed does not hold for it."""
        self.observed = 0      # batches of an epoch during which an unknown sampler has drawn nothing
        self.complete = None   # whether the loop took all batches of the last epoch

    def refuse(self, why):
        if not self.refused:
            self.refused = True
            self.warn("headroom cannot be measured: " + why)

    def warn(self, text):
        warn("{}: {}".format(self.watched.name, text))

    def start(self, iterator, workers):
        """What one epoch needs, or None."""
        if self.refused:
            return None
        if workers == 0:
            self.refuse("with num_workers=0 the loop loads each batch itself")
        elif in_class(type(iterator), "state_dict") is not None:
            self.refuse("the loader's state_dict would be ahead of training; use a DataLoader")
        elif "_tasks_outstanding" not in attributes(iterator):
            self.refuse("unsupported torch version")
        elif self.complete is False and iterator._persistent_workers:
            self.refuse("the loop ends epochs early, and persistent workers would be ahead of it")
        elif _draws_from_own_generator(iterator._index_sampler):
            self.refuse("the sampler draws from the generator it was given during the epoch")
        else:
            return LoaderEpoch(self, iterator)
        return None


class Epoch:
    """One epoch: batches go through until a window collects some."""

    def __init__(self, headroom):
        self.headroom, self.watched = headroom, headroom.watched
        self.delivered, self.held, self.in_window = 0, collections.deque(), False
        self.most = 0

    def step(self, requests, iterator, step):
        """A request outside of windows."""
        return requests.ordinary(iterator, step)

    def room(self, iterator):
        """How many batches may be held back now."""
        return self.most

    def limit(self, batch):
        """How many batches like this may be held back at all."""
        return most_held(batch)

    def next(self, requests, iterator, step):
        if self.held:
            return self._hand_out(requests, iterator)
        if self.in_window:
            self.in_window = False
            self._phase(0)
        how_many = self._window(iterator)
        if how_many >= _LEAST:
            return self._collect(requests, iterator, step, how_many)
        batch = self.step(requests, iterator, step)
        self.delivered += 1
        self.headroom.since += 1
        if self.delivered == 1:
            self.most = self.limit(batch)
            if self.most < _LEAST:
                self.headroom.refuse("{} batches take too much memory".format(_LEAST))
        return batch

    def _phase(self, number):
        self.watched.library.headroom(self.watched.number, number)

    def _window(self, iterator):
        """How many batches to hold back now; 0 if this is no time for a window."""
        headroom = self.headroom
        if headroom.refused or self.delivered < _WARM or headroom.since < _BETWEEN * self.most:
            return 0
        return min(self.most, self.room(iterator))

    def _collect(self, requests, iterator, step, how_many):
        """Waits for the batches of a window, and returns the one that is due."""
        self.headroom.since = 0
        self._phase(2)
        requests.begin(iterator)
        items = 0
        try:
            batch = step(iterator)
            self.delivered += 1
            items = requests.size or first_size(batch)
            for _ in range(how_many):
                try:
                    self.held.append((step(iterator), None))
                except Exception as error:  # the loop gets it when it is due
                    self.held.append((None, error))
                    break
                except BaseException:  # Ctrl-C, at once; a loop that goes on gets the batch that is due
                    self.held.appendleft((batch, None))
                    self.delivered, items = self.delivered - 1, 0
                    raise
        except BaseException:
            self._phase(-1)
            raise
        finally:
            self.watched.request_end(items)
        return batch

    def _hand_out(self, requests, iterator):
        if not self.in_window:
            self.in_window = True
            self._phase(1)
        batch, error = self.held.popleft()
        if error is not None:
            self.in_window = False
            self._phase(0)
        self.watched.request_begin(len(self.held) + 1, 1, -1)
        if error is not None:
            self.watched.request_end(0)
            raise error
        self.delivered += 1
        self.watched.request_end(requests.size or first_size(batch))
        return batch

    def end(self, complete):
        """The loop is over."""
        if self.in_window or self.held:
            self.held = collections.deque()
            self._phase(0 if self.in_window else -1)
            self.in_window = False


class LoaderEpoch(Epoch):
    """An epoch of a DataLoader's worker processes. How many batches it has shows when one has ended: a length of the
    program's own class is not asked for."""

    def __init__(self, headroom, iterator):
        super().__init__(headroom)
        is_map = iterator._dataset_kind == 0
        self.observes = is_map and not is_known(iterator._index_sampler)
        self.batches = headroom.observed if is_map and headroom.observed else None
        self.is_first = iterator._persistent_workers and not headroom.complete

    def room(self, iterator):
        """Persistent workers keep what they draw ahead: no window before a loop has taken all batches of an epoch."""
        if self.is_first or (self.observes and not self.headroom.observed):
            return 0
        return self.most if self.batches is None else self.batches - self.delivered - iterator._tasks_outstanding - 2

    def end(self, complete):
        super().end(complete)
        self.headroom.complete = complete
        if complete and not self.headroom.refused:
            self.headroom.observed = self.delivered

    def step(self, requests, iterator, step):
        """An unknown sampler must not draw random numbers."""
        if not self.observes or self.headroom.observed:
            return requests.ordinary(iterator, step)
        before = random_states()
        try:
            return requests.ordinary(iterator, step)
        finally:
            if random_states() != before:
                self.headroom.refuse("the sampler draws from a global random generator during the epoch")


class Replay:
    """An epoch of a throw-away run: its first batch again and again, as often as the sampler has indexes for one."""

    def __init__(self, watched, iterator):
        self.watched, self.batch, self.left = watched, None, None
        self.is_map = attributes(iterator).get("_dataset_kind", 1) == 0

    def next(self, requests, iterator, step):
        if self.batch is None:
            self.batch = requests.ordinary(iterator, step)
            self.left = attributes(iterator).get("_tasks_outstanding", 0) if self.is_map else 200
            self.watched.library.headroom(self.watched.number, 1)
            return self.batch
        if not self._has_next(iterator):
            self.watched.library.headroom(self.watched.number, 0)
            self.watched.request_begin(-1, -1, -1)
            self.watched.request_end(0)
            raise StopIteration
        self.watched.request_begin(-1, 1, -1)
        self.watched.request_end(requests.size or first_size(self.batch))
        return self.batch

    def _has_next(self, iterator):
        if self.left > 0:
            self.left -= 1
            return True
        try:
            return self.is_map and (iterator._next_index(), True)[1]
        except StopIteration:
            return False

    def end(self, complete):
        pass


class ReplayOnly:
    """In the place of a Headroom: every epoch replays its first batch."""

    def __init__(self, watched):
        self.watched = watched

    def forget(self):
        pass

    def start(self, iterator, workers):
        return Replay(self.watched, iterator)
