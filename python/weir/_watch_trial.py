"""What weir.Loader gives on the data of a watched loader, measured for 2 s when the run ends.

A process of its own opens the data, because a file that Weir cannot read may take long or end the process. Names come from the
dataset and from the segment, which other processes write: they are opened only if Weir itself recognises an existing folder or
file, and what went wrong is never shown."""
import json
import os
import stat
import subprocess
import sys

from . import _watch_library
from ._watch_static import attributes, in_class, is_a, of_array, parts_of, path_of, sizes_of

_READ_S, _LIMIT_S = 2.0, 5.0  # reading; and the whole process, with opening the data
_PATHS = 8
_SYSTEM = ("/proc", "/sys", "/dev")


# ---- names ----

def names_of(dataset):
    """Texts among the attributes of a dataset, and of the datasets in it, that may be paths. Looks at no file."""
    return _names_in(dataset, 3)[:64]


def _names_in(value, depth):
    found = []
    for each in list(attributes(value).values()):
        for part in parts_of(each, 4) if is_a(each, list, tuple) else (each,):
            path = path_of(part) if type(part) is not bytes else None
            if path is not None:
                found += [os.fsdecode(path)] if 1 < len(path) < 4096 else []
            elif depth > 0 and in_class(type(part), "__getitem__") is not None:
                found += _names_in(part, depth - 1)
    return found


def _existing(name):
    """The real path of a folder or a regular file, or None."""
    try:
        path = os.path.realpath(name)
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return None
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)) or path.count("/") < 2 or path.startswith(_SYSTEM):
        return None
    return path


def _contains(folder, path):
    return path == folder or path.startswith(folder + "/")


def candidates(names, files):
    """What to open, best first. names: of attributes; files: that workers have read. A folder that contains none of the
    files is not the data."""
    files = [path for path in map(_existing, files) if path is not None]
    named = [path for path in map(_existing, names) if path is not None]
    if files:
        named = [path for path in named if any(_contains(path, file) for file in files)]
    named.sort(key=lambda path: (not os.path.isdir(path), -path.count("/")))
    if len(files) > 1:
        named.append(_existing(os.path.commonpath(files)))
    named += [os.path.dirname(file) for file in files] + files
    return list(dict.fromkeys(path for path in named if path is not None))[:_PATHS]


def _largest(batch):
    """(bytes, whether they are floats) of the largest array of a batch."""
    inside = parts_of(batch)
    if inside is not None:
        return max([_largest(each) for each in inside], default=(0, False))
    return sum(sizes_of(batch, [])), "float" in str(of_array(batch, "dtype"))


def dtype_of(batch):
    """The type of weir.Loader's images that are like those of a batch."""
    return "float32" if _largest(batch)[1] else "uint8"


# ---- in the training process ----

def reported(session, watched):
    return json.loads(session.text(_watch_library.JSON, True, "en", watched.number))


def _job(report, watched):
    """What the process is to measure, or None."""
    settings, of = report["watch"]["settings"], report["watch"]
    files = [each.get("name") for each in of["slowest_files"]] + [each.get("file") for each in of["slowest_items"]]
    paths = candidates(watched.names, [name for name in files if name])
    if not paths or not settings["batch_size"]:
        return None
    workers = int(settings["num_workers"] or 0)
    return {"paths": paths, "dtype": watched.dtype, "batch_size": int(settings["batch_size"]), "num_workers": workers,
            "prefetch_factor": max(int(workers * (settings["prefetch_factor"] or 2)), 1), "read_s": _READ_S,
            "limit_s": _LIMIT_S}


def _run(job):
    """The result of the process, or None."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    code = "import sys; sys.path.insert(0, {!r}); from weir._watch_trial import main; main()".format(folder)
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        out, _ = process.communicate(json.dumps(job).encode(), timeout=_LIMIT_S)
        return json.loads(out.decode()) if process.returncode == 0 and out else None
    finally:
        process.kill()
        process.wait()


def _items_per_s(figures):
    """What the watched loader gives when nothing holds it up: all workers busy, or the loop requesting all the time."""
    workers = figures["settings"]["num_workers"] or 0
    parts = figures["workers"] if workers else [{"items": figures["items"], "busy_s": figures["wait_s"]}]
    items, busy_s = (sum(part[key] for part in parts) for key in ("items", "busy_s"))
    return items / busy_s * max(workers, 1) if busy_s > 0 else 0.0


def measure(session, used):
    """Measures for the loader that is waited for most, and adds the result to its settings. Returns the loader or None."""
    if "weir._weir" not in sys.modules:
        return None
    reports = [(reported(session, watched), watched) for watched in used if not watched.iterable]
    reports = [each for each in reports if each[0]["verdict"]["data_bound"] in ("partly", "strongly")]
    if not reports:
        return None
    report, watched = max(reports, key=lambda each: each[0]["watch"]["wait_s"])
    job = _job(report, watched)
    result = job and _run(job)
    if not result:
        return None
    path = result["path"]
    watched._set_text("weir_path", path if len(path) < 64 else "..." + path[-60:])
    watched._set_text("weir_sample", result["sample"])
    watched._set("watched_items_s", _items_per_s(report["watch"]))
    watched._set("weir_items_s", result["samples_per_s"])
    return watched


# ---- in the process that measures ----

def _limit_process(limit_s):
    """Ends this process if its parent cannot, and before others if memory is short."""
    import signal
    signal.alarm(int(limit_s) + 2)
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass


def _sample_of(batch, loader):
    image = batch.get("image")
    if image is None:
        return "{} cameras".format(len(loader.dataset.cameras))
    _, cameras, _, height, width = image.shape
    return "{} camera{} {}x{} {}".format(cameras, "s" if cameras > 1 else "", width, height, str(image.dtype).split(".")[-1])


def _measured(loader, read_s):
    """(a batch's description, samples/s after the first batch), or None if there are too few."""
    import time
    began, samples, sample = None, 0, None
    while True:
        before = samples
        for batch in loader:
            if began is None:
                began, sample = time.perf_counter(), _sample_of(batch, loader)
                continue
            samples += batch["qpos"].shape[0]
            elapsed = time.perf_counter() - began
            if elapsed >= read_s:
                return sample, samples / elapsed
        if samples == before:
            return None


def main():
    job = json.load(sys.stdin)
    _limit_process(job["limit_s"])
    import weir
    for path in job["paths"]:
        try:
            with weir.Loader(path, batch_size=job["batch_size"], num_workers=job["num_workers"], dtype=job["dtype"],
                             prefetch_factor=job["prefetch_factor"], train_split=1.0, tensors="array", rank=0, world_size=1,
                             on_error="skip") as loader:
                found = _measured(loader, job["read_s"])
        except (weir.Error, ValueError, OSError, MemoryError):  # not data that Weir can read
            continue
        if found is not None:
            print(json.dumps({"path": path, "sample": found[0], "samples_per_s": found[1]}))
            return
