"""Runs of evosax's strategies, dumped: what each generation evaluated, and where it led.

Little-endian f64 throughout; a text is its length and its bytes, each as one number. For each run: its name, our settings
in TOML, the numbers of parameters, genomes and generations, the start; then for each generation the population, its
fitness (larger is better), and mean and standard deviations after it. "simple-ga" has ranks of parents and noise instead
of the latter.

evosax computes in double precision here. Its genomes are rounded to single precision before they are evaluated and told,
which is what our genomes are made of.
"""

import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_X64"] = "1"
_pipe = os.fdopen(os.dup(1), "wb", buffering=1 << 20)
os.dup2(2, 1)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402
from evosax.algorithms.distribution_based.open_es import Open_ES  # noqa: E402
from evosax.algorithms.distribution_based.pgpe import PGPE  # noqa: E402
from evosax.algorithms.distribution_based.snes import SNES  # noqa: E402
from evosax.algorithms.population_based.simple_ga import SimpleGA  # noqa: E402
from evosax.core.fitness_shaping import standardize_fitness_shaping_fn  # noqa: E402
from evosax.core.optimizer import clipup  # noqa: E402

GENERATIONS = 120


def numbers(*values):
    for value in values:
        _pipe.write(np.asarray(value, dtype="<f8").tobytes())


def text(value):
    data = value.encode()
    numbers(len(data), list(data))


def sphere(x):
    return np.sum(x**2, axis=1)


def ellipsoid(x):
    return np.sum(1e3 ** (np.arange(x.shape[1]) / (x.shape[1] - 1)) * x**2, axis=1)


def rosenbrock(x):
    return np.sum(100.0 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1.0 - x[:, :-1]) ** 2, axis=1)


def rastrigin(x):
    return np.sum(10.0 + x**2 - 10.0 * np.cos(2.0 * np.pi * x), axis=1)


def rounded(population):
    return np.asarray(population).astype(np.float32).astype(np.float64)


def head(name, settings, n_params, n_genomes, start):
    text(name)
    text(settings)
    numbers(n_params, n_genomes, GENERATIONS, start)


def distribution(name, settings, strategy, params, function, n_params, pairs, std=None):
    """A run of a strategy with a mean. Opposite genomes lie one behind the other for us, half a population apart there."""
    start = np.linspace(-1.0, 1.5, n_params)
    n_genomes = strategy.population_size
    head(name, settings, n_params, n_genomes, start)
    order = np.arange(n_genomes).reshape(2, -1).T.ravel() if pairs else np.arange(n_genomes)
    key = jax.random.key(7)
    state = strategy.init(key, jnp.asarray(start), params)
    if std is not None:
        state = state.replace(std=std)
    for generation in range(GENERATIONS):
        key_ask, key_tell = jax.random.split(jax.random.fold_in(key, generation))
        population, state = strategy.ask(key_ask, state, params)
        population = rounded(population)
        cost = function(population)
        told = population
        if isinstance(strategy, PGPE):
            # It takes the noise of a pair from the first of the two alone. Rounding has moved them apart a little; ours
            # takes half the way from one to the other.
            first, second = np.split(population, 2)
            told = np.asarray(state.mean) + np.concatenate([first - second, second - first]) / 2.0
        state, _ = strategy.tell(key_tell, jnp.asarray(told), jnp.asarray(cost), state, params)
        numbers(population[order], -cost[order], state.mean, np.broadcast_to(state.std, n_params))


def snes(name, function, n_params, n_genomes, **options):
    settings = f"algorithm = 'snes'\npopulation = {n_genomes}\nsigma = 0.4"
    # A start that has one mean and one standard deviation; evosax's default rate of the latter is the published one.
    strategy = SNES(n_genomes, jnp.zeros(n_params), optimizer=optax.sgd(options.get("rate", 1.0)))
    params = strategy.default_params.replace(std_init=0.4)
    if "rate" in options:
        settings += f"\nlearning_rate = {options['rate']}"
    if "sigma_rate" in options:
        settings += f"\nsigma_learning_rate = {options['sigma_rate']}"
        params = params.replace(lr_std_init=options["sigma_rate"])
    distribution(name, settings, strategy, params, function, n_params, False)


def openai_es(name, function, n_params, n_genomes, mirrored=True, decay=0.0, sigma_decay=1.0, standard=False):
    settings = f"algorithm = 'openai-es'\npopulation = {n_genomes}\nsigma = 0.2\nlearning_rate = 0.05"
    settings += f"\nweight_decay = {decay}\nsigma_decay = {sigma_decay}\nmirrored = {str(mirrored).lower()}"
    options = {}
    if standard:
        settings += "\nshaping = 'standardised'"
        options["fitness_shaping_fn"] = standardize_fitness_shaping_fn
    strategy = Open_ES(
        n_genomes,
        jnp.zeros(n_params),
        use_antithetic_sampling=mirrored,
        optimizer=optax.chain(optax.add_decayed_weights(decay), optax.adam(0.05)),
        # evosax uses the first value twice, in the beginning and after one generation; ours decays from the start.
        std_schedule=lambda generation: 0.2 * sigma_decay ** (generation + 1.0),
        **options,
    )
    distribution(name, settings, strategy, strategy.default_params, function, n_params, mirrored, std=jnp.asarray(0.2))


def pgpe(name, function, n_params, n_genomes, adam=False, standard=False):
    settings = f"algorithm = 'pgpe'\npopulation = {n_genomes}\nsigma = 0.3\nsigma_learning_rate = 0.2"
    options = {}
    if standard:
        settings += "\nshaping = 'standardised'"
        options["fitness_shaping_fn"] = standardize_fitness_shaping_fn
    if adam:
        settings += "\noptimizer = 'adam'\nlearning_rate = 0.03"
        optimizer = optax.adam(0.03)
    else:
        settings += "\nlearning_rate = 0.06\nmax_speed = 0.15\nmomentum = 0.8"
        # By default it adds 1e-8 to the length of the gradient, so as never to divide by zero. Ours asks instead.
        optimizer = clipup(learning_rate=0.06, max_velocity=0.15, momentum=0.8, eps=0.0)
    strategy = PGPE(n_genomes, jnp.zeros(n_params), optimizer=optimizer, **options)
    params = strategy.default_params.replace(std_init=0.3, std_lr=0.2, std_max_change=0.2)
    distribution(name, settings, strategy, params, function, n_params, True)


def simple_ga(name, function, n_params, n_genomes):
    """evosax has no elites; half of the population are parents, and without crossover a child has one."""
    settings = f"algorithm = 'simple-ga'\npopulation = {n_genomes}\nparents = {n_genomes // 2}\nelites = 0\nsigma = 0.05"
    strategy = SimpleGA(n_genomes, jnp.zeros(n_params), std_schedule=optax.constant_schedule(0.05))
    params = strategy.default_params
    key = jax.random.key(11)
    population = rounded(jax.random.normal(key, (n_genomes, n_params)))
    cost = function(population)
    head(name, settings, n_params, n_genomes, np.zeros(n_params))
    numbers(population, -cost)
    state = strategy.init(key, jnp.asarray(population), jnp.asarray(cost), params)
    parent = jnp.arange(n_genomes) < n_genomes // 2

    @jax.jit
    def draws(key):
        """What SimpleGA._ask draws from this key: the ranks of the parents, and the noise."""
        _, key_mutation, key_parent, _ = jax.random.split(key, 4)
        ranks = jax.random.choice(key_parent, jnp.arange(n_genomes), (n_genomes,), p=parent)
        keys = jax.random.split(key_mutation, n_genomes)
        return ranks, jax.vmap(lambda key: jax.random.normal(key, (n_params,)))(keys)

    for generation in range(GENERATIONS):
        key_ask, key_tell = jax.random.split(jax.random.fold_in(key, generation))
        population, state = strategy.ask(key_ask, state, params)
        population = rounded(population)
        cost = function(population)
        numbers(*draws(key_ask), population, -cost)
        state, _ = strategy.tell(key_tell, jnp.asarray(population), jnp.asarray(cost), state, params)


if sys.byteorder != "little":
    sys.exit("the oracle writes little-endian numbers only")
snes("snes, sphere", sphere, 20, 12)
snes("snes, ellipsoid", ellipsoid, 10, 20, rate=0.7, sigma_rate=0.1)
snes("snes, rosenbrock", rosenbrock, 5, 31)
openai_es("openai-es, sphere", sphere, 20, 12)
openai_es("openai-es, rastrigin, decays", rastrigin, 6, 20, decay=0.02, sigma_decay=0.99)
openai_es("openai-es, ellipsoid, standardised, not mirrored", ellipsoid, 10, 30, mirrored=False, standard=True)
pgpe("pgpe, sphere", sphere, 20, 12)
pgpe("pgpe, rosenbrock", rosenbrock, 5, 40)
pgpe("pgpe, ellipsoid, adam, standardised", ellipsoid, 10, 20, adam=True, standard=True)
simple_ga("simple-ga, rastrigin", rastrigin, 6, 40)
text("end")
_pipe.flush()
