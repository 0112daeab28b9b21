"""Replaces the functions of _watch_table by timed ones: where they are defined, and wherever a module has imported them.

A timed function passes arguments, results and exceptions through. Without a slot of its thread, timing does nothing."""
import copy
import functools
import sys
import threading
import time
import types

from . import _watch_import, _watch_table
from ._watch_library import INCLUSIVE, WORK
from ._watch_static import attribute, attributes, is_a, module_of, name_of, names_path, path_of

_UNTIMED_FOLDERS = (b"/proc/", b"/sys/", b"/dev/")
_CODE = (b".py", b".pyc", b".pyi")  # read for tracebacks and warnings, and by imports
_CONTAINERS = ("Compose", "Sequential", "RandomApply", "RandomChoice", "RandomOrder", "OneOf", "SomeOf")


class _Builtin:
    """A timed function in the place of a built-in one: like that, it is not bound to an instance as an attribute of a
    class."""

    def __init__(self, original, timed, hooks):
        self.__dict__.update(_hooks=hooks, __wrapped__=original, __name__=original.__name__, __doc__=original.__doc__,
                             __qualname__=original.__qualname__, __module__=original.__module__, _timed=timed)

    def __call__(self, *args, **keywords):
        return self._timed(*args, **keywords)

    def __getattr__(self, name):
        return getattr(self.__dict__["__wrapped__"], name)

    def __reduce__(self):
        """By name while it is in its place. The program may have kept it: then it becomes the original, which a copy is too."""
        return self.__name__ if self._hooks._active else (copy.copy, (self.__wrapped__,))

    def __repr__(self):
        return repr(self.__wrapped__)


def _hdf5_path(dataset):
    return sys.modules["h5py"].h5f.get_name(attributes(dataset)["_id"])


def _zarr_path(array):
    store = array.store if module_of(type(array)).startswith("zarr.") else None
    return path_of(attribute(store, "path") or attribute(store, "root"))


def _is_data(file):
    """Whether this names a file of data: not a number, and no file of the system or of Python."""
    path = path_of(file)
    if path is None:  # a path of the program's own class is not asked for its name
        return names_path(file)
    return not path.startswith(_UNTIMED_FOLDERS) and not path.endswith(_CODE) and b".dist-info/" not in path


class Hooks:
    """All replaced functions of this process, which can be put back and replaced again at little cost."""

    def __init__(self, library, segment):
        self._library, self._segment = library, segment
        self._places = []    # (module or class, its namespace, name, original, timed)
        self._timed = {}     # id of the original -> (original, timed)
        self._numbers = {}   # stage -> number, once a thread with a slot has asked
        self._active = 0     # fetches for which the functions are replaced
        self._switching = threading.Lock()
        self._known = set()
        self._ways = {_watch_table.CALL: self._call, _watch_table.OPEN: self._open, _watch_table.BY_PATH: self._by_path,
                      _watch_table.BY_CLASS: self._by_class, _watch_table.TILES: self._tiles,
                      _watch_table.HDF5: self._reads_from(_hdf5_path), _watch_table.ZARR: self._reads_from(_zarr_path)}
        self.fetching = 0    # identity of the thread that prepares a batch
        self.inside = -1     # the stage that is open on it

    # ---- stages ----

    def number(self, name, kind=WORK):
        """A stage's number; -1 is not kept, because the calling thread may have no slot yet."""
        number = self._numbers.get(name, -1)
        if number < 0:
            number = self._library.number(name, kind)
            if number >= 0:
                self._numbers[name] = number
        return number

    # ---- ways of timing ----

    def _call(self, original, stage, position):
        begin, end, path, numbers, ident = (self._library.begin, self._library.end, self._library.path, self._numbers,
                                            threading.get_ident)

        def timed(*args, **keywords):
            zone = numbers.get(stage, -1)
            if zone < 0:
                zone = self.number(stage)
            outer = self.inside if self.fetching == ident() else None
            if zone < 0 or outer == zone:  # no slot, or a part of a call that is timed
                return original(*args, **keywords)
            if position is not None and len(args) > position:
                name = path_of(args[position])
                if name is not None:
                    path(name)
            if outer is not None:
                self.inside = zone
            begin(zone)
            try:
                return original(*args, **keywords)
            finally:
                end()
                if outer is not None:
                    self.inside = outer
        return timed

    def _open(self, original, stage, position):
        timed = self._call(original, stage, position)

        def timed_open(file, mode="r", *args, **keywords):
            if self.fetching != threading.get_ident() or type(mode) is not str or mode.strip("rbtU") or not _is_data(file):
                return original(file, mode, *args, **keywords)
            return timed(file, mode, *args, **keywords)
        return timed_open

    def _by_path(self, original, stage, position):
        timed = self._call(original, stage, position)

        def call(*args, **keywords):
            names = len(args) <= position or names_path(args[position])
            return (timed if names else original)(*args, **keywords)
        return call

    def _by_class(self, original, stage, position):
        begin, end, number = self._library.begin, self._library.end, self.number

        def timed(self, *args, **keywords):
            name = name_of(type(self))
            zone = number(stage + " " + name, INCLUSIVE if name in _CONTAINERS else WORK)
            if zone < 0:
                return original(self, *args, **keywords)
            begin(zone)
            try:
                return original(self, *args, **keywords)
            finally:
                end()
        return timed

    def _tiles(self, original, stage, position):
        timed = self._call(original, stage, position)

        def load(self, *args, **keywords):
            return (timed if attribute(self, "tile") else original)(self, *args, **keywords)
        return load

    def _reads_from(self, path_of):
        """A way of timing a method of an object that is in a file."""
        def make(original, stage, position):
            timed, path = self._call(original, stage, position), self._library.path

            def read(self, *args, **keywords):
                try:
                    path(path_of(self))
                except Exception:  # a virtual or closed object: the call itself reports what is wrong
                    pass
                return timed(self, *args, **keywords)
            return read
        return make

    # ---- finding and replacing ----

    def _replace(self, owner, name, stage, way, position):
        original = vars(owner).get(name) if isinstance(owner, type) else getattr(owner, name, None)
        if original is None or not callable(original) or is_a(original, _Builtin, type) or attribute(original, "_weir_timed"):
            return
        known = self._timed.get(id(original))
        if known is None:
            timed = self._ways[way](original, stage, position)
            if isinstance(original, types.BuiltinFunctionType):
                timed = _Builtin(original, timed, self)
            else:
                functools.update_wrapper(timed, original)
                timed._weir_timed = True
            known = self._timed[id(original)] = (original, timed)
        self._place(owner, name, *known)

    def _place(self, owner, name, original, timed):
        try:
            setattr(owner, name, timed)
            if not self._active:
                setattr(owner, name, original)
            self._places.append((owner, object.__getattribute__(owner, "__dict__") if not isinstance(owner, type)
                                 else vars(owner), name, original, timed))
        except Exception:  # a type or module that cannot be changed
            home, what = (owner.__module__, owner.__name__) if isinstance(owner, type) else (owner.__name__, name)
            self._library.unseen(self._segment, "{}.{}".format(home, what).encode())

    def module_loaded(self, name):
        """Times the functions of one module, which has been imported."""
        module = sys.modules.get(name)
        if module is None or (name, id(module)) in self._known:
            return
        self._known.add((name, id(module)))
        for home, names, stage, way, position in _watch_table.FUNCTIONS:
            for each in names.split() if home == name else ():
                self._named(module, each, stage if stage != _watch_table.TRANSFORM or way != _watch_table.CALL
                            else "{} {}.{}".format(stage, home, each), way, position)
        if name in _watch_table.TRANSFORMS:
            self._transforms(module)
        for home, what in _watch_table.UNSEEN:
            if home == name:
                self._library.unseen(self._segment, what.encode())

    def _named(self, module, path, stage, way, position):
        owner, _, method = path.rpartition(".")
        if owner:
            module = getattr(module, owner, None)
            if not isinstance(module, type):
                return
            path = method
            for base in module.__mro__:  # the class that defines it
                if method in vars(base):
                    module = base
                    break
        self._replace(module, path, stage, way, position)

    def _transforms(self, module):
        classes = {}
        for value in list(vars(module).values()):
            for base in value.__mro__ if isinstance(value, type) else ():
                if base.__module__.startswith("torchvision.transforms"):
                    classes[id(base)] = base
        for each in classes.values():
            method = "forward" if "forward" in vars(each) else "__call__" if "__call__" in vars(each) else None
            if method is not None:
                self._replace(each, method, _watch_table.TRANSFORM, _watch_table.BY_CLASS, None)

    def _imported_elsewhere(self):
        """Replaces references to the originals in the namespaces of all modules (from cv2 import imdecode)."""
        done = {(id(owner), name) for owner, _, name, _, _ in self._places}
        for module in list(sys.modules.values()):
            names = attributes(module)  # some modules are loaded when an attribute is read
            name = names.get("__name__")
            if not is_a(module, types.ModuleType) or (type(name) is str and name.startswith("weir.")):
                continue
            for name, value in list(names.items()):
                known = self._timed.get(id(value))
                if known is not None and known[0] is value and (id(module), name) not in done:
                    self._place(module, name, *known)

    def install(self, lasting=True):
        """Times all functions whose modules are imported, and those of modules imported later. lasting: from now on;
        else only between on() and off()."""
        self._active = 0
        for name in _watch_table.modules():
            self.module_loaded(name)
        self._imported_elsewhere()
        if lasting:
            self.on()
        for name in _watch_table.modules():
            _watch_import.after_import(name, self.module_loaded)

    def on(self):
        """Calls nest, also on several threads: the last off() puts the originals back. Places that the program has changed
        meanwhile remain as they are."""
        with self._switching:
            self._active += 1
            for owner, names, name, original, timed in self._places if self._active == 1 else ():
                if names.get(name) is original:
                    setattr(owner, name, timed)

    def off(self):
        with self._switching:
            self._active -= 1
            for owner, names, name, original, timed in self._places if self._active == 0 else ():
                if names.get(name) is timed:
                    setattr(owner, name, original)


def call_cost_ns(library, segment):
    """Measured cost of timing one call, Python's part included, in ns. On a thread without a slot nothing is counted."""
    hooks = Hooks(library, segment)
    hooks._numbers["cost"] = 0
    timed, best = hooks._call(_nothing, "cost", None), float("inf")
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(200):
            timed()
        middle = time.perf_counter()
        for _ in range(200):
            _nothing()
        best = min(best, 2 * middle - began - time.perf_counter())
    return max(best, 0.0) * 1e9 / 200


def _nothing():
    pass
