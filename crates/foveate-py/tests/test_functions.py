"""Policies that are functions: what they may return, what may be claimed of them, and what is asked of them."""

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
    sizes = {"episodes": 2, "decisions": 3, "max_steps": 30, "picture": "fast"}
    report = foveate.explain(Function(clock.act, reset=clock.reset, get_state=clock.get, set_state=clock.set), "car-racing", out=tmp_path / "a", **sizes)
    swaps = report.details["swaps"]
    assert swaps["natural"]["value"] > 0.01 and swaps["attended"]["value"] == 0 and swaps["memory"]["value"] == pytest.approx(1)


def test_a_function_that_answers_differently_is_told_so(tmp_path):
    """In one sentence, at the top of the page and in the file."""
    sizes = {"episodes": 1, "decisions": 1, "max_steps": 30, "picture": "fast"}
    rng = np.random.default_rng(0)
    clock = Clock()
    for name, act, differed in [
        ("draws", lambda _: [rng.uniform(-1, 1), 0.1, 0.0], 15),
        ("clock", clock.act, 15),
        ("steady", lambda seen: [seen[60:80].mean() / 255, 0.1, 0.0], 0),
        ("read", Function(clock.act, reset=clock.reset, get_state=clock.get, set_state=clock.set), 0),
    ]:
        report = foveate.explain(act, "car-racing", out=tmp_path / name, **sizes)
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
