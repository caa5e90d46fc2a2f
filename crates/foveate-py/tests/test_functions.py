"""Policies that are functions: what they may return, what may be claimed of them, and what is asked of them."""

import os
from dataclasses import replace

import gymnasium
import numpy as np
import pytest

import foveate
from foveate import Function

SMALL = {"episodes": 1, "max_steps": 4}


def forward(_):
    return 2


def test_choices_may_have_probabilities_logits_or_values():
    """The best choice acts, whatever its scores are."""
    scores = np.array([0.1, 0.2, 0.4, 0.1, 0.1, 0.05, 0.05])
    expected = foveate.evaluate(forward, "door-key-5x5", **SMALL).returns
    for given in (scores, scores.astype(np.float32), list(scores), np.log(scores), 7 * scores - 1, -scores[::-1] * 0 + scores):
        assert np.array_equal(foveate.evaluate(lambda _, given=given: given, "door-key-5x5", **SMALL).returns, expected)
    with pytest.raises(ValueError, match=r"an action of shape \[3\]; take .*, or a score for each of 7 choices, \[7\]"):
        foveate.evaluate(lambda _: scores[:3], "door-key-5x5", **SMALL)


def test_reports_use_probabilities(tmp_path):
    def policy(observation):
        scores = np.zeros(7)
        scores[2], scores[1] = 1.0, observation[..., 0].mean()
        return scores

    sizes = {"episodes": 3, "decisions": 2, "max_steps": 6}
    found = {}
    for name, act, logits in [
        ("logits", policy, True),
        ("probabilities", lambda seen: np.exp(policy(seen)) / np.exp(policy(seen)).sum(), False),
        ("values", policy, False),
    ]:
        report = foveate.explain(Function(act, logits=logits), "door-key-5x5", out=tmp_path / name, **sizes)
        found[name] = report.details["swaps"]
    assert "probabilities" in found["logits"]["distance"] and "another choice is the best" in found["values"]["distance"]
    natural = {name: of["natural"]["value"] for name, of in found.items()}
    assert natural["logits"] == pytest.approx(natural["probabilities"]) and natural["logits"] > 0


@pytest.mark.parametrize("shape", [(5, 5), (25,), (7, 7), (49,)])
def test_a_map_of_cells_has_a_weight_for_each(shape, tmp_path):
    wanted = (7, 7), (49,)
    call = lambda: foveate.watch(  # noqa: E731
        forward, "door-key-5x5", out=tmp_path / "a.gif", steps=2, attention=lambda _: np.arange(np.prod(shape)).reshape(shape)
    )
    if shape in wanted:
        assert call().steps == 2
    else:
        with pytest.raises(ValueError, match=r"has the shape \[5, 5\]; it returns a weight for each cell, \[7, 7\] or \[49\]|\[25\]"):
            call()


@pytest.mark.parametrize("world, keywords", [("car-racing", {"picture": "fast", "shifts": "missing:1"})])
def test_an_observation_of_several_parts_is_a_dict(world, keywords, tmp_path):
    seen = []

    def policy(observation):
        seen.append(observation)
        return [0.0, 0.1, 0.0]

    for attention in (lambda o: o["image"][::8, ::8, 0] + 1.0, lambda o: {"image": o["image"][::8, ::8, 0] + 1.0}):
        foveate.watch(policy, world, out=tmp_path / "a.gif", steps=2, attention=attention, **keywords)
    assert isinstance(seen[0], dict) and seen[0]["image"].ndim == 3 and len(seen[0]) == 2
    with pytest.raises(ValueError, match='no map of "image", the part of the observation that is judged'):
        foveate.watch(policy, world, out=tmp_path / "a.gif", steps=2, attention=lambda o: {"present": o["present"]}, **keywords)


@pytest.mark.parametrize("returned, kind, said", [
    (None, TypeError, "the policy returned None; an action is "),
    ([0.0, np.nan, 0.0], ValueError, "an action whose number 1 is NaN; take finite numbers"),
    ([0.0, 0.0], ValueError, r"an action of shape \[2\]"),
    ("left", TypeError, "an action is an array of real numbers"),
])
def test_actions_that_are_none_are_named(returned, kind, said):
    with pytest.raises(kind, match=said) as caught:
        foveate.evaluate(lambda _: returned, "car-racing", **SMALL)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("returned, kind, said", [
    (None, TypeError, "an attention map returned None; it returns rows and columns over the picture"),
    (np.full((3, 3), np.nan), ValueError, "an attention map has the weight NaN at its number 0"),
    (np.ones(9), ValueError, r"an attention map has the shape \[9\]; it returns rows and columns over the picture"),
    (np.ones((0, 3)), ValueError, r"has the shape \[0, 3\]"),
    ("all of it", TypeError, "an attention map is an array of real numbers"),
])
def test_maps_that_are_none_are_named(returned, kind, said, tmp_path):
    with pytest.raises(kind, match=said) as caught:
        foveate.watch(lambda _: [0.0, 0.1, 0.0], "car-racing", out=tmp_path / "a.gif", steps=2, attention=lambda _: returned)
    assert "\n" not in str(caught.value)


def test_a_function_is_told_what_it_lacks():
    with pytest.raises(ValueError, match="get_state is given without set_state"):
        Function(forward, get_state=lambda: 0)
    with pytest.raises(TypeError, match="act is 3; give a function of an observation"):
        Function(3)
    with pytest.raises(TypeError, match="gradcam is None"):
        Function(forward, claims={"gradcam": None})


class Clock:
    """Steers by how often it was asked."""

    def __init__(self):
        self.asked = 0

    def act(self, _):
        self.asked += 1
        return [np.sin(0.7 * self.asked), 0.1, 0.0]

    def reset(self):
        self.asked = 0

    def get(self):
        return {"asked": self.asked}

    def set(self, state):
        self.asked = state["asked"]


def test_a_state_that_is_handed_over_is_the_memory(tmp_path):
    """A clock with its state is memory alone: what it sees moves nothing, from the same state."""
    clock = Clock()
    whole = Function(lambda seen: clock.act(seen)[:1], reset=clock.reset, get_state=clock.get, set_state=clock.set)
    report = foveate.explain(whole, "cartpole-swingup-harder", out=tmp_path / "a", **NUMBERS)
    swaps = report.details["swaps"]
    assert swaps["natural"]["value"] > 0.01 and swaps["attended"]["value"] == 0 and swaps["memory"]["value"] == pytest.approx(1)


def test_a_function_that_answers_differently_is_told_so(tmp_path):
    """In one sentence, at the top of the page and in the file."""
    rng = np.random.default_rng(0)
    clock = Clock()
    ticking = lambda seen: clock.act(seen)[:1]  # noqa: E731
    for name, act, differed in [
        ("draws", lambda _: [rng.uniform(-1, 1)], 15),
        ("clock", ticking, 15),
        ("steady", by_the_angle, 0),
        ("read", Function(ticking, reset=clock.reset, get_state=clock.get, set_state=clock.set), 0),
    ]:
        report = foveate.explain(act, "cartpole-swingup-harder", out=tmp_path / name, episodes=1, decisions=1, max_steps=30)
        twice = report.details["function"]["twice"]
        assert (twice["questions"], twice["differed"], twice["asked"]) == (15, differed, 45), name
        page = (tmp_path / name / "index.html").read_text()
        assert (f"Asked the same question twice, it answered differently in {differed} of 15 cases" in page) == (differed > 0), name
        assert report.details["swaps"]["untrained"] is None and report.details["swaps"]["randomised"] == []
        assert "random-weight" not in page and "Left out are covered places" in page


def test_a_steady_function_is_not_asked_what_it_has_answered(tmp_path):
    seen = []

    def policy(observation):
        seen.append(observation.tobytes())
        return 2

    foveate.explain(policy, "door-key-5x5", out=tmp_path / "a", episodes=2, decisions=2, max_steps=10)
    # 15 to see whether it is steady.
    assert len(seen) <= 15 + len(set(seen))


def test_a_folder_in_folders_that_are_not_there_is_made(tmp_path):
    where = tmp_path / "no" / "such" / "folder"
    foveate.explain(forward, "door-key-5x5", out=where, episodes=1, decisions=1, max_steps=3)
    assert (where / "index.html").exists()


class Counted:
    """A function that counts how often it was called, and on what."""

    def __init__(self, function):
        self.function, self.seen = function, []

    def __call__(self, observation):
        self.seen.append(observation)
        return self.function(observation)


def steers_by_the_road(observation):
    """By the middle of the picture alone."""
    return [float(observation[40:48, 24:72, 1].mean() / 64 - 2), 0.1, 0.0]


def middle(observation):
    """[12, 12]: what it acts on."""
    claim = np.zeros((12, 12))
    claim[5, 3:9] = 1 + observation[40:48, 24:72, 1].reshape(8, 6, 8).mean(axis=(0, 2)) / 255
    return claim


PICTURES = {"episodes": 10, "decisions": 2, "max_steps": 40, "picture": "fast"}
NUMBERS = {"episodes": 10, "decisions": 4, "max_steps": 60}


def by_the_angle(seen):
    return [float(np.clip(2 * seen[2], -1, 1))]


def angle(_):
    return [0, 0, 1, 0, 0]


def answers(report):
    return {(line["question"], line["claim"]): line["answer"] for line in report.verdict}


def test_claims_are_asked_at_the_tested_decisions_alone_and_judged_side_by_side(tmp_path):
    single = Counted(middle)
    batches = Counted(lambda seen: -np.stack([middle(one) for one in seen]))
    sky = Counted(lambda _: np.arange(144.0).reshape(12, 12)[::-1] ** 2)
    policy = Counted(steers_by_the_road)
    report = foveate.explain(
        policy, "car-racing", out=tmp_path / "a", claims={"middle": single, "signed": foveate.batched(batches), "sky": sky}, **PICTURES
    )
    tested = report.details["decisions"]
    assert len(single.seen) == len(sky.seen) == sum(len(batch) for batch in batches.seen) == 2 * tested == 40
    assert len(batches.seen) == 2 and batches.seen[0].shape[1:] == single.seen[0].shape
    found = answers(report)
    assert found["moves", None] == "yes" and found["path", None] == "yes", report.verdict
    assert found["right", "middle"] == found["right", "signed"] == "yes" and found["right", "sky"] != "yes", report.verdict
    # The same weights with another sign are the same claim, against other draws of parts.
    numbers = {line["claim"]: line["number"] for line in report.verdict if line["question"] == "right"}
    assert numbers["middle"]["value"] == pytest.approx(numbers["signed"]["value"], abs=0.1)
    assert "Weights of claims count by their magnitude" in (tmp_path / "a" / "index.html").read_text()
    assert not [line for line in report.verdict if line["question"] == "untrained"]
    assert len(policy.seen) <= 40 * 10 + 120 + 3000


@pytest.mark.parametrize("questions", [300, 600])
def test_a_function_is_asked_no_more_than_it_may_be(questions, tmp_path):
    """Beside playing, of which a steady one is asked once."""
    world = "cartpole-swingup-harder"
    policy, events = Counted(by_the_angle), []
    report = foveate.explain(policy, world, out=tmp_path / "a", claims={"angle": angle}, questions=questions, callback=events.append, **NUMBERS)
    played = sum(foveate.evaluate(by_the_angle, world, episodes=10, max_steps=60).lengths)
    assert questions / 4 < len(policy.seen) - played - 60 <= questions
    kinds = [event["event"] for event in events]
    assert kinds.index("cost") == 0 and f"at most {questions - 30} questions" in events[0]["text"], events[0]
    assert answers(report)["right", "angle"] == "yes"
    # One with a state is asked more for each decision, so fewer are tested.
    clock = Clock()
    whole = Function(lambda seen: clock.act(seen)[:1], reset=clock.reset, get_state=clock.get, set_state=clock.set, claims={"angle": angle})
    report = foveate.explain(whole, world, out=tmp_path / "b", questions=questions, **NUMBERS)
    assert report.details["decisions"] == {300: 30, 600: 40}[questions]
    found = answers(report)
    assert found["moves", None] == "no" and found["path", None] != "yes" and found["right", "angle"] != "yes"


def test_every_question_stays_open_of_a_function_that_answers_differently(tmp_path):
    clock = Clock()
    report = foveate.explain(lambda seen: clock.act(seen)[:1], "cartpole-swingup-harder", out=tmp_path / "a", attention=angle, **NUMBERS)
    assert {line["answer"] for line in report.verdict} == {"undecided"}
    assert all("answered differently in 30 of 30 cases" in line["why"] for line in report.verdict)


def test_numbers_and_cells_can_be_claimed(tmp_path):
    claims = {"angle": angle, "speed": lambda _: [0, 1.0, 0, 0, 0]}
    report = foveate.explain(by_the_angle, "cartpole-swingup-harder", out=tmp_path / "a", claims=claims, **NUMBERS)
    found = answers(report)
    assert found["right", "angle"] == "yes" and found["right", "speed"] != "yes", report.verdict
    assert found["moment", "angle"] == "no", "it is the same at every moment"

    def by_the_front(seen):
        return [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0] if seen[3, 5, 0] == 1 else [0.6, 0.3, 0.1, 0.0, 0.0, 0.0, 0.0]

    def front(_):
        cells = np.zeros((7, 7))
        cells[3, 5] = 1
        return cells

    report = foveate.explain(by_the_front, "door-key-5x5", out=tmp_path / "b", claims={"front": front}, **NUMBERS)
    assert "probabilities" in report.details["swaps"]["distance"] and ("right", "front") in answers(report)


def test_without_a_claim_the_two_other_questions_are_answered(tmp_path):
    policy = Counted(by_the_angle)
    report = foveate.explain(policy, "cartpole-swingup-harder", out=tmp_path / "a", **NUMBERS)
    found = answers(report)
    assert found["moves", None] == found["path", None] == "yes" and "yes" not in [found.get(("right", None)), found.get(("moment", None))]
    assert "claims= names some" in (tmp_path / "a" / "index.html").read_text()


@pytest.mark.parametrize("claim, kind, said", [
    (lambda _: None, TypeError, r'the claim "mine" returned None; it returns rows and columns over the picture'),
    (lambda _: np.full((4, 4), np.nan), ValueError, 'the claim "mine" has the weight NaN at its number 0'),
    (lambda _: np.ones(16), ValueError, r'the claim "mine" has the shape \[16\]; it returns rows and columns'),
    (lambda _: 1 / 0, ZeroDivisionError, "division by zero"),
    (foveate.batched(lambda seen: np.ones((4, 4))[: len(seen) - 1]), ValueError, 'the claim "mine" (returned|has)'),
    (foveate.batched(lambda _: None), ValueError, 'the claim "mine" returned None for a batch of'),
])
def test_claims_that_are_none_are_named(claim, kind, said, tmp_path):
    with pytest.raises(kind, match=said) as caught:
        foveate.explain(
            steers_by_the_road, "car-racing", out=tmp_path / "a", claims={"mine": claim}, episodes=1, decisions=6, max_steps=10, picture="fast"
        )
    assert "\n" not in str(caught.value) and not (tmp_path / "a").exists()


def test_functions_are_compared_with_their_claims(tmp_path):
    both = {
        "angle": Function(by_the_angle, claims={"angle": angle}),
        "still": lambda _: [0.0],
    }
    compared = foveate.compare(both, "cartpole-swingup-harder", out=tmp_path / "a" / "b", **NUMBERS)
    assert [agent["name"] for agent in compared.details["agents"]] == ["angle", "still"]
    lines = {agent["name"]: answers_of(agent["verdict"]) for agent in compared.details["agents"]}
    assert lines["angle"]["moves"] == "yes" and lines["still"]["moves"] == "no" and lines["angle"]["right"] == "yes"
    assert all(agent["untrained"] is None and agent["function"]["twice"]["differed"] == 0 for agent in compared.details["agents"])
    assert "still" in str(compared) and (tmp_path / "a" / "b" / "index.html").exists() and "<pre>" in compared._repr_html_()


def answers_of(verdict):
    return {line["question"]: line["answer"] for line in verdict}


def test_claims_of_an_observation_of_several_parts_are_about_its_picture(tmp_path):
    claims = {
        "map": lambda seen: middle(seen["image"]),
        "of the part": lambda seen: {"image": middle(seen["image"])},
        "batch": foveate.batched(lambda seen: np.stack([middle(one) for one in seen["image"]])),
    }
    report = foveate.explain(
        lambda seen: steers_by_the_road(seen["image"]), "car-racing", out=tmp_path / "a", claims=claims, shifts="missing:1",
        **{**PICTURES, "max_steps": 20},
    )
    assert [answers(report)["right", name] for name in claims] == ["yes"] * 3, report.verdict


@pytest.mark.parametrize("get, put, kind, said", [
    (lambda: 1 / 0, lambda _: None, ZeroDivisionError, "division by zero"),
    (lambda: 1, lambda _: 1 / 0, ZeroDivisionError, "division by zero"),
    (lambda: (i for i in range(3)), lambda _: None, TypeError, "get_state returned a state that cannot be copied: cannot pickle"),
])
def test_states_that_are_none_are_named(get, put, kind, said, tmp_path):
    with pytest.raises(kind, match=said):
        foveate.explain(Function(by_the_angle, get_state=get, set_state=put), "cartpole-swingup-harder", out=tmp_path / "a", **NUMBERS)


def test_claims_are_of_functions():
    with pytest.raises(ValueError, match="claims are of functions"):
        foveate.explain("random-actions", "car-racing", claims={"mine": middle})
    with pytest.raises(ValueError, match="questions is a whole number"):
        foveate.explain(steers_by_the_road, "car-racing", questions=-1)


class Network:
    """A layer of weights as a torch module has them, of NumPy."""

    def __init__(self, weights):
        self.state = {"layer.weight": np.array(weights, np.float64), "layer.steps": np.array(3)}

    def state_dict(self):
        return self.state

    def load_state_dict(self, state):
        self.state = {name: np.array(array) for name, array in state.items()}

    def __call__(self, seen):
        return [np.tanh(float(self.state["layer.weight"] @ np.asarray(seen)))]


class Parameter:
    """A tensor of torch, as far as a report touches it."""

    def __init__(self, array):
        self.array = np.array(array)
        self.data = self

    is_floating_point = lambda self: self.array.dtype.kind == "f"  # noqa: E731
    float = cpu = lambda self: self  # noqa: E731
    numpy = lambda self: self.array.astype(np.float32)  # noqa: E731
    clone = lambda self: Parameter(self.array)  # noqa: E731
    new_tensor = lambda self, other: Parameter(np.asarray(other, self.array.dtype))  # noqa: E731

    def copy_(self, other):
        self.array[...] = other.array


class Torch(Network):
    def __init__(self, weights):
        self.weight = Parameter(np.array(weights))

    def named_parameters(self):
        return [("layer.weight", self.weight)]

    state = property(lambda self: {"layer.weight": self.weight.array})


@pytest.mark.parametrize("kind", [Network, Torch])
def test_a_network_is_compared_with_untrained_ones_and_gets_its_weights_back(kind, tmp_path):
    weights = [0.0, 0.0, 1.0 / 3.0, 1e-9, 0.0]
    network = kind(weights)
    # The claim is of the network as it is asked: a random one claims something else.
    claims = {"weights": lambda _: network.state["layer.weight"], "position": lambda _: [1, 0, 0, 0, 0]}
    own = Function(network, claims=claims, module=network, name="net")
    report = foveate.explain(own, "cartpole-swingup-harder", out=tmp_path / "a", untrained=19, **NUMBERS)
    swaps = report.details["swaps"]
    assert swaps["untrained"]["agents"] == 19 and len(set(swaps["untrained"]["above_others"])) > 10
    assert [one["tensors"] for one in swaps["randomised"]] == ["layer"]
    assert [line["claim"] for line in report.verdict if line["question"] == "untrained"] == ["weights"]
    assert report.details["function"]["untrained"] == 19
    assert network.state["layer.weight"].tolist() == weights
    again = foveate.explain(own, "cartpole-swingup-harder", out=tmp_path / "b", untrained=19, **NUMBERS)
    assert again.details["swaps"] == swaps
    without = foveate.explain(replace(own, module=None), "cartpole-swingup-harder", out=tmp_path / "c", **NUMBERS)
    assert without.details["swaps"]["orders"] == swaps["orders"]
    assert "module= of a Function names its network" in (tmp_path / "c" / "index.html").read_text()


def test_weights_come_back_when_a_report_fails(tmp_path):
    network = Network([0.0, 0.0, 1.0, 0.0, 0.0])

    def claim(_):
        if network.state["layer.weight"][0] != 0:
            raise ArithmeticError("not of this one")
        return [0, 0, 1, 0, 0]

    with pytest.raises(ArithmeticError, match="not of this one"):
        foveate.explain(
            Function(network, claims={"angle": claim}, module=network), "cartpole-swingup-harder", out=tmp_path / "a", **NUMBERS
        )
    assert network.state["layer.weight"].tolist() == [0, 0, 1, 0, 0] and not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    "module, error, words",
    [
        ("weights.pt", TypeError, "module is a str; give a torch module, or what has state_dict and load_state_dict"),
        (type("Empty", (), {"state_dict": dict, "load_state_dict": print})(), ValueError, "module, a Empty, has no weights"),
    ],
)
def test_a_module_has_weights(module, error, words):
    with pytest.raises(error, match=words):
        Function(forward, module=module)


def test_every_row_that_fails_says_what_the_function_raised():
    """Rows run side by side, and the function is asked no more once it has raised something."""

    def fails(seen):
        raise ValueError("its own trouble")

    with pytest.raises((ValueError, foveate.FoveateError), match="its own trouble"):
        foveate.stress(fails, "cartpole-swingup-harder", shift_rows="sticky,noise-channels", severities="1,3", episodes=4, workers=2)
    started = []

    def fails_when_disturbed(seen):
        # The unchanged world comes first.
        started.append(seen)
        if len(started) > 4 * 30:
            raise ValueError("its own trouble")
        return [0.0]

    with pytest.warns(RuntimeWarning, match="its own trouble"):
        table = foveate.stress(
            fails_when_disturbed, "cartpole-swingup-harder", shift_rows="sticky,noise-channels", severities="1,3", episodes=4, max_steps=30, workers=2
        )
    rows = [row for row in table.details["agents"][0]["rows"] if row.get("failed")]
    assert len(rows) == 4 and all("its own trouble" in row["skipped"] for row in rows), rows


class Chance(gymnasium.Env):
    """Shows what no seed determines."""

    observation_space, action_space = gymnasium.spaces.Box(-1, 1, (4,), np.float32), gymnasium.spaces.Discrete(2)

    def seen(self):
        return np.frombuffer(os.urandom(4), np.uint8).astype(np.float32) / 255

    def reset(self, *, seed=None, options=None):
        return self.seen(), {}

    def step(self, action):
        return self.seen(), 0.0, False, False, {}


def test_an_environment_that_no_seed_determines_is_said(tmp_path):
    with pytest.raises(foveate.FoveateError, match=r"draw all chance from generators that reset\(seed=…\) seeds") as raised:
        foveate.explain(lambda seen: 0, Chance(), out=tmp_path / "a", episodes=10, decisions=5, max_steps=20)
    assert "check-env" not in str(raised.value)


class TwoFrames(gymnasium.Env):
    """A light goes from side to side; two frames lie behind each other, as `VecFrameStack` lays grey ones."""

    observation_space, action_space = gymnasium.spaces.Box(0, 255, (32, 32, 2), np.uint8), gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def seen(self):
        picture = np.zeros((32, 32, 2), np.uint8)
        picture[4:8, self.at : self.at + 4] = 255
        return picture

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.steps = int(self.np_random.integers(28)), 0
        return self.seen(), {}

    def step(self, action):
        self.at = int(np.clip(self.at + self.np_random.integers(-4, 5), 0, 27))
        self.steps += 1
        return self.seen(), 0.0, False, self.steps >= 20, {}


def test_two_frames_behind_each_other_are_a_picture(tmp_path):
    upper = np.repeat([1.0, 0.0, 0.0, 0.0], 4).reshape(4, 4)
    report = foveate.explain(
        lambda seen: [seen[..., 1].max(axis=0).argmax() / 16 - 0.9], TwoFrames(), out=tmp_path / "a", claims={"upper": lambda _: upper},
        episodes=10, decisions=4, progress=False,
    )
    assert report.details["swaps"]["orders"][0]["name"].startswith("all 144 places")
    assert answers(report)["right", "upper"] == "yes", report.verdict


@pytest.mark.parametrize("moves", [True, False])
def test_several_claims_are_set_side_by_side_at_the_top(moves, tmp_path):
    """Where the action moves: of one that never does nothing can be set side by side."""
    claims = {"angle": lambda _: [0.0, 0.0, 1.0, 1.0, 0.0], "all": lambda _: [1.0] * 5}
    policy = by_the_angle if moves else (lambda _: [0.0])
    foveate.explain(policy, "cartpole-swingup-harder", out=tmp_path / "a", claims=claims, **NUMBERS)
    page = (tmp_path / "a" / "index.html").read_text()
    top, _, _ = page.partition("What was found")
    assert ("Which method tells the truth" in top) == moves and "By which path the action depends" not in top
    assert (tmp_path / "a" / "figures" / "methods.csv").exists() == moves and (tmp_path / "a" / "figures" / "paths.csv").exists()
    assert "AIM" in (tmp_path / "a" / "tables" / "matters.tex").read_text()
