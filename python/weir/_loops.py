"""The bottleneck of a training loop, from its stages alone: a sentence, and the parts of the loop's time."""

_TEXTS = {
    "lead": "verdict: ",
    "stop": ".\n",
    "takes": "{name} takes {share:.1f} % of the loop's time ({s:.3f} of {wall:.3f} s)",
    "inside": ", inside {root}, which takes {share:.1f} % in all",
    "waits": ": the loop waits for data",
    "slowest inside": "; the slowest stage inside it is {name}, {share:.1f} %",
    "nothing inside": "; no stage inside it was timed, so the cause of the wait is unknown",
    "workers": ": DataLoader's worker processes keep their stages to themselves",
    "no stage": "No stage covers {share:.1f} % of the loop's time ({s:.3f} of {wall:.3f} s), so the bottleneck is "
                "unknown: put weir.stage around the loop's parts, including the wait for the next batch",
    "next": "; of the stages {name} takes most, {share:.1f} %",
    "also": "  also: no stage covers {share:.1f} % of the loop's time.\n",
    "parts": "  parts of the loop's {wall:.3f} s: ",
    "itself": "{name} itself",
    "others": "{n} others",
    "unattributed": "in no stage",
    "part": "{name} {share:.1f} %",
    "loader": "  no loader is open, so this verdict judges the loop alone; for the limit of loading, print it before "
              "the loader is closed.\n",
}
_PARTS_MOST = 10
_ALSO = 0.1  # unattributed fraction of the loop's time that deserves a line


class Loop:
    """Time of a loop: self time of each stage, and unattributed time."""

    def __init__(self, wall, unattributed, parts):
        self.wall = wall
        self.unattributed = unattributed
        self.own = {name: own for name, _, own, _ in parts}
        self.kind = {name: kind for name, kind, _, _ in parts}
        self.parent = {name: parent for name, _, _, parent in parts}
        self.groups = {}  # outermost stage -> itself and the stages inside it
        for name in self.own:
            self.groups.setdefault(self._outermost(name), []).append(name)

    def _outermost(self, name):
        seen = {name}
        while self.parent.get(name) in self.own and self.parent[name] not in seen:
            name = self.parent[name]
            seen.add(name)
        return name

    def total(self, root):
        return sum(self.own[name] for name in self.groups[root])


def of(found):
    """The loop found by _weir._loop; None without stages."""
    loop = Loop(*found) if found else None
    return loop if loop and loop.own and loop.wall > 0 else None


def _cause(loop, workers, had_loader, say):
    root = max(loop.groups, key=loop.total)
    total = loop.total(root)
    if loop.unattributed > total:
        return say("no stage", loop.unattributed) + say("next", total, name=root)
    inside = sorted((name for name in loop.groups[root] if name != root), key=loop.own.get, reverse=True)
    waits = say("waits") if loop.kind[root] == "wait" else ""
    if inside and loop.own[inside[0]] > loop.own[root]:
        slowest = inside[0]
        return say("takes", loop.own[slowest], name=slowest) + say("inside", total, root=root) + waits
    text = say("takes", total, name=root) + waits
    if inside:
        return text + say("slowest inside", loop.own[inside[0]], name=inside[0])
    if not waits or had_loader:
        return text
    return text + say("nothing inside") + (say("workers") if workers else "")


def _parts(loop, say):
    names = sorted(loop.own, key=loop.own.get, reverse=True)
    parts = []
    for name in names[:_PARTS_MOST]:
        has_inside = any(parent == name for parent in loop.parent.values())
        parts.append(say("part", loop.own[name], name=say("itself", name=name) if has_inside else name))
    rest = names[_PARTS_MOST:]
    if rest:
        parts.append(say("part", sum(map(loop.own.get, rest)), name=say("others", n=len(rest))))
    parts.append(say("part", loop.unattributed, name=say("unattributed")))
    return say("parts") + " | ".join(parts) + "\n"


def verdict(loop, workers, had_loader):
    """workers: number of DataLoader workers that timed stages in their own processes."""
    def say(key, seconds=0.0, **values):
        return _TEXTS[key].format(s=seconds, share=100 * seconds / loop.wall, wall=loop.wall, **values)

    text = _TEXTS["lead"] + _cause(loop, workers, had_loader, say) + _TEXTS["stop"]
    if _ALSO * loop.wall < loop.unattributed <= max(map(loop.total, loop.groups)):
        text += say("also", loop.unattributed)
    return text + _parts(loop, say) + (_TEXTS["loader"] if had_loader else "")
