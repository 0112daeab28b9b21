"""Tables and targets, computed from the rounds' rates."""
import statistics


def promised(cores):
    """README's targets. The ratio to ACT's loader depends on the cores: 2 or 16."""
    return {"u8": 1.4, "f32-nchw": 1.15, "scaling": 0.93, "pool": 1.0, "act": 10.0 if cores >= 16 else 4.0}


def ratio(results, above, below):
    """Median of the rounds' ratios; None if one of the two is missing."""
    if above not in results or below not in results:
        return None
    return statistics.median(a / b for a, b in zip(results[above]["rates"], results[below]["rates"]))


def promises(results, counts, cores):
    """[(text, ratio, target, met)]; results are {(name, workers): {"rates", ...}}."""
    targets, lines = promised(cores), []

    def add(text, value, target, strict=False):
        if value is not None:
            lines.append((text, value, target, value > target if strict else value >= target))
    for n in sorted({1, cores} & set(counts)):
        for output in ("u8", "f32-nchw"):
            add(f"weir {output} / raw libjpeg-turbo, {n} workers", ratio(results, (f"weir {output}", n), ("raw", n)),
                targets[output])
    act = [key for key in results if key[0] == "act"]
    if act:
        add(f"weir f32-nchw, {cores} workers / ACT's loader at its best ({act[0][1]} workers)",
            ratio(results, ("weir f32-nchw", cores), act[0]), targets["act"])
    for n in counts:
        add(f"weir u8 / thread pool, {n} workers", ratio(results, ("weir u8", n), ("pool", n)), targets["pool"], True)
    if cores > 1:
        one, all_of = (ratio(results, ("weir u8", n), ("raw", n)) for n in (1, cores))
        add(f"weir u8, scaling 1 to {cores} / raw's own", all_of / one if one and all_of else None, targets["scaling"])
    return lines


def print_table(quality, results, counts, cores):
    print(f"\nquality {quality}: images/s of each round, median (min - max)")
    print(f"{'loader':<34} {'workers':>7}  {'images/s':<26} of raw  how")
    for (name, workers), side in results.items():
        rates = side["rates"]
        text = f"{statistics.median(rates):.0f} ({min(rates):.0f} - {max(rates):.0f})"
        beside = ratio(results, (name, workers), ("raw", workers if workers in counts else cores))
        beside = f"{beside:6.3f}" if beside is not None else f"{'-':>6}"
        print(f"{side['title']:<34} {workers:>7}  {text:<26} {beside}  {side['how']}")


def print_promises(lines):
    for text, value, target, met in lines:
        print(f"{'PASS' if met else 'MISS'}  {text}: {value:.3f} (target {target:g})")
