"""A loop with Accelerate, which exchanges the DataLoader for its own in prepare()."""
import torch
from accelerate import Accelerator

import common


def main():
    o = common.options()
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    network = common.Network()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    loader = common.make_loader(o)
    if o.watch_line:
        import weir
        loader = weir.watch(loader, log=o.log)
    network, optimizer, loader = accelerator.prepare(network, optimizer, loader)
    losses = []
    for image, target in common.forever(loader):
        loss = network(image, target)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss))
        if len(losses) == o.steps:
            break
    common.report(losses)


if __name__ == "__main__":
    main()
