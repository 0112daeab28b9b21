"""Arguments of weir.Loader and weir.profile: conversions, and errors that name the argument and its value."""
import difflib
import functools
import json
import math
import operator
import os
import re
import textwrap
import warnings

from . import _weir


def shown(value):
    """A value for an error, truncated."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def suggesting(function, renamed={}):
    """Rejects unknown keywords, suggesting the closest name. Old names in renamed cause a DeprecationWarning."""
    code = function.__code__
    names = code.co_varnames[1:code.co_argcount + code.co_kwonlyargcount]

    @functools.wraps(function)
    def checked(*arguments, **keywords):
        for name in [name for name in keywords if name in renamed]:
            new = renamed[name]
            if new in keywords:
                raise TypeError(f"{new} and its old name, {name}, are both given; give {new} alone")
            warnings.warn(f"{name} is deprecated and will be removed in the next release; use {new}",
                          DeprecationWarning, stacklevel=2)
            keywords[new] = keywords.pop(name)
        for name in keywords:
            if name not in names:
                near = difflib.get_close_matches(name, names, 1)
                where = function.__qualname__.removesuffix(".__init__")
                raise TypeError(f"weir.{where} has no argument {name!r}; " +
                                (f"did you mean {near[0]!r}?" if near else f"help(weir.{where}) lists them"))
        return function(*arguments, **keywords)
    return checked


def choice(name, value, choices):
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, not {shown(value)}")
    return choices[value]


def flag(name, value):
    if not isinstance(value, (bool, int)) and not hasattr(value, "dtype"):  # numpy.bool_ is not a bool
        raise ValueError(f"{name} must be True or False, not {shown(value)}")
    return bool(value)


def names(name, value):
    """One or several names, joined by commas; None remains None."""
    if value is None or isinstance(value, str):
        return value
    try:
        several = list(value)
    except TypeError:
        several = [None]
    if any(not isinstance(item, str) or "," in item for item in several):
        raise ValueError(f"{name} must be a name or a list of names without commas, not {shown(value)}")
    return ",".join(several)


def path(name, value):
    """A path as bytes, in any encoding."""
    try:
        there = os.fsencode(value)
    except (TypeError, UnicodeEncodeError):
        raise TypeError(f"{name} must be a path: str, bytes or os.PathLike, not {shown(value)}") from None
    if b"\0" in there:
        raise ValueError(f"{name} must be a path without zero bytes, not {shown(value)}")
    return there


def size(name, value):
    """(width, height)."""
    try:
        width, height = map(int, value)
        if width > 0 and height > 0 and [width, height] == list(value):
            return width, height
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{name} must be (width, height) in pixels, such as (320, 240), not {shown(value)}")


def windows(indices, timestamps, path, info):
    """Text of the C library for delta_indices (key -> steps) or delta_timestamps (key -> seconds, as LeRobot takes
    them; info is that of the LeRobot dataset at path)."""
    if timestamps is not None:
        if indices is not None:
            raise ValueError("delta_indices and delta_timestamps are both given; give one")
        indices = _steps_of(timestamps, _frames_per_second(path, info))
    if indices is None or isinstance(indices, str):
        return indices
    try:
        lists = {key: [operator.index(step) for step in steps] for key, steps in dict(indices).items()}
    except (TypeError, ValueError):
        raise ValueError("delta_indices must be a dict of lists of integers, such as {'action': [0, 1, 2]}, not "
                         f"{shown(indices)}") from None
    for key in lists:
        if not isinstance(key, str) or not key or set(key) & set("=;"):
            raise ValueError(f"delta_indices: {shown(key)} is not the name of a camera, 'qpos' or 'action'")
    return ";".join(f"{key}={','.join(map(str, steps))}" for key, steps in lists.items())


def _steps_of(timestamps, fps):
    """Steps for seconds, with LeRobot's tolerance."""
    TOLERANCE_S = 1e-4
    try:
        seconds = {key: [float(second) for second in steps] for key, steps in dict(timestamps).items()}
    except (TypeError, ValueError):
        raise ValueError("delta_timestamps must be a dict of lists of seconds, such as {'action': [0, 0.1]}, not "
                         f"{shown(timestamps)}") from None
    for key, steps in seconds.items():
        if not steps:
            raise ValueError(f"delta_timestamps: {key!r} has no offsets; give at least one, such as [0]")
        for second in steps:
            if not math.isfinite(second) or abs(round(second * fps) / fps - second) > TOLERANCE_S:
                raise ValueError(f"delta_timestamps: {second} s of {key!r} is not a multiple of 1/{fps:g} s, the "
                                 "dataset's frame time")
    return {key: [round(second * fps) for second in steps] for key, steps in seconds.items()}


def is_url(path):
    return path.startswith((b"http://", b"https://", b"s3://"))


def lerobot_info(path, read, first):
    """meta/info.json of a LeRobot dataset, or None for other data. The C library reports what is wrong with it. read
    returns the bytes of a file on a server, first the path of the first dataset below a path, or None."""
    info = _info_of(path, read)
    if info is None:
        below = first(path)
        info = _info_of(below, read) if below not in (None, path) else None
    return info


def _info_of(path, read):
    try:
        if is_url(path):
            info = json.loads(read(path.rstrip(b"/") + b"/meta/info.json"))
        else:
            with open(os.path.join(os.fsdecode(path), "meta", "info.json"), encoding="utf-8") as file:
                info = json.load(file)
    except (OSError, ValueError, _weir.Error):
        return None
    return info if isinstance(info, dict) and isinstance(info.get("features"), dict) else None


def lerobot_keys(info, timestamps):
    """Keys of a batch in LeRobot's order: videos, other features, masks."""
    features = info["features"]
    videos = [key for key, about in features.items() if isinstance(about, dict) and about.get("dtype") == "video"]
    return videos + [key for key in features if key not in videos] + [f"{key}_is_pad" for key in timestamps or ()]


def episodes(value):
    """Text of the C library for a list of episode numbers."""
    if value is None or isinstance(value, str):
        return value
    try:
        numbers = [operator.index(number) for number in value]
    except TypeError:
        numbers = []
    if not numbers:
        raise ValueError(f"episodes must be a list of episode numbers, such as [0, 3], not {shown(value)}")
    return ",".join(map(str, numbers))


def _frames_per_second(path, info):
    fps = (info or {}).get("fps")
    if isinstance(fps, (int, float)) and fps > 0:
        return fps
    raise ValueError(f"delta_timestamps needs a LeRobot dataset, and {os.fsdecode(path)} has no frame rate in "
                     "meta/info.json; give delta_indices (steps instead of seconds)")


def number_or_auto(name, value):
    if isinstance(value, int) and value < 0:
        raise ValueError(f"{name} must be 0 or more, or 'auto', not {value}")
    return value


def dtype(value):
    """Name of an element type, which may be a name or a torch or NumPy dtype."""
    if isinstance(value, str) or value is None:
        return value
    if type(value).__module__ == "torch":
        return str(value).removeprefix("torch.")
    found = getattr(value, "__name__", None) or getattr(value, "name", None)
    return found if isinstance(found, str) else value


def byte_count(name, value):
    """Bytes, as a number or text such as "512M" or "2G"."""
    if not isinstance(value, str):
        return value
    number = re.fullmatch("([0-9]{1,12})([KMGT]?)", value.upper(), re.ASCII)
    if not number:
        raise ValueError(f"{name} must be bytes, such as '512M' or '2G', not {shown(value)}")
    return int(number[1]) << 10 * "_KMGT".index(number[2] or "_")


class Keyword:
    """A keyword of weir.Loader, from the table of the loader's options."""
    _CONVERT = {"flag": flag, "names": names, "path": path, "size": size, "bytes": byte_count, "auto": number_or_auto}
    _OPTIONAL = ("auto", "names", "path", "text")  # kinds for which None is the default

    def __init__(self, row):
        self.name, self.kind, self.preset, choices, self.help, *old_names = row
        self.old_names = [name for name in old_names if name]
        self.choices = {name: i for i, name in enumerate(choices.split("|")) if name}

    def is_default(self, value):
        """Whether value selects the default."""
        if value is None:
            return self.preset == "None" or self.kind in self._OPTIONAL
        return self.kind == "auto" and isinstance(value, str) and value == "auto"

    def value(self, value):
        """The value for the extension."""
        if self.kind == "choice":
            return choice(self.name, value, self.choices)
        return self._CONVERT[self.kind](self.name, value) if self.kind in self._CONVERT else value


def documented(text, keywords):
    """A docstring, whose line "..." becomes the texts of the keywords."""
    def paragraph(keyword):
        values = ', '.join(f'"{choice}"' for choice in keyword.choices)
        return textwrap.fill(values + ": " * bool(values) + keyword.help, 120, initial_indent=f"    {keyword.name:<17} ",
                             subsequent_indent=" " * 22)
    return text.replace("    ...", "\n".join(map(paragraph, keywords)))


def initializer(keywords, positional, others):
    """Returns an __init__ with parameters for the keywords and for others (name -> default value as text): positional
    ones in the given order, the rest keyword-only. It calls self._start(path, arguments)."""
    presets = {keyword.name: keyword.preset for keyword in keywords} | others
    by_name = [name for name in presets if name not in positional]
    parameters = [f"{name}={presets[name]}" for name in positional] + ["*"] + [f"{name}={presets[name]}" for name in by_name]
    arguments = ", ".join(f"{name!r}: {name}" for name in presets)
    space = {}
    exec(f"def __init__(self, path, {', '.join(parameters)}):\n    self._start(path, {{{arguments}}})", space)
    space["__init__"].__qualname__ = "Loader.__init__"
    renamed = {old: keyword.name for keyword in keywords for old in keyword.old_names}
    return suggesting(space["__init__"], renamed)
