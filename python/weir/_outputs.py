"""Output files of this package: none is an input or another output, and each is complete or as it was before.

The rules are those of the program weir (cli/outputs.c), whose inputs are marked in its tables of options. Those of a training
script are not known, so here an existing file is overwritten only if it is an earlier output of the same kind."""
import gzip
import os
import re
import stat

from ._watch_library import library

# Kind of output -> what such a file is called, and how it begins.
_KINDS = {
    "log": ("a log of Weir", rb'\{"type":"run"'),
    "json": ("a report of Weir", rb'\{\s*"schema":\s*\d+,\s*"type":\s*"watch"'),
    "html": ("a page of Weir", rb"<!doctype html>\s*<html[^>]*>\s*<head>\s*<meta charset=\S+\s*<meta "
                               rb'http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src \'sha256-'),
    "prometheus": ("a file of metrics of Weir", rb"# HELP weir_"),
    "trace": ("a trace", rb'\s*\{.{0,2000}"(schemaVersion|traceEvents|deviceProperties|displayTimeUnit)"'),
    "stacks": ("a file of stacks", rb"[^\0\n]+ \d+\n"),
    "csv": ("a table of kernel clocks", rb"kernel,stage,laps,ticks,"),
}


def identity(path):
    """What two names of a file have in common, also if it does not exist yet; None in a folder that does not exist."""
    try:
        found = os.stat(path)
        return found.st_dev, found.st_ino
    except OSError:
        folder, name = os.path.split(os.path.realpath(path))
    try:
        found = os.stat(folder)
        return found.st_dev, found.st_ino, name
    except OSError:
        return None


def _beginning(path):
    with open(path, "rb") as file:
        start = file.read(4096)
    if start.startswith(b"\x1f\x8b"):
        with gzip.open(path, "rb") as file:
            start = file.read(4096)
    return start


def _stream_of(found):
    """Which of the streams that the program prints to is a file, given its stat; or None."""
    for fd, name in (1, "standard output"), (2, "standard error"):
        try:
            if os.path.samestat(os.fstat(fd), found):
                return name
        except OSError:  # closed
            pass
    return None


def refusal(path, kind):
    """Why a file must not be overwritten by an output of a kind, as a line; None if it may be."""
    name, what = os.fsdecode(path), _KINDS[kind][0]
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):  # a device, a pipe; a folder fails later
            return None
        stream = _stream_of(found)
        if stream is not None:
            return "{}: is the file of {}; choose another path".format(name, stream)
        if found.st_size == 0:
            return None
        if re.match(_KINDS[kind][1], _beginning(path), re.DOTALL):
            return None
    except FileNotFoundError:
        return None
    except (OSError, EOFError):
        pass  # it cannot be read, or is no whole archive
    return "{}: is not {}, so it is not overwritten; choose another path".format(name, what)


def checked(path, kind):
    """The path of an output. Raises ValueError if it is that of a file which must not be overwritten."""
    why = refusal(path, kind)
    if why is not None:
        raise ValueError(why)
    return path


def check(outputs, inputs=()):
    """Raises ValueError if an output is an input, another output, or a file of another kind. outputs: (label, kind, path);
    inputs: (label, path)."""
    seen = [(label, identity(path)) for label, path in inputs]
    for label, kind, path in outputs:
        mine = identity(path)
        shared = os.path.exists(path) and not os.path.isfile(path)  # a device or pipe
        for other, its in seen:
            if mine is not None and mine == its and other != label and not shared:
                raise ValueError("{}: {} and {} name the same file; choose a different file for each".format(
                    os.fsdecode(path), other, label))
        seen.append((label, mine))
        why = refusal(path, kind)
        if why is not None:
            raise ValueError("{}: {}".format(label, why))


def write(path, kind, text):
    """Writes a file: to a name beside it, which is then renamed. Raises OSError or ValueError, with a line that names it."""
    checked(path, kind)
    data = text.encode("utf-8", "surrogateescape")
    code, why = library().explained(library().write, os.fsencode(path), data, len(data))
    if code < 0:
        raise OSError(why)
