"""A loop with the Trainer of transformers, which makes its own DataLoader."""
import tempfile

import torch
import transformers

import common


class Model(torch.nn.Module):
    def __init__(self, losses):
        super().__init__()
        self.network, self.losses = common.Network(), losses

    def forward(self, image, target):
        loss = self.network(image, target)
        self.losses.append(float(loss))
        return {"loss": loss}


class Named(common.Frames):
    def __getitem__(self, i):
        image, target = super().__getitem__(i)
        return {"image": image, "target": target}


def main():
    o = common.options()
    losses = []
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder, max_steps=o.steps, per_device_train_batch_size=o.batch_size, dataloader_num_workers=o.num_workers,
            dataloader_persistent_workers=o.num_workers > 0, report_to="none", save_strategy="no", logging_strategy="no",
            disable_tqdm=True, use_cpu=not torch.cuda.is_available(), remove_unused_columns=False, seed=0)
        trainer = transformers.Trainer(Model(losses), arguments, train_dataset=Named())
        if o.watch_line:
            import weir
            make = trainer.get_train_dataloader
            trainer.get_train_dataloader = lambda: weir.watch(make(), log=o.log)
        trainer.train()
    common.report(losses)


if __name__ == "__main__":
    main()
