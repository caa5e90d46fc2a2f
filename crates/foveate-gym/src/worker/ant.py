"""AntBulletEnv-v0 as AttentionNeuron was published with; runs in the worker, before its host makes the environment.

The simulator is PyBullet, the task that of pybullet_envs_gymnasium. The package builds its scene in the first reset and
restores it in all others, with small differences between the two; the scene is built here before the first episode, so
that an episode is determined by its seed.
"""

# Size of the picture for people, in pixels, and the camera: metres from the torso, degrees.
WIDTH, HEIGHT = 480, 360
DISTANCE, YAW, PITCH, FIELD_OF_VIEW = 2.6, -20, -22, 60

gymnasium, numpy = toolbox()
try:
    import pybullet
    from pybullet_envs_gymnasium.gym_locomotion_envs import AntBulletEnv
except ImportError as error:
    raise Refusal(
        "PyBullet's environments cannot be imported (%s); install them with: %s"
        % (one_line(error), pip("pybullet pybullet_envs_gymnasium"))
    )


class Ant(gymnasium.Env):
    """28 numbers are seen, 8 torques given. `reward` is that of the evaluation, the sum of all terms, or that of the
    published training: the sum without the term for being alive, at least 0."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 60}
    TERMS = ("alive", "progress", "electricity", "joints_at_limit", "feet_collision")

    def __init__(self, reward="evaluation", render_mode=None):
        self.render_mode, self.training = render_mode, reward == "training"
        self.walker = AntBulletEnv()
        self.observation_space, self.action_space = self.walker.observation_space, self.walker.action_space
        self.walker.reset(seed=0)
        self.terms = {}

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        observation, _ = self.walker.reset(seed=seed)
        self.terms = {}
        return observation, self.info()

    def step(self, action):
        observation, reward, terminated, truncated, _ = self.walker.step(action)
        self.terms = dict(zip(self.TERMS, self.walker.rewards))
        if self.training:
            reward = max(0.0, sum(self.walker.rewards[1:]))
        return observation, reward, terminated, truncated, self.info()

    def info(self):
        x, y, z = self.walker.robot.body_real_xyz
        return dict(self.terms, x=float(x), y=float(y), z=float(z))

    def render(self):
        engine = self.walker._p
        view = engine.computeViewMatrixFromYawPitchRoll(
            cameraTargetPosition=self.walker.robot.body_real_xyz,
            distance=DISTANCE,
            yaw=YAW,
            pitch=PITCH,
            roll=0,
            upAxisIndex=2,
        )
        lens = engine.computeProjectionMatrixFOV(
            fov=FIELD_OF_VIEW, aspect=WIDTH / HEIGHT, nearVal=0.1, farVal=100.0
        )
        # Drawn by PyBullet itself, without a display and without graphics hardware.
        drawn = engine.getCameraImage(
            width=WIDTH, height=HEIGHT, viewMatrix=view, projectionMatrix=lens, renderer=pybullet.ER_TINY_RENDERER
        )
        return numpy.reshape(numpy.asarray(drawn[2], numpy.uint8), (HEIGHT, WIDTH, 4))[:, :, :3]

    def close(self):
        self.walker.close()


gymnasium.register(id="FoveateAnt-v0", entry_point=Ant, max_episode_steps=1000)
