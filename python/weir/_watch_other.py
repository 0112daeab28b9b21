"""weir.watch for iterables that are no DataLoader: waits and steps, and headroom.

Running ahead of the loop must not show. An iterable may draw from the global random generators, and may reuse the memory of
earlier batches; both are observed before the first window."""
import collections
import sys
import threading
import time

from ._watch_headroom import MOST, Epoch, Headroom, free_bytes, random_states
from ._watch_loop import Requests
from ._watch_static import (attribute, full_name, in_class, is_a, is_tensor, module_of, name_of, of_array, one_of,
                            parts_of, torch_alone)

_VALUES = (int, float, complex, bool, str, bytes, type(None))
# Arrays that nobody can write, by class and the beginning of its module.
_IMMUTABLE = (("EagerTensor", "tensorflow"), ("ArrayImpl", "jaxlib"), ("ArrayImpl", "jax"))
_PATIENCE_S = 2.0  # for a batch while earlier ones are kept


def wrapper(iterable, watched):
    """Stands for an iterable, with those special methods that its type has."""
    names = tuple(name for name in _SPECIAL
                  if not one_of(in_class(type(iterable), name), (None, vars(object).get(name))))
    if names not in _classes:
        _classes[names] = type("Iterable", (Iterable,), {name: _SPECIAL[name] for name in names})
    return _classes[names](iterable, watched)


def _itself(iterable):
    return iterable


class Iterable:
    """Stands for an iterable. Attributes are those of the iterable; a copy is one of the iterable."""

    def __init__(self, iterable, watched):
        self._weir_iterable, self._weir_watched, self._weir_epoch = iterable, watched, None

    def __iter__(self):
        return self._weir_begin(iter)

    def _weir_begin(self, iterator_of):
        """An epoch of the iterator that a function makes."""
        watched = self._weir_watched
        watched.epoch_began(self._weir_iterable)
        watched._set("any_iterable", 1)
        watched.sample()
        try:
            iterator = iterator_of(self._weir_iterable)
            requests = Requests(watched, iterator)
            if iterator is self._weir_iterable and requests.held is not None:
                requests.held = self._weir_epoch_of(requests.held)
            return Iterator(iterator, requests)
        except BaseException:
            watched.epoch_ended(False)
            raise

    def _weir_epoch_of(self, new):
        """The epoch of an iterator that is its own iterable, such as a generator: the same one however many loops use it,
        so that a batch that was held back when a loop ended goes to the next loop."""
        if self._weir_epoch is None or self._weir_epoch.is_over:
            self._weir_epoch, new.is_own = new, True
        return self._weir_epoch

    def __getattr__(self, name):
        if name.startswith("_weir_"):
            raise AttributeError(name)
        return getattr(self._weir_iterable, name)

    def __setattr__(self, name, value):
        if name.startswith("_weir_"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._weir_iterable, name, value)

    def __delattr__(self, name):
        delattr(self._weir_iterable, name)

    def __reduce_ex__(self, protocol):
        return _itself, (self._weir_iterable,)


def _next(self):
    iterator = self.__dict__.get("_weir_iterator")
    if iterator is None:
        iterator = self._weir_iterator = self._weir_begin(_itself)
    return next(iterator)


def _forwards(name):
    """A special method of the iterable, found as Python finds it: in its class."""
    def special(self, *args, **keywords):
        iterable = self._weir_iterable
        found = in_class(type(iterable), name)
        bind = in_class(type(found), "__get__")
        return (found if bind is None else bind(found, iterable, type(iterable)))(*args, **keywords)
    return special


_SPECIAL = {name: _forwards(name) for name in (
    "__len__", "__length_hint__", "__bool__", "__getitem__", "__setitem__", "__delitem__", "__contains__", "__reversed__",
    "__enter__", "__exit__", "__call__", "__eq__", "__hash__", "__repr__", "__str__")}
_SPECIAL["__next__"] = _next
_classes = {}  # names of special methods -> class


class Iterator:
    """An iterator whose requests are timed."""

    def __init__(self, iterator, requests):
        self._weir_iterator, self._weir_requests = iterator, requests

    def __iter__(self):
        made = iter(self._weir_iterator)
        return self if made is self._weir_iterator else Iterator(made, self._weir_requests)

    def __next__(self):
        requests = self._weir_requests
        if not requests.is_open:
            return next(self._weir_iterator)
        try:
            return requests.next(self._weir_iterator, next)
        except StopIteration:
            requests.end(True)
            raise

    def __getattr__(self, name):
        if name.startswith("_weir_"):
            raise AttributeError(name)
        return getattr(self._weir_iterator, name)


# ---- the memory of a batch ----

class _Unseen(Exception):
    """The name of a type whose memory cannot be seen."""


def _span(device, start, shape, strides, size):
    """(device, first byte, end) of a strided array, strides in bytes."""
    if 0 in shape:
        return device, 0, 0
    ends = [stride * (n - 1) for n, stride in zip(shape, strides)]
    return (device, start + sum(min(end, 0) for end in ends), start + sum(max(end, 0) for end in ends) + size)


def _of_tensor(tensor):
    methods = sys.modules["torch"].Tensor  # not those of the program's own class
    layout = of_array(tensor, "layout")
    if str(layout) != "torch.strided":
        raise _Unseen(full_name(tensor) if layout is None else "a {} tensor".format(layout))
    with torch_alone():
        size, start, strides = methods.element_size(tensor), methods.data_ptr(tensor), methods.stride(tensor)
    return _span(str(of_array(tensor, "device")), start, of_array(tensor, "shape"), [size * stride for stride in strides], size)


def _of_array(about, device):
    """about: a dict as in __array_interface__."""
    if about["typestr"][1] == "O" or not isinstance(about.get("data"), tuple):
        raise _Unseen("an array of objects")
    shape, strides, size = about["shape"], about.get("strides"), int(about["typestr"][2:])
    if strides is None:
        strides = [size]
        for n in reversed(shape[1:]):
            strides.insert(0, strides[0] * n)
    return _span(device, about["data"][0], shape, strides, size)


def _is_value(part):
    """Whether nobody can write into it."""
    kind, numpy = type(part), sys.modules.get("numpy")
    return one_of(kind, _VALUES) or (hasattr(numpy, "generic") and is_a(part, numpy.generic)) or any(
        name_of(kind) == name and module_of(kind).startswith(module) for name, module in _IMMUTABLE)


def _of_part(part):
    if is_tensor(part):
        return _of_tensor(part)
    for name, device in (("__cuda_array_interface__", "cuda"), ("__array_interface__", "cpu")):
        about = of_array(part, name)
        if about is not None:
            return _of_array(about, device)
    raise _Unseen(full_name(part))


def _fields_of(batch):
    """The values of a dataclass's fields, or None."""
    fields = in_class(type(batch), "__dataclass_fields__")
    return None if fields is None else [attribute(batch, name, _Unseen) for name in fields]


def memory_of(batch, found=None):
    """What of a batch another one may overwrite: {(device, first byte, end)}. Raises _Unseen."""
    found = set() if found is None else found
    if _is_value(batch):
        return found
    parts = parts_of(batch)
    if parts is None:
        parts = _fields_of(batch)
    if parts is None:
        place = _of_part(batch)
        if place[1] < place[2]:
            found.add(place)
        return found
    if not is_a(batch, tuple):
        found.add(("object", id(batch), id(batch) + 1))
    for part in parts:
        memory_of(part, found)
    return found


def overlap(one, two):
    return any(a[0] == b[0] and a[1] < b[2] and b[1] < a[2] for a in one for b in two)


def most_held(memory):
    """How many batches with this memory may be held back: they take at most a twentieth of what is free."""
    sizes, most = collections.Counter(), MOST
    for device, first, end in memory:
        sizes[device] += end - first
    for device, size in sizes.items():
        if device.startswith("cuda:"):
            most = min(most, sys.modules["torch"].cuda.mem_get_info(device)[0] // 20 // size)
        elif device == "cpu":
            most = min(most, free_bytes(False) // size)
    return most


# ---- headroom ----

def _gpu_state():
    """The state of the current GPU's random generator."""
    cuda = sys.modules.get("torch.cuda")
    return cuda.get_rng_state().numpy().tobytes() if cuda is not None and cuda.is_initialized() else None


def _states():
    return random_states(), _gpu_state()


class OtherHeadroom(Headroom):
    """The windows of any iterable."""

    def __init__(self, watched):
        super().__init__(watched)
        self._told = False

    def forget(self):
        super().forget()
        self.is_safe = False     # no batch used the memory of those before it
        self.loop_draws = False  # from a global random generator of the CPU

    def start(self, iterator, workers):
        name, found = name_of(type(iterator)), attribute(iterator, "state_dict", self)
        if found is not self or in_class(type(iterator), "state_dict", self) is not self:
            self.refuse("the state_dict of {} would be ahead of training".format(name))
        elif in_class(type(iterator), "__getattr__") is not None:
            self.refuse("{} may have a state_dict, which would be ahead of training".format(name))
        return None if self.refused else OtherEpoch(self)

    def may_run_ahead(self, is_own):
        """After an epoch without draws; before that in an iterator that is its own iterable, which may never end, if the
        loop would not notice draws either."""
        if self.observed or not is_own or not self.loop_draws:
            return self.observed or is_own
        if not self._told:
            self._told = True
            self.warn("headroom cannot be measured before an epoch has ended: the loop draws from a global random generator, "
                      "and so might the iterable")
        return False


class OtherEpoch(Epoch):
    """One epoch of any iterable."""

    def __init__(self, headroom):
        super().__init__(headroom)
        self.is_own = self.is_over = False
        self._kept = []      # (memory, batch) while memory is observed
        self._after = None   # states of the random generators after the last request
        self._longest_s, self._let_go, self._limit = 0.0, 0, MOST

    def limit(self, batch):
        return self._limit

    def room(self, iterator):
        headroom = self.headroom
        return self.most if headroom.is_safe and headroom.may_run_ahead(self.is_own) else 0

    def step(self, requests, iterator, step):
        headroom = self.headroom
        if headroom.refused or (headroom.is_safe and headroom.observed):
            self._kept = []
            return requests.ordinary(iterator, step)
        before = _states()
        headroom.loop_draws |= self._after is not None and self._after[0] != before[0]
        try:
            batch = self._patient(requests, iterator, step)
        finally:
            self._after = _states()
            if self.delivered > 0 and self._after != before:  # the first batch is never held back
                headroom.refuse("the iterable draws from a global random generator")
        if not headroom.is_safe and not headroom.refused:
            self._see_memory(batch)
        return batch

    def _see_memory(self, batch):
        """Keeps as many batches as would be held back, and compares their memory with that of this batch."""
        try:
            memory = memory_of(batch)
            self._limit = self._limit if self._kept else most_held(memory)
        except Exception as error:
            self.headroom.refuse("the memory of batches cannot be seen: {}".format(error))
            return
        if any(overlap(memory, earlier) for earlier, _ in self._kept):
            self.headroom.refuse("the iterable reuses the memory of earlier batches")
        self._kept.append((memory, batch))
        if 0 < self.most < len(self._kept) - 1:
            self.headroom.is_safe, self._kept = True, []

    def _patient(self, requests, iterator, step):
        """A request. An iterable that waits until earlier batches are let go of gets them."""
        if not self._kept:
            return requests.ordinary(iterator, step)
        timer = threading.Timer(max(_PATIENCE_S, 10 * self._longest_s), self._drop_kept)
        timer.daemon = True
        began = time.perf_counter()
        timer.start()
        try:
            return requests.ordinary(iterator, step)
        finally:
            timer.cancel()
            self._longest_s = max(self._longest_s, time.perf_counter() - began)
            if self._let_go > 1:
                self.headroom.refuse("the iterable may block until earlier batches are released")

    def _drop_kept(self):
        self._kept, self._let_go = [], self._let_go + 1

    def _collect(self, requests, iterator, step, how_many):
        before, self._after = _states(), None
        try:
            return super()._collect(requests, iterator, step, how_many)
        finally:
            if _states() != before:
                self.headroom.refuse("the iterable drew from a global random generator for a batch that was held back; random "
                                     "numbers of the loop may differ from now on")

    def end(self, complete):
        self.is_over = complete
        self.headroom.observed |= complete and self.delivered > 0
        held, self._kept = self.held, []
        super().end(complete)
        if self.is_own:
            self.held = held
