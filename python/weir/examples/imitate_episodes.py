#!/usr/bin/env python3
"""Trains ACT (Action Chunking with Transformers) in PyTorch on batches of weir.Loader, and reports where the time goes.

    python -m weir.examples.imitate_episodes --task_name astrobench_dual_arm --ckpt_dir ./ckpt_profile \\
        --policy_class ACT --kl_weight 10 --chunk_size 20 --hidden_dim 512 --batch_size 4 --dim_feedforward 3200 \\
        --num_epochs 1 --lr 1e-5 --seed 0

`weir train --policy_class ACT ...` starts the same. The data is DATA, --dataset_dir, or $WEIR_DATASETS/TASK_NAME. For
comparison, --loader h5py reads the same samples with h5py and OpenCV in a DataLoader, and prints the same table. Needs
PyTorch 1.13 or later, on the CPU or a GPU. On a GPU, weir.Loader delivers batches in GPU memory, and each stage has a
second row with its GPU time.
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
try:
    import numpy as np
    import torch
    from weir.examples.act_policy import ACT, BACKBONES
except ImportError as error:
    sys.exit(f"imitate_episodes: {sys.executable} cannot import {error.name or 'torch'} ({error}); run "
             f"{sys.executable} -m pip install weir-loader torch numpy")
import weir

try:
    weir.Loader
except AttributeError as error:
    sys.exit(f"imitate_episodes: {error}")


# ---- batches from Weir ----

def open_weir(o, split):
    return weir.Loader(
        o.data, batch_size=o.batch_size, shuffle=split == "train", num_workers=o.num_workers, seed=o.seed,
        chunk_size=o.chunk_size, cameras=o.cameras, image_size=o.image_size, split=split, train_split=o.train_split,
        max_batches=o.max_batches, decode_cache=o.decode_cache, prefetch_factor=o.prefetch_factor or "auto", rank=0, world_size=1,
        keys="act", device=o.device if o.weir_cuda else "cpu")


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


def read_checkpoint(path, device):
    try:
        # The restricted reader of torch 1.13 refuses numbers, which resume.ckpt contains.
        return torch.load(path, map_location=device, weights_only=int(torch.__version__.split(".")[0]) > 1)
    except (RuntimeError, pickle.UnpicklingError, EOFError) as error:
        raise ValueError(f"{path} is not a checkpoint: {' '.join(str(error).split())[:200]}") from None


BEST = "policy_best.ckpt"


class Training:
    def __init__(self, o):
        self.o, self.next_epoch, self.best = o, 0, math.inf
        self.train = open_weir(o, "train") if o.loader == "weir" else H5pyLoader(o, "train", None)
        self.val = []
        if o.train_split < 1 and len(self.train.dataset.episodes) > 1:
            self.val = open_weir(o, "val") if o.loader == "weir" else H5pyLoader(o, "val", self.train.dataset.statistics)
        statistics = {name: np.array(values, np.float32) for name, values in self.train.dataset.statistics.items()}
        torch.manual_seed(o.seed)
        self.policy = ACT(len(statistics["qpos_mean"]), len(statistics["action_mean"]),
                          **{name: getattr(o, name) for name in POLICY}).to(o.device)
        self.optimizer = torch.optim.AdamW(self.parameter_groups(), lr=o.lr, weight_decay=o.weight_decay)
        self.pending = 0  # batches since the last optimizer step
        self.amp = torch.autocast(o.device.type, torch.bfloat16, enabled=o.amp)
        if o.ckpt_dir and not o.eval:
            os.makedirs(o.ckpt_dir, exist_ok=True)
            save(statistics, o.ckpt_dir, "dataset_stats.pkl")

    def stage(self, name):
        """A stage of the table, also timed on the GPU if there is one."""
        return weir.stage(name, cuda=self.o.weir_cuda)

    def parameter_groups(self):
        o, named = self.o, list(self.policy.named_parameters())
        if o.lr_backbone is None:
            return [p for _, p in named]
        return [{"params": [p for name, p in named if not name.startswith("backbone.")]},
                {"params": [p for name, p in named if name.startswith("backbone.")], "lr": o.lr_backbone}]

    def train_step(self, batch):
        with self.stage("20_train_forward_pass"), self.amp:
            loss = self.policy.loss(batch, self.o.kl_weight)
        with self.stage("21_backward"):
            loss.backward()
        self.pending += 1
        if self.pending == self.o.grad_accumulation:
            self.optimizer_step()
        if self.profiler:
            self.profiler.step()
        return loss.detach()

    def optimizer_step(self):
        """A step along the mean gradient of the pending batches."""
        with self.stage("22_optimizer_step"):
            for p in self.policy.parameters() if self.pending > 1 else ():
                if p.grad is not None:
                    p.grad /= self.pending
            self.optimizer.step()
            self.optimizer.zero_grad()
        self.pending = 0

    def val_step(self, batch):
        with self.stage("10_val_forward_pass"), torch.no_grad(), self.amp:
            return self.policy.loss(batch, self.o.kl_weight)

    def validate(self):
        torch.manual_seed(self.o.seed)  # the latent is a sample: the same policy gets the same loss
        self.policy.eval()
        return Part().run(self.val, self.o, self.val_step)

    def evaluate(self):
        """--eval: the validation loss of the best checkpoint."""
        path = os.path.join(self.o.ckpt_dir, BEST)
        if not self.val:
            raise ValueError(f"--eval: the validation split is empty (--train_split {self.o.train_split}, "
                             f"{len(self.train.dataset.episodes)} episodes); use a smaller --train_split")
        if not os.path.exists(path):
            raise ValueError(f"--eval: {path} does not exist; train with this --ckpt_dir first")
        self.load(path, read_checkpoint(path, self.o.device))
        val = self.validate()
        print(f"{path}: val loss {val.loss:.6f}, {val.samples} samples")
        print("success rates need ACT's simulator or a robot, which weir does not have", file=sys.stderr)
        self.train.close()

    def load(self, path, policy, optimizer=None):
        try:
            self.policy.load_state_dict(policy)
            if optimizer is not None:
                self.optimizer.load_state_dict(optimizer)
        except (RuntimeError, ValueError) as error:
            raise ValueError(f"{path} does not fit this policy; use the options that it was trained with: "
                             f"{' '.join(str(error).split())[:200]}") from None

    def epoch(self, epoch):
        o = self.o
        torch.manual_seed(o.seed + epoch)  # a resumed run equals an uninterrupted one
        self.train.set_epoch(epoch)
        self.policy.train()
        train = Part().run(self.train, o, self.train_step)
        if self.pending:  # a checkpoint has no gradients
            self.optimizer_step()
        val = self.validate()
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
            save(policy, folder, BEST)
        save(policy, folder, "policy_last.ckpt")
        save({"policy": policy, "optimizer": self.optimizer.state_dict(), "epoch": epoch + 1, "best": self.best}, folder,
             "resume.ckpt")

    def resume(self):
        path = os.path.join(self.o.ckpt_dir, "resume.ckpt")
        if os.path.exists(path):
            state = read_checkpoint(path, self.o.device)
            self.load(path, state["policy"], state["optimizer"])
            self.next_epoch, self.best = state["epoch"], state["best"]
            print(f"resuming after epoch {self.next_epoch} of {path}", file=sys.stderr)

    def run(self):
        o = self.o
        weir.reset()  # the loader's workers waited while the policy was built
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

# The options of the policy: keywords of ACT.
POLICY = ("chunk_size", "hidden_dim", "dim_feedforward", "backbone", "enc_layers", "dec_layers", "nheads", "dropout", "pre_norm",
          "grad_checkpoint")

ROLLOUT = "it needs ACT's simulator or a robot, which weir does not have; leave it out"
UNUSED = "ACT's own script parses it and does not use it; leave it out"
EVERY_EPOCH = "validation and checkpoints follow every epoch; leave it out"
VQ = "the latent is Gaussian, as in ACT's paper; leave it out"
# Options of ACT, of the DETR parser that it includes, and of ACT++ that have no effect here, and why.
REFUSED = {
    "onscreen_render": ROLLOUT, "temporal_agg": ROLLOUT, "eval_every": ROLLOUT, "actuator_network_dir": ROLLOUT,
    "num_queries": "the policy has one query per action; use --chunk_size", "epochs": "use --num_epochs",
    "num_steps": "use --num_epochs, and --max_batches for shorter epochs", "masks": "ACT segments no images; leave it out",
    "dilation": "the backbones have no dilated form; leave it out", "lr_drop": UNUSED, "clip_max_norm": UNUSED,
    "validate_every": EVERY_EPOCH, "save_every": EVERY_EPOCH, "resume_ckpt_path": "use --resume, which reads --ckpt_dir",
    "load_pretrain": "use --resume, which reads --ckpt_dir", "use_vq": VQ, "vq_class": VQ, "vq_dim": VQ,
    "action_dim": "the data has it; leave it out", "config": "only the CNN of weir train reads a settings file; type the options"}


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"imitate_episodes: {message}\nTry: {self.prog} --help\n")


class Help(argparse.ArgumentDefaultsHelpFormatter):
    def _get_help_string(self, action):
        return action.help if action.default is None or action.default is False else super()._get_help_string(action)


class Refuse(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        parser.error(f"{option_string}: {REFUSED[self.dest]}")


def count(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {value}")
    return value


def rate(text):
    value = float(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"must be 0 or more, not {text}")
    return value


def count_or_0(text):
    return 0 if text == "0" else count(text)


def image_size(text):
    found = re.fullmatch(r"(\d+)x(\d+)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"must be WIDTHxHEIGHT, such as 320x240, not {text!r}")
    return int(found[1]), int(found[2])


def workers(text):
    if text != "auto" and not text.isdigit():
        raise argparse.ArgumentTypeError(f"must be a number or auto, not {text!r}")
    return text if text == "auto" else int(text)


def options():
    p = Parser(prog="python -m weir.examples.imitate_episodes", usage="%(prog)s [DATA] [OPTIONS]", allow_abbrev=False,
               description="Trains ACT on episodes, and reports where each step's time goes.",
               epilog="Options of ACT's script, DETR and ACT++ that have no effect here are refused, with the reason.",
               formatter_class=Help)
    data = p.add_argument_group("data")
    data.add_argument("data", nargs="?", metavar="DATA", help="file or folder of episodes")
    data.add_argument("--dataset_dir", metavar="DIR", help="alternative to DATA")
    data.add_argument("--task_name", metavar="NAME", help="alternative to DATA: $WEIR_DATASETS/NAME")
    data.add_argument("--loader", choices=["weir", "h5py"], default="weir", help="loader that reads the data")
    data.add_argument("--num_workers", type=workers, metavar="N", help="threads, or processes with h5py; auto: all cores, or a quarter of them with "
                      "--device cpu", default="auto")
    data.add_argument("--prefetch_factor", type=count, metavar="N", help="batches to prefetch (default: auto)")
    data.add_argument("--decode_cache", default=0, metavar="SIZE", help="memory for decoded images, such as 8G (default: none)")
    data.add_argument("--cameras", "--camera_names", type=lambda text: text.split(","), metavar="A,B",
                      help="default: all except depth")
    data.add_argument("--image_size", metavar="WxH", type=image_size,
                      help="size of images (default as stored)")
    data.add_argument("--train_split", type=float, default=0.9, metavar="F", help="fraction of episodes to train on")
    data.add_argument("--max_batches", type=count_or_0, default=0, metavar="N", help="batches per epoch; 0: all")
    add_policy(p.add_argument_group("policy"))
    add_training(p.add_argument_group("training"))
    for name in REFUSED:
        p.add_argument("--" + name, action=Refuse, nargs="?", help=argparse.SUPPRESS)
    # --batch-size is the same as --batch_size
    return p, p.parse_args([re.sub(r"^--[^=]+", lambda name: "--" + name[0][2:].replace("-", "_"), word)
                            for word in sys.argv[1:]])


def add_policy(p):
    p.add_argument("--policy_class", choices=["ACT"], default="ACT", help="policy to train")
    p.add_argument("--backbone", choices=list(BACKBONES), default="small",
                   help="untrained network per image; all but small are torchvision's, with GroupNorm")
    p.add_argument("--chunk_size", type=count, default=20, metavar="N", help="actions to predict")
    p.add_argument("--hidden_dim", type=count, default=512, metavar="N", help="width of the transformers")
    p.add_argument("--dim_feedforward", type=count, default=3200, metavar="N", help="width of their feed-forward layers")
    p.add_argument("--enc_layers", type=count, default=4, metavar="N", help="layers of each encoder")
    p.add_argument("--dec_layers", type=count, default=1, metavar="N",
                   help="layers of the decoder; ACT's script builds 7 and uses the first")
    p.add_argument("--nheads", type=count, default=8, metavar="N", help="attention heads")
    p.add_argument("--dropout", type=float, default=0.1, metavar="F", help="dropout of the transformers")
    p.add_argument("--pre_norm", action="store_true", help="normalise before each layer, not after it")
    p.add_argument("--position_embedding", choices=["sine"], default="sine", help="of the image features")


def add_training(p):
    p.add_argument("--batch_size", type=count, default=8, metavar="N", help="samples")
    p.add_argument("--num_epochs", type=count, default=1, metavar="N", help="epochs")
    p.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the policy and of the data's order")
    p.add_argument("--kl_weight", type=float, default=10, metavar="F", help="weight of the KL divergence in the loss")
    p.add_argument("--lr", type=rate, default=1e-5, metavar="F", help="learning rate of AdamW")
    p.add_argument("--lr_backbone", type=rate, metavar="F", help="learning rate of the backbone (default: --lr)")
    p.add_argument("--weight_decay", type=float, default=1e-4, metavar="F", help="weight decay of AdamW")
    p.add_argument("--grad_accumulation", type=count, default=1, metavar="N",
                   help="batches per optimizer step, with the mean of their gradients; an epoch's rest is a step too")
    p.add_argument("--grad_checkpoint", action="store_true",
                   help="gradient checkpointing: less memory; the backward pass repeats most of the forward pass")
    p.add_argument("--amp", action="store_true", help="bfloat16 on a GPU; the CPU computes in float32")
    p.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto", help="auto: the GPU if torch has one")
    p.add_argument("--ckpt_dir", metavar="DIR", help="folder for checkpoints (default: none are saved)")
    p.add_argument("--resume", action="store_true", help="resume from --ckpt_dir if it has a checkpoint")
    p.add_argument("--eval", action="store_true", help=f"print the validation loss of --ckpt_dir's {BEST}; train nothing")
    p.add_argument("--lang", choices=["en", "zh"], default="en", help="language of the table and the epochs' lines")
    p.add_argument("--every", type=count_or_0, default=10, metavar="N", help="epochs between tables; 0: only at the end")
    p.add_argument("--profile", metavar="DIR", help="folder for a trace of steps 2 to 4, for TensorBoard and Perfetto")


def main():
    p, o = options()
    folder = os.environ.get("WEIR_DATASETS")
    o.data = o.data or o.dataset_dir or (folder and o.task_name and os.path.join(folder, o.task_name))
    if not o.data:
        p.error("no data is given; pass DATA or --dataset_dir DIR, or put it into $WEIR_DATASETS/NAME and pass "
                "--task_name NAME")
    if o.hidden_dim % o.nheads or o.hidden_dim % 4:
        p.error(f"--hidden_dim {o.hidden_dim}: must be a multiple of 4 and of --nheads {o.nheads}")
    for name in ("resume", "eval"):
        if getattr(o, name) and not o.ckpt_dir:
            p.error(f"--{name} needs a checkpoint; add --ckpt_dir DIR")
    if o.device == "cuda" and not torch.cuda.is_available():
        p.error("--device cuda: torch has no GPU here; leave it out, or install a torch with CUDA")
    o.device = torch.device("cuda" if o.device == "auto" and torch.cuda.is_available() else
                            "cpu" if o.device == "auto" else o.device)
    o.weir_cuda = has_weir_cuda(o.device)
    cores, on_cpu = len(os.sched_getaffinity(0)), o.device.type == "cpu"
    if o.num_workers == "auto":
        o.num_workers = max(cores // 4, 1) if on_cpu else cores
    if on_cpu:
        torch.set_num_threads(max(cores - o.num_workers, 1))
    if o.amp and on_cpu:
        print("--amp is ignored: the CPU computes in float32", file=sys.stderr)
        o.amp = False
    # On a GPU avoid the legacy default stream, which slows down the JPEG engines.
    with contextlib.nullcontext() if on_cpu else torch.cuda.stream(torch.cuda.Stream()):
        training = Training(o)
        if o.eval:
            training.evaluate()
            return
        if o.resume:
            training.resume()
        parameters = sum(p.numel() for p in training.policy.parameters())
        print(f"policy: ACT, {o.backbone} backbone, {parameters} parameters; torch {torch.__version__}, {o.device}; "
              f"{o.loader}: {o.num_workers} workers", file=sys.stderr)
        training.run()


def run():
    """Runs the command line, with one line and an exit status for what went wrong."""
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except torch.cuda.OutOfMemoryError as error:
        sys.exit(f"imitate_episodes: {str(error).splitlines()[0]} Use --grad_checkpoint, --amp, or --grad_accumulation with a "
                 "smaller --batch_size")
    except (weir.Error, ImportError, OSError, ValueError) as error:
        sys.exit(f"imitate_episodes: {error}")


if __name__ == "__main__":
    run()
