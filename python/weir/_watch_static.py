"""Reads objects of the program without running its code: no attribute is computed, and no special method is called."""
import os
import pathlib
import sys
import types

_mro, _names = type.__dict__["__mro__"].__get__, type.__dict__["__dict__"].__get__
_module, _qualname = type.__dict__["__module__"].__get__, type.__dict__["__qualname__"].__get__
_IN_C = (types.GetSetDescriptorType, types.MemberDescriptorType)  # attributes that C computes
_NAMED = (types.FunctionType, types.BuiltinFunctionType)
_PATHS = (pathlib.PosixPath, pathlib.PurePosixPath)
# Packages whose arrays have attributes in Python.
_ARRAYS = ("cupy", "jax", "jaxlib", "nvidia", "tensordict", "tensorflow")


# ---- classes ----

def is_a(value, *kinds):
    """Like isinstance, which asks an object for its __class__."""
    return issubclass(type(value), kinds)


def one_of(kind, kinds):
    """Like `kind in kinds`, which asks the class of a class whether they are equal."""
    return any(kind is each for each in kinds)


def in_class(kind, name, default=None):
    """What a class, or one that it inherits from, defines under a name."""
    for base in _mro(kind):
        if name in _names(base):
            return _names(base)[name]
    return default


def module_of(kind):
    """The name of a class's module."""
    try:
        module = _module(kind)
    except AttributeError:
        return ""
    return module if type(module) is str else ""


def name_of(kind):
    """The name of a class, without its module."""
    return _qualname(kind).rpartition(".")[2]


def full_name(value):
    """The name of a function or class, or else that of the object's class, with the module."""
    if type(value) is types.MethodType:
        value = value.__func__
    if one_of(type(value), _NAMED):
        return "{}.{}".format(value.__module__, value.__qualname__)
    kind = value if is_a(value, type) else type(value)
    return "{}.{}".format(module_of(kind), _qualname(kind))


# ---- attributes ----

def attributes(value):
    """The attributes that an object itself holds."""
    if not one_of(type(in_class(type(value), "__dict__")), _IN_C):
        return {}
    found = object.__getattribute__(value, "__dict__")
    return found if type(found) is dict else {}


def attribute(value, name, default=None):
    """An attribute that reading computes by no code of Python."""
    kind, own = type(value), attributes(value)
    found = in_class(kind, name, _in_no_class)
    if one_of(type(found), _IN_C):
        try:
            return type(found).__get__(found, value, kind)
        except AttributeError:
            return default
    if name in own and in_class(type(found), "__set__") is None:
        return own[name]
    return default if found is _in_no_class or in_class(type(found), "__get__") is not None else found


class _InNoClass:
    pass


_in_no_class = _InNoClass()


def number(value):
    """A plain number, or None."""
    return value if one_of(type(value), (int, float, bool)) else None


# ---- paths ----

def path_of(value):
    """A file's path as bytes; None for anything else, also for a path of the program's own class."""
    if is_a(value, str):
        return str.encode(value, "utf-8", "surrogateescape")
    if is_a(value, bytes):
        return bytes.__getitem__(value, slice(None))
    return os.fsencode(value) if one_of(type(value), _PATHS) else None


def names_path(value):
    """Whether a value is a path, also one of the program's own class."""
    return is_a(value, str, bytes) or in_class(type(value), "__fspath__") is not None


# ---- batches ----

def parts_of(value, most=None):
    """The values in a dict, list or tuple, whose class may override what reads them; None for anything else. most: no
    more of a list."""
    if is_a(value, dict):
        return list(dict.values(value))
    for base in (list, tuple):
        if is_a(value, base):
            return base.__getitem__(value, slice(most))
    return None


def is_tensor(value):
    """Whether this is a tensor of torch, also one of the program's own class."""
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    return tensor is not None and is_a(value, tensor)


def _hands_out(tensor):
    """Whether C hands what it computes of a tensor to the program (__torch_dispatch__)."""
    base = sys.modules["torch"].Tensor
    return in_class(type(tensor), "__torch_dispatch__") is not in_class(base, "__torch_dispatch__")


def torch_alone():
    """A context without the program's __torch_function__."""
    return sys.modules["torch"]._C.DisableTorchFunction()


def of_array(value, name):
    """An attribute of a tensor or array, such as its shape; None for anything else."""
    try:
        if is_tensor(value):
            found = in_class(sys.modules["torch"].Tensor, name)
            if not one_of(type(found), _IN_C) or _hands_out(value):
                return None
            with torch_alone():
                return type(found).__get__(found, value, type(value))
        if module_of(type(value)).partition(".")[0] in _ARRAYS:
            return getattr(value, name, None)
        return attribute(value, name) if one_of(type(in_class(type(value), name)), _IN_C) else None
    except Exception:  # a nested tensor has no shape
        return None


def first_size(batch):
    """Length of a batch: that of its first tensor or array; 1 if there is none."""
    for _ in range(4):
        shape = of_array(batch, "shape")
        if shape is not None:
            return int(shape[0]) if len(shape) else 1
        inside = parts_of(batch, 1)
        if not inside:
            break
        batch = inside[0]
    return 1


def sizes_of(batch, found):
    """The sizes of a batch's tensors and arrays, in bytes."""
    inside, size = parts_of(batch), None
    if inside is not None:
        for each in inside:
            sizes_of(each, found)
    elif is_tensor(batch):
        shape, size_of = of_array(batch, "shape"), sys.modules["torch"].Tensor.element_size
        with torch_alone():
            size = None if shape is None else size_of(batch) * shape.numel()
    elif of_array(batch, "shape") is not None:
        size = of_array(batch, "nbytes")
    if size is not None:
        found.append(int(size))
    return found


# ---- loaders ----

def is_loader(value):
    """Whether this is a DataLoader, and not a wrapper that is one in name alone. Its dataset may be a property."""
    return is_a(value, sys.modules["torch.utils.data"].DataLoader) and "_dataset_kind" in attributes(value)


# ---- HDF5 files that are open ----

_DEEP, _MOST = 3, 256  # levels of objects, and objects, that are looked at
_CLOSED = (type, types.ModuleType, types.FunctionType, str, bytes, int, float)


def holds_open_hdf5(dataset):
    """Whether a dataset, what it wraps, or a list or dict of theirs holds an open file, group or dataset of h5py. Workers
    that are forked then share the position of the file and the library's cache of it: what they read can be wrong."""
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
