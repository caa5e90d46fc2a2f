"""Worlds of Gymnasium run in the interpreter that imports the package, whatever is activated."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import foveate

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a script of Unix")

PLAY = """
import foveate
print(foveate.evaluate("random", "gym:CartPole-v1", trust=True, episodes=1, max_steps=3).lengths.tolist())
"""


def environment(**variables):
    """Nothing is activated."""
    kept = {name: value for name, value in os.environ.items() if name not in ("FOVEATE_PYTHON", "VIRTUAL_ENV", "PYTHONHOME")}
    return {**kept, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(foveate.__file__).parents[1]), **variables}


def run(program, **variables):
    done = subprocess.run(program, env=environment(**variables), capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def test_the_running_interpreter_is_the_default(tmp_path):
    assert run([sys.executable, "-c", PLAY]) == (0, "[3]\n", "")
    # Another environment that is active does not matter.
    assert run([sys.executable, "-c", PLAY], VIRTUAL_ENV=str(tmp_path)) == (0, "[3]\n", "")
    code, _, err = run([sys.executable, "-c", PLAY], FOVEATE_PYTHON="/nowhere/python")
    assert code == 1 and "FOVEATE_PYTHON: there is no /nowhere/python" in err, "the variable counts before it"


def test_so_it_is_for_the_command_by_its_path(tmp_path):
    script = tmp_path / "foveate"
    script.write_text(f"#!{sys.executable}\nfrom foveate._command import main\nmain()\n")
    script.chmod(0o755)
    code, out, err = run([script, "eval", "random", "--env", "gym:CartPole-v1", "--episodes", "1", "--max-steps", "3"])
    assert code == 0, err
    code, out, err = run([script, "doctor", "--json"])
    assert code == 0 and f'"python":"{sys.executable}"' in out.replace(" ", "") and '"the running Python"' in out, (out, err)


def test_mujoco_is_looked_for_in_the_running_environment(tmp_path):
    """An empty file stands for the library: opening it fails, and the message names it."""
    made = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--symlinks", made], check=True)
    folder = next((made / "lib").glob("python3*")) / "site-packages"
    (folder / "mujoco").mkdir()
    (folder / "mujoco" / "libmujoco.so.3.17.0").write_text("")
    (folder / "beside.pth").write_text("\n".join(path for path in sys.path if "site-packages" in path))
    script = "import foveate; foveate.envs.World('cheetah-run')"
    code, _, err = run([made / "bin" / "python", "-c", script], FOVEATE_MUJOCO="")
    assert code == 1 and str(folder / "mujoco") in err, err
