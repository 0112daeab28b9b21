"""Other loaders as sides of gpu_compare.py: the peers in bench/peers that deliver batches in GPU memory, each in its
fastest configuration on this machine."""
import os
from concurrent.futures import ThreadPoolExecutor

import check
import run
import sides

CHUNK_SIZE = 20
DEVICE = os.environ.get("WEIR_PEERS_DEVICE", "cuda")  # cpu: to test the script without a GPU


def kinds(cores):
    act = [{"workers": n, "prefetch_factor": 2, "batch_size": 8} for n in sorted({max(1, cores // 2), cores, 2 * cores})]
    pool = [{"decoder": decoder, "preload": preload, "workers": cores, "batch_size": 32}
            for decoder in ("simplejpeg", "cv2") for preload in (False, True)]
    nvjpeg = [{"decoder": "nvjpeg", "preload": preload, "workers": n, "batch_size": batch_size}
              for n in (1, 2, 4) for batch_size in (16, 32, 64) for preload in (False, True)
              if not preload or batch_size == 32]
    return [run.Kind("act_gpu", "", "act_gpu", "normalised", act),
            run.Kind("pool_gpu", "", "pool_gpu", "normalised", pool, True),
            # chroma from nvJPEG's engines is coarser
            run.Kind("nvjpeg_torch", "", "nvjpeg_torch", "normalised", nvjpeg, True, pixels_max=4.0)]


class Side:
    """One peer, or the reason why it is omitted."""

    def __init__(self, name, peer, how, left_out=None):
        self.names, self.peer, self.how, self.why = [name], peer, how, left_out

    @property
    def left_out(self):
        return self.peer.left_out if self.peer else self.why

    def turn(self, seconds):
        return {self.names[0]: self.peer.turn(seconds) if self.peer else None}

    def close(self):
        if self.peer:
            self.peer.close()


class Peers:
    def __init__(self, args):
        self.args, self.chosen, self.why = args, {}, {}
        self.kinds = [kind for kind in kinds(len(os.sched_getaffinity(0))) if kind.name in args.peers]
        self.versions = run.versions()

    def open(self, data):
        """The peers on this data. The first call chooses their configurations."""
        config = {"data": data, "chunk_size": CHUNK_SIZE, "batch_size": 8, "width": 640, "height": 480, "shuffle": True,
                  "device": DEVICE}
        if not self.chosen and not self.why:
            self._choose(config)
        return [Side(kind.name, run.kind_peer(kind, dict(config, **self.chosen[kind.name])),
                     run.describe(self.chosen[kind.name])) if kind.name in self.chosen
                else Side(kind.name, None, "", self.why[kind.name]) for kind in self.kinds]

    def _choose(self, config):
        ours = check.weir_batches(os.path.join(self.args.build, "bench/limits"), config)
        for kind in self.kinds:
            try:
                variants, why = run.checked(kind, config, kind.variants, ours)
            except SystemExit as error:  # its batch differs from Weir's
                variants, why = [], str(error)
            tried = self._try(kind, config, variants)
            if kind.name == "act_gpu" and tried:
                tried += self._try(kind, config, [dict(tried[0][1], prefetch_factor=4)])
            tried.sort(key=lambda pair: -pair[0])
            if not tried:
                self.why[kind.name] = why or "none of its ways works"
                continue
            self.chosen[kind.name] = tried[0][1]
            run.say(f"{kind.name}: " + "; ".join(f"{run.describe(variant)} {rate:.0f}" for rate, variant in tried[:3]))

    def _try(self, kind, config, variants):
        """[(images/s, variant)], fastest first. Starts all at once, because startup takes the most time."""
        seconds = min(self.args.seconds, 0.8)
        with ThreadPoolExecutor(max(1, len(variants))) as starters:
            peers = list(starters.map(lambda variant: run.kind_peer(kind, dict(config, **variant)), variants))
        tried = []
        for peer, variant in zip(peers, variants):
            rates = [peer.turn(seconds) for _ in range(2)]
            if all(rates):
                tried.append((max(rates), variant))
            elif peer.left_out:
                run.say(f"{kind.name}, {run.describe(variant)}: left out: {peer.left_out}")
            peer.close()
        return sorted(tried, key=lambda pair: -pair[0])
