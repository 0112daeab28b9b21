"""Calls functions after the import of modules that are not imported yet."""
import importlib.machinery
import importlib.util
import sys

from ._watch_library import warn
from ._watch_static import one_of

_ORDINARY = (importlib.machinery.SourceFileLoader, importlib.machinery.SourcelessFileLoader,
             importlib.machinery.ExtensionFileLoader)


class _Finder:
    """Finds a module by way of the other finders, and has its loader call the functions once."""

    def __init__(self):
        self.wanted = {}
        self._searching = set()

    def find_spec(self, name, path=None, target=None):
        if name not in self.wanted or name in self._searching:
            return None
        self._searching.add(name)
        try:
            spec = self._others(name, path, target)
        finally:
            self._searching.discard(name)
        if spec is not None and one_of(type(spec.loader), _ORDINARY):  # these belong to one module
            self._call_after(spec.loader, name)
        return spec

    def _others(self, name, path, target):
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                return spec
        return None

    def _call_after(self, loader, name):
        def exec_module(module):
            loader.__dict__.pop("exec_module", None)
            loader.exec_module(module)
            for function in self.wanted.get(name, ()):
                try:
                    function(name)
                except Exception as error:  # the program's import has worked
                    warn("weir.watch: {} is not timed: {}: {}".format(name, type(error).__name__, error))
        loader.exec_module = exec_module


_finder = _Finder()


def after_import(name, function):
    """Calls function(name) after each import of a module; not for one that is imported already."""
    functions = _finder.wanted.setdefault(name, [])
    if function not in functions:
        functions.append(function)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
