"""Trains lerobot's ACT policy from a LeRobot dataset: with weir.Loader, or with lerobot's own loader beside it.

    python lerobot_act.py DATASET --loader weir --steps 200
    python lerobot_act.py DATASET --loader lerobot --steps 200

DATASET is a folder as the Hub has it (v3.0). Both print steps per second and how long training waited for data. The
policy, its normalisation and the batches are lerobot's in both; only the loader differs. weir.Loader delivers the
batches in GPU memory where there is a GPU. Cameras are uint8 and become floats on the GPU, as in lerobot's own training
since 0.6; older versions of its loader make floats."""
import argparse
import inspect
import sys
import time

import torch
import weir

if not hasattr(weir, "Loader"):
    sys.exit(f"{weir}: another package of this name; pip uninstall weir weir-loader, then pip install weir-loader")
from lerobot.configs.types import FeatureType
from lerobot.datasets.lerobot_dataset import LeRobotDataset, LeRobotDatasetMetadata

try:
    from lerobot.utils.feature_utils import dataset_to_policy_features
except ImportError:  # lerobot 0.4
    from lerobot.datasets.utils import dataset_to_policy_features
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.act.modeling_act import ACTPolicy
from lerobot.policies.factory import make_pre_post_processors


def make_policy(meta, options):
    features = dataset_to_policy_features(meta.features)
    actions = {key: feature for key, feature in features.items() if feature.type is FeatureType.ACTION}
    inputs = {key: feature for key, feature in features.items() if key not in actions}
    config = ACTConfig(input_features=inputs, output_features=actions, chunk_size=options.chunk_size,
                       n_action_steps=options.chunk_size, device=options.device, pretrained_backbone_weights=None)
    preprocess, _ = make_pre_post_processors(config, dataset_stats=meta.stats)
    return ACTPolicy(config).to(options.device), preprocess, config


def make_loader(meta, config, options):
    deltas = {"action": [step / meta.fps for step in config.action_delta_indices]}
    if options.loader == "weir":
        return weir.Loader(options.dataset, batch_size=options.batch_size, num_workers=options.num_workers,
                           keys="lerobot", dtype="uint8", delta_timestamps=deltas, drop_last=True,
                           device=options.device)
    colours = {"return_uint8": True} if "return_uint8" in inspect.signature(LeRobotDataset).parameters else {}
    dataset = LeRobotDataset(meta.repo_id, root=options.dataset, delta_timestamps=deltas, **colours)
    return torch.utils.data.DataLoader(dataset, batch_size=options.batch_size, shuffle=True, drop_last=True,
                                       num_workers=options.num_workers, persistent_workers=options.num_workers > 0,
                                       pin_memory=options.device != "cpu",
                                       prefetch_factor=4 if options.num_workers > 0 else None)


def batches(loader):
    while True:
        yield from loader


def float_cameras(batch, cameras, device):
    for key in cameras:
        batch[key] = batch[key].to(device, non_blocking=True)
        if batch[key].dtype == torch.uint8:
            batch[key] = batch[key].float() / 255.0
    return batch


def train(policy, preprocess, loader, cameras, options):
    """Returns (steps per second, part of the time spent waiting), without the first steps."""
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-5)
    waited, begin, source = 0.0, 0.0, batches(loader)
    policy.train()
    for step in range(options.steps + options.warm_up):
        if step == options.warm_up:
            waited, begin = 0.0, time.perf_counter()
        asked = time.perf_counter()
        batch = next(source)
        waited += time.perf_counter() - asked
        loss, _ = policy.forward(preprocess(float_cameras(batch, cameras, options.device)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    value = loss.item()  # waits for the GPU
    seconds = time.perf_counter() - begin
    print(f"{options.loader}: {options.steps / seconds:.2f} steps/s, data wait {100 * waited / seconds:.1f} %, "
          f"loss {value:.3f}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dataset")
    p.add_argument("--loader", choices=["weir", "lerobot"], default="weir")
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--warm-up", type=int, default=5, metavar="STEPS", help="steps that are not measured")
    p.add_argument("--batch-size", type=int, default=8)
    p.add_argument("--chunk-size", type=int, default=100)
    p.add_argument("--num-workers", type=int, default=2)
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = p.parse_args()
    torch.manual_seed(0)
    meta = LeRobotDatasetMetadata("local/dataset", root=options.dataset)
    policy, preprocess, config = make_policy(meta, options)
    train(policy, preprocess, make_loader(meta, config, options), meta.camera_keys, options)


if __name__ == "__main__":
    main()
