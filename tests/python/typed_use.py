"""Typical user code for mypy, which checks the types of the stubs. It is never run."""
from typing import Any

import weir


@weir.stage("21_backward")
def backward(loss: float) -> float:
    return loss


def train(path: str) -> str:
    with weir.Loader(path, batch_size=8, num_workers="auto", keys="act", image_size=(320, 240)) as loader:
        steps: int = len(loader) * loader.batch_size
        cameras: list[str] = [camera.name for camera in loader.dataset.cameras]
        means: list[float] = loader.dataset.statistics["qpos_mean"]
        for epoch in range(2):
            loader.set_epoch(epoch)
            for batch in loader:
                with weir.stage("20_train_forward_pass"):
                    loss: float = backward(float(batch.image.sum()))
                weir.log_timing("22_optimizer_step", loss)
        state: dict[str, Any] = loader.state_dict()
        loader.load_state_dict(state)
        weir.print_timing_stats(lang="zh", whole=True)
    slowest: float = max(row.total for row in weir.stats())
    weir.log_timing("of a worker", slowest, elsewhere=True)
    weir.reset()
    return loader.table("en") + weir.verdict() + f"{steps} {cameras} {means}"


def clocks(path: str) -> float:
    read = weir.kernel_clocks([[1, 2], [3, 4]], ("load", "store"), ticks_per_ns=1.7)
    read.export_csv(path)
    print(read.table())
    return max(stage.share for stage in read)


def batches(path: bytes) -> None:
    for batch in weir.Loader(path, tensors="array"):
        shape: tuple[int, ...] = batch["image"].shape
        sizes: dict[str, int] = {key: value.nbytes for key, value in batch.items()}
    for act in weir.Loader(path, keys="act", tensors="array"):
        image, qpos, action, is_pad = act
        names: str = image.dtype + act.qpos.dtype
    for other in weir.Loader(path, keys="lerobot", tensors="array", dtype="float32"):
        device: str = other["observation.state"].device
    print(shape, sizes, action, is_pad, names, device, weir.__version__)


def bare(loader: weir.Loader) -> None:
    for batch in loader:
        batch["image"].cuda()


def misuse(path: str) -> None:
    weir.MotionLibrary(path, loop="always")  # type: ignore[arg-type]
    weir.Loader(path, keys="torch")  # type: ignore[call-overload]
    weir.Loader(path, workers=4)  # type: ignore[call-overload]
    for batch in weir.Loader(path, tensors="array"):
        batch["image"].cuda()  # type: ignore[attr-defined]
    for act in weir.Loader(path, keys="act", tensors="array"):
        act.images  # type: ignore[attr-defined]
    weir.log_timing("a")  # type: ignore[call-arg]
