#!/usr/bin/env python3
"""The loops of weir scenario in torch, for weir report: scenario_torch.py DIR SCENARIO...

Writes DIR/SCENARIO.pt.trace.json for each, using torch.profiler with shapes and memory. memory_churn needs
PYTORCH_NO_CUDA_MEMORY_CACHING=1 in the environment. The network is that of weir scenario. sync has larger batches,
because torch takes tens of us per operation, and short kernels would make every loop launch-bound."""
import os
import sys
import time

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader, Dataset

WARMUP_STEPS, PROFILE_STEPS, SIDE, OUTPUTS, TINY_OPS, TEMPORARIES = 5, 8, 64, 1024, 200, 24
BATCH = {"dataloader": 64, "sync": 256, "tiny_ops": 64, "memory_churn": 64}
STEPS = WARMUP_STEPS + 2 + PROFILE_STEPS


class SlowItems(Dataset):
    """2 ms of simulated I/O and 4000 units of CPU work per item, as in scenario dataloader."""

    def __len__(self):
        return 2048

    def __getitem__(self, i):
        time.sleep(0.002)
        for _ in range(4000):
            pass
        generator = torch.Generator().manual_seed(i)
        return torch.rand(3, SIDE, SIDE, generator=generator), torch.rand(OUTPUTS, generator=generator)


class ReadyBatches(Dataset):
    """Ready batches in pinned memory, so that the other loops do not wait for data."""

    def __init__(self, batch):
        self.batches = [(torch.rand(batch, 3, SIDE, SIDE).pin_memory(), torch.rand(batch, OUTPUTS).pin_memory())
                        for _ in range(2)]

    def __len__(self):
        return 2 * STEPS

    def __getitem__(self, i):
        return self.batches[i % len(self.batches)]


class TinyOps(nn.Module):
    """A linear layer, and a chain of operations with one kernel each."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(512, 512)

    def forward(self, x):
        x = self.linear(x)
        for _ in range(TINY_OPS):
            x = x * 0.999
        return x


def network(scenario):
    layers = []
    for before, after in ((3, 256), (256, 512), (512, 512)):
        layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.ReLU()]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    if scenario == "tiny_ops":
        layers.append(TinyOps())
    return nn.Sequential(*layers, nn.Linear(512, 4096), nn.ReLU(), nn.Linear(4096, OUTPUTS)).cuda()


def use_value(value):
    """Takes 0.8 ms, like a progress bar or a log line."""
    until = time.perf_counter() + 0.0008
    while time.perf_counter() < until:
        pass
    return value


def churn():
    """Allocates a third of a step's temporaries."""
    for i in range(TEMPORARIES // 3):
        torch.empty((1 + i % 4) << 18, device="cuda").fill_(1)


def step(scenario, model, optimizer, batch):
    images, targets = (t.cuda(non_blocking=True) for t in batch)
    output = model(images)
    loss = nn.functional.l1_loss(output, targets)
    if scenario == "memory_churn":
        churn()
    if scenario == "sync":
        use_value(loss.item())
        use_value(output.detach().abs().max().item())  # two of them: PyTorch's launches take longer than the command's
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    if scenario == "memory_churn":
        churn()
    optimizer.step()
    if scenario == "memory_churn":
        churn()


def loader(scenario):
    if scenario == "dataloader":
        return DataLoader(SlowItems(), batch_size=BATCH[scenario], shuffle=True, num_workers=2, prefetch_factor=2,
                          pin_memory=True, drop_last=True)
    return DataLoader(ReadyBatches(BATCH[scenario]), batch_size=None)


def run(folder, scenario):
    torch.manual_seed(0)
    model = network(scenario)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    batches = iter(loader(scenario))
    path = os.path.join(folder, f"{scenario}.pt.trace.json")
    took = []

    def one_step():
        start = time.perf_counter()
        step(scenario, model, optimizer, next(batches))
        with record_function("measurement"):
            torch.cuda.synchronize()
        took.append(time.perf_counter() - start)

    for _ in range(WARMUP_STEPS):
        one_step()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True, profile_memory=True,
                 schedule=schedule(wait=1, warmup=1, active=PROFILE_STEPS, repeat=1),
                 on_trace_ready=lambda p: p.export_chrome_trace(path)) as profiler:
        for _ in range(2 + PROFILE_STEPS):
            one_step()
            profiler.step()
    recorded = took[-PROFILE_STEPS:]
    print(f"{scenario}: average iteration {1e3 * sum(recorded) / len(recorded):.3f} ms, batches of {BATCH[scenario]}", flush=True)


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}", flush=True)
    for scenario in sys.argv[2:]:
        if scenario == "memory_churn" and os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING") != "1":
            sys.exit("memory_churn: set PYTORCH_NO_CUDA_MEMORY_CACHING=1: the caching allocator removes the churn")
        run(sys.argv[1], scenario)


if __name__ == "__main__":
    main()
