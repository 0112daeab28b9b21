"""weir.watch for iterables that are no DataLoader: waits and steps alone."""
from ._watch_loop import first_size


class Iterable:
    """Stands for an iterable. Attributes are those of the iterable."""

    def __init__(self, iterable, watched):
        self._weir_iterable, self._weir_watched = iterable, watched

    def __iter__(self):
        watched = self._weir_watched
        watched.epoch_began(self._weir_iterable)
        watched._set("any_iterable", 1)
        try:
            return Iterator(iter(self._weir_iterable), watched)
        except BaseException:
            watched.epoch_ended(False)
            raise

    def __next__(self):
        iterator = self.__dict__.get("_weir_iterator")
        if iterator is None:
            iterator = self._weir_iterator = iter(self)
        return next(iterator)

    def __len__(self):
        return len(self._weir_iterable)

    def __getattr__(self, name):
        if name.startswith("_weir_"):
            raise AttributeError(name)
        return getattr(self._weir_iterable, name)


class Iterator:
    """An iterator whose requests are timed."""

    def __init__(self, iterator, watched):
        self._weir_iterator, self._weir_watched, self._weir_open = iterator, watched, True

    def __iter__(self):
        return self

    def __next__(self):
        watched, items = self._weir_watched, 0
        if not self._weir_open:
            return next(self._weir_iterator)
        watched.request_begin(-1, -1, -1)
        try:
            batch = next(self._weir_iterator)
            items = first_size(batch)
        except StopIteration:
            watched.request_end(0)
            self._weir_end(True)
            raise
        except BaseException:
            watched.request_end(0)
            raise
        watched.request_end(items)
        return batch

    def _weir_end(self, complete):
        if self._weir_open:
            self._weir_open = False
            self._weir_watched.epoch_ended(complete)

    def __del__(self):
        if "_weir_open" in self.__dict__:
            self._weir_end(False)

    def __getattr__(self, name):
        if name.startswith("_weir_"):
            raise AttributeError(name)
        return getattr(self._weir_iterator, name)
