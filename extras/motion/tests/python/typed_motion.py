"""Typical user code with motion clips, for mypy."""
import weir


def track(path: str) -> float:
    with weir.MotionLibrary([path], key_bodies=["left_hand", 3], device="cuda:0", num_threads=4) as motions:
        seconds: float = motions.clips[0].duration
        names: list[str] | None = motions.body_names
        state: weir.MotionState = weir.motion_state(motions, [0], [0.5 * seconds])
        return float(state.dof_pos.sum()) + len(motions) + len(names or [])
