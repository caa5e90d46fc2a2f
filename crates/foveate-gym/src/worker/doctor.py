"""Says what is installed and which families of environments work; runs in place of the worker's host."""

import warnings

# Name, an id to try, what to install.
FAMILIES = [
    ("classic control", "CartPole-v1", "gymnasium"),
    ("Box2D (CarRacing, LunarLander)", "CarRacing-v3", '"gymnasium[box2d]>=1.2.3"'),
    ("Atari (pong)", "ALE/Pong-v5", "ale-py"),
    ("MiniGrid", "MiniGrid-DoorKey-5x5-v0", "minigrid"),
    ("MuJoCo", "HalfCheetah-v5", '"gymnasium[mujoco]"'),
    ("dm_control", "dm_control/cheetah-run-v0", '"shimmy[dm-control]" mujoco==3.17.0 packaging'),
    ("ViZDoom (take-cover)", "VizdoomTakeCover-v1", "vizdoom"),
    ("PyBullet (ant)", "AntBulletEnv-v0", "pybullet pybullet_envs_gymnasium"),
]


class Doctor:
    """Its `hello` holds versions, and for each family whether it works or why not."""

    def __init__(self, control, memory, request):
        warnings.simplefilter("ignore")
        other_folder()
        lines = []
        self.hello = {
            "python": "%d.%d.%d" % sys.version_info[:3],
            "executable": sys.executable,
            "gymnasium": None,
            "numpy": None,
            "families": lines,
        }
        for name in ("numpy", "gymnasium"):
            try:
                self.hello[name] = importlib.import_module(name).__version__
            except Exception:
                pass
        gymnasium, _ = toolbox()
        for name, id, package in FAMILIES:
            try:
                env = make(gymnasium, id, {}, True)
                env.reset(seed=0)
                env.step(env.action_space.sample())
                if getattr(env, "render_mode", None) == "rgb_array":
                    env.render()
                MADE.pop().close()
                lines.append([name, id, True, ""])
            except Exception as error:
                words = one_line(error) or type(error).__name__
                if "pip install" not in words:
                    words = "%s; install it with: %s" % (words, pip(package))
                elif package not in words:
                    words = "not installed; install it with: %s" % pip(package)
                lines.append([name, id, False, words])

    def serve(self):
        pass


JOBS["doctor"] = Doctor
