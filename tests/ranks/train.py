"""A training loop with DistributedDataParallel over gloo, for test_run_ranks.py: torchrun ... train.py FAST SLOW WHAT.

WHAT: "data" (rank 2 loads SLOW, whose images are large), "step" (rank 1 computes more), "killed" (rank 3 kills itself in
the second epoch) or "even"."""
import os
import signal
import sys
import time

import torch

import weir


def main():
    fast, slow, what = sys.argv[1:]
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3 * 24 * 32, 8))
    data = slow if what == "data" and rank == 2 else fast
    with weir.Loader(data, batch_size=2, num_workers=1, seed=0, image_size=(32, 24), chunk_size=1, every=1) as loader:
        for epoch in range(5):
            for number, batch in enumerate(loader):
                if what == "killed" and rank == 3 and epoch == 1 and number == 2:
                    os.kill(os.getpid(), signal.SIGKILL)
                images = batch["image"][:, 0].flatten(1).float()
                with weir.stage("20_train_forward_pass"):
                    until = time.thread_time() + (0.02 if what == "step" and rank == 1 else 0)
                    while time.thread_time() < until:
                        pass
                    loss = model(images).square().mean()
                with weir.stage("21_backward"):
                    loss.backward()
                model.zero_grad()
    torch.distributed.destroy_process_group()


main()
