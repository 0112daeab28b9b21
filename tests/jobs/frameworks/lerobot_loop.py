"""lerobot-train, the program of the package lerobot, on a small dataset that this program writes with LeRobotDataset.
--watch-line adds the line weir.watch(dataloader) to a copy of the program."""
import argparse
import os
import re
import runpy
import shutil
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import numpy as np

import common

FPS = 10


def write_dataset(root, videos):
    from lerobot.datasets.lerobot_dataset import LeRobotDataset
    kind = "video" if videos else "image"
    features = {
        "observation.images.top": {"dtype": kind, "shape": (96, 128, 3), "names": ["height", "width", "channels"]},
        "observation.state": {"dtype": "float32", "shape": (6,), "names": [f"joint_{i}" for i in range(6)]},
        "action": {"dtype": "float32", "shape": (6,), "names": [f"joint_{i}" for i in range(6)]}}
    dataset = LeRobotDataset.create("weir/small", FPS, features, root=root, use_videos=videos)
    for episode in range(3):
        random = np.random.default_rng(episode)
        for t in range(30):
            dataset.add_frame({"observation.images.top": common.job_data.picture(episode * 100 + t, 96, 128), "task": "lift",
                               "observation.state": random.normal(size=6).astype(np.float32),
                               "action": random.normal(size=6).astype(np.float32)})
        dataset.save_episode()
    dataset.finalize()


def dataset_folder(videos):
    name = "lerobot_video" if videos else "lerobot_image"
    path = os.path.join(os.environ.get("WEIR_JOBS_DATA", os.path.join(tempfile.gettempdir(), "weir-jobs-data")), name)
    if not os.path.isdir(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        part = path + f".{os.getpid()}"
        write_dataset(part, videos)
        os.rename(part, path)
    return path


def with_line(folder, log):
    """A copy of lerobot-train with one more line."""
    import lerobot.scripts.lerobot_train as program
    with open(program.__file__, encoding="utf-8") as file:
        source = file.read()
    place = "    # Prepare everything with accelerator\n"
    if source.count(place) != 1:
        sys.exit("this version of lerobot has another lerobot_train.py: the line cannot be added")
    path = os.path.join(folder, "lerobot_train.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source.replace(place, f"    import weir; dataloader = weir.watch(dataloader, log={log!r})\n" + place))
    return path


class Losses:
    """Collects the losses that lerobot-train logs."""

    def __init__(self):
        import logging
        self.losses = []
        old = logging.Logger.callHandlers
        logging.Logger.callHandlers = lambda logger, record: (self.filter(record), old(logger, record))[1]

    def filter(self, record):
        found = re.search(r"\bloss:([0-9.]+)", record.getMessage())
        if found:
            self.losses.append(found.group(1))
        return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--num-workers", type=int, default=2)
    parser.add_argument("--videos", action="store_true")
    parser.add_argument("--watch-line", action="store_true")
    parser.add_argument("--log", help="file for the log of --watch-line")
    parser.add_argument("--device", default="cpu")
    o = parser.parse_args()
    out = tempfile.mkdtemp()
    root = dataset_folder(o.videos)
    sys.argv = ["lerobot-train", "--dataset.repo_id=weir/small", f"--dataset.root={root}", "--policy.type=act",
                "--policy.push_to_hub=false", f"--policy.device={o.device}", "--policy.dim_model=64", "--policy.dim_feedforward=64",
                "--policy.n_heads=4", "--policy.chunk_size=10", "--policy.n_action_steps=10",
                "--policy.pretrained_backbone_weights=null", f"--output_dir={out}/run", f"--steps={o.steps}", "--batch_size=8",
                f"--num_workers={o.num_workers}", "--log_freq=1", "--save_checkpoint=false", "--eval_freq=0", "--wandb.enable=false",
                "--seed=0", "--dataset.video_backend=pyav"]
    collected = Losses()
    try:
        if o.watch_line:
            runpy.run_path(with_line(out, o.log), run_name="__main__")
        else:
            from lerobot.scripts.lerobot_train import main as train
            train()
    finally:
        shutil.rmtree(out, ignore_errors=True)
    common.report(collected.losses)


if __name__ == "__main__":
    main()
