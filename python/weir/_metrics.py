"""Live figures: the arguments serve= and prometheus=, and weir.metrics(), a flat dictionary for W&B, MLflow and
TensorBoard."""
import os
import re
import threading

ADDRESS = "127.0.0.1:9464"


def address(serve):
    """Where to listen, or None."""
    if serve is None or serve is False:
        return None
    if serve is True:
        return ADDRESS
    if not isinstance(serve, str) or not serve:
        raise ValueError("serve must be True or an address such as {!r}, not {!r}".format(ADDRESS, serve))
    return serve


def path_of_rank(path, rank, world_size):
    """run.prom is run.rank3.prom on rank 3."""
    base, end = os.path.splitext(os.path.abspath(os.fsdecode(path)))
    return "{}.rank{}{}".format(base, rank, end) if world_size > 1 else base + end


# ---- weir.metrics() ----

_SAMPLE = re.compile(r'(\w+?)(?:_total)?(?:\{(.*)\})? (\S+)')
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPED = {r"\\": "\\", r"\"": '"', r"\n": "\n"}
_NOW = {"weir_batches_ready": "batches_ready", "weir_workers_busy": "workers_busy", "weir_epochs": "epochs",
        "weir_bad_frames": "bad_frames", "weir_skipped_samples": "skipped_samples",
        "weir_substituted_frames": "substituted_frames"}
_RATES = {"weir_images": ("images_per_s", 1), "weir_batches": ("batches_per_s", 1),
          "weir_read_bytes": ("read_MB_per_s", 1e-6), "weir_storage_read_bytes": ("storage_MB_per_s", 1e-6)}


def _parsed(text):
    """Loader -> {(metric, stage or None): value}, summed over other labels, from the classic text format; and when
    counting began."""
    loaders, start = {}, 0.0
    for line in text.splitlines():
        match = _SAMPLE.fullmatch(line)
        if line.startswith("#") or match is None:
            continue
        labels = {name: re.sub(r"\\.", lambda found: _ESCAPED.get(found[0], found[0]), value)
                  for name, value in _LABEL.findall(match[2] or "")}
        if match[1] == "weir_start_time_seconds":
            start = float(match[3])
        if "loader" in labels:
            stage = labels.get("stage")
            if stage is not None and labels.get("thread") in ("helper", "gpu"):
                stage += "_" + labels["thread"]
            figures, key = loaders.setdefault(labels["loader"], {}), (match[1], stage)
            figures[key] = figures.get(key, 0.0) + float(match[3])
    return loaders, start


def _name(text):
    """Without characters that MLflow refuses in a metric's name."""
    return re.sub(r"[^\w\-. ]", "_", text)


class _Period:
    """The figures of one loader at the last call."""

    def __init__(self):
        self.then, self.start = {}, 0.0

    def since(self, now, start):
        """Name -> number for the time since the last call."""
        if start != self.start:
            self.then, self.start = {}, start  # the loader has been opened again
        grown = {key: value - self.then.get(key, 0.0) for key, value in now.items()}
        self.then = now
        found = {name: now[metric, None] for metric, name in _NOW.items() if (metric, None) in now}
        seconds, steps = (grown.get((metric, None), 0.0) for metric in ("weir_run_seconds", "weir_step_seconds"))
        if seconds > 0:
            found.update((name, grown[metric, None] * factor / seconds)
                         for metric, (name, factor) in _RATES.items() if (metric, None) in grown)
        if steps > 0:
            found["data_wait"] = min(max(grown[("weir_data_wait_seconds", None)] / steps, 0.0), 1.0)
        for (metric, stage), calls in grown.items():
            if metric == "weir_stage_calls" and calls > 0:
                found[_name(stage) + "_ms"] = 1e3 * grown["weir_stage_seconds", stage] / calls
        return found


_lock = threading.Lock()
_periods = {}


def since_last(texts):
    """The flat dictionary of loaders whose metrics are these texts."""
    found, seen = {}, {}
    with _lock:
        for text in texts:
            loaders, start = _parsed(text)
            for loader, now in loaders.items():
                number = seen[loader] = seen.get(loader, 0) + 1
                name = loader if number == 1 else "{} {}".format(loader, number)
                figures = _periods.setdefault((os.getpid(), name), _Period()).since(now, start)
                found.update(("weir/{}/{}".format(_name(name), key), value) for key, value in figures.items())
    return found


DOC = """The current figures of the open loaders (weir.Loader, weir.watch), as a flat dictionary of name -> number, for
    W&B, MLflow or TensorBoard.

        wandb.log(weir.metrics(), step=step)

    Names are "weir/LOADER/FIGURE": data_wait (0..1), images_per_s, batches_per_s, read_MB_per_s and storage_MB_per_s, and
    the mean duration STAGE_ms of a call of each stage in the table, all since the previous call; batches_ready and
    workers_busy at this moment; epochs, bad_frames, skipped_samples and substituted_frames so far. Unknown figures are
    left out. LOADER is the last part of its path, or its name in the table of weir.watch."""
