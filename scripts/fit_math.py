#!/usr/bin/env python3
"""Fits the polynomials of codegen/math.cpp and prints them as C++ (needs mpmath; run by hand).

Each function is reduced to a smooth one on a short interval, which is fitted with the weight that makes its error
relative to the final result. Remez exchange in 80 digits; coefficients are then rounded one at a time, from the
constant term up, refitting the others, so that rounding costs nothing.
"""
import struct
import sys

import mpmath as mp

mp.mp.dps = 60


def round_to(value, single):
    if single:
        return mp.mpf(struct.unpack("f", struct.pack("f", float(value)))[0])
    return mp.mpf(float(value))


def remez(f, weight, lo, hi, powers):
    """Coefficients c with sum c[i] x^powers[i] closest to f, in the greatest error times weight."""
    n = len(powers) + 1
    nodes = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * (mp.mpf(i) + mp.mpf(1) / 2) / n) for i in range(n)]
    grid = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * mp.mpf(i) / 400) for i in range(401)]
    values = [(f(x), weight(x)) for x in grid]
    coefficients, worst = None, None
    for _ in range(25):
        a = mp.matrix(n, n)
        b = mp.matrix(n, 1)
        for i, x in enumerate(nodes):
            w = weight(x)
            for j, p in enumerate(powers):
                a[i, j] = w * x**p
            a[i, n - 1] = (-1) ** i
            b[i] = w * f(x)
        solution = mp.lu_solve(a, b)
        coefficients = [solution[i] for i in range(n - 1)]
        errors = [w * (sum(c * x**p for c, p in zip(coefficients, powers)) - v) for x, (v, w) in zip(grid, values)]
        worst = max(abs(e) for e in errors)
        if worst < abs(solution[n - 1]) * mp.mpf("1.02"):
            break
        # exchange: the greatest error between sign changes
        peaks, best = [], 0
        for i in range(1, len(grid)):
            if errors[i] * errors[best] > 0:
                if abs(errors[i]) > abs(errors[best]):
                    best = i
            else:
                peaks.append(best)
                best = i
        peaks.append(best)
        while len(peaks) > n:
            if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]):
                peaks.pop(0)
            else:
                peaks.pop()
        if len(peaks) < n:
            break
        nodes = [grid[i] for i in peaks]
    return coefficients, worst


def fit(name, f, weight, lo, hi, degree, single):
    lo, hi = mp.mpf(lo), mp.mpf(hi)
    fixed = []
    for power in range(degree + 1):
        rest = list(range(power, degree + 1))
        coefficients, worst = remez(lambda x: f(x) - sum(c * x**i for i, c in enumerate(fixed)), weight, lo, hi, rest)
        fixed.append(round_to(coefficients[0], single))
    text = ", ".join(float(c).hex() if single is None else repr(float(c)) for c in fixed)
    print(f"// {name}: degree {degree} on [{mp.nstr(lo, 6)}, {mp.nstr(hi, 6)}], error 2^{mp.nstr(mp.log(worst, 2), 4)}")
    print(f"{{{text}}}")
    sys.stdout.flush()


half_ln2 = mp.log(2) / 2 * mp.mpf("1.0001")
one = mp.mpf(1)


def exp_tail(r):  # (e^r - 1 - r) / r^2
    return mp.mpf(1) / 2 + r / 6 + r * r / 24 if abs(r) < mp.mpf("1e-15") else (mp.expm1(r) - r) / r**2


def log_tail(z):  # (2 atanh(s) - 2s) / s^3 with z = s^2
    s = mp.sqrt(z)
    return mp.mpf(2) / 3 + 2 * z / 5 if z < mp.mpf("1e-15") else (2 * mp.atanh(s) - 2 * s) / s**3


def tanh_tail(z):  # (tanh x - x) / x^3
    x = mp.sqrt(z)
    return -mp.mpf(1) / 3 + 2 * z / 15 if z < mp.mpf("1e-15") else (mp.tanh(x) - x) / x**3


def sin_tail(z):
    x = mp.sqrt(z)
    return -mp.mpf(1) / 6 + z / 120 if z < mp.mpf("1e-15") else (mp.sin(x) - x) / x**3


def cos_tail(z):
    return mp.mpf(1) / 24 - z / 720 if z < mp.mpf("1e-15") else (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2


def fit_mills(single):  # (1 - cdf t) / e^(-t^2/2) of the standard normal distribution, in u = (t - 4) / (t + 4)
    def of_u(u):
        t = 4 * (1 + u) / (1 - u)
        return mp.exp(t * t / 2) * mp.erfc(t / mp.sqrt(2)) / 2

    farthest, degree = (mp.mpf("13.2"), 8) if single else (mp.mpf("37.6"), 20)
    # Chebyshev is close enough here.
    coefficients, worst = mp.chebyfit(of_u, [-1, (farthest - 4) / (farthest + 4)], degree + 1, error=True)
    text = ", ".join(repr(float(round_to(c, single))) for c in coefficients[::-1])
    print(f"// mills: degree {degree}, error 2^{mp.nstr(mp.log(worst, 2), 4)}\n{{{text}}}")


def all_fits(single):
    print("// ---- float" if single else "// ---- double")
    fit("exp_tail", exp_tail, lambda r: r * r / mp.exp(r) + mp.mpf("1e-4"), -half_ln2, half_ln2, 4 if single else 10, single)
    fit("log_tail", log_tail, lambda z: z, 0, (3 - 2 * mp.sqrt(2)) ** 2 * mp.mpf("1.001"), 2 if single else 6, single)
    fit("tanh_tail", tanh_tail, lambda z: z, 0, mp.mpf("0.39063"), 4 if single else 11, single)
    fit_mills(single)
    if not single:
        quarter = (mp.pi / 4 * mp.mpf("1.0001")) ** 2
        fit("sin_tail", sin_tail, lambda z: z, 0, quarter, 5, single)
        fit("cos_tail", cos_tail, lambda z: z * z, 0, quarter, 5, single)


all_fits(True)
all_fits(False)
