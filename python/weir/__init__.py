"""A fast data loader for robot episodes, and a profiler of training loops.

    import weir

    with weir.Loader("episodes/", batch_size=8) as loader:
        for epoch in range(10):
            for batch in loader:
                with weir.stage("20_train_forward_pass"):
                    loss = model(batch["image"], batch["qpos"], batch["action"], batch["is_pad"])
            weir.print_timing_stats()

Batches are torch tensors if torch is installed, else weir.Array, which numpy and others share without copying. Errors are
weir.Error, or ValueError, FileNotFoundError and so on, with one line that names the problem and what to do.

weir.profile records chosen steps as a trace, with the names of torch.profiler; help(weir.profile) has an example.

weir.watch sees into a training job with torch's own DataLoader, workers included; so does `python -m weir watch train.py`.
With Python before 3.11, or without the extension weir._weir, this package is weir.watch and weir.stage alone.
"""
import os
import warnings


def _warn_of_other():
    """Warns if another distribution, named weir, is installed into this folder too: pip mixes the files of both."""
    here = os.path.dirname(__file__)
    try:
        names = os.listdir(os.path.dirname(here))
    except OSError:
        return
    if any(name.startswith("weir-") and name.endswith((".dist-info", ".egg-info")) for name in names):
        warnings.warn(f"weir: {here} mixes files of weir-loader and of another package named weir: "
                      "pip uninstall weir weir-loader, then pip install weir-loader", RuntimeWarning, stacklevel=3)


_warn_of_other()

try:
    from . import _weir, _package
except Exception as error:  # the extension is missing, or lacks what this version of the package needs
    from . import _without as _package
    _package.reason = str(error)
    _package.warn_of_version()

from ._watch import watch

globals().update({name: getattr(_package, name) for name in _package.__all__})
__all__ = [*_package.__all__, "watch"]
__version__ = _package.__version__


def __getattr__(name):
    return _package.missing(name)
