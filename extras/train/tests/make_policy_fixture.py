#!/usr/bin/env python3
"""Writes policy_torch.txt next to this file: torch's results in double for the policy and batch of policy_fixture.c. It
contains one line per parameter tensor with its gradient's norm, randomly weighted sum and some values; three losses;
and the same lines for the parameters after three AdamW steps. Needs torch (Debian: python3-torch); the tests do not."""
import os
import sys

import numpy
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../bench"))
from train_torch import Policy, masked_l1  # noqa: E402

CAMERAS = {"top": (37, 50), "wrist": (24, 33)}
STATE, ACTION, CHUNK, HIDDEN, FEEDFORWARD, BATCH = 5, 3, 4, 16, 24, 3
SEED, BATCH_SEED, PROJECTION_SEED, SAMPLES, STEPS = 7, 1, 1000, 8, 3


def uniforms(seed, first, count):
    """Numbers first .. first+count-1 of splitmix64, from -1 to 1."""
    with numpy.errstate(over="ignore"):
        z = numpy.uint64(seed) + numpy.uint64(0x9e3779b97f4a7c15) * numpy.arange(first + 1, first + count + 1, dtype=numpy.uint64)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94d049bb133111eb)
        z = z ^ (z >> numpy.uint64(31))
    return (z >> numpy.uint64(11)).astype(numpy.float64) * 2.0 ** -52 - 1


def as_float32(values, *shape):
    return torch.from_numpy(values.astype(numpy.float32).astype(numpy.float64)).view(*shape)


def initialise(policy):
    """Same as weir_parameters_initialise."""
    drawn = 0
    for name, parameter in policy.named_parameters():
        if name.endswith(".bias"):
            parameter.data.zero_()
            continue
        fan_in = parameter[0].numel()
        values = uniforms(SEED, drawn, parameter.numel()) * numpy.sqrt(6 / fan_in)
        parameter.data.copy_(as_float32(values, *parameter.shape))
        drawn += parameter.numel()


def line(kind, name, tensor):
    values = tensor.detach().numpy().reshape(-1)
    samples = [values[i * len(values) // SAMPLES] for i in range(SAMPLES)]
    numbers = [numpy.linalg.norm(values), values @ uniforms(PROJECTION_SEED, 0, len(values)), *samples]
    return f"{kind} {name} " + " ".join(f"{number:.15g}" for number in numbers)


def main():
    policy = Policy(CAMERAS, STATE, ACTION, CHUNK, HIDDEN, FEEDFORWARD).double()
    initialise(policy)
    images = [as_float32((uniforms(BATCH_SEED + i, 0, BATCH * 3 * h * w) + 1) / 2, BATCH, 3, h, w)
              for i, (h, w) in enumerate(CAMERAS.values())]
    state = as_float32(uniforms(BATCH_SEED + 100, 0, BATCH * STATE), BATCH, STATE)
    actions = as_float32(uniforms(BATCH_SEED + 101, 0, BATCH * CHUNK * ACTION), BATCH, CHUNK, ACTION)
    is_pad = torch.zeros(BATCH, CHUNK, dtype=torch.bool)
    is_pad[1, CHUNK // 2:] = True
    is_pad[2, 1:] = True
    optimiser = torch.optim.AdamW(policy.parameters(), lr=1e-3, weight_decay=0.1)
    lines, losses = [f"# written by make_policy_fixture.py with torch {torch.__version__}"], []
    for step in range(STEPS):
        optimiser.zero_grad()
        loss = masked_l1(policy(images, state), actions, is_pad)
        loss.backward()
        losses.append(f"{loss.item():.15g}")
        if step == 0:
            lines += [line("gradient", name, parameter.grad) for name, parameter in policy.named_parameters()]
        optimiser.step()
    lines += losses + [line("parameter", name, parameter) for name, parameter in policy.named_parameters()]
    with open(os.path.join(HERE, "policy_torch.txt"), "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
