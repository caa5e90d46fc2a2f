"""pycma driven with normal numbers that it is handed, and everything that it learns from them.

Sent, as little-endian f64: for each case its name (length, characters), n, lambda, kind (0: full, 1: diagonal), active,
generations, sigma, the first mean; then for each generation lambda * n normal numbers, lambda values to maximise, and
after `tell`: mean, sigma, path of sigma, path of C, scales, and n * n numbers of C where the kind is full and the
generation a multiple of 10. At the end the name "end".

pycma draws y = B D z, with the eigenvectors B and the roots of the eigenvalues D. B is orthogonal, so y = B D (B' z)
has the same distribution; unlike the former it does not depend on the signs and the order of the eigenvectors, which no
two libraries choose alike. So pycma is handed B' z for the normal numbers z.
"""

import os
import sys
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices are small, and two cores are few

import numpy as np  # noqa: E402

# Standard output belongs to the test alone; whatever a library prints goes to standard error.
_pipe = os.fdopen(os.dup(1), "wb", buffering=1 << 20)
os.dup2(2, 1)

import cma  # noqa: E402

warnings.filterwarnings("ignore")


def send(*values):
    for value in values:
        _pipe.write(np.asarray(value, dtype="<f8").tobytes())


def name(text):
    send(len(text), [ord(c) for c in text])


def sphere(x):
    return float(np.sum(x**2))


def ellipsoid(x, condition=1e6):
    return float(np.sum(condition ** np.linspace(0, 1, len(x)) * x**2))


def steep(x):
    return ellipsoid(x, 1e12)


def rosenbrock(x):
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


class Handed:
    """Stands in for numpy.random.randn."""

    def __init__(self, seed):
        self.stream = np.random.Generator(np.random.PCG64(seed))
        self.strategy = None
        self.normals = None

    def __call__(self, count, n):
        self.normals = self.stream.standard_normal((count, n))
        basis = getattr(self.strategy.sm, "B", None)
        return self.normals.copy() if basis is None else self.normals @ basis


def run(title, f, n, start, sigma, population=None, diagonal=False, active=True, generations=200):
    randn = Handed(len(title) + 1000 * n)
    options = {
        "verbose": -9,
        "seed": np.nan,
        "randn": randn,
        "CMA_active": active,
        "CMA_diagonal": diagonal,
    }
    if population is not None:
        options["popsize"] = population
    es = cma.CMAEvolutionStrategy(n * [start], sigma, options)
    assert isinstance(es.adapt_sigma, cma.sigma_adaptation.CMAAdaptSigmaCSA)
    randn.strategy = es
    name(title)
    send(n, es.popsize, diagonal, active, generations, sigma, es.mean)
    for generation in range(1, generations + 1):
        points = es.ask()
        values = [f(x) for x in points]
        assert len(set(values)) == len(values), "equal values have no order"
        send(randn.normals, -np.asarray(values))
        es.tell(points, values)
        # Left alone, pycma does this at the beginning of the next `ask`.
        es.alleviate_conditioning_in_coordinates(es.opts["conditioncov_alleviate"][0])
        send(es.mean, es.sigma, es.adapt_sigma.ps, es.pc, es.sigma_vec.scaling * np.ones(n))
        if not diagonal and generation % 10 == 0:
            send(es.sm.C)


if __name__ == "__main__":
    for n in (5, 20, 100):
        for diagonal in (False, True):
            kind = "diagonal" if diagonal else "full"
            run(f"sphere, {kind}, n = {n}", sphere, n, 1.0, 0.5, diagonal=diagonal)
            run(f"ellipsoid, {kind}, n = {n}", ellipsoid, n, 1.0, 0.5, diagonal=diagonal)
            run(f"rosenbrock, {kind}, n = {n}", rosenbrock, n, 0.1, 0.1, diagonal=diagonal)
    for diagonal in (False, True):
        kind = "diagonal" if diagonal else "full"
        run(f"large population, {kind}", ellipsoid, 5, 1.0, 0.5, population=300, diagonal=diagonal, generations=100)
        run(f"very large population, {kind}", ellipsoid, 2, 1.0, 0.5, population=999, diagonal=diagonal, generations=40)
        run(f"not active, {kind}", ellipsoid, 10, 1.0, 0.5, active=False, diagonal=diagonal)
        run(f"small step, {kind}", sphere, 10, 100.0, 1e-3, diagonal=diagonal)
    run("scales, full", steep, 5, 1.0, 0.5, generations=250)
    run("long wait, full", ellipsoid, 120, 1.0, 0.5, population=6, generations=100)
    name("end")
    _pipe.flush()
