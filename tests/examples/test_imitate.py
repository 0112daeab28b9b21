"""examples/imitate_episodes.py: ACT's command line, both loaders, the tables, resuming, errors."""
import importlib.util
import json
import os
import pickle
import re
import subprocess
import sys
import unittest

import common
import numpy as np
import torch
import weir

SCRIPT = os.path.join(os.environ["WEIR_SOURCE"], "examples", "imitate_episodes.py")
HAS_CV2 = importlib.util.find_spec("cv2") is not None
SMALL = ["--hidden_dim", "16", "--dim_feedforward", "32", "--chunk_size", "4", "--batch_size", "2", "--device", "cpu"]
STEP = ["08_wait_for_data", "20_train_forward_pass", "21_backward", "22_optimizer_step"]


def load_script():
    spec = importlib.util.spec_from_file_location("imitate_episodes", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Imitate(common.Data):
    SYNTH = ["--format", "astrobench", "--episodes", "3", "--steps", "6", "--size", "32x24"]

    def run_script(self, *arguments, status=0, **environment):
        done = subprocess.run([sys.executable, SCRIPT, *arguments], text=True, capture_output=True,
                              env={**os.environ, **environment}, cwd=self.work)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def options(self, *arguments):
        """(module, parsed options) for a command line."""
        module, typed = load_script(), sys.argv
        try:
            sys.argv = ["imitate_episodes.py", *arguments]
            return module, module.options()
        finally:
            sys.argv = typed

    @unittest.skipIf(torch.cuda.is_available(), "there is a GPU")
    def test_no_gpu(self):
        done = self.run_script(self.data, "--device", "cuda", status=2)
        self.assertIn("--device cuda: torch has no GPU here", done.stderr)

    def test_no_cuda_module(self):
        """A GPU that torch can use but this build of weir cannot."""
        code = ("import importlib.util, torch\n"
                f"spec = importlib.util.spec_from_file_location('imitate_episodes', {SCRIPT!r})\n"
                "module = importlib.util.module_from_spec(spec)\n"
                "spec.loader.exec_module(module)\n"
                "print(module.has_weir_cuda(torch.device('cuda')), module.has_weir_cuda(torch.device('cpu')))\n")
        done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True,
                              env={**os.environ, "WEIR_CUDA_MODULE": "/nowhere.so"})
        self.assertEqual(done.stdout, "False False\n")
        self.assertRegex(done.stderr, "^batches are made in the host's memory and copied, .*\n$")

    def test_command_of_act(self):
        ckpt = os.path.join(self.work, "ckpt_profile")
        done = self.run_script(
            "--task_name", "data", "--ckpt_dir", ckpt, "--policy_class", "ACT", "--kl_weight", "10", "--chunk_size", "20",
            "--hidden_dim", "64", "--batch_size", "4", "--dim_feedforward", "128", "--num_epochs", "1", "--lr", "1e-5",
            "--seed", "0", "--temporal_agg", "--onscreen_render", "--amp", "--lang", "zh", "--device", "cpu",
            WEIR_DATASETS=self.work)
        self.assertIn("not used by ACT: --temporal_agg, --onscreen_render\n", done.stderr)
        self.assertIn("--amp is ignored: the CPU computes in float32\n", done.stderr)
        (epoch,) = [line for line in done.stdout.splitlines() if re.search("Epoch.*总耗时", line)]
        self.assertRegex(epoch, r"Epoch 1/1 总耗时: [\d.]+s \| 训练耗时: [\d.]+s \| 验证耗时: [\d.]+s \| .* \| 训练损失: [\d.]+ \| "
                         r"验证损失: [\d.]+$")
        self.assertEqual(done.stdout.count("性能分析统计"), 1)
        lines = done.stdout.splitlines()
        title = next(i for i, line in enumerate(lines) if "性能分析统计" in line)
        shown = "\n".join(lines[title:title + 21])
        for name, calls in [("00_TOTAL_getitem", None), ("03b_image_decode", None), ("10_val_forward_pass", 2),
                            ("20_train_forward_pass", 3), ("21_backward", 3), ("22_optimizer_step", 3)]:
            row = re.search(rf"^{name} +\| 总计: +[\d.]+s \| 调用: +(\d+)次", shown, re.M)
            self.assertTrue(row, f"{name} is not in\n{shown}")
            self.assertIn(calls, (None, int(row[1])), name)
        self.check_checkpoints(ckpt)

    def check_checkpoints(self, ckpt):
        """Checkpoints are state_dicts and normalisation statistics that ACT's evaluation loads."""
        self.assertEqual(sorted(os.listdir(ckpt)), ["dataset_stats.pkl", "policy_best.ckpt", "policy_last.ckpt", "resume.ckpt"])
        with weir.Loader(self.data, train_split=0.9) as loader, open(os.path.join(ckpt, "dataset_stats.pkl"), "rb") as file:
            for name, values in pickle.load(file).items():
                np.testing.assert_array_equal(values, np.float32(loader.dataset.statistics[name]))
        module, (_, o) = self.options("--hidden_dim", "64", "--dim_feedforward", "128")
        policy = module.ACT(28, 28, o).eval()
        for name in ("policy_best.ckpt", "policy_last.ckpt"):
            policy.load_state_dict(torch.load(os.path.join(ckpt, name), weights_only=True))
        with torch.no_grad():
            actions, kl = policy(torch.rand(2, 4, 3, 24, 32), torch.rand(2, 28))
        self.assertEqual((tuple(actions.shape), float(kl)), ((2, 20, 28), 0))

    def test_padding_counts_for_nothing(self):
        module, (_, o) = self.options(*SMALL)
        torch.manual_seed(0)
        policy = module.ACT(14, 14, o).eval()
        batch = weir.Act(torch.rand(2, 1, 3, 24, 32), torch.rand(2, 14), torch.rand(2, 4, 14),
                         torch.tensor([[False, False, True, True], [False, True, True, True]]))
        changed = batch.action.clone()
        changed[batch.is_pad] = 1e3
        with torch.no_grad():
            losses = []
            for action in (batch.action, changed):
                torch.manual_seed(1)
                losses.append(float(policy.loss(batch._replace(action=action), 10)))
        self.assertAlmostEqual(*losses, places=5)

    @unittest.skipUnless(HAS_CV2, "OpenCV is not installed")
    def test_h5py(self):
        """Both loaders have the same stages and samples."""
        raw = self.synth("act", "--format", "act", "--episodes", "3", "--steps", "6", "--cameras", "top,wrist", "--size", "32x24")
        jpeg = self.synth("jpeg", "--format", "act-jpeg", "--episodes", "3", "--steps", "6", "--cameras", "top,wrist", "--size", "32x24")
        for data in (raw, jpeg, self.data):
            with self.subTest(data=data):
                self.same_samples(data)
        done = self.run_script(raw, "--loader", "h5py", "--max-batches=1", *SMALL)
        for name in ["00_TOTAL_getitem", "01_file_cache", "02_read_qpos", "03_read_images_total", "03a_read_one_camera",
                     "04_read_actions", "05_to_tensor_normalize", "06_collate", "10_val_forward_pass", *STEP]:
            self.assertRegex(done.stdout, rf"(?m)^{name} ")
        self.assertRegex(done.stdout, r"(?m)^20_train_forward_pass +consumer-work +1 ")

    def test_act_loaders(self):
        """bench/act_loaders.py measures every loader of this example, and bench/pictures.py draws its results."""
        sides = ["resident", "weir", "weir-cpu", *(["h5py"] if HAS_CV2 else [])]
        bench = os.path.join(os.environ["WEIR_SOURCE"], "bench")
        results, picture = os.path.join(self.work, "act.json"), os.path.join(self.work, "act.svg")
        done = subprocess.run([sys.executable, f"{bench}/act_loaders.py", "--weir", os.environ["WEIR_PROGRAM"], "--device", "cpu",
                               "--width", "64", "--height", "48", "--hidden-dim", "16", "--dim-feedforward", "32", "--episodes", "3",
                               "--steps", "6", "--batch-size", "2", "--workers", "1", "--rounds", "1", "--seconds", "0.1", "--warm-up",
                               "1", "--cameras", "top", "--sides", ",".join(sides), "--json", results], text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("left out", done.stdout)
        with open(results, encoding="utf-8") as f:
            found = json.load(f)
        self.assertEqual(sorted(found["turns"]), sorted(sides))
        self.assertTrue(all(rate > 0 for trials in found["turns"].values() for rate, *_ in trials))
        subprocess.run([sys.executable, f"{bench}/pictures.py", "bars", results, picture], check=True)
        with open(picture, encoding="utf-8") as f:
            text = f.read()
        self.assertEqual(text.count(" of resident"), len(sides))
        self.assertIn(found["machine"], text)

    def same_samples(self, data):
        module, (_, o) = self.options(data, *SMALL)
        paths = sorted(os.path.join(folder, name) for folder, _, names in os.walk(data) for name in names)
        episodes = module.Episodes(paths, o)
        with weir.Loader(data, batch_size=1, shuffle=False, chunk_size=4, keys="act") as loader:
            self.assertEqual(len(loader), len(episodes))
            for theirs, ours in zip(map(episodes.__getitem__, range(len(episodes))), loader):
                (image, qpos, action, is_pad), _ = theirs
                self.assertLess(float((image - ours.image[0]).abs().max()), 2 / 255)
                torch.testing.assert_close(qpos, ours.qpos[0], rtol=1e-4, atol=1e-5)
                torch.testing.assert_close(action, ours.action[0], rtol=1e-4, atol=1e-5)
                self.assertTrue(bool((is_pad == ours.is_pad[0]).all()))

    def test_going_on(self):
        def losses(*arguments):
            text = self.run_script(self.data, *SMALL, "--max_batches", "1", "--cameras", "rgb_main", "--ckpt_dir",
                                   *arguments).stdout
            return [[float(loss) for loss in found] for found in
                    re.findall(r"^epoch .* train loss ([\d.]+) \| val loss ([\d.]+)$", text, re.M)], text
        whole, text = losses("whole", "--num_epochs", "2", "--every", "1", "--lr", "1e-3")
        self.assertEqual(len(re.findall("^20_train_forward_pass ", text, re.M)), 2)
        losses("parts", "--num_epochs", "1", "--resume", "--lr", "1e-3")
        rest, _ = losses("parts", "--num_epochs", "2", "--resume", "--lr", "1e-3")
        np.testing.assert_allclose(rest, whole[1:], rtol=1e-4)

    def test_without_validation(self):
        done = self.run_script(self.data, *SMALL, "--train_split", "1", "--max_batches", "5", "--image-size", "48x32",
                               "--profile", "trace")
        self.assertNotIn("val loss", done.stdout)
        (name,) = os.listdir(os.path.join(self.work, "trace"))
        with open(os.path.join(self.work, "trace", name), encoding="utf-8") as file:
            names = [event.get("name") for event in json.load(file)["traceEvents"]]
        self.assertEqual([name for name in names if str(name).startswith("ProfilerStep#")],
                         [f"ProfilerStep#{step}" for step in (2, 3, 4)])
        self.assertEqual(names.count("21_backward"), 3)

    def test_what_cannot_be(self):
        for arguments, words in [([], "no data is given"), ([self.data, "--hidden_dim", "12"], "multiple of 8"),
                                 ([self.data, "--resume"], "add --ckpt_dir DIR"), ([self.data, "--policy_class", "CNN"], "ACT"),
                                 ([self.data, "--nonsense"], "--nonsense")]:
            self.assertIn(words, self.run_script(*arguments, status=2, WEIR_DATASETS="").stderr)
        other = self.synth("robotwin", "--format", "robotwin", "--episodes", "1", "--steps", "2", "--size", "32x24")
        self.assertIn("knows act, act-jpeg", self.run_script(other, "--loader", "h5py", *SMALL, status=1).stderr)
        done = self.run_script(os.path.join(self.work, "nowhere"), *SMALL, status=1)
        self.assertRegex(done.stderr, "imitate_episodes: .*nowhere.*\n$")
        self.assertNotIn("Traceback", done.stderr)
