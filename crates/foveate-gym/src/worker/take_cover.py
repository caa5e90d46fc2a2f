"""DoomTakeCover as AttentionAgent was published with; runs in the worker, before its host makes the environment.

The settings are those of the published environment, said in ViZDoom's words of today. Once the game runs, nothing of it
has a name in the file system: its folder is removed and its shared memory unlinked while both processes have it open.
Until then it is for the keeper to remove them should this process end.
"""

OLDEST_VIZDOOM = (1, 3)
# Steps of an episode, one tic each, after the tics that it takes the monsters to wake up.
TIMEOUT, BEGINNING = 2100, 14
NOTHING, RIGHT, LEFT = [0, 0], [1, 0], [0, 1]

gymnasium, numpy = toolbox()
try:
    import vizdoom
except ImportError as error:
    raise Refusal("vizdoom cannot be imported (%s); install it with: %s" % (error, pip("vizdoom")))
if version(vizdoom.__version__) < OLDEST_VIZDOOM:
    raise Refusal("vizdoom %s is too old; install a newer one with: %s" % (vizdoom.__version__, pip('--upgrade "vizdoom>=1.3"')))


class TakeCover(gymnasium.Env):
    """Choices: do nothing, right, left. Every step is worth 1, that of death too."""

    metadata = {"render_modes": [], "render_fps": 35}

    def __init__(self, width=640, height=480, wad=None):
        self.observation_space = gymnasium.spaces.Box(0, 255, (height, width, 3), numpy.uint8)
        self.action_space = gymnasium.spaces.Discrete(3)
        self.shape = (height, width, 3)
        self.game = vizdoom.DoomGame()
        self.engine = None
        self.expert = Expert(numpy)
        self.begin(width, height, wad)

    def begin(self, width, height, wad):
        game = self.game
        game.set_doom_scenario_path(self.scenario(wad))
        game.set_doom_map("map01")
        game.set_doom_skill(4)  # Ultra-Violence
        game.set_screen_resolution(getattr(vizdoom.ScreenResolution, "RES_%dX%d" % (width, height)))
        game.set_screen_format(vizdoom.ScreenFormat.RGB24)
        game.set_available_buttons([vizdoom.Button.MOVE_RIGHT, vizdoom.Button.MOVE_LEFT])
        game.set_living_reward(1)
        game.set_death_penalty(0)
        game.set_episode_start_time(BEGINNING)
        # The time limit is ours: ViZDoom shows nothing of the step in which its own ends an episode.
        game.set_episode_timeout(0)
        game.set_render_hud(True)
        game.set_render_crosshair(False)
        game.set_render_weapon(False)
        game.set_render_decals(False)
        game.set_render_particles(False)
        game.set_mode(vizdoom.Mode.PLAYER)
        game.set_window_visible(False)
        game.set_sound_enabled(False)
        game.set_objects_info_enabled(True)  # for the expert

        # What has a name until the engine has begun.
        folder = tempfile.mkdtemp(prefix="files-")
        os.chdir(folder)  # where the engine writes its settings
        game.init()
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)
        identity = game.get_instance_id()
        self.screen = self.open_screen(identity)
        if os.path.isdir(SHARED):
            for name in os.listdir(SHARED):
                if name.startswith("ViZDoom") and name.endswith(identity):
                    os.unlink(os.path.join(SHARED, name))
            self.engine = engine(identity)

    def scenario(self, wad):
        """The path of a WAD: that of the package, or of these bytes in memory without a name."""
        if wad is None:
            return os.path.join(vizdoom.scenarios_path, "take_cover.wad")
        wad = bytes.fromhex(wad)
        if hasattr(os, "memfd_create"):
            # Inherited by the engine, which opens it by its number.
            file = os.memfd_create("take_cover.wad", 0)
            path = "/proc/self/fd/%d" % file
        else:
            file, path = tempfile.mkstemp(suffix=".wad")
        os.write(file, wad)
        return path

    def open_screen(self, identity):
        """The engine's screen, which it draws also in the step of death, when ViZDoom shows nothing any more."""
        self.game.new_episode()
        first = self.game.get_state().screen_buffer
        self.seen = first
        try:
            with open("%s/ViZDoomSM%s" % (SHARED, identity), "rb") as file:
                shared = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        except OSError:
            return None
        at = shared.find(first.tobytes())
        if at < 0:
            return None
        return numpy.frombuffer(shared, numpy.uint8, first.size, at).reshape(first.shape)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.game.set_seed(int(self.np_random.integers(2**31)) if seed is None else seed)
        self.game.new_episode()
        self.steps = 0
        self.state = self.game.get_state()
        self.seen = self.state.screen_buffer
        return self.seen, self.info()

    def step(self, choice):
        game = self.game
        reward = game.make_action((NOTHING, RIGHT, LEFT)[choice], 1)
        self.steps += 1
        self.state = state = game.get_state()
        if state is not None:
            self.seen = state.screen_buffer
        elif self.screen is not None:
            self.seen = self.screen.copy()
        return self.seen, reward, game.is_episode_finished(), self.steps >= TIMEOUT, self.info()

    def foveate_expert(self):
        """What one would do now who sees the whole state."""
        return self.expert.advise(*self.all_that_counts())

    def foveate_costs(self):
        """What each choice would cost now."""
        return self.expert.costs(*self.all_that_counts())

    def all_that_counts(self):
        """The player's place and speed, and the fireballs."""
        value, names = self.game.get_game_variable, vizdoom.GameVariable
        balls = [
            (ball.position_x, ball.position_y, ball.velocity_x, ball.velocity_y)
            for ball in (self.state.objects if self.state else ())
            if flies(ball)
        ]
        where = value(names.POSITION_X), value(names.POSITION_Y), value(names.VELOCITY_Y)
        return (*where, numpy.array(balls, float).reshape(-1, 4))

    def foveate_gaze(self):
        """Where the fireballs in flight are on the screen."""
        value, names = self.game.get_game_variable, vizdoom.GameVariable
        eye = value(names.POSITION_X), value(names.POSITION_Y), value(names.CAMERA_POSITION_Z)
        flying = [ball for ball in (self.state.objects if self.state else ()) if flies(ball)]
        return gaze(eye, [(ball.position_x, ball.position_y, ball.position_z) for ball in flying])

    def info(self):
        value, names = self.game.get_game_variable, vizdoom.GameVariable
        return {
            "tic": self.game.get_episode_time(),
            "health": value(names.HEALTH),
            "x": value(names.POSITION_X),
            "y": value(names.POSITION_Y),
        }


def flies(thing):
    """Whether it is a fireball that has not burst."""
    return thing.name == FIREBALL and bool(thing.velocity_x or thing.velocity_y)


def engine(identity):
    """The number of the engine's process."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/cmdline" % name, "rb") as file:
                    if identity.encode() in file.read():
                        return int(name)
            except OSError:
                pass
    return None


own_seconds = seconds


def seconds():
    """CPU time of this process, and of the engine that it has running."""
    total = own_seconds()
    for game in GAMES:
        try:
            with open("/proc/%s/stat" % game.engine, "rb") as file:
                user, system = file.read().rsplit(b")", 1)[1].split()[11:13]
            total += (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
        except OSError:
            pass
    return total


GAMES = []


def begin_game(**args):
    game = TakeCover(**args)
    GAMES.append(game)
    return game


gymnasium.register(id="FoveateTakeCover-v0", entry_point=begin_game)
