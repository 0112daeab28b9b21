"""weir.examples.imitate_episodes: ACT's command line, the policy's options, both loaders, the tables, resuming, errors."""
import contextlib
import importlib.util
import io
import json
import os
import pickle
import re
import subprocess
import sys
import types
import unittest
import unittest.mock

import common
import numpy as np
import torch
import weir
from weir.examples import act_policy, imitate_episodes

MODULE = "weir.examples.imitate_episodes"
HAS_CV2, HAS_TORCHVISION = (importlib.util.find_spec(name) is not None for name in ("cv2", "torchvision"))
SMALL = ["--hidden_dim", "16", "--dim_feedforward", "32", "--chunk_size", "4", "--batch_size", "2", "--device", "cpu"]
STEP = ["08_wait_for_data", "20_train_forward_pass", "21_backward", "22_optimizer_step"]


class Imitate(common.Data):
    SYNTH = ["--format", "astrobench", "--episodes", "3", "--steps", "6", "--size", "32x24"]

    def run_script(self, *arguments, status=0, **environment):
        done = subprocess.run([sys.executable, "-m", MODULE, *arguments], text=True, capture_output=True,
                              env={**os.environ, **environment}, cwd=self.work)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def options(self, *arguments):
        """Parsed options of a command line."""
        with unittest.mock.patch.object(sys, "argv", [MODULE, *arguments]):
            return imitate_episodes.options()[1]

    def error(self, *arguments, status):
        """What is printed for a command line that fails, run in this process."""
        with unittest.mock.patch.object(sys, "argv", [MODULE, *arguments]), contextlib.redirect_stderr(io.StringIO()) as printed:
            with self.assertRaises(SystemExit) as raised:
                imitate_episodes.run()
        code = raised.exception.code
        message = code if isinstance(code, str) else ""
        self.assertEqual(1 if message else code, status, printed.getvalue())
        return printed.getvalue() + message

    def policy(self, state_dim, *arguments):
        o = self.options(*arguments)
        torch.manual_seed(0)
        return act_policy.ACT(state_dim, state_dim, **{name: getattr(o, name) for name in imitate_episodes.POLICY})

    @unittest.skipIf(torch.cuda.is_available(), "there is a GPU")
    def test_no_gpu(self):
        done = self.run_script(self.data, "--device", "cuda", status=2)
        self.assertIn("--device cuda: torch has no GPU here", done.stderr)

    def test_no_cuda_module(self):
        """A GPU that torch can use but this build of weir cannot."""
        code = ("import torch\n"
                "from weir.examples import imitate_episodes as module\n"
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
            "--seed", "0", "--amp", "--lang", "zh", "--device", "cpu", WEIR_DATASETS=self.work)
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
        policy = self.policy(28, "--hidden_dim", "64", "--dim_feedforward", "128").eval()
        for name in ("policy_best.ckpt", "policy_last.ckpt"):
            policy.load_state_dict(torch.load(os.path.join(ckpt, name), weights_only=True))
        with torch.no_grad():
            actions, kl = policy(torch.rand(2, 4, 3, 24, 32), torch.rand(2, 28))
        self.assertEqual((tuple(actions.shape), float(kl)), ((2, 20, 28), 0))

    def batch(self, seed=0):
        torch.manual_seed(seed)
        return weir.Act(torch.rand(2, 1, 3, 64, 64), torch.rand(2, 14), torch.rand(2, 4, 14),
                        torch.tensor([[False, False, True, True], [False, True, True, True]]))

    def gradients(self, *arguments):
        """(gradients by name, bytes that the forward pass keeps for the backward pass), with dropout on."""
        policy, kept = self.policy(14, *SMALL, *arguments), {}

        def keep(tensor):
            kept[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
            return tensor
        torch.manual_seed(1)
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            loss = policy.loss(self.batch(), 10)
        loss.backward()
        return {name: p.grad for name, p in policy.named_parameters()}, sum(kept.values())

    def check_grad_checkpoint(self, *arguments):
        def unchanged(part, x, *inputs, **options):
            version = x._version
            y = torch.utils.checkpoint.checkpoint(part, x, *inputs, **options)
            self.assertEqual(x._version, version, f"{part} changes its input, from which it is computed again")
            return y
        plain, kept = self.gradients(*arguments)
        with unittest.mock.patch.object(act_policy, "checkpoint", unchanged):
            again, kept_again = self.gradients("--grad_checkpoint", *arguments)
        self.assertEqual(plain.keys(), again.keys())
        for name, gradient in plain.items():
            torch.testing.assert_close(again[name], gradient, rtol=1e-4, atol=1e-6)
        self.assertTrue(any(gradient is not None and bool(gradient.any()) for gradient in again.values()))
        self.assertLess(kept_again, kept / 2)

    def test_grad_checkpoint(self):
        self.check_grad_checkpoint()
        self.check_grad_checkpoint("--enc_layers", "2", "--dec_layers", "3", "--pre_norm", "--nheads", "4", "--dropout", "0.5")

    def test_grad_accumulation(self):
        """A step after k batches equals one step along the mean of their gradients."""
        def training(*arguments):
            o = self.options(*SMALL, "--lr", "1e-2", "--dropout", "0", *arguments)
            o.weir_cuda = False
            policy = self.policy(14, *SMALL, "--dropout", "0")
            part = imitate_episodes.Training.__new__(imitate_episodes.Training)
            part.__dict__.update(o=o, policy=policy, amp=contextlib.nullcontext(), profiler=None, pending=0)
            part.optimizer = torch.optim.SGD(part.parameter_groups(), lr=o.lr)
            return part
        batches, seen, mean = [self.batch(seed) for seed in range(3)], training("--grad_accumulation", "3"), training()
        before = {name: p.detach().clone() for name, p in seen.policy.named_parameters()}
        torch.manual_seed(2)
        for batch in batches:
            self.assertTrue(all(torch.equal(before[name], p) for name, p in seen.policy.named_parameters()))
            seen.train_step(batch)
        torch.manual_seed(2)
        (sum(mean.policy.loss(batch, 10) for batch in batches) / 3).backward()
        mean.pending = 1
        mean.optimizer_step()
        for (name, p), expected in zip(seen.policy.named_parameters(), mean.policy.parameters()):
            torch.testing.assert_close(p, expected, rtol=1e-4, atol=1e-6)
        self.assertFalse(torch.equal(before["action.weight"], seen.policy.action.weight))

    def test_steps_of_accumulation(self):
        done = self.run_script(self.data, *SMALL, "--grad_accumulation", "4", "--max_batches", "6", "--lr_backbone", "1e-6")
        self.assertRegex(done.stdout, r"(?m)^21_backward +consumer-work +6 ")
        self.assertRegex(done.stdout, r"(?m)^22_optimizer_step +consumer-work +2 ")

    def test_lr_backbone(self):
        o = types.SimpleNamespace(policy=self.policy(14, *SMALL), o=self.options(*SMALL, "--lr_backbone", "0"))
        groups = imitate_episodes.Training.parameter_groups(o)
        self.assertEqual([group.get("lr") for group in groups], [None, 0])
        self.assertEqual(len(groups[1]["params"]), len(list(o.policy.backbone.parameters())))
        self.assertEqual(sum(len(group["params"]) for group in groups), len(list(o.policy.parameters())))

    @unittest.skipUnless(HAS_TORCHVISION, "torchvision is not installed")
    def test_backbones(self):
        """torchvision's networks, with affine parameters in place of BatchNorm's. Nothing is downloaded."""
        with unittest.mock.patch("torch.hub.load_state_dict_from_url", side_effect=AssertionError):
            for name, parameters in [("resnet18", 11_176_512), ("mobilenet_v2", 2_223_872), ("mobilenet_v3_small", 927_008),
                                     ("mobilenet_v3_large", 2_971_952)]:
                with self.subTest(backbone=name):
                    policy = self.policy(14, *SMALL, "--backbone", name)
                    self.assertEqual(sum(p.numel() for p in policy.backbone.parameters()), parameters)
                    self.assertFalse(list(policy.backbone.buffers()))
                    self.assertEqual(policy.see(torch.rand(1, 3, 96, 64)).shape[2:], (3, 2))
                    self.check_grad_checkpoint("--backbone", name)
        done = self.run_script(self.data, *SMALL, "--backbone", "mobilenet_v3_small", "--grad_checkpoint", "--max_batches", "2")
        self.assertRegex(done.stdout, r"train loss [\d.]+ \| val loss [\d.]+\n")
        self.assertIn("policy: ACT, mobilenet_v3_small backbone, ", done.stderr)

    @unittest.skipIf(HAS_TORCHVISION, "torchvision is installed")
    def test_no_torchvision(self):
        done = self.run_script(self.data, *SMALL, "--backbone", "mobilenet_v2", status=1)
        self.assertRegex(done.stderr, r"^imitate_episodes: --backbone mobilenet_v2 needs torchvision \(.*\); pip install torchvision\n$")

    def test_eval(self):
        """--eval repeats the validation loss of the best epoch, and changes no file."""
        done = self.run_script(self.data, *SMALL, "--num_epochs", "2", "--lr", "1e-3", "--ckpt_dir", "evaluated",
                               "--decode_cache", "64M", "--prefetch_factor", "3")
        best = min(float(loss) for loss in re.findall(r"val loss ([\d.]+)", done.stdout))
        folder = os.path.join(self.work, "evaluated")
        times = {name: os.stat(os.path.join(folder, name)).st_mtime_ns for name in os.listdir(folder)}
        done = self.run_script(self.data, *SMALL, "--ckpt_dir", "evaluated", "--eval")
        found = re.fullmatch(r"evaluated/policy_best.ckpt: val loss ([\d.]+), \d+ samples\n", done.stdout)
        self.assertTrue(found, done.stdout)
        self.assertAlmostEqual(float(found[1]), best, delta=best * 1e-4)
        self.assertIn("success rates need ACT's simulator", done.stderr)
        self.assertEqual(times, {name: os.stat(os.path.join(folder, name)).st_mtime_ns for name in os.listdir(folder)})
        nowhere = os.path.join(self.work, "nowhere")
        for arguments, words in [(["--ckpt_dir", nowhere], "nowhere/policy_best.ckpt does not exist; train with"),
                                 (["--ckpt_dir", folder, "--enc_layers", "2"], "does not fit this policy; use the options that"),
                                 (["--ckpt_dir", folder, "--train_split", "1"], "use a smaller --train_split")]:
            self.assertRegex(self.error(self.data, *SMALL, "--eval", *arguments, status=1), f"^imitate_episodes: .*{words}.*$")
        self.assertFalse(os.path.exists(nowhere))
        with open(os.path.join(folder, "resume.ckpt"), "r+b") as file:
            file.truncate(100)
        self.assertRegex(self.error(self.data, *SMALL, "--ckpt_dir", folder, "--resume", status=1),
                         "^imitate_episodes: .*/evaluated/resume.ckpt is not a checkpoint: .*$")

    def test_refused(self):
        """Every option of ACT's parser, and of DETR's which ACT's script includes, is accepted or refused with a reason."""
        typed = {"--lr_backbone": "1e-5", "--backbone": "small", "--position_embedding": "sine", "--camera_names": "rgb_main",
                 "--enc_layers": "4", "--dec_layers": "7", "--dropout": "0.1", "--nheads": "8", "--weight_decay": "1e-4",
                 "--pre_norm": None, "--eval": None}
        o = self.options(*(word for option in typed.items() for word in option if word))
        self.assertEqual((o.cameras, o.dec_layers, o.pre_norm, o.eval), (["rgb_main"], 7, True, True))
        for arguments, words in [(["--onscreen_render"], "--onscreen_render: it needs ACT's simulator or a robot"),
                                 (["--temporal-agg"], "--temporal_agg: it needs ACT's simulator"),
                                 (["--masks"], "--masks: "), (["--dilation"], "--dilation: "), (["--epochs", "3"], "use --num_epochs"),
                                 (["--lr_drop=200"], "--lr_drop: ACT's own script parses it and does not use it"),
                                 (["--clip_max_norm", "0.1"], "--clip_max_norm: "), (["--num_queries", "100"], "use --chunk_size"),
                                 (["--num_steps", "2000"], "use --num_epochs"), (["--use_vq"], "--use_vq: "),
                                 (["--num_epochs", "0"], "must be 1 or more, not 0"), (["--lr", "-1"], "must be 0 or more, not -1"),
                                 (["--every", "-1"], "must be 1 or more, not -1")]:
            error = self.error(self.data, *arguments, status=2)
            self.assertIn(words, error)
            self.assertRegex(error, "^imitate_episodes: .*\nTry: .* --help\n$")

    def test_padding_counts_for_nothing(self):
        policy = self.policy(14, *SMALL).eval()
        batch = self.batch()
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
        o = self.options(data, *SMALL)
        paths = sorted(os.path.join(folder, name) for folder, _, names in os.walk(data) for name in names)
        episodes = imitate_episodes.Episodes(paths, o)
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

    def test_help(self):
        with contextlib.redirect_stdout(io.StringIO()) as out, self.assertRaises(SystemExit) as raised:
            self.options("--help")
        self.assertEqual(raised.exception.code, 0)
        self.assertIn("usage: python -m weir.examples.imitate_episodes [DATA] [OPTIONS]\n", out.getvalue())
        self.assertRegex(out.getvalue(), r"--lr F +learning rate of AdamW \(default: 1e-05\)")
        for noise in ("default: None", "default: False", *(f"--{name}" for name in imitate_episodes.REFUSED)):
            self.assertNotRegex(out.getvalue(), rf"{noise}\b")

    def test_what_cannot_be(self):
        for arguments, words in [([], "no data is given"), ([self.data, "--hidden_dim", "12"], "multiple of 4 and of --nheads 8"),
                                 ([self.data, "--enc_layers", "0"], "--enc_layers: must be 1 or more, not 0"),
                                 ([self.data, "--resume"], "add --ckpt_dir DIR"), ([self.data, "--policy_class", "CNN"], "ACT"),
                                 ([self.data, "--image_size", "9"], "--image_size: must be WIDTHxHEIGHT, such as 320x240, not '9'"),
                                 ([self.data, "--num_workers", "many"], "--num_workers: must be a number or auto, not 'many'"),
                                 ([self.data, "--nonsense"], "--nonsense")]:
            with unittest.mock.patch.dict(os.environ, {"WEIR_DATASETS": ""}):
                self.assertIn(words, self.error(*arguments, status=2))
        full = torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nSee")
        with unittest.mock.patch.object(imitate_episodes, "Training", side_effect=full):
            self.assertRegex(self.error(self.data, *SMALL, status=1), r"^imitate_episodes: CUDA out of memory.* 2.00 GiB. Use --grad_c.*$")
        other = self.synth("robotwin", "--format", "robotwin", "--episodes", "1", "--steps", "2", "--size", "32x24")
        self.assertIn("knows act, act-jpeg", self.error(other, "--loader", "h5py", *SMALL, status=1))
        done = self.run_script(os.path.join(self.work, "nowhere"), *SMALL, status=1)
        self.assertRegex(done.stderr, "imitate_episodes: .*nowhere.*\n$")
        self.assertNotIn("Traceback", done.stderr)
