"""Agents and jobs: what the commands do, from Python."""

import json
import pickle
import threading

import gymnasium
import numpy as np
import pytest

import foveate

STEPS = 60


def first_observation():
    env = gymnasium.make("foveate/CarRacing-v3")
    return env.reset(seed=1)[0]


def test_an_agent_acts_shows_what_it_attends_to_and_pickles():
    agent = foveate.load()
    assert (agent.kind, agent.world) == ("attention-agent", "car-racing")
    assert agent.attention is None
    observation = first_observation()
    action = agent.act(observation)
    assert action.shape == (3,) and action.dtype == np.float64
    seen = agent.attention
    assert seen.tokens == "patches" and seen.shape == (23, 23, 7, 4)
    assert seen.weights.shape == (1, 1, 529) and seen.importance.shape == (529,)
    best = np.argsort(-seen.importance, kind="stable")[:10]
    assert sorted(seen.selected) == sorted(best), "it selects the patches with most votes"
    again = pickle.loads(pickle.dumps(agent))
    assert np.array_equal(again.act(observation), action), "a copy begins anew"
    second = agent.act(observation)
    agent.reset()
    assert np.array_equal(agent.act(observation), action) and not np.array_equal(second, action), "its memory counts"
    # The champion's controller is larger than the published one.
    assert sum(values.size for values in agent.parameters.values()) == 8195
    assert "attention-agent" in agent._repr_html_()


def test_an_evaluation_is_that_of_the_command_and_of_gymnasium():
    agent = foveate.load()
    seeds = range(3, 5)
    report = foveate.evaluate(agent, seeds=seeds, max_steps=STEPS)
    assert report.returns.shape == (2,) and list(report.lengths) == [STEPS] * 2
    for seed, expected in zip(seeds, report.returns, strict=True):
        env = gymnasium.make("foveate/CarRacing-v3")
        observation, _ = env.reset(seed=seed)
        agent.reset()
        total = 0.0
        for _ in range(STEPS):
            # The command's actions are rounded, as Gymnasium's action space is of single precision.
            observation, reward, *_ = env.step(agent.act(observation).astype(np.float32))
            total += reward
        assert total == expected


def test_a_function_is_evaluated_tested_and_explained(tmp_path):
    def policy(observation):
        assert observation.shape == (96, 96, 3) and observation.dtype == np.uint8
        return [0.002 * (observation[60, 60:80, 1].mean() - observation[60, 16:36, 1].mean()), 0.1, 0.0]

    report = foveate.evaluate(policy, "car-racing", episodes=2, max_steps=STEPS)
    assert report.returns.shape == (2,)
    assert foveate.evaluate(policy, "car-racing", episodes=2, max_steps=STEPS).details["returns"] == list(report.returns)
    table = foveate.stress(policy, "car-racing", variants="bar", shift_rows="hue:3", episodes=2, max_steps=STEPS, picture="fast")
    rows = list(table.rows)
    assert [row["name"] for row in rows] == ["original", "bar", "hue:3"], rows
    assert all(len(row["returns"]) == 2 for row in rows)
    assert "<svg" in table._repr_html_() and "bar" in str(table)
    said = foveate.explain(
        policy, "car-racing", out=tmp_path / "report", episodes=2, decisions=3, max_steps=30, picture="fast",
        attention=lambda observation: observation[::24, ::24, 1].astype(np.float32) + 1,
    )
    assert (tmp_path / "report" / "index.html").stat().st_size > 10_000
    assert json.loads((tmp_path / "report" / "report.json").read_text())["weights"] == said.details["weights"]


def test_a_world_may_be_given_as_an_environment():
    def policy(_):
        return [0.1, 0.2, 0.0]

    made = gymnasium.make("foveate/CarRacing-v3", picture="fast", max_episode_steps=40)
    for world in (made, "foveate/CarRacing-v3"):
        report = foveate.evaluate(policy, world, episodes=1, max_steps=50)
        assert list(report.lengths) == [40 if world is made else 50]
    with pytest.raises(foveate.FoveateError, match="picture"):
        foveate.evaluate(policy, made, picture="exact")
    with pytest.raises(foveate.FoveateError, match="GrayscaleObservation"):
        foveate.evaluate(policy, gymnasium.wrappers.GrayscaleObservation(made))
    with pytest.raises(TypeError, match="pictur"):
        foveate.evaluate(policy, "car-racing", pictur="fast")


def test_an_exception_of_a_function_comes_out_as_it_is():
    class Mine(Exception):
        pass

    def policy(_):
        raise Mine("no idea")

    with pytest.raises(Mine, match="no idea"):
        foveate.evaluate(policy, "car-racing", episodes=1, max_steps=5)
    with pytest.raises(foveate.FoveateError, match="world"):
        foveate.evaluate(policy)
    with pytest.raises((foveate.FoveateError, ValueError, TypeError)):
        foveate.evaluate(lambda _: [0.0, 0.0], "car-racing", episodes=1, max_steps=5)
    with pytest.raises((foveate.FoveateError, ValueError, TypeError)):
        foveate.evaluate(lambda _: "left", "car-racing", episodes=1, max_steps=5)
    with pytest.raises(foveate.FoveateError):
        foveate.load("no such file")


@pytest.mark.parametrize(
    "wrong",
    [np.zeros((96, 96)), np.zeros((96, 96, 3), np.float32), np.zeros((95, 96, 3), np.uint8), "text", None, [[1]], {"a": 1}],
)
def test_observations_of_another_shape_or_type_are_refused(wrong):
    agent = foveate.load()
    with pytest.raises((foveate.FoveateError, ValueError, TypeError)):
        agent.act(wrong)


def test_arrays_need_not_lie_in_order():
    agent = foveate.load()
    observation = first_observation()
    action = agent.act(observation)
    for other in [np.asfortranarray(observation), observation[::-1].copy()[::-1], np.flip(np.flip(observation, 1).copy(), 1)]:
        agent.reset()
        assert np.array_equal(agent.act(other), action)


def test_two_threads_may_ask_one_agent():
    agent = foveate.load()
    observation = first_observation()
    wrong = []

    def ask():
        for _ in range(20):
            try:
                assert agent.act(observation).shape == (3,)
            except foveate.FoveateError:
                pass
            except BaseException as error:
                wrong.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_films_and_training(tmp_path):
    film = foveate.watch(out=tmp_path / "a.png", at=10)
    assert film.file.read_bytes().startswith(b"\x89PNG") and "<img" in film._repr_html_()
    film = foveate.watch(out=tmp_path / "a.gif", steps=5)
    assert (film.frames, film.steps, film.ended) == (6, 5, False)
    config = tmp_path / "short.toml"
    config.write_text("""
version = 1
videos = false
[env]
id = "cartpole-swingup-harder"
[agent]
name = "attention-neuron"
[recipe]
max_steps = 20
[recipe.selection]
tracks = 2
finalists = 1
final_tracks = 2
reevaluate = 0
report_tracks = 2
evaluation_tracks = 0
[[recipe.stage]]
name = "only"
algorithm = "rank-es"
steps = 2000
tracks = 1
population = 8
sigma = 0.1
patience = "off"
""")
    run = foveate.train("cartpole-swingup-harder", config=config, runs=tmp_path, name="short", set={"seed": 3})
    assert run.finished and run.best.world == "cartpole-swingup-harder"
    history = run.history
    assert len(history["generation"]) > 1 and history["generation"].dtype == np.float64


def test_the_command_is_there(capfd):
    from foveate import _native

    assert _native.command(["foveate", "list", "worlds"], None) == 0
    assert "car-racing" in capfd.readouterr().out
    assert _native.command(["foveate", "eval", "no-such-file"], None) != 0
