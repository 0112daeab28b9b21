"""Training processes that a watched program starts itself, by multiprocessing or by fork()."""
import multiprocessing.process
import multiprocessing.spawn
import multiprocessing.util
import os

from . import _watch_worker

# Runs in a process of spawn or forkserver, before it has the program's sys.path and imports the program.
_BEGIN = """
import sys
sys.path.append(folder)
try:
    from weir import _watch_children
    _watch_children.begin(options, json)
except Exception as error:
    import warnings
    warnings.warn("weir.watch: a process is not watched: {}".format(error), RuntimeWarning)
finally:
    sys.path.remove(folder)
"""


started = False  # whether this process has started another one by multiprocessing or fork()


def _note_start():
    global started
    started = True


class _Begin:
    """Begins the watch in the process that unpickles it."""

    def __init__(self, given):
        self._given = given

    def __reduce__(self):
        return exec, (_BEGIN, dict(self._given))


def hand_down(options, json):
    """Has processes that multiprocessing starts from now on watch every DataLoader as well. In DataLoader's own workers
    this only finds the package."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    given = {"folder": folder, "options": vars(options), "json": json}
    original = multiprocessing.spawn.get_preparation_data

    def get_preparation_data(name):
        _note_start()
        data = original(name)
        if _watch_worker.current is None:
            data["weir_watch"] = _Begin(given)
        return data
    multiprocessing.spawn.get_preparation_data = get_preparation_data
    os.register_at_fork(before=_note_start)


def begin(options, json):
    from . import _watch
    _watch.watch_all(_watch.Options(**options), json, now=False)


def is_child():
    """Whether multiprocessing has started this process."""
    return multiprocessing.process.parent_process() is not None


def at_end(function):
    """Calls a function when this process ends. Children of multiprocessing may not run atexit."""
    multiprocessing.util.Finalize(None, function, exitpriority=10)


def heading():
    """The line that tells the tables of a program's processes apart."""
    return "process {} (PID {}):\n".format(multiprocessing.process.current_process().name, os.getpid())
