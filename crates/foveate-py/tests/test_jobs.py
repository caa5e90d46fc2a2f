"""Agents and jobs: what the commands do, from Python."""

import hashlib
import json
import pickle
import re
import threading
import tomllib
from pathlib import Path

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
    assert "attention-agent" in agent._repr_html_() and agent.sha256 in agent._repr_html_()
    assert len(repr(seen)) < 200 and "529 patches" in repr(seen)


def test_the_digest_of_an_agent_is_that_of_its_file(tmp_path):
    agent = foveate.load()
    agent.save(tmp_path / "mine.safetensors")
    moved = foveate.load(tmp_path / "mine.safetensors")
    assert moved.sha256 == hashlib.sha256((tmp_path / "mine.safetensors").read_bytes()).hexdigest()
    # A file's own bytes count, however they are written.
    champion = Path(__file__).parents[3] / "champions" / "door-key-5x5.safetensors"
    for name in ("car-racing", "door-key-5x5"):
        ours = champion.with_name(f"{name}.safetensors")
        assert foveate.load(name).sha256 == hashlib.sha256(ours.read_bytes()).hexdigest()
    loaded = foveate.load(champion)
    assert loaded.sha256 == hashlib.sha256(champion.read_bytes()).hexdigest()
    before = moved.sha256
    (tmp_path / "mine.safetensors").write_bytes(champion.read_bytes())
    assert moved.sha256 == before, "another file is there now"


@pytest.mark.parametrize("name", ["foveate/DoorKey-5x5-v0", "MiniGrid-DoorKey-5x5-v0"])
def test_the_champion_of_door_key_acts_on_what_minigrid_shows(name):
    if name.startswith("MiniGrid"):
        pytest.importorskip("minigrid")
    agent, env = foveate.load("door-key-5x5"), gymnasium.make(name)
    expected = foveate.evaluate(agent, seeds=range(5)).returns
    assert expected.min() > 0.9
    for seed, total in enumerate(expected):
        observation, _ = env.reset(seed=seed)
        agent.reset()
        got, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(agent.act(observation))
            got, over = got + reward, terminated or truncated
        assert got == total
    # In bits and with its own five actions, it is as before.
    own = gymnasium.make("foveate/DoorKey-5x5-v0", picture="one-hot", actions="five")
    observation, _ = own.reset(seed=0)
    agent.reset()
    over = False
    while not over:
        observation, reward, terminated, truncated, _ = own.step(agent.act(observation))
        over = terminated or truncated
    assert reward == expected[0]
    with pytest.raises(foveate.FoveateError, match="codes up to .255"):
        agent.act(np.full((7, 7, 3), 255, np.uint8))


def test_champions_are_named_by_their_worlds():
    for name in ("door-key-5x5", "car-racing"):
        assert foveate.load(name).world == name


def test_keywords_that_there_are_not_are_named():
    for call, said in [
        (lambda: foveate.train("car-racing", sede=3), r"^train\(\) has no keyword 'sede'; did you mean seed\? it has: world, preset"),
        (lambda: foveate.evaluate(pictur="fast"), r"^evaluate\(\) has no keyword 'pictur'; did you mean picture\?"),
        (lambda: foveate.stress(shift_row="all"), r"^stress\(\) has no keyword 'shift_row'; did you mean shift_rows\?"),
        (lambda: foveate.load(pictures="fast"), r"^load\(\) has no keyword 'pictures'; did you mean picture\?"),
    ]:
        with pytest.raises(TypeError, match=said):
            call()


@pytest.mark.parametrize("call, words", [
    (lambda: foveate.evaluate(episodes=0), ["episodes"]),
    (lambda: foveate.evaluate(episodes=10**12), ["episodes"]),
    (lambda: foveate.train("car-racing", set={"no.such.key": 1}), ["no"]),
    (lambda: foveate.train("car-racing", steps=0), ["steps"]),
    (lambda: foveate.train("car-racing", seed=-1), ["seed is a whole number"]),
    (lambda: foveate.train("car-racing", workers=10**6), ["set: workers = 1000000"]),
    (lambda: foveate.evaluate(workers=-1), ["workers is a whole number"]),
    (lambda: foveate.evaluate(episodes=2.5), ["episodes is a whole number"]),
    (lambda: foveate.watch(seed="a"), ["seed is a whole number"]),
    (lambda: foveate.train("gym:no_such_module:World-v0"), ["no_such_module"]),
    (lambda: foveate.load("no such file"), ["no such file"]),
    (lambda: foveate.evaluate("no such file"), ["no such file"]),
    (lambda: foveate.evaluate(world="car-racin"), ["car-racin"]),
    (lambda: foveate.resume("no such run"), ["no such run"]),
    (lambda: foveate.watch(out="a.txt"), ["a.txt"]),
    (lambda: foveate.stress(variants="no-such"), ["no-such"]),
    (lambda: foveate.explain("random-actions", "cartpole-swingup-harder", out="/proc/no"), []),
    (lambda: foveate.envs.World("no-such-world"), ["no-such-world"]),
])
def test_messages_name_things_of_python(call, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception) as caught:
        call()
    said = str(caught.value)
    assert all(word in said for word in words) and "\n" not in said, said
    assert not re.search(r"(^|\s)--[a-z]|the settings? `|the task `", said), said


def test_values_of_a_configuration_are_written_as_toml():
    from foveate.jobs import _toml

    value = {
        "text": 'a "b"\n\x7f é 🜁', "yes": True, "no": False, "number": 2000, "share": 0.25, "small": 1e-7, "many": float("inf"),
        "list": [1, [2, 3]], "inside": {"a.b": {"c": np.float32(0.5)}}, "array": np.arange(3), "empty": {},
    }
    read = tomllib.loads("x = " + _toml(value, "x"))["x"]
    assert read == {**value, "inside": {"a.b": {"c": 0.5}}, "array": [0, 1, 2]}
    for wrong, said in [(None, "is None"), ({"a": [None]}, "is None"), (object(), "of object"), (2**70, "64 bits")]:
        with pytest.raises(foveate.errors.OptionError, match=f"set: key.*{said}"):
            _toml(wrong, "key")


def test_a_row_that_fails_leaves_the_table():
    class Mine(Exception):
        pass

    def policy(observation):
        # Neighbouring pixels of a plain picture are alike.
        if np.abs(np.diff(observation[:80].astype(int), axis=0)).mean() > 20:
            raise Mine("too rough")
        return [0.0, 0.1, 0.0]

    def raising(_):
        raise Mine("too rough")

    rows = {"shift_rows": "hue:1,noise:5", "variants": "none", "episodes": 1, "max_steps": 3, "picture": "fast"}
    with pytest.warns(RuntimeWarning, match="1 of 3 rows failed; the first is noise:5: .*too rough"):
        table = foveate.stress(policy, "car-racing", **rows)
    found = {row["name"]: row for row in table.rows}
    assert list(found) == ["original", "hue:1", "noise:5"]
    assert found["noise:5"]["failed"] and "too rough" in found["noise:5"]["skipped"] and found["noise:5"]["returns"] == []
    assert len(found["hue:1"]["returns"]) == 1 and "failed" not in found["hue:1"]
    assert "| noise:5 | failed |" in str(table) and "failed: noise:5:" in str(table) and table.failed.startswith("1 of 3")
    with pytest.raises(Mine, match="too rough"):
        foveate.stress(raising, "car-racing", **rows)


FRAIL = '''
import gymnasium
import numpy as np


class Frail(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.last = None
        return np.zeros(2, np.float32), {}

    def step(self, action):
        if action == self.last:
            raise RuntimeError("the same twice")
        self.last = action.copy()
        return np.zeros(2, np.float32), 1.0, False, False, {}


gymnasium.register("Frail-v0", Frail, max_episode_steps=60)
'''


def test_so_does_a_row_of_the_command(tmp_path, capfd):
    from foveate import _native

    (tmp_path / "frail.py").write_text(FRAIL)
    words = ["stress", "random-actions", "--env", "gym:frail:Frail-v0", "--option", f"path={tmp_path}", "--variants", "none", "--shifts",
             "sticky:5,missing:1", "--episodes", "1", "--workers", "1", "--out", str(tmp_path / "table")]
    assert _native.command(["foveate", *words], None) == 1
    out, err = capfd.readouterr()
    assert "| sticky:5 | failed |" in out and "the same twice" in out and "| original | 60.0 |" in out, (out, err)
    assert "1 of 3 rows failed; the first is sticky:5" in err
    assert "| sticky:5 | failed |" in (tmp_path / "table" / "table.md").read_text()


def test_events_are_told_and_may_stop_a_job(tmp_path, capfd):
    events = []
    run = foveate.train("cartpole-swingup-harder", config=short(tmp_path), runs=tmp_path, name="told", seed=5, steps=4000, videos=False,
                        workers=1, callback=events.append)
    kinds = [event["event"] for event in events]
    assert kinds[0] == "begins" and kinds[-1] == "finished" and "generation" in kinds and "report" in kinds
    assert events[0]["seed"] == 5 and events[0]["steps"] == 4000 and events[-1]["folder"] == str(run.folder)
    generations = [event for event in events if event["event"] == "generation"]
    assert len(generations) == run.history["generation"].max() == generations[-1]["generation"]
    assert generations[-1]["run_steps"] + generations[-1]["run_steps_left"] >= 4000 and generations[0]["seconds"] >= 0
    assert all(threading.current_thread() is threading.main_thread() for _ in events)

    class Enough(Exception):
        pass

    def stop(event):
        assert threading.current_thread() is threading.main_thread()
        if event["event"] == "generation":
            raise Enough

    with pytest.raises(Enough):
        foveate.train("cartpole-swingup-harder", config=short(tmp_path), runs=tmp_path, name="stopped", steps=10**7, callback=stop)
    resumed = []
    assert not (tmp_path / "stopped" / "report.json").exists()
    with pytest.raises(Enough):
        foveate.resume(tmp_path / "stopped", callback=lambda event: (resumed.append(event), stop(event)))
    assert resumed[0]["event"] == "resumes"
    capfd.readouterr()
    foveate.evaluate(episodes=2, max_steps=5)
    assert capfd.readouterr() == ("", ""), "in a pipe nothing is shown unless asked for"
    shown = []
    foveate.stress(variants="bar", episodes=1, max_steps=5, progress=True, callback=shown.append)
    assert "row 2 of 2: bar" in capfd.readouterr().err and [event["row"] for event in shown if event["event"] == "row"] == ["original", "bar"]
    foveate.watch(out=tmp_path / "a.gif", steps=3, progress=False, callback=shown.append)
    assert shown[-1]["event"] == "frame" and capfd.readouterr().err == ""
    with pytest.raises(foveate.errors.OptionError, match="seed is given twice"):
        foveate.train("car-racing", seed=1, set={"seed": 2})


def test_results_are_shown_in_a_notebook(tmp_path):
    report = foveate.evaluate(episodes=2, max_steps=5)
    page = report._repr_html_()
    assert page.startswith("<table>") and f"{report.mean:.3f}" in page and "2</td>" in page
    for name in ("a.png", "a.gif", "a.mp4"):
        film = foveate.watch(out=tmp_path / name, **({"at": 2} if name == "a.png" else {"steps": 2}))
        assert "max-width: 100%" in film._repr_html_()


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
    page, change = table._repr_html_(), rows[2]["change"]
    assert "<svg" in page and "bar" in str(table) and page.count("<tr>") == 4
    assert f"<td>hue:3</td><td>{rows[2]['mean']:.4g}</td><td>{change['difference']:+.4g}</td>" in page
    said = foveate.explain(
        policy, "car-racing", out=tmp_path / "report", episodes=2, decisions=3, max_steps=30, picture="fast",
        attention=lambda observation: observation[::24, ::24, 1].astype(np.float32) + 1,
    )
    assert (tmp_path / "report" / "index.html").stat().st_size > 10_000
    assert json.loads((tmp_path / "report" / "report.json").read_text())["weights"] == said.details["weights"]


def test_a_calibration_sets_answers_beside_the_truth():
    events = []
    done = foveate.calibration(episodes=2, workers=2, callback=events.append)
    assert done.cases == foveate.calibration(episodes=2, workers=1).cases
    assert {"case", "question", "expected", "given", "seed"} <= done.cases[0].keys()
    assert {row["question"] for row in done.cases} == {"moves", "path", "right", "moment"}
    assert {row["given"] for row in done.cases} == {"undecided"}, "two episodes decide nothing"
    assert done.summary["wrong"] == 0 and done.summary["asked"] == len(done.cases) == len(done.details["cases"])
    assert done.cases[0]["case"] in str(done)
    assert [event["job"] for event in events if event["event"] == "cost"] == ["calibration"]
    with pytest.raises(foveate.FoveateError, match="episodes = 0"):
        foveate.calibration(episodes=0)
    with pytest.raises(TypeError, match="seeds"):
        foveate.calibration(seed_count=2)


def test_a_world_may_be_given_as_an_environment():
    def policy(_):
        return [0.1, 0.2, 0.0]

    made = gymnasium.make("foveate/CarRacing-v3", picture="fast", max_episode_steps=40)
    for world in (made, "foveate/CarRacing-v3"):
        report = foveate.evaluate(policy, world, episodes=1, max_steps=50)
        assert list(report.lengths) == [40 if world is made else 50]
    with pytest.raises(foveate.FoveateError, match="picture"):
        foveate.evaluate(policy, made, picture="exact")
    # With a wrapper of Python's it is stepped as it is.
    seen = []
    grey = foveate.evaluate(lambda shown: seen.append(shown) or policy(shown), gymnasium.wrappers.GrayscaleObservation(made), episodes=1, max_steps=3)
    assert list(grey.lengths) == [3] and seen[0].ndim == 2
    with pytest.raises(foveate.FoveateError, match="by its name, not a GrayscaleObservation"):
        foveate.load("car-racing", gymnasium.wrappers.GrayscaleObservation(made))
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


def short(tmp_path):
    """A configuration of a training that takes a second."""
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
    return config


def test_films_and_training(tmp_path):
    film = foveate.watch(out=tmp_path / "a.png", at=10)
    assert film.file.read_bytes().startswith(b"\x89PNG") and "<img" in film._repr_html_()
    film = foveate.watch(out=tmp_path / "a.gif", steps=5)
    assert (film.frames, film.steps, film.ended) == (6, 5, False)
    run = foveate.train("cartpole-swingup-harder", config=short(tmp_path), runs=tmp_path, name="short", set={"seed": 3})
    assert run.finished and run.best.world == "cartpole-swingup-harder"
    history = run.history
    assert len(history["generation"]) > 1 and history["generation"].dtype == np.float64
    # A run stands for its folder.
    assert foveate.evaluate(run, episodes=2).weights == foveate.evaluate(run.folder, episodes=2).weights


def test_small_returns_have_three_digits():
    small = foveate.evaluate("door-key-5x5", episodes=2)
    assert f"{small.mean:.3f} ± {small.std:.3f} over" in str(small) and f"<b>{small.mean:.3f}</b>" in small._repr_html_()
    large = foveate.evaluate("random-actions", "cartpole-swingup-harder", episodes=2)
    digits = 1 if abs(large.returns).max() >= 10 else 3
    assert str(large).startswith(f"{large.mean:.{digits}f} ± ")


def test_the_command_is_there(capfd):
    from foveate import _native

    assert _native.command(["foveate", "list", "worlds"], None) == 0
    assert "car-racing" in capfd.readouterr().out
    assert _native.command(["foveate", "eval", "no-such-file"], None) != 0


@pytest.mark.parametrize("call, kind, said", [
    (lambda: foveate.train("car-racing", steps=0), ValueError, "0 training steps"),
    (lambda: foveate.train("car-racing", preset="no-such"), ValueError, "no-such"),
    (lambda: foveate.evaluate(draw_actions="yes"), TypeError, "^draw_actions: invalid type: string"),
    (lambda: foveate.evaluate(episodes=None), TypeError, "^episodes: invalid type: null"),
    (lambda: foveate.watch(size=(3, 4, 5)), Exception, "^size: "),
    (lambda: foveate.watch(picture=3), TypeError, "^picture: invalid type: integer `3`"),
    (lambda: foveate.evaluate(seeds=range(5, 5)), ValueError, "a range of at least one seed"),
    (lambda: foveate.evaluate(seeds=range(-3, 5)), ValueError, r"^seeds: .*write seeds=range\(0, 20\)"),
    (lambda: foveate.stress(variants=3), TypeError, "^variants: "),
])
def test_wrong_values_of_keywords_are_named(call, kind, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=said) as caught:
        call()
    assert "\n" not in str(caught.value) and " at line " not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_numbers_of_numpy_are_numbers():
    report = foveate.evaluate(episodes=np.int64(2), seed=np.uint8(3), max_steps=np.int32(4), draw_actions=np.bool_(False))
    assert list(report.lengths) == [4, 4] and report.details["seed"] == 3


def test_a_run_keeps_its_shifts(tmp_path):
    run = foveate.train("cartpole-swingup-harder", config=short(tmp_path), runs=tmp_path, name="shifted", shifts="sticky:1", steps=2000)
    assert tomllib.loads((run.folder / "config.toml").read_text())["env"]["shifts"] == ["sticky:1"]


def test_a_stress_test_of_an_agent_is_kept_in_a_folder(tmp_path):
    sizes = {"variants": "bar", "episodes": 1, "max_steps": 5, "out": tmp_path / "kept"}
    first, rows = foveate.stress(**sizes), []
    assert json.loads((tmp_path / "kept" / "table.json").read_text())["agents"] and (tmp_path / "kept" / "table.svg").exists()
    again = foveate.stress(**sizes, callback=rows.append)
    assert [row["returns"] for row in again.rows] == [row["returns"] for row in first.rows]
    assert not [event for event in rows if event["event"] == "episodes" and event["done"]]


def test_the_share_of_episodes_with_a_score():
    report = foveate.evaluate(episodes=3, max_steps=20, at_least=-1e9)
    assert report.details["at_least"]["episodes"] == 3 and report.details["at_least"]["share"] == 1
    middle = float(np.median(report.returns))
    assert foveate.evaluate(episodes=3, max_steps=20, at_least=middle).details["at_least"]["episodes"] >= 2
    assert "at_least" not in foveate.evaluate(episodes=1, max_steps=5).details
