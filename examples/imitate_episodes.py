#!/usr/bin/env python3
"""Trains ACT (Action Chunking with Transformers) in PyTorch on batches of weir.Loader, and reports where the time goes.

    examples/imitate_episodes.py --task_name astrobench_dual_arm --ckpt_dir ./ckpt_profile --policy_class ACT \\
        --kl_weight 10 --chunk_size 20 --hidden_dim 512 --batch_size 4 --dim_feedforward 3200 --num_epochs 1 \\
        --lr 1e-5 --seed 0

The data is DATA, --dataset_dir, or $WEIR_DATASETS/TASK_NAME. For comparison, --loader h5py reads the same samples with
h5py and OpenCV in a DataLoader, and prints the same table. Needs PyTorch 1.13 or later, on the CPU or a GPU. On a GPU,
weir.Loader delivers batches in GPU memory, and each stage has a second row with its GPU time.
"""
import argparse
import contextlib
import functools
import glob
import itertools
import math
import os
import pickle
import random
import re
import resource
import sys
import time

os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")  # before torch.cuda starts: more queues
import numpy as np
import torch
import weir  # pip install weir-loader
from torch import nn
from torch.nn import functional as F

if not hasattr(weir, "Loader"):
    sys.exit(f"{weir}: another package of this name; pip uninstall weir weir-loader, then pip install weir-loader")


# ---- the policy ----

class Block(nn.Module):
    """A basic block of ResNet, with GroupNorm because batches are small."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.GroupNorm(16, outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.GroupNorm(16, outputs))
        self.skip = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


def backbone(name):
    """Images (n, 3, H, W) to features (n, 512, H / 32, W / 32), untrained."""
    if name == "resnet18":
        import torchvision
        return nn.Sequential(*list(torchvision.models.resnet18(weights=None).children())[:-2])
    return nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.GroupNorm(16, 64), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
                         Block(64, 64, 1), Block(64, 128, 2), Block(128, 256, 2), Block(256, 512, 2))


def sines(n, dim):
    """Sinusoidal embedding of the positions 0 .. n - 1: (n, dim)."""
    angle = torch.arange(n)[:, None] / 10000 ** (torch.arange(0, dim, 2) / dim)
    return torch.stack([angle.sin(), angle.cos()], 2).flatten(1)


def sines_2d(height, width, dim):
    """Embedding of a feature map's cells: (height * width, dim), half for the row, half for the column."""
    rows = sines(height, dim // 2)[:, None].expand(-1, width, -1)
    columns = sines(width, dim // 2)[None].expand(height, -1, -1)
    return torch.cat([rows, columns], 2).flatten(0, 1)


class ACT(nn.Module):
    """A conditional VAE: an encoder compresses the actions to a latent, and a transformer predicts the actions from the
    latent, the state and the images. Without actions (when the policy acts) the latent is zero."""
    LATENT = 32

    def __init__(self, state_dim, action_dim, o):
        super().__init__()
        dim = o.hidden_dim
        layer = {"d_model": dim, "nhead": 8, "dim_feedforward": o.dim_feedforward, "dropout": 0.1, "batch_first": True}

        def encoder():
            return nn.TransformerEncoder(nn.TransformerEncoderLayer(**layer), 4, enable_nested_tensor=False)
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1))
        self.vae_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.vae_state = nn.Linear(state_dim, dim)
        self.vae_action = nn.Linear(action_dim, dim)
        self.vae_encoder = encoder()
        self.vae_latent = nn.Linear(dim, 2 * self.LATENT)
        self.backbone = backbone(o.backbone)
        self.features = nn.Conv2d(512, dim, 1)
        self.latent = nn.Linear(self.LATENT, dim)
        self.state = nn.Linear(state_dim, dim)
        self.encoder = encoder()
        self.queries = nn.Parameter(torch.randn(1, o.chunk_size, dim))
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**layer), 1)
        self.action = nn.Linear(dim, action_dim)

    def compress(self, qpos, action, is_pad):
        """(latent of these actions, its KL divergence from a standard normal distribution)"""
        tokens = torch.cat([self.vae_token.expand(len(qpos), -1, -1), self.vae_state(qpos)[:, None],
                            self.vae_action(action)], 1)
        tokens = tokens + sines(tokens.shape[1], tokens.shape[2]).to(tokens)
        mask = torch.cat([is_pad.new_zeros(len(qpos), 2), is_pad], 1)
        mean, log_variance = self.vae_latent(self.vae_encoder(tokens, src_key_padding_mask=mask)[:, 0]).chunk(2, 1)
        kl = -0.5 * (1 + log_variance - mean ** 2 - log_variance.exp()).sum(1).mean()
        return mean + (log_variance / 2).exp() * torch.randn_like(mean), kl

    def forward(self, image, qpos, action=None, is_pad=None):
        """image (n, cameras, 3, H, W) in 0..1, qpos (n, state_dim) -> actions (n, chunk_size, action_dim), the KL."""
        latent, kl = qpos.new_zeros(len(qpos), self.LATENT), qpos.new_zeros(())
        if action is not None:
            latent, kl = self.compress(qpos, action, is_pad)
        seen = self.features(self.backbone((image.flatten(0, 1) - self.mean) / self.std))
        places = sines_2d(seen.shape[2], seen.shape[3], seen.shape[1]).to(seen)
        seen = (seen.flatten(2).transpose(1, 2) + places).reshape(len(qpos), -1, seen.shape[1])
        memory = self.encoder(torch.cat([self.latent(latent)[:, None], self.state(qpos)[:, None], seen], 1))
        return self.action(self.decoder(self.queries.expand(len(qpos), -1, -1), memory)), kl

    def loss(self, batch, kl_weight):
        """Mean of |predicted - action| without padding, plus the weighted KL."""
        predicted, kl = self(*batch)
        real = ~batch.is_pad.unsqueeze(-1).expand_as(predicted)
        return ((predicted - batch.action).abs() * real).sum() / real.sum().clamp(min=1) + kl_weight * kl


# ---- batches from Weir ----

def open_weir(o, split):
    return weir.Loader(
        o.data, batch_size=o.batch_size, shuffle=split == "train", num_workers=o.num_workers, seed=o.seed,
        chunk_size=o.chunk_size, cameras=o.cameras, image_size=o.image_size, split=split, train_split=o.train_split,
        max_batches=o.max_batches, rank=0, world_size=1, keys="act", device=o.device if o.weir_cuda else "cpu")


# ---- batches from h5py, OpenCV and DataLoader ----

# Paths of state, actions and cameras in each layout.
LAYOUTS = [("observations/qpos", "action", "observations/images", ""),  # act, act-jpeg
           ("observations/joint_pos", "action/joint_positions", "observations", "rgb_")]  # astrobench


@functools.lru_cache(maxsize=64)
def open_file(path):
    import h5py
    return h5py.File(path)


class Episodes(torch.utils.data.Dataset):
    """One sample per step of every episode: (image, qpos, action, is_pad) and the seconds of its stages, because a
    worker's timers are not in the training process's table."""

    def __init__(self, paths, o, statistics=None):
        self.paths, self.chunk, self.image_size = paths, o.chunk_size, o.image_size
        file = open_file(paths[0])
        layout = next((layout for layout in LAYOUTS if layout[0] in file), None)
        if not layout:
            raise ValueError(f"{paths[0]}: --loader h5py knows act, act-jpeg and astrobench alone; leave it out")
        self.state, self.action, images, prefix = layout
        names = [name for name in sorted(file[images]) if name.startswith(prefix)]
        self.cameras = [f"{images}/{name}" for name in names if not o.cameras or name in o.cameras]
        rows = {"qpos": [open_file(path)[self.state][:] for path in paths],
                "action": [open_file(path)[self.action][:] for path in paths]}
        self.index = [(path, t) for path, steps in zip(paths, rows["qpos"]) for t in range(len(steps))]
        self.statistics = statistics or {}
        for key, values in {} if statistics else rows.items():
            values = np.concatenate(values).astype(np.float64)
            self.statistics |= {f"{key}_mean": values.mean(0), f"{key}_std": values.std(0, ddof=1)}
        open_file.cache_clear()  # forked workers open their own files

    def __len__(self):
        return len(self.index)

    def normalised(self, key, values):
        mean, std = (np.float32(self.statistics[f"{key}_{name}"]) for name in ("mean", "std"))
        return torch.from_numpy((values - mean) / std.clip(1e-2))

    def read_camera(self, frames, t, spent):
        import cv2
        with measured("03a_read_one_camera", spent):
            frame = frames[t]
            if frames.ndim == 4:
                image = frame
            else:
                with measured("03b_image_decode", spent):
                    image = cv2.cvtColor(cv2.imdecode(frame, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
            return cv2.resize(image, self.image_size, interpolation=cv2.INTER_AREA) if self.image_size else image

    def __getitem__(self, i):
        path, t = self.index[i]
        spent = []
        with measured("00_TOTAL_getitem", spent):
            with measured("01_file_cache", spent):
                file = open_file(path)
            with measured("02_read_qpos", spent):
                state = file[self.state][t]
            with measured("03_read_images_total", spent):
                images = [self.read_camera(file[camera], t, spent) for camera in self.cameras]
            with measured("04_read_actions", spent):
                actions = file[self.action][t:t + self.chunk]
            with measured("05_to_tensor_normalize", spent):
                image = torch.stack([torch.from_numpy(image) for image in images]).permute(0, 3, 1, 2).float() / 255
                is_pad = torch.arange(self.chunk) >= len(actions)
                padded = np.zeros((self.chunk, actions.shape[1]), np.float32)
                padded[:len(actions)] = actions
                sample = (image, self.normalised("qpos", state), self.normalised("action", padded), is_pad)
        return sample, spent


@contextlib.contextmanager
def measured(name, spent):
    """Times a block as a stage; in a DataLoader worker, appends (name, seconds) to spent instead."""
    if torch.utils.data.get_worker_info() is None:
        with weir.stage(name):
            yield
        return
    begin = time.perf_counter()
    yield
    spent.append((name, time.perf_counter() - begin))


def collate(samples):
    spent = list(itertools.chain.from_iterable(times for _, times in samples))
    with measured("06_collate", spent):
        batch = weir.Act(*(torch.stack(values) for values in zip(*(sample for sample, _ in samples))))
    return batch, spent


class H5pyLoader:
    """The DataLoader with the attributes of weir.Loader that the training uses."""
    table = staticmethod(weir.table)

    def __init__(self, o, split, statistics):
        paths = sorted(path for path in glob.glob(os.path.join(o.data, "**"), recursive=True)
                       if path.endswith((".hdf5", ".h5"))) or [o.data]
        random.Random(o.seed).shuffle(paths)
        train = max(int(len(paths) * o.train_split), 1)
        self.dataset = Episodes(paths[:train] if split == "train" else paths[train:], o, statistics)
        self.dataset.episodes = paths
        self.generator, self.seed, self.max_batches = torch.Generator(), o.seed, o.max_batches or None
        self.loader = torch.utils.data.DataLoader(
            self.dataset, o.batch_size, shuffle=split == "train", num_workers=o.num_workers, collate_fn=collate,
            pin_memory=o.device.type == "cuda", persistent_workers=o.num_workers > 0, generator=self.generator)

    def set_epoch(self, epoch):
        self.generator.manual_seed(self.seed + epoch)

    def __iter__(self):
        batches = iter(self.loader)
        for _ in range(len(self.loader))[:self.max_batches]:
            with weir.stage("08_wait_for_data"):
                batch, spent = next(batches)
            for name, seconds in spent:
                weir.log_timing(name, seconds, elsewhere=True)
            yield batch

    def close(self):
        self.loader = None


# ---- training ----

def on_device(batch, o):
    """The batch on the device. A copy from pinned memory overlaps with the previous step."""
    if batch.image.device.type == o.device.type:
        return batch
    with weir.stage("07_h2d_copy", cuda=o.weir_cuda):
        return weir.Act(*((t if t.is_pinned() else t.pin_memory()).to(o.device, non_blocking=True) for t in batch))


class Part:
    """Totals of training or validation in an epoch."""

    def __init__(self):
        self.samples = self.images = self.loss = self.waited = self.seconds = 0

    def run(self, loader, o, step):
        begin = asked = time.perf_counter()
        for batch in loader:
            self.waited += time.perf_counter() - asked
            n, cameras = batch.image.shape[:2]
            self.samples, self.images = self.samples + n, self.images + n * cameras
            self.loss += step(on_device(batch, o)) * n  # a tensor, so this does not wait for the GPU
            asked = time.perf_counter()
        self.loss = float(self.loss) / max(self.samples, 1)
        self.seconds = time.perf_counter() - begin
        return self


EPOCH = {"en": ("epoch {}/{} total {:.2f} s | train {:.2f} s | val {:.2f} s | data wait {:.1f} % | {:.1f} samples/s | "
                "{:.1f} images/s | peak memory {:.0f} MiB", " | train loss {:.6f}", " | val loss {:.6f}"),
         "zh": ("Epoch {}/{} 总耗时: {:.2f}s | 训练耗时: {:.2f}s | 验证耗时: {:.2f}s | 数据等待: {:.1f}% | 样本/秒: {:.1f} | "
                "图像/秒: {:.1f} | 峰值内存: {:.2f}GB", " | 训练损失: {:.6f}", " | 验证损失: {:.6f}")}


def epoch_line(o, epoch, train, val):
    head, train_loss, val_loss = EPOCH[o.lang]
    total = train.seconds + val.seconds
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / (1e9 if o.lang == "zh" else 2**20)
    line = head.format(epoch + 1, o.num_epochs, total, train.seconds, val.seconds, 100 * train.waited / train.seconds,
                       (train.samples + val.samples) / total, (train.images + val.images) / total, peak)
    return line + train_loss.format(train.loss) + (val_loss.format(val.loss) if val.samples else "")


def save(value, folder, name):
    """Writes a temporary file and renames it, so that the file is never partial."""
    path = os.path.join(folder, name)
    with open(path + ".part", "wb") as file:
        (pickle.dump if name.endswith(".pkl") else torch.save)(value, file)
    os.replace(path + ".part", path)


class Training:
    def __init__(self, o):
        self.o, self.next_epoch, self.best = o, 0, math.inf
        self.train = open_weir(o, "train") if o.loader == "weir" else H5pyLoader(o, "train", None)
        self.val = []
        if o.train_split < 1 and len(self.train.dataset.episodes) > 1:
            self.val = open_weir(o, "val") if o.loader == "weir" else H5pyLoader(o, "val", self.train.dataset.statistics)
        statistics = {name: np.array(values, np.float32) for name, values in self.train.dataset.statistics.items()}
        torch.manual_seed(o.seed)
        self.policy = ACT(len(statistics["qpos_mean"]), len(statistics["action_mean"]), o).to(o.device)
        self.optimizer = torch.optim.AdamW(self.policy.parameters(), lr=o.lr, weight_decay=o.weight_decay)
        self.amp = torch.autocast(o.device.type, torch.bfloat16, enabled=o.amp)
        if o.ckpt_dir:
            os.makedirs(o.ckpt_dir, exist_ok=True)
            save(statistics, o.ckpt_dir, "dataset_stats.pkl")

    def stage(self, name):
        """A stage of the table, also timed on the GPU if there is one."""
        return weir.stage(name, cuda=self.o.weir_cuda)

    def train_step(self, batch):
        with self.stage("20_train_forward_pass"), self.amp:
            loss = self.policy.loss(batch, self.o.kl_weight)
        with self.stage("21_backward"):
            loss.backward()
        with self.stage("22_optimizer_step"):
            self.optimizer.step()
            self.optimizer.zero_grad()
        if self.profiler:
            self.profiler.step()
        return loss.detach()

    def val_step(self, batch):
        with self.stage("10_val_forward_pass"), torch.no_grad(), self.amp:
            return self.policy.loss(batch, self.o.kl_weight)

    def epoch(self, epoch):
        o = self.o
        torch.manual_seed(o.seed + epoch)  # a resumed run equals an uninterrupted one
        self.train.set_epoch(epoch)
        self.policy.train()
        train = Part().run(self.train, o, self.train_step)
        self.policy.eval()
        val = Part().run(self.val, o, self.val_step)
        print(epoch_line(o, epoch, train, val), flush=True)
        loss = val.loss if val.samples else train.loss
        if not math.isfinite(train.loss) or not math.isfinite(loss):
            sys.exit(f"the loss of epoch {epoch + 1} is {loss}: the training has diverged; try a smaller --lr than {o.lr}")
        with weir.stage("26_checkpoint"):
            self.checkpoint(epoch, loss)

    def checkpoint(self, epoch, loss):
        """policy_best.ckpt and policy_last.ckpt are state_dicts like ACT's; --resume reads resume.ckpt."""
        folder, policy = self.o.ckpt_dir, self.policy.state_dict()
        best, self.best = loss < self.best, min(loss, self.best)
        if not folder:
            return
        if best:
            save(policy, folder, "policy_best.ckpt")
        save(policy, folder, "policy_last.ckpt")
        save({"policy": policy, "optimizer": self.optimizer.state_dict(), "epoch": epoch + 1, "best": self.best}, folder,
             "resume.ckpt")

    def resume(self):
        path = os.path.join(self.o.ckpt_dir, "resume.ckpt")
        if os.path.exists(path):
            state = torch.load(path, map_location=self.o.device)
            self.policy.load_state_dict(state["policy"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.next_epoch, self.best = state["epoch"], state["best"]
            print(f"resuming after epoch {self.next_epoch} of {path}", file=sys.stderr)

    def run(self):
        o = self.o
        try:
            with open_profiler(o) as self.profiler:
                for epoch in range(self.next_epoch, o.num_epochs):
                    self.epoch(epoch)
                    if o.every and (epoch + 1) % o.every == 0 and epoch + 1 < o.num_epochs:
                        print(self.train.table(o.lang), end="", flush=True)
        finally:  # also after Ctrl-C
            print(self.train.table(o.lang, whole=True), end="", flush=True)
            self.train.close()


def open_profiler(o):
    if not o.profile:
        return contextlib.nullcontext()
    return weir.profile(schedule=weir.schedule(wait=1, warmup=1, active=3, repeat=1),
                        on_trace_ready=weir.tensorboard_trace_handler(o.profile))


def has_weir_cuda(device):
    """Whether weir can deliver batches on this device and time it. Training works without."""
    if device.type == "cpu":
        return False
    try:
        weir.stage("20_train_forward_pass", cuda=True)
    except weir.Error as error:
        print(f"batches are made in the host's memory and copied, and stages have no GPU time: {error}",
              file=sys.stderr)
        return False
    return True


# ---- the command line ----

UNUSED = ("temporal_agg", "onscreen_render")


def options():
    p = argparse.ArgumentParser(description="Trains ACT on episodes, and reports where each step's time goes.",
                                formatter_class=argparse.ArgumentDefaultsHelpFormatter, allow_abbrev=False)
    p.add_argument("data", nargs="?", metavar="DATA", help="file or folder of episodes")
    p.add_argument("--dataset_dir", metavar="DIR", help="alternative to DATA")
    p.add_argument("--task_name", metavar="NAME", help="alternative to DATA: $WEIR_DATASETS/NAME")
    p.add_argument("--loader", choices=["weir", "h5py"], default="weir", help="loader that reads the data")
    p.add_argument("--num_workers", help="threads, or processes with h5py; auto: all cores, or a quarter of them with "
                   "--device cpu", default="auto")
    p.add_argument("--cameras", type=lambda text: text.split(","), metavar="A,B", help="default: all except depth")
    p.add_argument("--image_size", metavar="WxH", type=lambda text: tuple(int(n) for n in text.split("x")),
                   help="size of images (default as stored)")
    p.add_argument("--train_split", type=float, default=0.9, metavar="F", help="fraction of episodes to train on")
    p.add_argument("--max_batches", type=int, default=0, metavar="N", help="batches per epoch; 0: all")
    p.add_argument("--batch_size", type=int, default=8, metavar="N")
    p.add_argument("--chunk_size", type=int, default=20, metavar="N", help="actions to predict")
    p.add_argument("--num_epochs", type=int, default=1, metavar="N")
    p.add_argument("--seed", type=int, default=0, metavar="N")
    p.add_argument("--policy_class", choices=["ACT"], default="ACT")
    p.add_argument("--backbone", choices=["small", "resnet18"], default="small", help="resnet18: torchvision's, untrained")
    p.add_argument("--hidden_dim", type=int, default=512, metavar="N")
    p.add_argument("--dim_feedforward", type=int, default=3200, metavar="N")
    p.add_argument("--kl_weight", type=float, default=10, metavar="F")
    p.add_argument("--lr", type=float, default=1e-5, metavar="F", help="learning rate of AdamW")
    p.add_argument("--weight_decay", type=float, default=1e-4, metavar="F")
    p.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    p.add_argument("--amp", action="store_true", help="bfloat16 on a GPU; the CPU computes in float32")
    p.add_argument("--ckpt_dir", metavar="DIR", help="folder for checkpoints (default: none are saved)")
    p.add_argument("--resume", action="store_true", help="resume from --ckpt_dir if it has a checkpoint")
    p.add_argument("--lang", choices=["en", "zh"], default="en", help="language of the table and the epochs' lines")
    p.add_argument("--every", type=int, default=10, metavar="N", help="epochs between tables; 0: only at the end")
    p.add_argument("--profile", metavar="DIR", help="folder for a trace of steps 2 to 4, for TensorBoard and Perfetto")
    for name in UNUSED:
        p.add_argument("--" + name, action="store_true", help="accepted but ignored")
    # --batch-size is the same as --batch_size
    return p, p.parse_args([re.sub(r"^--[^=]+", lambda name: "--" + name[0][2:].replace("-", "_"), word)
                            for word in sys.argv[1:]])


def main():
    p, o = options()
    folder = os.environ.get("WEIR_DATASETS")
    o.data = o.data or o.dataset_dir or (folder and o.task_name and os.path.join(folder, o.task_name))
    if not o.data:
        p.error("no data is given; pass DATA or --dataset_dir DIR, or put it into $WEIR_DATASETS/NAME and pass "
                "--task_name NAME")
    if o.hidden_dim % 8:
        p.error(f"--hidden_dim {o.hidden_dim}: must be a multiple of 8, for 8 attention heads")
    if o.resume and not o.ckpt_dir:
        p.error("--resume needs a checkpoint; add --ckpt_dir DIR")
    if o.device == "cuda" and not torch.cuda.is_available():
        p.error("--device cuda: torch has no GPU here; leave it out, or install a torch with CUDA")
    o.device = torch.device("cuda" if o.device == "auto" and torch.cuda.is_available() else
                            "cpu" if o.device == "auto" else o.device)
    o.weir_cuda = has_weir_cuda(o.device)
    cores, on_cpu = len(os.sched_getaffinity(0)), o.device.type == "cpu"
    o.num_workers = int(o.num_workers) if o.num_workers != "auto" else max(cores // 4, 1) if on_cpu else cores
    if on_cpu:
        torch.set_num_threads(max(cores - o.num_workers, 1))
    ignored = [name for name in UNUSED if getattr(o, name)]
    if ignored:
        print(f"not used by ACT: {', '.join('--' + name for name in ignored)}", file=sys.stderr)
    if o.amp and on_cpu:
        print("--amp is ignored: the CPU computes in float32", file=sys.stderr)
        o.amp = False
    # On a GPU avoid the legacy default stream, which slows down the JPEG engines.
    with contextlib.nullcontext() if on_cpu else torch.cuda.stream(torch.cuda.Stream()):
        training = Training(o)
        if o.resume:
            training.resume()
        parameters = sum(p.numel() for p in training.policy.parameters())
        print(f"policy: ACT, {parameters} parameters; torch {torch.__version__}, {o.device}; {o.loader}: {o.num_workers} "
              "workers", file=sys.stderr)
        training.run()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except (weir.Error, ImportError, OSError, ValueError) as error:
        sys.exit(f"imitate_episodes: {error}")
