"""MiniGrid's environments with actions that often solve them: views, rewards, ends, and pictures now and then."""

from collections import deque

import gymnasium
import minigrid  # noqa: F401
import numpy as np
from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX
from minigrid.wrappers import OneHotPartialObsWrapper

import wire

LEFT, RIGHT, FORWARD, PICKUP, DROP, TOGGLE, DONE = range(7)
AHEAD = [(1, 0), (0, 1), (-1, 0), (0, -1)]
WORLDS = {
    "door-key-5x5": ("MiniGrid-DoorKey-5x5-v0", 50_000),
    "door-key-6x6": ("MiniGrid-DoorKey-6x6-v0", 50_000),
    "door-key-8x8": ("MiniGrid-DoorKey-8x8-v0", 50_000),
    "door-key-16x16": ("MiniGrid-DoorKey-16x16-v0", 50_000),
    "empty-5x5": ("MiniGrid-Empty-5x5-v0", 3_000),
    "empty-random-5x5": ("MiniGrid-Empty-Random-5x5-v0", 3_000),
    "empty-8x8": ("MiniGrid-Empty-8x8-v0", 3_000),
    "empty-16x16": ("MiniGrid-Empty-16x16-v0", 3_000),
    "four-rooms": ("MiniGrid-FourRooms-v0", 5_000),
    "lava-crossing-9x9-1": ("MiniGrid-LavaCrossingS9N1-v0", 5_000),
    "lava-crossing-9x9-2": ("MiniGrid-LavaCrossingS9N2-v0", 5_000),
    "lava-crossing-9x9-3": ("MiniGrid-LavaCrossingS9N3-v0", 5_000),
    "lava-crossing-11x11-5": ("MiniGrid-LavaCrossingS11N5-v0", 5_000),
    "simple-crossing-9x9-1": ("MiniGrid-SimpleCrossingS9N1-v0", 5_000),
}


def find(env, wanted):
    for x in range(env.width):
        for y in range(env.height):
            cell = env.grid.get(x, y)
            if cell is not None and cell.type == wanted:
                return (x, y)
    return None


def towards(env, target):
    """The first action of a shortest way to stand before `target` and look at it; None if there is none."""
    start = (tuple(int(c) for c in env.agent_pos), int(env.agent_dir))
    came = {start: None}
    queue = deque([start])
    while queue:
        state = queue.popleft()
        (x, y), d = state
        front = (x + AHEAD[d][0], y + AHEAD[d][1])
        if front == target:
            first = None
            while came[state] is not None:
                state, first = came[state]
            return "there" if first is None else first
        steps = [(LEFT, ((x, y), (d - 1) % 4)), (RIGHT, ((x, y), (d + 1) % 4))]
        cell = env.grid.get(*front)
        if cell is None or (cell.type == "door" and cell.is_open):
            steps.append((FORWARD, (front, d)))
        for action, state_after in steps:
            if state_after not in came:
                came[state_after] = (state, action)
                queue.append(state_after)
    return None


def plan(env):
    """The next action of a way to the goal."""
    door = find(env, "door")
    goal = find(env, "goal")
    if door is not None and not env.grid.get(*door).is_open:
        if env.carrying is None:
            target, use = find(env, "key"), PICKUP
        else:
            target, use = door, TOGGLE
    else:
        target, use = goal, FORWARD
    way = None if target is None else towards(env, target)
    return use if way == "there" else way


def see(env, image):
    wire.raw(image.astype(np.uint8).tobytes())


def whole(env):
    grid = env.grid.encode()
    x, y = env.agent_pos
    grid[x][y] = [OBJECT_TO_IDX["agent"], COLOR_TO_IDX["red"], env.agent_dir]
    return grid


def pictures(env, observation):
    bits = OneHotPartialObsWrapper(outer).observation(dict(observation))["image"]
    see(env, bits)
    see(env, whole(env))
    see(env, env.get_frame(tile_size=8, agent_pov=True))
    see(env, env.get_frame(tile_size=8, highlight=True))
    see(env, env.get_frame(tile_size=13, highlight=True))


for name, (real, transitions) in WORLDS.items():
    outer = gymnasium.make(real, disable_env_checker=True)
    env = outer.unwrapped
    draws = np.random.default_rng(5)
    wire.numbers(1)
    wire.text(name)
    seed, done = 0, 0
    while done < transitions:
        # Every third episode goes on in the stream of the one before.
        given = None if seed % 3 == 2 else seed
        wire.numbers(1, -1 if given is None else given)
        observation, _ = env.reset(seed=given)
        seed += 1
        see(env, observation["image"])
        # The search for a way is most of the time that this script takes.
        careful = draws.random() if seed % 4 == 0 else 0.0
        while True:
            action = plan(env) if draws.random() < careful else None
            if action is None:
                action = int(draws.integers(7))
            observation, reward, ended, stopped, _ = env.step(action)
            done += 1
            shown = done % 101 == 0
            wire.numbers(action, reward, ended, stopped, shown)
            see(env, observation["image"])
            if shown:
                pictures(env, observation)
            if ended or stopped:
                wire.numbers(1)
                break
            # Long wanderings in large worlds are cut short.
            if env.step_count > 300:
                wire.numbers(1)
                break
            wire.numbers(0)
    wire.numbers(0)
wire.numbers(0)
wire.done()
