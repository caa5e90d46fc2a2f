"""With a game, a seed, frames of doing nothing, the probability that actions stick, and actions: an episode of ale-py's own
environment, one line of reward, end and the screen's digest for each action, of which each lasts four frames. With `games` and
names: loads every game, and says how large its screen is and how many actions it has."""

import hashlib
import sys

import ale_py
import gymnasium

gymnasium.register_envs(ale_py)


def games(names):
    for name in names:
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        ale = ale_py.ALEInterface()
        ale.loadROM(ale_py.roms.get_rom_path(name))
        print(name, *ale.getScreenDims(), len(ale.getMinimalActionSet()))


def show(screen, reward, over):
    print(repr(float(reward)), int(over), hashlib.sha256(screen.tobytes()).hexdigest())


def episode(game, seed, idle, sticky, choices):
    env = gymnasium.make(
        "ALE/%s-v5" % game, frameskip=1, repeat_action_probability=float(sticky), disable_env_checker=True
    )
    screen, _ = env.reset(seed=int(seed))
    for _ in range(int(idle)):
        screen, _, _, _, _ = env.step(0)
    show(screen, 0, False)
    for choice in choices:
        total = 0.0
        for _ in range(4):
            screen, reward, terminated, truncated, _ = env.step(int(choice))
            assert not truncated
            total += reward
            if terminated:
                break
        show(screen, total, terminated)
        if terminated:
            break


if sys.argv[1] == "games":
    games(sys.argv[2:])
else:
    episode(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:])
