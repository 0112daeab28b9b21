"""A training run with Lightning and weir.Loader: examples/with_lightning.py DATA [DEVICES [EPOCHS]]. Needs torch and lightning.
Lightning starts the processes."""
import os
import sys

import lightning.pytorch as pl
import torch
import weir  # pip install weir-loader

if not hasattr(weir, "Loader"):
    sys.exit(f"{weir}: another package of this name; pip uninstall weir weir-loader, then pip install weir-loader")


class Policy(pl.LightningModule):
    def __init__(self, cameras, qpos, action, chunk):
        super().__init__()
        self.chunk = chunk
        self.see = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 8, 8), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4))
        self.act = torch.nn.Linear(cameras * 8 * 16 + qpos, chunk * action)

    def training_step(self, batch, index):
        with weir.stage("20_train_forward_pass"):
            seen = self.see(batch["image"].flatten(0, 1).float() / 255).reshape(len(batch["qpos"]), -1)
            actions = self.act(torch.cat([seen, batch["qpos"]], 1)).reshape(len(seen), self.chunk, -1)
            return ((actions - batch["action"]).abs() * ~batch["is_pad"].unsqueeze(-1)).mean()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-4)


# The loader already divides the data by rank, so Lightning must not add a distributed sampler.
trainer = pl.Trainer(max_epochs=int((sys.argv + ["1"] * 3)[3]), devices=int((sys.argv + ["1"] * 2)[2]), strategy="ddp",
                     use_distributed_sampler=False, logger=False, enable_checkpointing=False)
with weir.Loader(sys.argv[1], batch_size=8, rank=trainer.global_rank, world_size=trainer.world_size,
                 num_workers=max(len(os.sched_getaffinity(0)) // trainer.num_devices, 1)) as loader:
    sizes = [len(loader.dataset.statistics[name]) for name in ("qpos_mean", "action_mean")]
    policy = Policy(len(loader.dataset.cameras), *sizes, 20)
    trainer.fit(policy, loader)
    weir.print_timing_stats()  # rank 0 prints for all ranks
