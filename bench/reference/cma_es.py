"""pycma's ask and tell at the size of AttentionAgent: CPU seconds per generation on one thread, and peak memory.

    python cma_es.py PARAMS POPULATION INTERVAL

An interval is the generations between two eigendecompositions. One interval warms up, then the faster of two counts,
averaged over its generations. Step sizes follow the evolution path (CMAAdaptSigmaCSA), as ours do; from 300 parameters
on, pycma's own choice would be another rule, at no lower cost.
"""

import json
import os
import resource
import sys
import time
import warnings

for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"
# Whatever a library prints goes to standard error; standard output is for the figures.
figures = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import cma  # noqa: E402

PASSES = 2


def main(params, population, interval):
    options = {
        "popsize": population,
        "seed": 1,
        "verbose": -9,
        "AdaptSigma": cma.sigma_adaptation.CMAAdaptSigmaCSA,
    }
    es = cma.CMAEvolutionStrategy(params * [1.0], 0.1, options)
    passes = []
    for _ in range(1 + PASSES):
        cpu, decompositions = 0.0, es.sm.count_eigen
        for _ in range(interval):
            start = time.process_time()
            points = es.ask()
            cpu += time.process_time() - start
            values = [float(np.sum(x * x)) for x in points]
            start = time.process_time()
            es.tell(points, values)
            cpu += time.process_time() - start
        passes.append((cpu / interval, es.sm.count_eigen - decompositions))
    # pycma decomposes at the beginning of `ask`, so the first interval has none and the others have one.
    assert [count for _, count in passes] == [0] + PASSES * [1], passes
    found = {
        "cpu_s": min(cpu for cpu, _ in passes[1:]),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "pycma": cma.__version__,
    }
    print(json.dumps(found), file=figures)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
