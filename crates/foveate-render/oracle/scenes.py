"""Scenes of the DeepMind Control suite, with the pictures that MuJoCo's OpenGL renderer makes of them.

Usage: scenes.py MODE STATES TASK... -- SIZE...

* MODE: `default`, or `distracting` for another sky, other colours, a moved camera and transparent floors, or `timed` for the
  CPU time of the pictures, or letters of what to leave out: `s` shadows, `r` reflections, `a` anti-aliasing.
* TASK: `domain/task`; SIZE: `HEIGHTxWIDTH`.

Little-endian f64 throughout; pictures and textures are bytes. Protocol, for each task: 1; the side of the sky's faces and their
bytes; the number of states; for each: the scene, as `send_scene` writes it; for each size: its height, its width, the CPU
seconds of the picture, its bytes. At the end: 0.
"""

import os
import sys
import time

# Standard output belongs to the test alone; whatever a library prints goes to standard error.
pipe = os.fdopen(os.dup(1), "wb", buffering=1 << 20)
os.dup2(2, 1)
os.environ.setdefault("MUJOCO_GL", "egl")
os.environ.setdefault("LP_NUM_THREADS", "1")  # one thread of software OpenGL, whose CPU time is the process's

import mujoco  # noqa: E402
import numpy as np  # noqa: E402
from dm_control import suite  # noqa: E402

MODES = {"default": "", "timed": "", "distracting": ""}


def numbers(*values):
    """Sends numbers, or arrays of numbers."""
    for value in values:
        pipe.write(np.asarray(value, dtype="<f8").tobytes())


def send_scene(model, scene):
    """Sends a scene: camera, lights, geoms, shadow volume."""
    left, right = scene.camera[0], scene.camera[1]
    numbers((left.pos + right.pos) / 2, left.forward, left.up)
    numbers(left.frustum_top / left.frustum_near, left.frustum_near, left.frustum_far)
    numbers(model.vis.map.shadowclip * model.stat.extent, model.vis.map.shadowscale)
    numbers(scene.nlight)
    for light in scene.lights[: scene.nlight]:
        numbers(light.type, light.pos, light.dir, light.ambient, light.diffuse, light.specular, light.attenuation)
        numbers(light.cutoff, light.exponent, light.castshadow, light.headlight)
    numbers(scene.ngeom)
    for geom in scene.geoms[: scene.ngeom]:
        numbers(geom.type, geom.size, geom.pos, geom.mat, geom.rgba)
        numbers(geom.emission, geom.specular, geom.shininess, geom.reflectance, geom.transparent, geom.matid)
        textured = geom.matid >= 0 and model.mat_texid[geom.matid].max() >= 0
        numbers(textured)
        if textured:
            numbers(model.mat_texrepeat[geom.matid], model.mat_texuniform[geom.matid])


def sky_of(model):
    """The number of the sky's texture, its side and its bytes."""
    sky = int(np.flatnonzero(model.tex_type == mujoco.mjtTexture.mjTEXTURE_SKYBOX)[0])
    side, start = int(model.tex_width[sky]), int(model.tex_adr[sky])
    return sky, side, slice(start, start + 6 * side * side * 3)


def distract(physics, generator, domain):
    """Changes colours, the camera and the floor, as the Distracting Control Suite does."""
    model = physics.model
    rgba = model.mat_rgba
    rgba[:, :3] = np.clip(rgba[:, :3] + generator.uniform(-0.2, 0.2, (len(rgba), 3)), 0, 1)
    grid = model.name2id("grid", "material")
    rgba[grid, 3] = {"reacher": 0.0, "cheetah": 1.0, "walker": 1.0}.get(domain, 0.3)
    camera = model.cam_pos[0]
    camera += generator.uniform(-0.1, 0.1, 3) * np.linalg.norm(camera)
    roll = generator.uniform(-0.2, 0.2)
    product = np.zeros(4)
    mujoco.mju_mulQuat(product, model.cam_quat[0], np.array([np.cos(roll / 2), 0, 0, np.sin(roll / 2)]))
    model.cam_quat[0] = product


def picture_for_sky(generator, side):
    """A smooth picture of random colours, with sharp rectangles in it."""
    y, x = np.mgrid[0:side, 0:side] / side
    picture = np.zeros((side, side, 3))
    for _ in range(12):
        fx, fy = generator.uniform(-9, 9, 2)
        wave = np.sin(2 * np.pi * (fx * x + fy * y + generator.uniform()))
        picture += wave[..., None] * generator.uniform(0, 18, 3)
    picture += 128
    for _ in range(40):
        top, left = generator.integers(0, side, 2)
        height, width = generator.integers(4, side // 5, 2)
        picture[top : top + height, left : left + width] = generator.uniform(0, 255, 3)
    return np.clip(picture, 0, 255).astype(np.uint8)


def upload(physics, texture):
    """Sends a changed texture to OpenGL."""
    physics.render(8, 8, camera_id=0)  # makes the context
    with physics.contexts.gl.make_current() as context:
        context.call(mujoco.mjr_uploadTexture, physics.model.ptr, physics.contexts.mujoco.ptr, texture)


def run(mode, states, name, sizes):
    """Sends the states of one task."""
    domain, task = name.split("/")
    without = MODES.get(mode, mode)
    env = suite.load(domain, task, task_kwargs={"random": 17})
    generator = np.random.default_rng(23)
    model = env.physics.model
    spec = env.action_spec()
    if "a" in without:
        model.vis.quality.offsamples = 0
    sky, side, part = sky_of(model)
    flags = {}
    if "s" in without:
        flags["shadow"] = False
    if "r" in without:
        flags["reflection"] = False
    env.reset()
    if mode == "distracting":
        distract(env.physics, generator, domain)
        model.tex_data[part] = np.tile(picture_for_sky(generator, side).reshape(-1), 6)
        upload(env.physics, sky)
    numbers(1, side)
    pipe.write(np.asarray(model.tex_data[part], dtype=np.uint8).tobytes())
    numbers(states)
    for state in range(states):
        if state % 10 == 0:
            env.reset()
        for _ in range(7):
            step = env.step(generator.uniform(spec.minimum, spec.maximum))
            if step.last():
                env.reset()
        # The scene is gone after the picture.
        callback = lambda _, scene: send_scene(model.ptr, scene.ptr)  # noqa: E731
        env.physics.render(8, 8, camera_id=0, scene_callback=callback, render_flag_overrides=flags)
        for height, width in sizes:
            start = time.process_time()
            picture = env.physics.render(height, width, camera_id=0, render_flag_overrides=flags)
            seconds = time.process_time() - start
            numbers(height, width, seconds)
            pipe.write(np.ascontiguousarray(picture).tobytes())


def main():
    """Runs what the command line asks for."""
    mode, states, *rest = sys.argv[1:]
    split = rest.index("--")
    sizes = [tuple(int(n) for n in size.split("x")) for size in rest[split + 1 :]]
    for name in rest[:split]:
        run(mode, int(states), name, sizes)
    numbers(0)
    pipe.flush()


if sys.byteorder != "little":
    sys.exit("the script writes little-endian numbers only")
main()
