"""A loop with Lightning. It replaces the sampler of a DataLoader only when it distributes one."""
import logging

import lightning.pytorch as pl
import torch

import common


class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.network, self.losses = common.Network(), []

    def training_step(self, batch, index):
        loss = self.network(*batch)
        self.losses.append(float(loss))
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


def main():
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    o = common.options()
    module = Module()
    loader = common.make_loader(o)
    if o.watch_line:
        import weir
        loader = weir.watch(loader, log=o.log)
    trainer = pl.Trainer(max_steps=o.steps, max_epochs=-1, accelerator="auto", devices=1, logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(module, loader)
    common.report(module.losses)


if __name__ == "__main__":
    main()
