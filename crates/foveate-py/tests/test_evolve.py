"""Evolution strategies on functions of Python."""

import inspect
import json
import os

import numpy as np
import pytest

import foveate
from foveate import _native, evolve
from foveate.errors import FoveateError, OptionError

CLASSES = [getattr(evolve, name) for name in evolve.__all__ if name not in ("Best", "Progress", "Strategy")]


def sphere(x):
    total = 0.0
    for number in x:
        total += float(number) * float(number)
    return -total


def rosenbrock(x):
    x = x.astype(float)
    return -float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def run(es, function, generations):
    for _ in range(generations):
        es.tell([function(x) for x in es.ask()])
    return es


def test_the_classes_are_the_registrys_strategies():
    registered = _native.strategies()
    assert [cls._name for cls in CLASSES] == [name for name, _, _ in registered]
    for cls, (name, _, defaults) in zip(CLASSES, registered, strict=True):
        defaults = json.loads(defaults)
        assert defaults.pop("algorithm") == name
        parameters = inspect.signature(cls).parameters
        given = {key: one.default for key, one in parameters.items() if key not in ("x0", "bounds", "restarts", "seed")}
        assert {key: value for key, value in given.items() if value is not None} == defaults
        # What has no default is a setting all the same.
        for key in given.keys() - defaults.keys():
            value = 12 if key == "population" else 0.5
            cls([0.0, 1.0], **{key: value})
        with pytest.raises(TypeError):
            cls([0.0], colour=3)


@pytest.mark.skipif("FOVEATE_STRATEGIES" not in os.environ, reason="only beside the Rust strategies of tests/python.rs")
@pytest.mark.parametrize("cls", CLASSES)
def test_the_bits_are_those_of_the_rust_strategy(cls):
    expected = json.loads(os.environ["FOVEATE_STRATEGIES"])[cls._name]
    es = run(cls([0.5, -1.0, 2.0, 0.25, 3.0, -0.125], seed=7), sphere, 25)
    assert es.mean.tolist() == expected["mean"]
    assert es.recommended.tolist() == expected["recommended"]
    assert es.ask().ravel().tolist() == expected["genomes"]


@pytest.mark.parametrize("cls", CLASSES)
def test_functions_are_optimised(cls):
    es = cls([1.0] * 5, sigma=0.05 if cls is evolve.SimpleGa else 0.1, seed=1)
    before = sphere(es.mean)
    progress = run(es, sphere, 300).tell([sphere(x) for x in es.ask()])
    assert progress.generation == es.generation == 301
    assert progress.best >= progress.mean and progress.sigma > 0
    assert sphere(es.recommended) > before / 20 and es.best.fitness > -0.01
    assert sphere(es.best.genome) == es.best.fitness
    assert es.best.genome.dtype == np.float32 and es.mean.dtype == np.float64


def test_cma_es_solves_rosenbrock():
    es = run(evolve.CmaEs(x0=np.zeros(5), sigma=0.3, seed=2), rosenbrock, 400)
    assert es.best.fitness > -1e-6 and np.allclose(es.recommended, 1.0, atol=1e-3)


@pytest.mark.parametrize("cls", CLASSES)
def test_a_saved_state_goes_on_bit_for_bit(cls):
    es = run(cls([1.0, 2.0, 3.0], seed=3), sphere, 7)
    other = cls([1.0, 2.0, 3.0], seed=3)
    other.restore(es.save())
    assert (other.best.genome.tolist(), other.best.fitness) == (es.best.genome.tolist(), es.best.fitness)
    assert run(es, sphere, 5).save() == run(other, sphere, 5).save()
    with pytest.raises(OptionError, match="another seed"):
        cls([1.0, 2.0, 3.0], seed=4).restore(es.save())
    for forged in ["", "{}", "[1]", es.save().replace('"mean"', '"meen"'), es.save()[:-2]]:
        before = other.save()
        with pytest.raises(OptionError):
            other.restore(forged)
        assert other.save() == before


@pytest.mark.parametrize("cls", CLASSES)
def test_what_makes_no_sense_is_an_exception_and_changes_nothing(cls):
    es = cls([1.0, 2.0], seed=1)
    assert es.best is None
    with pytest.raises(FoveateError, match="without ask"):
        es.tell([0.0] * 4)
    count = len(es.ask())
    before = es.save()
    for fitness in [[np.nan] + [0.0] * (count - 1), [np.inf] * count, [0.0] * (count - 1), [], "x", [["a"]], np.zeros((count, 1))]:
        with pytest.raises(OptionError):
            es.tell(fitness)
    assert es.save() == before and es.best is None
    for x0 in [[], [np.nan], [[1.0, 2.0]], "x", None]:
        with pytest.raises(OptionError):
            cls(x0)
    for settings in [{"sigma": 0.0}, {"sigma": -1.0}, {"sigma": float("nan")}, {"sigma": "big"}, {"population": 0}, {"seed": -1}]:
        with pytest.raises(OptionError):
            cls([1.0, 2.0], **settings)
    with pytest.raises(OptionError, match="GiB"):
        cls([1.0, 2.0], population=2**40)
    with pytest.raises(OptionError, match="outside of bounds"):
        cls([1.0, 2.0], bounds=(0.0, 1.5))


def test_bounds_and_restarts():
    es = evolve.Snes([0.5] * 3, bounds=(0.0, 1.0), restarts={"after": 3, "spread": 0.1}, seed=1)
    sizes = set()
    for _ in range(20):
        genomes = es.ask()
        assert genomes.min() >= 0 and genomes.max() <= 1
        sizes.add(len(genomes))
        es.tell(np.zeros(len(genomes)))
    assert len(sizes) > 2
    assert "Snes of 3 parameters, generation 20" in repr(es)


def test_flat_fitness_never_ends_a_search():
    es = foveate.evolve.CmaEs([3.0, 3.0], sigma=0.5, seed=1)
    for _ in range(5000):
        es.tell(np.zeros(len(es.ask())))
    assert np.isfinite(es.mean).all()
