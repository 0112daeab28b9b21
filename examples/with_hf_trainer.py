"""A training run with transformers' Trainer and weir.Loader: torchrun --nproc_per_node 2
examples/with_hf_trainer.py DATA [EPOCHS]. Needs torch, transformers, accelerate."""
import sys

import torch
import weir  # pip install weir-loader
from transformers import Trainer, TrainingArguments

if not hasattr(weir, "Loader"):
    sys.exit(f"{weir}: another package of this name; pip uninstall weir weir-loader, then pip install weir-loader")


class Policy(torch.nn.Module):
    def __init__(self, cameras, qpos, action, chunk):
        super().__init__()
        self.chunk = chunk
        self.see = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 8, 8), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4))
        self.act = torch.nn.Linear(cameras * 8 * 16 + qpos, chunk * action)

    @weir.stage("20_train_forward_pass")
    def forward(self, image, qpos, action, is_pad):
        seen = self.see(image.flatten(0, 1).float() / 255).reshape(len(qpos), -1)
        actions = self.act(torch.cat([seen, qpos], 1)).reshape(len(qpos), self.chunk, -1)
        return {"loss": ((actions - action).abs() * ~is_pad.unsqueeze(-1)).mean(), "actions": actions}


class WeirTrainer(Trainer):
    """Uses the loader unprepared: Accelerate would divide it among the ranks again."""

    def __init__(self, loader, **options):
        super().__init__(**options)
        self.loader = loader

    def get_train_dataloader(self):
        return self.loader


# Create the arguments first: they initialise torch.distributed, which gives the loader its rank.
arguments = TrainingArguments("build/hf_trainer", num_train_epochs=int((sys.argv + ["1"])[2]), learning_rate=1e-4,
                              per_device_train_batch_size=8, use_cpu=not torch.cuda.is_available(), save_strategy="no",
                              report_to="none")
with weir.Loader(sys.argv[1], batch_size=arguments.train_batch_size) as loader:
    sizes = [len(loader.dataset.statistics[name]) for name in ("qpos_mean", "action_mean")]
    policy = Policy(len(loader.dataset.cameras), *sizes, 20)
    trainer = WeirTrainer(loader, model=policy, args=arguments)
    trainer.train()
    weir.print_timing_stats()  # rank 0 prints for all ranks
trainer.accelerator.end_training()  # ends the threads of torch.distributed before the process exits
