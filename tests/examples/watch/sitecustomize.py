"""Runs first in every process with this folder in PYTHONPATH. For test_frameworks.py it records the inputs of the
networks in $WEIR_WATCH/RANK.json: [digest of the images, digest of the states] of every step."""
import atexit
import hashlib
import json
import os
import sys
import types

import torch

if sys.version_info >= (3, 11) and torch.__version__ < "2":
    # Python 3.11 cannot import this module of Debian's torch 1.13; Lightning registers two of its functions.
    sharded = types.ModuleType("torch.distributed._shard.sharded_tensor")
    sharded.state_dict_hook = sharded.pre_load_state_dict_hook = lambda *arguments: None
    sys.modules.update({"torch.distributed._shard": types.ModuleType("torch.distributed._shard"), sharded.__name__: sharded})

steps, rank = [], [0]


def digest(tensor):
    return hashlib.sha256(tensor.detach().contiguous().numpy().tobytes()).hexdigest()


def note(module, inputs):
    if isinstance(module, torch.nn.Conv2d):
        steps.append([digest(inputs[0])])
        if torch.distributed.is_initialized():
            rank[0] = torch.distributed.get_rank()
    elif isinstance(module, torch.nn.Linear):
        steps[-1].append(digest(inputs[0][:, -int(os.environ["WEIR_WATCH_DIM"]):]))


@atexit.register
def write():
    if steps:
        with open(os.path.join(os.environ["WEIR_WATCH"], f"{rank[0]}.json"), "w", encoding="utf-8") as file:
            json.dump(steps, file)


torch.nn.modules.module.register_module_forward_pre_hook(note)
