"""A training loop with Accelerate and weir.Loader: accelerate launch --num_processes 2
examples/with_accelerate.py DATA [EPOCHS]. Needs torch, accelerate."""
import sys

import torch
import weir  # pip install weir-loader
from accelerate import Accelerator

if not hasattr(weir, "Loader"):
    sys.exit(f"{weir}: another package of this name; pip uninstall weir weir-loader, then pip install weir-loader")


class Policy(torch.nn.Module):
    def __init__(self, cameras, qpos, action, chunk):
        super().__init__()
        self.chunk = chunk
        self.see = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 8, 8), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4))
        self.act = torch.nn.Linear(cameras * 8 * 16 + qpos, chunk * action)

    def forward(self, image, qpos):
        seen = self.see(image.flatten(0, 1).float() / 255).reshape(len(qpos), -1)
        return self.act(torch.cat([seen, qpos], 1)).reshape(len(qpos), self.chunk, -1)


# Open the loader after Accelerator(), which initialises torch.distributed and so gives the loader its rank. Do not pass
# it to prepare(), which would divide it among the processes again.
accelerator = Accelerator(cpu=not torch.cuda.is_available())
with weir.Loader(sys.argv[1], batch_size=8) as loader:
    sizes = [len(loader.dataset.statistics[name]) for name in ("qpos_mean", "action_mean")]
    policy = Policy(len(loader.dataset.cameras), *sizes, 20)
    policy, optimizer = accelerator.prepare(policy, torch.optim.AdamW(policy.parameters(), lr=1e-4))
    for epoch in range(int((sys.argv + ["1"])[2])):
        for batch in loader:
            batch = {key: value.to(accelerator.device) for key, value in batch.items()}
            with weir.stage("20_train_forward_pass"):
                error = (policy(batch["image"], batch["qpos"]) - batch["action"]).abs()
                loss = (error * ~batch["is_pad"].unsqueeze(-1)).mean()
            with weir.stage("21_backward"):
                accelerator.backward(loss)
            with weir.stage("22_optimizer_step"):
                optimizer.step()
                optimizer.zero_grad()
        accelerator.print(f"epoch {epoch} loss {loss.item():.3f}")
    weir.print_timing_stats()  # rank 0 prints for all ranks
accelerator.end_training()  # ends the threads of torch.distributed, which otherwise may abort the process at its exit
