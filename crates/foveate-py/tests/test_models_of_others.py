"""Models of other libraries in environments of one's own: found out what they are, asked rightly, judged rightly."""

import random
import subprocess
import sys
import types

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import foveate
from foveate import Function, _hosting
from foveate.errors import OptionError


class Light(gymnasium.Env):
    """Two pictures, numbers and choices: a light moves over the left camera, and is followed by a number from -1 to 1."""

    metadata = {"render_modes": []}

    def __init__(self, dtype=np.uint8, stack=0, cameras=1, steps=40):
        side = (16, 16, 3) if not stack else (stack, 16, 16)
        high = 255 if dtype == np.uint8 else 1
        picture = spaces.Box(0, high, side, dtype)
        parts = {"front": picture}
        if cameras == 2:
            parts["back"] = spaces.Box(0, high, (24, 20, 3), dtype)
        self.observation_space = spaces.Dict(
            {"pixels": spaces.Dict(parts), "speed": spaces.Box(-9, 9, (2,), np.float64), "gear": spaces.Discrete(3, start=1)}
        )
        self.action_space = spaces.Box(-1, 1, (1,), np.float32)
        self.dtype, self.stack, self.cameras, self.steps = dtype, stack, cameras, steps

    def seen(self):
        high = 255 if self.dtype == np.uint8 else 1
        shape = self.observation_space["pixels"]["front"].shape
        front = np.zeros(shape, self.dtype)
        at = int(self.at)
        if self.stack:
            front[-1, 4:8, at : at + 2] = high
        else:
            front[4:8, at : at + 2] = high
        pixels = {"front": front}
        if self.cameras == 2:
            pixels["back"] = (self.np_random.random((24, 20, 3)) * high).astype(self.dtype)
        return {"pixels": pixels, "speed": np.array([self.at / 3, random.random()]), "gear": np.int64(1 + self.at % 3)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.step_number = int(self.np_random.integers(14)), 0
        return self.seen(), {}

    def step(self, action):
        self.at = int(np.clip(self.at + self.np_random.integers(-2, 3), 0, 13))
        self.step_number += 1
        return self.seen(), float(action[0]), False, self.step_number >= self.steps, {}


SMALL = {"episodes": 6, "decisions": 3, "progress": False}


def answers(report):
    return {(line["question"], line["claim"]): line["answer"] for line in report.verdict}


@pytest.mark.parametrize("dtype, stack, cameras", [(np.uint8, 0, 1), (np.float32, 0, 2), (np.uint8, 4, 1), (np.uint8, 0, 2)])
def test_a_policy_sees_what_its_environment_gives(dtype, stack, cameras):
    """Structure, shapes, types and values, also of several cameras, and of an environment that draws from common generators."""
    direct = Light(dtype, stack, cameras)
    random.seed(7)
    wanted, _ = direct.reset(seed=7)
    state, drawn = random.getstate(), np.random.get_state()[1].copy()
    seen = []

    def policy(observation):
        seen.append(observation)
        return [0.5]

    result = foveate.evaluate(policy, lambda: Light(dtype, stack, cameras), seeds=range(7, 8), progress=False)
    assert result.returns.tolist() == [20.0] and result.lengths.tolist() == [40] and not result.terminated[0]
    assert random.getstate() == state and np.array_equal(np.random.get_state()[1], drawn)
    first = seen[0]
    assert set(first) == set(wanted) and set(first["pixels"]) == set(wanted["pixels"])
    for name, picture in wanted["pixels"].items():
        got = first["pixels"][name]
        assert got.dtype == picture.dtype and got.shape == picture.shape
        assert np.abs(got.astype(float) - picture).max() <= (0 if dtype == np.uint8 else 0.5 / 255 + 1e-7), name
    assert first["gear"] == wanted["gear"] and first["speed"].dtype == np.float64
    assert np.allclose(first["speed"], wanted["speed"], atol=1e-6)
    assert direct.observation_space.contains(first)


@pytest.mark.parametrize(
    "shape, dtype, low, high",
    [
        ((84, 84, 4), np.uint8, 0, 255), ((84, 84, 12), np.uint8, 0, 255), ((4, 20, 30), np.uint8, 0, 255), ((3, 20, 30), np.uint8, 0, 255),
        ((20, 30, 1), np.uint8, 0, 255), ((20, 30), np.uint8, 0, 255), ((20, 30, 3), np.float32, 0, 255), ((20, 30, 3), np.float64, -1, 1),
        ((4, 20, 30), np.float32, 0, 1), ((2, 20, 30, 3), np.uint8, 0, 255), ((7, 5), np.float32, -9, 9), ((3,), np.int64, -4, 4),
    ],
)
def test_every_layout_comes_back_as_it_was(shape, dtype, low, high):
    """To the bit for bytes, also where four frames lie where colours might; pictures of fractions to half of 1/255 of their range."""

    class Shows(gymnasium.Env):
        observation_space = spaces.Box(low, high, shape, dtype)
        action_space = spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            values = self.np_random.uniform(low, high, shape)
            self.shown = np.rint(values).astype(dtype) if np.dtype(dtype).kind != "f" or high == 255 else values.astype(dtype)
            return self.shown, {}

        def step(self, action):
            return self.shown, 0.0, True, False, {}

    direct, seen = Shows(), []
    wanted, _ = direct.reset(seed=5)
    foveate.evaluate(lambda observation: seen.append(observation) or 1, Shows, seeds=range(5, 6), progress=False)
    assert seen[0].shape == shape and seen[0].dtype == dtype
    exact = np.dtype(dtype).kind != "f" or high == 255 or high == 9
    assert np.abs(seen[0].astype(float) - wanted).max() <= (1e-6 if exact else 0.51 * (high - low) / 255)


def test_an_instance_is_copied_and_left_alone():
    env = Light(steps=5)
    env.reset(seed=3)
    before = env.at, env.step_number
    scores = foveate.evaluate(lambda _: [1.0], env, episodes=3, progress=False)
    assert scores.returns.tolist() == [5.0] * 3 and (env.at, env.step_number) == before
    env.step(np.array([0.0]))


@pytest.mark.parametrize("cameras", [1, 2])
def test_planted_policies_are_judged_rightly(cameras, tmp_path):
    """One that follows the light: a claim of the light's rows is right, one of the rows below is not."""

    def follows(seen):
        return [seen["pixels"]["front"][4:8].mean(axis=(0, 2)) @ np.linspace(-1, 1, 16) / 32]

    def rows(from_, to):
        weights = np.zeros((16, 16))
        weights[from_:to] = 1
        return weights

    claims = {
        "light": lambda _: {"pixels": {"front": rows(4, 8)}} if cameras == 2 else rows(4, 8),
        "below": lambda _: {"pixels.front": rows(10, 14)},
        "seen": lambda seen: {"pixels.front": seen["pixels"]["front"].sum(axis=2)},
    }
    report = foveate.explain(follows, lambda: Light(cameras=cameras), claims=claims, out=tmp_path / "a", episodes=8, decisions=4, progress=False)
    found = answers(report)
    assert found["moves", None] == found["right", "light"] == "yes" and found["right", "below"] != "yes", report.verdict
    assert found["right", "seen"] != "no", report.verdict
    assert "own/Light" in (tmp_path / "a" / "index.html").read_text()



class Numbers(gymnasium.Env):
    observation_space = spaces.Box(-9, 9, (3,), np.float32)
    action_space = spaces.Discrete(3, start=5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return np.zeros(3, np.float32), {}

    def step(self, action):
        assert action in (5, 6, 7), action
        self.at += 1
        return np.full(3, self.at, np.float32), float(action), self.at >= 4, False, {}


class Lives(gymnasium.Wrapper):
    """As Stable-Baselines3's EpisodicLifeEnv: a reset in the middle of an episode goes on with it."""

    over = True

    def reset(self, **keywords):
        if self.over:
            return self.env.reset(**keywords)
        return self.env.step(5)[0], {}

    def step(self, action):
        seen, reward, self.over, truncated, info = self.env.step(action)
        return seen, reward, self.over, truncated, info


def test_episodes_begin_anew_whatever_a_reset_does():
    made, seen = [], []

    def make():
        made.append(Lives(Numbers()))
        return made[-1]

    def policy(observation):
        seen.append(observation[0])
        return 6

    result = foveate.evaluate(policy, make, episodes=3, max_steps=2, progress=False)
    assert seen == [0, 1] * 3 and result.lengths.tolist() == [2] * 3 and len(made) <= 7
    made.clear()
    foveate.evaluate(policy, lambda: made.append(1) or Numbers(), episodes=5, progress=False)
    assert len(made) <= 2, "one that a reset begins anew is made once for each thread"


class Batch:
    """As a VecEnv of Stable-Baselines3: it begins the next episode by itself, and keeps the last observation aside."""

    step_async = norm_reward = training = True
    venv = None

    def __init__(self, count):
        self.envs, self.num_envs = [Numbers() for _ in range(count)], count
        self.observation_space, self.action_space = Numbers.observation_space, Numbers.action_space

    def seed(self, seed):
        self.next_seed = seed

    def reset(self):
        return np.stack([env.reset(seed=self.next_seed)[0] for env in self.envs])

    def step(self, actions):
        (seen, reward, done, _, info) = self.envs[0].step(actions[0])
        reward = reward / 1000 if self.norm_reward else reward
        if done:
            info, seen = {"terminal_observation": seen, "TimeLimit.truncated": actions[0] == 6}, self.envs[0].reset()[0]
        return seen[None], np.array([reward]), np.array([done]), [info]

    def close(self):
        pass


def test_a_batch_of_one_is_an_environment():
    """The last observation of an episode is its own, and returns are the world's."""
    seen = []

    def policy(observation):
        seen.append(observation)
        return 7 if observation[0] < 2 else np.array([0.0, 1.0, 0.5])

    batch = Batch(1)
    result = foveate.evaluate(policy, batch, episodes=2, progress=False)
    assert result.returns.tolist() == [7 + 7 + 6 + 6] * 2 and not result.terminated.any() and seen[0].shape == (3,)
    assert batch.norm_reward and batch.training, "its copies were changed alone"
    with pytest.raises(OptionError, match="a batch of 2 environments; give one"):
        foveate.evaluate(policy, Batch(2), episodes=1, progress=False)


class Recurrent:
    """As RecurrentPPO of Stable-Baselines3's contributions: what it saw last decides, and its state is handed over."""

    lstm_actor = object()
    action_space = spaces.Box(-1, 1, (1,))

    def __init__(self, own):
        self.own = own

    def predict(self, seen, state, episode_start, deterministic):
        assert deterministic and (state is None) == bool(episode_start[0])
        last = 0.0 if state is None else state
        now = float(np.asarray(seen)[0]) / 9
        return np.array([now if self.own else last], np.float32), now


def _fake(library, name, base=object):
    """A class that says it is of a library."""
    return type(name, (base,), {"__module__": library})


@pytest.mark.parametrize("own", [True, False])
def test_a_recurrent_policy_is_asked_with_its_state(own, tmp_path):
    class Walk(gymnasium.Env):
        observation_space = spaces.Box(-9, 9, (3,), np.float32)
        action_space = spaces.Box(-1, 1, (1,), np.float32)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.steps = 0
            return self.np_random.uniform(-9, 9, 3).astype(np.float32), {}

        def step(self, action):
            self.steps += 1
            return self.np_random.uniform(-9, 9, 3).astype(np.float32), 0.0, False, self.steps >= 20, {}

    model = _fake("stable_baselines3.common", "BaseAlgorithm")()
    model.policy = Recurrent(own)
    model.policy.state_dict = lambda: {"w": np.ones(2)}
    model.policy.load_state_dict = lambda state: None
    report = foveate.explain(model, Walk, claims={"first": lambda _: [1, 0, 0]}, untrained=0, out=tmp_path / "a", episodes=8, decisions=4, progress=False)
    swaps, found = report.details["swaps"], answers(report)
    assert report.details["function"]["twice"]["differed"] == 0
    assert (swaps["attended"]["value"], swaps["memory"]["value"]) == pytest.approx((1, 0) if own else (0, 1))
    assert found["path", None] == ("yes" if own else "no") and found["moves", None] == ("yes" if own else "no")
    if own:
        assert found["right", "first"] == "yes"


class Session:
    """As onnxruntime's session of a model with a state."""

    def __init__(self, inputs, outputs, run):
        self.inputs, self.outputs, self._run = inputs, outputs, run

    def get_inputs(self):
        return [types.SimpleNamespace(name=name, shape=shape, type=kind) for name, shape, kind in self.inputs]

    def get_outputs(self):
        return [types.SimpleNamespace(name=name) for name in self.outputs]

    def run(self, wanted, fed):
        return self._run(wanted, fed)


def test_an_onnx_session_is_fed_its_state():
    fed_states = []

    def run(wanted, fed):
        assert fed["observation"].shape == (1, 5) and fed["observation"].dtype == np.float32
        fed_states.append(float(fed["h_in"][0, 0]))
        return [{"action": np.array([[0.25]]), "h_out": fed["h_in"] + 1}[name] for name in wanted]

    kind = _fake("onnxruntime.capi", "InferenceSession", Session)
    session = kind([("observation", ["batch", 5], "tensor(float)"), ("h_in", [1, 2], "tensor(float)")], ["action", "h_out"], run)
    result = foveate.evaluate(session, "cartpole-swingup-harder", episodes=2, max_steps=3, progress=False)
    assert result.lengths.tolist() == [3, 3] and fed_states == [0, 1, 2, 0, 1, 2]
    # As Foveate exports: no batch, the action by its name among other outputs.
    def exported(wanted, fed):
        assert fed["observation"].shape == (5,) and wanted[0] == "action"
        return [{"action": np.array([0.5]), "next_h": fed["h"] + 1}[name] for name in wanted]

    session = kind([("observation", [5], "tensor(float)"), ("h", [2], "tensor(float)")], ["attention", "next_h", "action"], exported)
    assert foveate.evaluate(session, "cartpole-swingup-harder", episodes=1, max_steps=3, progress=False).lengths.tolist() == [3]
    with pytest.raises(OptionError, match="an observation goes in and an action comes out"):
        foveate.evaluate(kind([("h_in", [1], "tensor(float)")], ["h_out"], run), "cartpole-swingup-harder")
    strange = kind([("observation", [1, 5], "tensor(string)")], ["action"], run)
    with pytest.raises(OptionError, match=r"'observation' of the ONNX model is a tensor\(string\)"):
        foveate.evaluate(strange, "cartpole-swingup-harder", episodes=1)


class Raises(Light):
    def step(self, action):
        if self.step_number == 2:
            raise ZeroDivisionError("a wheel came off")
        return super().step(action)


class Closed(Light):
    def __deepcopy__(self, memo):
        raise TypeError("a handle cannot be copied")


@pytest.mark.parametrize(
    "world, policy, words",
    [
        (lambda: 7, lambda _: [0.0], "world made a int; give an environment of Gymnasium, or a function that makes one"),
        (Raises, lambda _: [0.0], "it raised ZeroDivisionError: a wheel came off, after step 2 of the episode with seed"),
        (Closed(), lambda _: [0.0], r"Closed cannot be copied \(TypeError: a handle cannot be copied\), and Foveate plays in copies"),
        (Light, lambda _: [0.0, 1.0], r"an action of shape \[2\]"),
        (Light, lambda _: [float("nan")], "an action whose number 0 is NaN"),
        (Light, "car-racing", "car-racing"),
        ((lambda env: lambda: env)(Light()), lambda _: [0.0], "world returned the same Light again; it makes a new one"),
    ],
)
def test_what_does_not_fit_is_one_sentence(world, policy, words):
    with pytest.raises((ValueError, foveate.FoveateError), match=words) as raised:
        foveate.evaluate(policy, world, episodes=1, progress=False)
    assert len(str(raised.value).splitlines()) == 1


def test_an_observation_that_no_report_can_show_is_named():
    class Talks(gymnasium.Env):
        observation_space = spaces.Dict({"said": spaces.Text(8), "at": spaces.Box(0, 1, (2,))})
        action_space = spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            return {"said": "hello", "at": np.zeros(2, np.float32)}, {}

        def step(self, action):
            return {"said": "hello", "at": np.zeros(2, np.float32)}, 0.0, True, False, {}

    with pytest.raises(OptionError, match="said of the observation, a Text, is no picture and no numbers"):
        foveate.evaluate(lambda _: 0, Talks, episodes=1, progress=False)


def test_a_shift_that_the_model_has_no_place_for_is_a_row_that_says_so():
    table = foveate.stress(lambda _: 6, Numbers, episodes=1, shift_rows="doubled,sticky", severities="3", progress=False)
    skipped = {row["name"]: row.get("skipped") for row in table.rows}
    assert "numbers are shown and the model takes 3" in skipped["doubled:3"] and skipped["sticky:3"] is None, skipped


def test_names_are_given_up():
    before = foveate.evaluate(lambda _: [0.0], Light, episodes=1, progress=False).world
    assert foveate.evaluate(lambda _: [0.0], Light, episodes=1, progress=False).world == before == "gym:own/Light"
    with pytest.raises(foveate.FoveateError):
        foveate.evaluate(lambda _: [0.0], "gym:own/Light", episodes=1, progress=False)
    assert _hosting.current() is None


def test_no_library_is_imported_for_its_adapter():
    program = "import foveate, sys; print({'torch', 'onnxruntime', 'lerobot', 'stable_baselines3'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip() == "set()"
