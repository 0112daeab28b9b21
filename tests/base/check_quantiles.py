#!/usr/bin/env python3
"""Compares the histogram's percentiles with numpy's: check_quantiles.py QUANTILES. The max error is a bucket's width,
6.25 %."""
import subprocess
import sys

import numpy

FRACTIONS = (0.5, 0.9, 0.99, 0.999)


def shapes(rng):
    yield "one value", numpy.full(1000, 123456)
    yield "uniform", rng.integers(1, 10**7, 20000)
    yield "exponential", rng.exponential(50000, 20000) + 1
    yield "log-normal, six decades", rng.lognormal(12, 3, 50000) + 1
    yield "two humps", numpy.concatenate([rng.normal(2000, 50, 9500), rng.normal(3e6, 1e5, 500)])
    yield "few", rng.integers(100, 200, 7)


def main():
    rng = numpy.random.default_rng(7)
    worst = 0.0
    for name, values in shapes(rng):
        values = numpy.clip(values, 1, 2**36).astype(numpy.int64)
        text = "\n".join(map(str, values))
        done = subprocess.run([sys.argv[1]], input=text, capture_output=True, text=True, check=True)
        got = [float(line) for line in done.stdout.split()]
        for fraction, mine in zip(FRACTIONS, got):
            # Between two values any result is right, plus or minus a bucket's width.
            low = numpy.quantile(values, fraction, method="lower")
            high = numpy.quantile(values, fraction, method="higher")
            error = max(low / mine - 1, mine / high - 1, 0)
            worst = max(worst, error)
            assert error <= 0.0625, f"{name}: {fraction}: {mine}, numpy {low} to {high}"
    print(f"{len(FRACTIONS)} percentiles of 6 distributions, at most {100 * worst:.2f} % from numpy's")


if __name__ == "__main__":
    main()
