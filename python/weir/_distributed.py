"""torch.distributed, if the program uses it. Nothing here imports torch or the extension."""
import os
import sys


def distributed():
    """torch.distributed if initialised, else None."""
    module = sys.modules.get("torch.distributed")
    return module if module is not None and module.is_available() and module.is_initialized() else None


def store():
    """(host, port) of torch.distributed's default store; (None, 0) if MASTER_ADDR names one, or there is none."""
    module = None if os.environ.get("MASTER_ADDR") else sys.modules.get("torch.distributed")
    try:
        found = module.distributed_c10d._get_default_store()
        while hasattr(found, "underlying_store"):
            found = found.underlying_store
        return found.host, found.port
    except (AttributeError, RuntimeError, ValueError):
        return None, 0
