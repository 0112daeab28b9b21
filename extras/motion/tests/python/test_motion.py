"""weir.MotionLibrary: states compared with the C reference and plain torch, memory, threads, errors."""
import array
import json
import math
import os
import shutil
import subprocess
import tempfile
import threading
import unittest

try:
    import h5py
    import numpy as np
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed")
try:
    import torch
except ImportError:
    torch = None

import weir

DOFS, BODIES = 7, 5
WIDTHS = {"root_pos_w": (3,), "root_quat": (4,), "root_vel_w": (3,), "root_vel_b": (3,), "root_ang_vel_w": (3,),
          "root_ang_vel_b": (3,), "dof_pos": (DOFS,), "dof_vel": (DOFS,), "key_body_pos_b": (BODIES - 1, 3)}


def walk(seed, frames):
    """Smooth robot motion, in the format of whole_body_tracking's csv_to_npz.py."""
    random = np.random.default_rng(seed)
    t = np.arange(frames)[:, None, None] / frames
    swing = np.sin(2 * np.pi * (t * random.uniform(1, 3, (1, BODIES, 4)) + random.uniform(size=(1, BODIES, 4))))
    return {"fps": np.array([50]), "joint_pos": random.normal(size=(frames, DOFS)).astype(np.float32),
            "joint_vel": random.normal(size=(frames, DOFS)).astype(np.float32),
            "body_pos_w": swing[..., :3].astype(np.float32), "body_quat_w": (swing + [2, 0, 0, 0]).astype(np.float32),
            "body_lin_vel_w": random.normal(size=(frames, BODIES, 3)).astype(np.float32),
            "body_ang_vel_w": random.normal(size=(frames, BODIES, 3)).astype(np.float32),
            "joint_names": np.array([f"joint_{i}" for i in range(DOFS)]),
            "body_names": np.array([f"body_{i}" for i in range(BODIES)])}


class Clips(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.mkdtemp(prefix="weir-motion-")
        cls.addClassCleanup(shutil.rmtree, cls.work)
        cls.folder = os.path.join(cls.work, "clips")
        os.mkdir(cls.folder)
        for i, frames in enumerate((50, 31, 2)):
            np.savez(os.path.join(cls.folder, f"walk_{i}.npz"), **walk(i, frames))
        cls.hdf5 = os.path.join(cls.work, "clips.hdf5")  # Isaac Lab's names; one group per clip
        names = {"joint_pos": "dof_positions", "joint_vel": "dof_velocities", "body_pos_w": "body_positions",
                 "body_quat_w": "body_rotations", "fps": "fps"}
        with h5py.File(cls.hdf5, "w") as file:
            for i in range(2):
                group = file.create_group(f"clip_{i}")
                for name, values in walk(10 + i, 40).items():
                    if name in names:
                        group[names[name]] = values

    def queries(self, library, n, steps=0):
        """(clips, times): cycles through the clips, with times from 1 s before the start to 1 s past the end."""
        random = np.random.default_rng(1)
        clips = np.arange(n) % len(library)
        durations = np.array([clip.duration for clip in library.clips])[clips]
        shape = (n, steps) if steps else (n,)
        durations = durations[:, None] if steps else durations
        times = (random.uniform(size=shape) * (durations + 2) - 1).astype(np.float32)
        times[0] = math.nan
        return clips.astype(np.int64), times


def reference(path, clips, times, *options):
    """Results of extras/motion/tests/motion_reference.c in float64: name -> (values, tolerances)."""
    n = times.size
    with tempfile.NamedTemporaryFile() as file:
        file.write(np.repeat(clips, n // len(clips)).tobytes() + times.tobytes())
        file.flush()
        out = subprocess.run([os.environ["WEIR_MOTION_DUMP"], "--queries", file.name, *options, path], check=True,
                             stdout=subprocess.PIPE).stdout
    head, rows = out.split(b"\n", 1)
    width = sum(math.prod(shape) for shape in WIDTHS.values())
    rows = np.frombuffer(rows, np.float64).reshape(n, width, 2)
    wanted, at = {}, 0
    for name, shape in WIDTHS.items():
        part = rows[:, at:at + math.prod(shape)].reshape(times.shape + shape + (2,))
        wanted[name] = part[..., 0], part[..., 1]
        at += math.prod(shape)
    return wanted, json.loads(head)


def trainer(library, path, clips, times):
    """A trainer's get_motion_state in torch, from an NPZ file per clip."""
    files = [np.load(os.path.join(path, name)) for name in sorted(os.listdir(path))]
    take = lambda name: torch.cat([torch.from_numpy(file[name].astype(np.float32)) for file in files])
    frames = torch.tensor([len(file["joint_pos"]) for file in files])
    first = (frames.cumsum(0) - frames)[clips]
    durations, last = library.durations[clips], frames[clips] - 1
    at = (times / durations).nan_to_num().clamp(0, 1) * last
    frame0 = at.long()
    frame1 = torch.minimum(frame0 + 1, last)
    blend = (at - frame0)[:, None]
    lerp = lambda x: torch.lerp(x[first + frame0], x[first + frame1], blend.view(-1, *[1] * (x.dim() - 1)))
    quats = take("body_quat_w")[:, 0]
    quats = quats / quats.norm(dim=-1, keepdim=True)
    q0, q1 = quats[first + frame0].double(), quats[first + frame1].double()
    dot = (q0 * q1).sum(-1, keepdim=True)
    q1 = torch.where(dot < 0, -q1, q1)
    angle = dot.abs().clamp(max=1).acos()
    small = angle < 1e-6
    sine = torch.where(small, torch.ones_like(angle), angle.sin())
    quat = torch.where(small, q0, (q0 * ((1 - blend) * angle).sin() + q1 * (blend * angle).sin()) / sine).float()
    def back(v):
        while quat.dim() < v.dim():
            return back_many(v)
        axis = quat[:, 1:]
        t = 2 * torch.cross(axis, v, dim=-1)
        return v - quat[:, :1] * t + torch.cross(axis, t, dim=-1)
    def back_many(v):
        return torch.stack([back(v[:, i]) for i in range(v.shape[1])], 1)
    pos, vel, ang = (lerp(take(name)[:, 0]) for name in ("body_pos_w", "body_lin_vel_w", "body_ang_vel_w"))
    bodies = lerp(take("body_pos_w")[:, 1:])
    return {"root_pos_w": pos, "root_quat": quat, "root_vel_w": vel, "root_vel_b": back(vel), "root_ang_vel_w": ang,
            "root_ang_vel_b": back(ang), "dof_pos": lerp(take("joint_pos")), "dof_vel": lerp(take("joint_vel")),
            "key_body_pos_b": back(bodies - pos[:, None])}


class Values(Clips):
    def compare(self, state, wanted, what):
        self.assertEqual(state._fields, tuple(WIDTHS))
        for name, (values, tolerances) in wanted.items():
            got = np.asarray(getattr(state, name))
            self.assertEqual((got.dtype, got.shape), (np.float32, values.shape), f"{what}: {name}")
            off = np.abs(got - values)
            self.assertTrue(np.all((off <= tolerances) | (off <= 1e-30)), f"{what}: {name} is off by {off.max()}")

    def test_c_reference(self):
        kinds = ("torch", "array") if torch else ("array",)
        for path in (self.folder, self.hdf5):
            for loop, options in ((None, ()), (True, ("--loop", "always"))):
                for tensors in kinds:
                    with weir.MotionLibrary(path, loop=loop, tensors=tensors, num_threads=2) as library:
                        for n, steps in ((1, 0), (2, 1), (33, 3), (1100, 0)):
                            clips, times = self.queries(library, n, steps)
                            wanted, head = reference(path, clips, times, *options)
                            ask = (torch.from_numpy(clips), torch.from_numpy(times)) if tensors == "torch" else (clips, times)
                            self.compare(library.state(*ask), wanted, f"{path} {loop} {tensors} {n} x {steps}")
                        self.assertEqual([tuple(clip) for clip in library.clips], [
                            (c["name"], c["frames"], c["fps"], c["duration"], c["loop"]) for c in head["clips"]])

    def test_bodies(self):
        with weir.MotionLibrary(self.folder, root_body="body_2", key_bodies=["body_4", 0], tensors="array") as library:
            self.assertEqual((library.num_dofs, library.num_bodies, len(library)), (DOFS, 2, 3))
            self.assertEqual(library.body_names, ["body_4", "body_0"])
            self.assertEqual(library.dof_names, [f"joint_{i}" for i in range(DOFS)])
            state = library.state([0], [0.0])
            first = np.load(os.path.join(self.folder, "walk_0.npz"))
            np.testing.assert_array_equal(np.asarray(state.root_pos_w)[0], first["body_pos_w"][0, 2])
            apart = first["body_pos_w"][0, [4, 0]] - first["body_pos_w"][0, 2]
            np.testing.assert_allclose(np.linalg.norm(np.asarray(state.key_body_pos_b)[0], axis=-1),
                                       np.linalg.norm(apart, axis=-1), rtol=1e-5)

    def test_paths(self):
        files = [os.path.join(self.folder, f"walk_{i}.npz") for i in (1, 0)]
        with weir.MotionLibrary(files, tensors="array") as library:
            self.assertEqual([clip.name for clip in library.clips], ["walk_1", "walk_0"])
            one = np.asarray(library.state([1], [0.3]).dof_pos)
        np.testing.assert_array_equal(one, np.asarray(weir.motion_state(self.folder, [0], [0.3]).dof_pos))
        with weir.MotionLibrary(os.fsencode(files[0]), tensors="array") as library:
            self.assertEqual(weir.motion_state(library, [0], [0.0]).dof_pos.shape, (1, DOFS))

    @unittest.skipUnless(torch, "torch is not installed")
    def test_plain_torch(self):
        with weir.MotionLibrary(self.folder) as library:
            clips, times = map(torch.from_numpy, self.queries(library, 700))
            state = library.state(clips, times)
            for name, wanted in trainer(library, self.folder, clips, times).items():
                torch.testing.assert_close(getattr(state, name), wanted, rtol=2e-5, atol=2e-5, msg=name)

    @unittest.skipUnless(torch, "torch is not installed")
    def test_arguments_that_are_converted(self):
        with weir.MotionLibrary(self.folder) as library:
            clips, times = map(torch.from_numpy, self.queries(library, 12))
            wanted = library.state(clips, times).dof_pos
            wide = torch.stack([times, times], 1)[:, 0]
            for ask in ((clips.int(), times.double()), (clips.tolist(), times.tolist()), (clips.numpy(), wide),
                        (clips, times.clone().requires_grad_())):
                torch.testing.assert_close(library.state(*ask).dof_pos, wanted, rtol=0, atol=0)


class Memory(Clips):
    @unittest.skipUnless(torch, "torch is not installed")
    def test_states_stay_and_are_used_again(self):
        library = weir.MotionLibrary(self.folder)
        clips, times = map(torch.from_numpy, self.queries(library, 64))
        held = [library.state(clips, times + 0.01 * i) for i in range(8)]
        copies = [state.key_body_pos_b.clone() for state in held]
        self.assertEqual(len({state.root_pos_w.data_ptr() for state in held}), 8)
        for state, copy in zip(held, copies):
            torch.testing.assert_close(state.key_body_pos_b, copy, rtol=0, atol=0)
        view = held[-1].dof_pos[3:5, 1]
        wanted = view.clone()
        del held, state
        pointers = {library.state(clips, times).root_pos_w.data_ptr() for _ in range(20)}
        self.assertLessEqual(len(pointers), 4)
        library.close()
        torch.testing.assert_close(view, wanted, rtol=0, atol=0)
        view.add_(1)

    def test_closed(self):
        library = weir.MotionLibrary(self.folder, tensors="array")
        state = library.state([1], [0.1])
        self.assertFalse(library.closed)
        library.close()
        library.close()
        self.assertTrue(library.closed)
        self.assertTrue(np.isfinite(np.asarray(state.dof_vel)).all())
        with self.assertRaisesRegex(weir.Error, "closed"):
            library.state([1], [0.1])

    def test_threads(self):
        with weir.MotionLibrary(self.folder, tensors="array", num_threads=2) as library:
            clips, times = self.queries(library, 900)
            wanted = [np.asarray(library.state(clips, times + np.float32(i)).root_quat).copy() for i in range(4)]
            bad = []

            def sample(i):
                for _ in range(40):
                    got = np.asarray(library.state(clips, times + np.float32(i)).root_quat)
                    if not np.array_equal(got, wanted[i]):
                        bad.append(i)
            threads = [threading.Thread(target=sample, args=(i,)) for i in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(bad, [])

    def test_fork(self):
        with weir.MotionLibrary(self.folder, tensors="array", num_threads=2) as library:
            child = os.fork()
            if child == 0:
                try:
                    library.state([0], [0.0])
                    os._exit(1)
                except weir.Error as error:
                    library.close()
                    os._exit(0 if "fork" in str(error) else 2)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            self.assertEqual(library.state([0] * 900, [0.0] * 900).dof_pos.shape, (900, DOFS))

    def test_profile(self):
        with weir.MotionLibrary(self.folder, tensors="array") as library, weir.profile() as profile:
            library.state([0], [0.0])
        self.assertIn("weir::motion_pass", [average.key for average in profile.key_averages()])


class Refused(Clips):
    def test_arguments(self):
        two = array.array("q", [0, 1]), array.array("f", [0, 0])
        cases = [
            (ValueError, "clips\\[1\\] is 3: clips are numbered 0 to 2", lambda library: library.state([0, 3], [0.0, 0.0])),
            (ValueError, "clips\\[0\\] is -1", lambda library: library.state([-1], [0.0])),
            (ValueError, "clips are \\(n,\\)", lambda library: library.state([0, 1], [0.0])),
            (ValueError, "clips are \\(n,\\)", lambda library: library.state([], [])),
            (ValueError, "several lengths", lambda library: library.state([0, 1], [[0.0], [0.0, 1.0]])),
            (TypeError, "int64", lambda library: library.state(array.array("i", [0, 1]), two[1])),
            (TypeError, "float32", lambda library: library.state(two[0], array.array("d", [0, 0]))),
            (TypeError, "", lambda library: library.state(None, two[1])),
            (TypeError, "", lambda library: library.state(["a"], [0.0])),
        ]
        with weir.MotionLibrary(self.folder, tensors="array") as library:
            for kind, text, call in cases:
                with self.assertRaisesRegex(kind, text):
                    call(library)

    @unittest.skipUnless(torch, "torch is not installed")
    def test_tensors(self):
        with weir.MotionLibrary(self.folder, tensors="torch") as library:
            for kind, text, ask in ((TypeError, "integers", (torch.zeros(2), torch.zeros(2))),
                                    (TypeError, "integers", (torch.ones(2, dtype=torch.bool), torch.zeros(2))),
                                    (ValueError, "clips are", (torch.zeros(2, 1, dtype=torch.int64), torch.zeros(2))),
                                    (ValueError, "clips are", (torch.zeros(0, dtype=torch.int64), torch.zeros(0)))):
                with self.assertRaisesRegex(kind, text):
                    library.state(*ask)

    def test_opening(self):
        one = os.path.join(self.folder, "walk_0.npz")
        broken = os.path.join(self.work, "broken.npz")
        with open(one, "rb") as file, open(broken, "wb") as to:
            to.write(file.read()[:2000])
        for kind, text, call in (
                (FileNotFoundError, "/nowhere", lambda: weir.MotionLibrary("/nowhere")),
                (weir.Error, "broken.npz", lambda: weir.MotionLibrary(broken)),
                (ValueError, "body_9", lambda: weir.MotionLibrary(one, key_bodies=["body_9"])),
                (ValueError, "loop is", lambda: weir.MotionLibrary(one, loop="always")),
                (ValueError, "num_threads", lambda: weir.MotionLibrary(one, num_threads=0.5)),
                (ValueError, "num_threads", lambda: weir.MotionLibrary(one, num_threads=-1)),
                (ValueError, "device is", lambda: weir.MotionLibrary(one, device="gpu")),
                (ValueError, "tensors is", lambda: weir.MotionLibrary(one, tensors="numpy")),
                (ValueError, "path without zero bytes", lambda: weir.MotionLibrary(one + "\0.npz")),
                (TypeError, "path must be a path", lambda: weir.MotionLibrary(None)),
                (TypeError, "path must be a path", lambda: weir.MotionLibrary([one, 7])),
                (ValueError, "path must be", lambda: weir.MotionLibrary([]))):
            with self.assertRaisesRegex(kind, text):
                call()


if __name__ == "__main__":
    unittest.main()
