"""A training loop with weir.Loader: examples/plain.py DATA [EPOCHS]. Needs torch."""
import sys

import torch
import weir  # pip install weir-loader

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


with weir.Loader(sys.argv[1], batch_size=8, chunk_size=20) as loader:
    sizes = [len(loader.dataset.statistics[name]) for name in ("qpos_mean", "action_mean")]
    policy = Policy(len(loader.dataset.cameras), *sizes, 20)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-4)
    for epoch in range(int((sys.argv + ["2"])[2])):
        for batch in loader:
            with weir.stage("20_train_forward_pass"):
                error = (policy(batch["image"], batch["qpos"]) - batch["action"]).abs()
                loss = (error * ~batch["is_pad"].unsqueeze(-1)).mean()
            with weir.stage("22_optimizer_step"):
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f}")
    weir.print_timing_stats()
