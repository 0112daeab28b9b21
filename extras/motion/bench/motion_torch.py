#!/usr/bin/env python3
"""Compares a motion step in torch, eager and compiled, with Weir's motion_sides: extras/motion/bench/motion_torch.py
[--num-envs 4096]. Clips, queries and formulas are the same, on the CPU or on GPU 0 (--device cuda).

Eager runs the trainer's operators one by one (like extras/motion/motion_eager.c, with the same names). Compiled is
torch.compile of the same function, on a GPU with mode="reduce-overhead". That mode does not use CUDA graphs for a
function that modifies its inputs (buffers, times), so "torch.compile, pure" compiles one that returns new memory, and
advances the times outside.

First compares all results, then prints the median and min ms per step and each side's time relative to Weir's fused
variant. Trials of several steps are interleaved. Stop other processes. Needs torch; compiling needs torch 2, and g++ on
the CPU."""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch

RESULTS = ("root_pos_w", "root_quat", "root_vel_w", "root_vel_b", "root_ang_vel_w", "root_ang_vel_b", "dof_pos", "dof_vel",
           "key_body_pos_b")
PARTS = ("root_pos_w", "root_quat", "root_vel_w", "root_ang_vel_w", "dof_pos", "dof_vel", "key_body_pos_w")
BELOW_ONE = 1 - 2.0 ** -24
cross = getattr(torch.linalg, "cross", torch.cross)


def slerp(q0, q1, blend):
    """Unit quaternions w x y z; blend [n, 1]."""
    dot = (q0 * q1).sum(-1, keepdim=True)
    q1 = torch.where(dot < 0, -q1, q1)
    angle = dot.abs().clamp(max=BELOW_ONE).acos()
    sine = angle.sin()
    return q0 * (((1 - blend) * angle).sin() / sine) + q1 * ((blend * angle).sin() / sine)


def turn_back(quat, v):
    """Rotates vectors [n, 3] by the inverse of quaternions [n, 4]."""
    axis = quat[:, 1:]
    t = cross(axis, v, dim=-1) * 2
    return torch.addcmul(v, quat[:, :1], t, value=-1) + cross(axis, t, dim=-1)


class Motion:
    """Clips and queries from the file of motion_sides --dump, and their results."""

    def __init__(self, path, device):
        with open(path, "rb") as f:
            def take(dtype, *shape):
                n = 1
                for size in shape:
                    n *= size
                data = bytearray(f.read(n * torch.empty(0, dtype=dtype).element_size()))
                return torch.frombuffer(data, dtype=dtype).view(*shape).to(device)

            clips, frames, dofs, bodies, envs, steps = take(torch.int64, 6).tolist()
            table = take(torch.int64, clips, 3)
            self.first, self.frames, self.loops = table[:, 0].contiguous(), table[:, 1].contiguous(), table[:, 2] != 0
            self.duration = take(torch.float32, clips)
            widths = {"root_quat": (4,), "dof_pos": (dofs,), "dof_vel": (dofs,), "key_body_pos_w": (bodies, 3),
                      "key_body_pos_b": (bodies, 3)}
            self.parts = [take(torch.float32, frames, *widths.get(name, (3,))) for name in PARTS]
            self.clip_of = take(torch.int64, envs)
            self.times = take(torch.float32, envs, steps)
            self.wanted = {name: take(torch.float32, envs, steps, *widths.get(name, (3,))) for name in RESULTS}
        self.buffers = {name: torch.zeros_like(x) for name, x in self.wanted.items()}
        self.envs, self.steps, self.bodies, self.device = envs, steps, bodies, device

    def place(self, clips, times):
        frames, duration, loops, first = (x[clips] for x in (self.frames, self.duration, self.loops, self.first))
        phase = times / duration
        phase = torch.where(loops, phase - phase.floor(), phase).clamp(0, 1)
        last = frames - 1
        at = phase * last
        frame = at.long()
        after = torch.minimum(frame + 1, last)
        return frame + first, after + first, (at - frame).unsqueeze(-1)

    def state(self, clips, times):
        frame0, frame1, blend = self.place(clips, times)
        a, b = zip(*((x[frame0], x[frame1]) for x in self.parts))
        quat = slerp(a[1], b[1], blend)
        pos, vel, ang_vel, dof_pos, dof_vel = (torch.lerp(a[i], b[i], blend) for i in (0, 2, 3, 4, 5))
        body = torch.lerp(a[6], b[6], blend.unsqueeze(-1))
        vel_b, ang_vel_b = turn_back(quat, vel), turn_back(quat, ang_vel)
        apart = body - pos.unsqueeze(1)
        quats = quat.unsqueeze(1).expand(-1, self.bodies, -1).reshape(-1, 4)
        body_b = turn_back(quats, apart.view(-1, 3)).view_as(apart)
        return dict(zip(RESULTS, (pos, quat, vel, vel_b, ang_vel, ang_vel_b, dof_pos, dof_vel, body_b)))

    def fetch(self):
        envs = torch.arange(self.envs, device=self.device)
        times = self.times[envs].reshape(-1)
        clips = self.clip_of[envs].repeat_interleave(self.steps)
        for name, x in self.state(clips, times).items():
            self.buffers[name][envs] = x.view(self.envs, self.steps, *x.shape[1:])

    def update(self):
        self.fetch()
        self.times += 0.02

    def pure(self, times):
        """All results, in new memory."""
        clips = self.clip_of.repeat_interleave(self.steps)
        return tuple(x.view(self.envs, self.steps, *x.shape[1:]) for x in self.state(clips, times.reshape(-1)).values())

    def compare(self):
        """Max difference, relative to the largest value of its result."""
        self.fetch()
        worst = 0
        for name, x in self.wanted.items():
            worst = max(worst, ((self.buffers[name] - x).abs().max() / x.abs().max().clamp(min=1)).item())
        return worst


class Torch:
    """A side that runs torch."""

    def __init__(self, motion, update, in_a_row):
        self.motion, self.update, self.in_a_row = motion, update, in_a_row

    def wait(self):
        if self.motion.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def turn(self):
        start = self.wait()
        for _ in range(self.in_a_row):
            self.update()
        return 1e3 * (self.wait() - start) / self.in_a_row


class Weir:
    """A side that runs in motion_sides."""

    def __init__(self, process, name):
        self.process, self.name = process, name

    def turn(self):
        self.process.stdin.write(self.name + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def compiled(motion, in_a_row):
    """({name: side} of torch.compile, None), or ({}, reason)."""
    if not hasattr(torch, "compile"):
        return {}, f"torch {torch.__version__} has no torch.compile"
    mode = {"mode": "reduce-overhead"} if motion.device == "cuda" else {}
    pure = torch.compile(motion.pure, dynamic=False, fullgraph=True, **mode)

    begin_step = getattr(getattr(torch, "compiler", None), "cudagraph_mark_step_begin", lambda: None)

    def pure_update():
        begin_step()
        results = pure(motion.times)
        motion.times += 0.02
        return results

    update = torch.compile(motion.update, dynamic=False, fullgraph=True, **mode)
    sides = {"torch.compile": Torch(motion, update, in_a_row), "torch.compile, pure": Torch(motion, pure_update, in_a_row)}
    try:
        for side in sides.values():
            for _ in range(3):
                side.update()
        return sides, None
    except Exception as error:  # pylint: disable=broad-except # compilers raise many types
        return {}, "torch.compile: " + (str(error).strip().splitlines() or [repr(error)])[0]


def options():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--num-envs", type=int, default=4096)
    parser.add_argument("--num-steps-to-use", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--in-a-row", type=int, default=20, help="steps per trial")
    parser.add_argument("--rounds", type=int, default=30, help="timed rounds, after two untimed ones")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--sides", default="fused,ops", help="sides of motion_sides")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--build", default=os.path.join(here, "../../../build/release"))
    return parser.parse_args()


def take_turns(sides, rounds):
    times = {name: [] for name in sides}
    order = list(sides)
    for turn in range(rounds + 2):
        for name in order[turn % len(order):] + order[:turn % len(order)]:
            ms = sides[name].turn()
            if turn >= 2:
                times[name].append(ms)
    return times


def main():
    o = options()
    torch.set_num_threads(o.threads)
    torch.set_grad_enabled(False)
    arguments = [f"--{name}={getattr(o, name.replace('-', '_'))}"
                 for name in ("num-envs", "num-steps-to-use", "threads", "in-a-row", "sides")]
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "queries")
        process = subprocess.Popen([os.path.join(o.build, "bench/motion_sides"), "--serve", "--dump", path, *arguments]
                                   + ["--cuda"] * (o.device == "cuda"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        head = process.stdout.readline().strip()
        # It replies when the file is complete.
        if not head or Weir(process, "fused").turn() <= 0:
            sys.exit("motion_sides failed")
        motion = Motion(path, o.device)
    where = torch.cuda.get_device_name() if o.device == "cuda" else f"{torch.get_num_threads()} threads"
    print(f"torch {torch.__version__}, {where}; Weir: {head}")
    print(f"results differ by at most {motion.compare():.2g} of the largest number")
    sides = {"torch eager": Torch(motion, motion.update, o.in_a_row)}
    more, why = ({}, "not asked for") if o.no_compile else compiled(motion, o.in_a_row)
    sides.update(more)
    if not more:
        print("not compiled:", why)
    sides.update({f"Weir {name}": Weir(process, name) for name in o.sides.split(",")})
    times = take_turns(sides, o.rounds)
    process.stdin.close()
    process.wait()
    print(f"{'ms per step':20} {'median':>10} {'least':>10} {'queries/s':>14} {'/ Weir fused':>14}")
    for name, ms in times.items():
        ratio = statistics.median(a / b for a, b in zip(ms, times["Weir fused"]))
        rate = o.num_envs * o.num_steps_to_use / statistics.median(ms) * 1e3
        print(f"{name:20} {statistics.median(ms):10.4f} {min(ms):10.4f} {rate:14.0f} {ratio:14.2f}")


if __name__ == "__main__":
    main()
