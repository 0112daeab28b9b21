"""Reads the output of weir synth with h5py, using the keys and calls of each layout's own loader, and with weir info.

$WEIR_PROGRAM is the program. Exit status 77: no h5py.
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
except ImportError:
    print("no h5py: skipped")
    sys.exit(1 if "CI" in os.environ else 77)

EPISODES, STEPS, WIDTH, HEIGHT = 3, 6, 96, 80


def decode(frame):
    """Replaces cv2.imdecode(np.frombuffer(frame, np.uint8)): checks for a JPEG of the right size, optionally padded."""
    data = np.frombuffer(frame, np.uint8).tobytes()
    assert data[:2] == b"\xff\xd8" and data.rstrip(b"\0")[-2:] == b"\xff\xd9", data[:4]
    at = 2
    while data[at + 1] not in (0xC0, 0xC1, 0xC2):
        at += 2 + int.from_bytes(data[at + 2:at + 4], "big")
    assert (int.from_bytes(data[at + 5:at + 7], "big"), int.from_bytes(data[at + 7:at + 9], "big")) == (HEIGHT, WIDTH)


def decode_depth(frame):
    data = np.frombuffer(frame, np.uint8).tobytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR" and data[24:26] == b"\x10\x00", data[:26]
    assert (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")) == (WIDTH, HEIGHT)


def picture(frame):
    assert frame.shape == (HEIGHT, WIDTH, 3) and frame.dtype == np.uint8 and frame.std() > 5, frame.shape


def act_item(root, t):
    """EpisodicDataset.__getitem__ of ACT and of act-plus-plus."""
    sim = root.attrs["sim"]
    assert isinstance(sim, (bool, np.bool_)), type(sim)
    assert root["/action"].shape == (STEPS, 14)
    for key in ("qpos", "qvel"):
        assert root["/observations/" + key][t].shape == (14,)
    assert root["/action"][t if sim else max(0, t - 1):].dtype == np.float32
    images = {name: root["/observations/images/" + name][t] for name in root["/observations/images"].keys()}
    return root.attrs.get("compress", False), images


def check_act(out):
    for i in range(EPISODES):
        with h5py.File(f"{out}/episode_{i}.hdf5", "r") as root:
            compressed, images = act_item(root, 3)
            assert not compressed and list(images) == ["top", "wrist"]
            for image in images.values():
                picture(image)


def check_act_jpeg(out, lengths=True):
    for i in range(EPISODES):
        with h5py.File(f"{out}/episode_{i}.hdf5", "r") as root:
            compressed, images = act_item(root, 3)
            assert compressed and ("/compress_len" in root) == lengths
            for n, (name, row) in enumerate(images.items()):
                decode(row)
                if lengths:
                    length = int(root["/compress_len"][n, 3])
                    assert row[length - 1] == 0xD9 and not row[length:].any(), name


def check_act_jpeg_nolen(out):
    check_act_jpeg(out, lengths=False)


def check_agilex(out):
    for i in range(EPISODES):
        with h5py.File(f"{out}/episode_{i}.hdf5", "r") as root:
            compressed, images = act_item(root, 3)
            assert root.attrs["sim"] == False and root.attrs["compress"] == False and not compressed  # noqa: E712
            qpos = root["/observations/qpos"][1:]
            assert np.append(qpos, qpos[-1:], axis=0).shape == (STEPS, 14)
            assert root["/observations/effort"].shape == (STEPS, 14) and root["/base_action"][()].shape == (STEPS, 2)
            for name in ("cam_high", "cam_left_wrist", "cam_right_wrist"):
                picture(images[name])
                depth = root["/observations/images_depth/" + name]
                assert depth.chunks == (1, HEIGHT, WIDTH) and depth.dtype == np.uint16 and depth[3].max() > 0
            middle = root["/observations/images_depth/cam_high"][:, HEIGHT // 2, WIDTH // 2]
            assert ((500 < middle) & (middle < 1800)).all(), f"{middle} mm: the camera is a metre above the table"


def check_astrobench(out):
    for i in range(EPISODES):
        with h5py.File(f"{out}/data/synthetic/diffuse/episode_00_{i:04d}_expert_diffuse.h5", "r") as f:
            meta = f["metadata"].attrs
            assert (meta["episode_id"], meta["num_frames"], meta["image_encoding"]) == (i, STEPS, "jpg_95")
            for name in ("main", "left", "right", "under"):
                decode(f["observations/rgb_" + name][3])
                decode_depth(f["observations/depth_" + name][3])
            assert f["observations/joint_pos"][:].shape == f["action/joint_positions"][:].shape == (STEPS, 28)


def check_robotwin(out):
    """policy/ACT/process_data.py"""
    for i in range(EPISODES):
        with h5py.File(f"{out}/data/episode{i}.hdf5", "r") as root:
            keys = ("left_arm", "left_gripper", "right_arm", "right_gripper")
            arms = [root["/joint_action/" + key][()] for key in keys]
            row = np.concatenate((arms[0][2], [arms[1][2]], arms[2][2], [arms[3][2]]))
            assert np.array_equal(row, root["/joint_action/vector"][2])
            for name in root["/observation/"].keys():
                strings = root[f"/observation/{name}/rgb"].id.get_type()
                assert strings.get_strpad() == h5py.h5t.STR_NULLPAD and strings.get_cset() == h5py.h5t.CSET_ASCII
                frames = root[f"/observation/{name}/rgb"][()]
                assert strings.get_size() == max(map(len, frames)), "as long as the longest frame"
                assert sum(frame.count(b"\0") for frame in frames) > 10 * STEPS, "too few zeros to test a reader"
                assert frames.dtype.kind == "S" and frames.shape == (STEPS,), frames.dtype
                for frame in frames:  # numpy strips the padding
                    assert b"\0" in frame
                    decode(frame)


def check_robomind(out):
    for i in range(EPISODES):
        with h5py.File(f"{out}/success_episodes/train/{i:04d}/data/trajectory.hdf5", "r") as root:
            assert not root.attrs["sim"] and root.attrs["compress"]
            for name in ("camera_front", "camera_left_wrist", "camera_right_wrist"):
                decode(root["/observations/rgb_images/" + name][3])
                decode_depth(root["/observations/depth_images/" + name][3])
            for arm in ("puppet", "master"):
                for side in ("left", "right"):
                    assert root[f"/{arm}/joint_position_{side}"][:].shape == (STEPS, 7)
            assert root["/puppet/end_effector_left"][:].dtype == np.float64
            master, puppet = (root[f"/{arm}/joint_position_left"][()] for arm in ("master", "puppet"))
            assert np.abs(master[:-1] - puppet[1:]).max() < 0.002 < np.abs(master - puppet).max(), "follows a step later"


def demos(f):
    """The demos in the order of robomimic's SequenceDataset."""
    names = sorted(f["data"].keys(), key=lambda name: int(name[5:]))
    assert len(names) == EPISODES
    assert f["data"].attrs["total"] == sum(f["data"][name].attrs["num_samples"] for name in names)
    assert "env_name" in json.loads(f["data"].attrs["env_args"])
    return [f["data"][name] for name in names]


def check_robomimic(out, gzip=False):
    with h5py.File(out + "/demos.hdf5", "r", swmr=True, libver="latest") as f:
        masks = [name.decode("utf-8") for key in ("mask/train", "mask/valid") for name in np.array(f[key][:])]
        assert masks == [f"demo_{i}" for i in range(EPISODES)] and len(f["mask/valid"]) == 1
        for demo in demos(f):
            for key in ("agentview_image", "robot0_eye_in_hand_image"):
                images = demo["obs/" + key]
                assert images.compression == ("gzip" if gzip else None)
                picture(images[3])
            for key in demo["next_obs"]:
                assert np.array_equal(demo["obs/" + key][1:], demo["next_obs/" + key][:-1]), key
                assert not np.array_equal(demo["obs/" + key], demo["next_obs/" + key]) or "gripper" in key, f"{key} stands"
            assert np.abs(demo["actions"][()]).max() <= 1 and demo["actions"].shape == (STEPS, 14)
            assert not demo["dones"][:-1].any()
            assert demo["dones"][-1] == 1 and demo["rewards"][-1] == 1 and len(demo["states"]) == STEPS
            assert demo.attrs["model_file"].startswith("<mujoco")


def check_robomimic_gzip(out):
    check_robomimic(out, gzip=True)
    check_chunks(out + "/demos.hdf5")


def check_libero(out):
    with h5py.File(out + "/demo.hdf5", "r") as f:
        attrs = f["data"].attrs
        assert attrs["num_demos"] == EPISODES and attrs["macros_image_convention"] in ("opencv", "opengl")
        assert json.loads(attrs["problem_info"])["language_instruction"] and attrs["bddl_file_name"].endswith(".bddl")
        for demo in demos(f):
            widths = {"gripper_states": 2, "joint_states": 7, "ee_states": 6, "ee_pos": 3, "ee_ori": 3}
            for key, width in widths.items():
                assert demo["obs/" + key][()].shape == (STEPS, width), key
            pose = np.concatenate((demo["obs/ee_pos"], demo["obs/ee_ori"]), axis=1)
            assert np.array_equal(demo["obs/ee_states"], pose)
            for key in ("agentview_rgb", "eye_in_hand_rgb"):
                assert demo["obs/" + key].chunks is None
                picture(demo["obs/" + key][3])
            assert demo["actions"].shape == (STEPS, 7) and demo["robot_states"].shape == (STEPS, 9)


def check_isaaclab(out):
    """HDF5DatasetFileHandler.load_episode: reads nested groups and complete datasets."""
    def load(group):
        return {key: load(item) if isinstance(item, h5py.Group) else np.array(item) for key, item in group.items()}
    with h5py.File(out + "/dataset.hdf5", "r") as f:
        for i, demo in enumerate(demos(f)):
            assert demo.attrs["seed"] == i and demo.attrs["success"]
            episode = load(demo)
            picture(episode["obs"]["policy"]["table_cam"][3])
            robot = episode["initial_state"]["articulation"]["robot"]
            assert np.array_equal(robot["joint_position"][0], episode["obs"]["joint_pos"][0])
            states = episode["states"]["articulation"]["robot"]
            assert states["root_pose"].shape == (STEPS, 7)
            assert np.array_equal(robot["joint_position"][0], states["joint_position"][0])
            assert np.abs(episode["actions"][:-1] - states["joint_position"][1:]).max() < 0.002
    check_chunks(out + "/dataset.hdf5")


def check_chunks(path):
    """Every dataset of the demos has the properties that h5py chooses with compression="gzip"."""
    with h5py.File(path, "r") as f, h5py.File("mine", "w", driver="core", backing_store=False) as mine:
        def compare(name, item):
            if isinstance(item, h5py.Dataset):
                own = mine.create_dataset(name, shape=item.shape, dtype=item.dtype, compression="gzip")
                for what in ("chunks", "compression", "compression_opts", "shuffle", "fletcher32", "maxshape"):
                    assert getattr(item, what) == getattr(own, what), (name, what, getattr(item, what))
        f["data"].visititems(compare)
        assert len(mine) > 0


def check_long_demo(weir, out):
    """Actions of robomimic are movements of the gripper, scaled and clipped to -1..1, in both directions."""
    subprocess.run([weir, "synth", out, *"--format robomimic --episodes 1 --steps 200 --size 16x16".split(), "--cameras",
                    "agentview"], check=True, stdout=subprocess.DEVNULL)
    with h5py.File(out + "/demos.hdf5", "r") as f:
        actions, place = f["data/demo_0/actions"][()], f["data/demo_0/obs/robot0_eef_pos"][()]
    assert -1 <= actions.min() < -0.1 and 0.1 < actions.max() <= 1, (actions.min(), actions.max())
    assert np.abs(np.diff(place, axis=0) - 0.05 * actions[:-1, :3]).max() < 0.003


def check_same_jpegs(folder):
    with h5py.File(f"{folder}/act-jpeg/episode_1.hdf5") as a, h5py.File(f"{folder}/act-jpeg-nolen/episode_1.hdf5") as b:
        assert np.array_equal(a["observations/images/top"], b["observations/images/top"])


CHECKS = {
    "act": check_act,
    "act-jpeg": check_act_jpeg,
    "act-jpeg-nolen": check_act_jpeg_nolen,
    "agilex": check_agilex,
    "astrobench": check_astrobench,
    "robotwin": check_robotwin,
    "robomind": check_robomind,
    "robomimic": check_robomimic,
    "robomimic-gzip": check_robomimic_gzip,
    "libero": check_libero,
    "isaaclab": check_isaaclab,
}


def check_info(weir, out, name):
    told = subprocess.run([weir, "info", "--json", out], check=True, capture_output=True, text=True).stdout
    info = json.loads(told)
    others = {"act-jpeg": "act-plus-plus", "act-jpeg-nolen": "act-plus-plus", "robomimic-gzip": "robomimic"}
    sizes = [os.path.getsize(os.path.join(folder, file)) for folder, _, files in os.walk(out) for file in files]
    assert (info["layout"], info["episodes"], info["files_bytes"]) == (others.get(name, name), EPISODES, sum(sizes)), told


def main():
    weir, failed = os.environ["WEIR_PROGRAM"], 0
    told = subprocess.run([weir, "synth", "--help"], check=True, capture_output=True, text=True,
                          env={**os.environ, "COLUMNS": "1000"}).stdout
    assert "--format " + "|".join(CHECKS) + "\n" in told, "--help lists other formats"
    with tempfile.TemporaryDirectory() as folder:
        for name, check in CHECKS.items():
            out = f"{folder}/{name}"
            subprocess.run([weir, "synth", out, "--format", name, "--episodes", str(EPISODES), "--steps", str(STEPS),
                            "--size", f"{WIDTH}x{HEIGHT}"], check=True, stdout=subprocess.DEVNULL)
            try:
                check(out)
                check_info(weir, out, name)
            except Exception as fault:  # continue with the other formats
                failed += 1
                print(f"{name}: {type(fault).__name__}: {fault} (line {fault.__traceback__.tb_next.tb_lineno})")
        check_long_demo(weir, f"{folder}/long")
        check_same_jpegs(folder)
    print(f"{len(CHECKS)} formats, {failed} failures")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
