"""Figures of the loaders in TensorBoard, Weights & Biases or MLflow: python examples/log_metrics.py DATA WHERE FOLDER.

Copy the function of the tool that you use, and call it every N steps of your loop. weir.metrics() covers the time since
the previous call, for weir.Loader and for loaders watched by weir.watch."""
import os
import sys

import weir  # pip install weir-loader

if not hasattr(weir, "metrics"):
    sys.exit(f"{weir}: another package of this name; pip uninstall weir weir-loader, then pip install weir-loader")


def log_tensorboard(writer, step):
    """writer: torch.utils.tensorboard.SummaryWriter(folder)"""
    for name, value in weir.metrics().items():
        writer.add_scalar(name, value, step)


def log_wandb(run, step):
    """run: wandb.init(...)"""
    run.log(weir.metrics(), step=step)


def log_mlflow(mlflow, step):
    """mlflow: the module, within mlflow.start_run()"""
    mlflow.log_metrics(weir.metrics(), step=step)


def opened(where, folder):
    """(the function for a tool, its first argument), with what it writes in a folder."""
    if where == "tensorboard":
        from torch.utils.tensorboard import SummaryWriter
        return log_tensorboard, SummaryWriter(folder)
    if where == "wandb":
        import wandb
        return log_wandb, wandb.init(project="weir", dir=folder, mode="offline")
    import mlflow
    if "MLFLOW_TRACKING_URI" not in os.environ:
        mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.start_run()
    return log_mlflow, mlflow


def main(data, where, folder):
    log, target = opened(where, folder)
    with weir.Loader(data, batch_size=8) as loader:
        for epoch in range(3):
            for step, batch in enumerate(loader, epoch * len(loader)):
                if step % 5 == 4:
                    log(target, step)


if __name__ == "__main__":
    main(*sys.argv[1:4])
