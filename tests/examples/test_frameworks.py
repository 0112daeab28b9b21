"""Each framework passes the loader's batches of each rank to that rank's network."""
import hashlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest

import common
import weir

EXAMPLES = os.path.join(os.environ["WEIR_SOURCE"], "examples")
WATCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "watch")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def digest(tensor):
    return hashlib.sha256(tensor.contiguous().numpy().tobytes()).hexdigest()


class Frameworks(common.Data):
    SYNTH = ["--format", "act-jpeg", "--episodes", "4", "--steps", "12", "--cameras", "top,wrist", "--size", "32x24"]
    EPOCHS, BATCH = 2, 8

    def expected(self, rank):
        """(digests of a rank's batches, its states)"""
        digests, states = [], []
        with weir.Loader(self.data, batch_size=self.BATCH, rank=rank, world_size=2) as loader:
            for _ in range(self.EPOCHS):
                for batch in loader:
                    digests.append([digest(batch["image"].flatten(0, 1).float() / 255), digest(batch["qpos"])])
                    states.append(batch["qpos"].clone())
        return digests, states

    def watch(self, script, ranks, *arguments):
        """Runs the script once per rank's environment; returns the inputs of each rank's network."""
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            environment = {**os.environ, "PYTHONPATH": f"{WATCH}:{os.environ['PYTHONPATH']}", "WEIR_WATCH": folder,
                           "WEIR_WATCH_DIM": str(common.DIM), "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1",
                           "MASTER_PORT": str(free_port()), "GLOO_SOCKET_IFNAME": "lo", "ACCELERATE_TORCH_DEVICE": "cpu",
                           "HF_HUB_OFFLINE": "1"}
            processes = [subprocess.Popen([sys.executable, os.path.join(EXAMPLES, script), self.data, *arguments],
                                          cwd=folder, env={**environment, **rank}, text=True, stdout=subprocess.PIPE,
                                          stderr=subprocess.STDOUT) for rank in ranks]
            said = [process.communicate()[0] for process in processes]
            for process, text in zip(processes, said):
                self.assertEqual(process.returncode, 0, text)
            self.assertEqual(sum(text.count("\n20_train_forward_pass ") for text in said), 1, "".join(said))
            given = []
            for rank in range(2):
                with open(os.path.join(folder, f"{rank}.json"), encoding="utf-8") as file:
                    given.append(json.load(file))
            return given

    def check(self, given):
        seen = []
        for rank in range(2):
            digests, states = self.expected(rank)
            self.assertEqual(len(digests), self.EPOCHS * 48 // self.BATCH // 2)
            self.assertEqual(given[rank], digests, f"rank {rank}")
            seen.append({tuple(row.tolist()) for batch in states[:len(states) // self.EPOCHS] for row in batch})
        self.assertFalse(seen[0] & seen[1])
        self.assertEqual(len(seen[0] | seen[1]), 48)

    RANKS = [{"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"} for rank in range(2)]

    @unittest.skipIf(importlib.util.find_spec("lightning") is None, "lightning is not installed")
    def test_lightning(self):
        self.check(self.watch("with_lightning.py", [{}], "2", str(self.EPOCHS))) # Lightning starts the second process

    @unittest.skipIf(importlib.util.find_spec("accelerate") is None, "accelerate is not installed")
    def test_accelerate(self):
        self.check(self.watch("with_accelerate.py", self.RANKS, str(self.EPOCHS)))

    @unittest.skipIf(importlib.util.find_spec("transformers") is None, "transformers is not installed")
    def test_hf_trainer(self):
        self.check(self.watch("with_hf_trainer.py", self.RANKS, str(self.EPOCHS)))
