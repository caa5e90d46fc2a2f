"""What is no file is an exception of one line within seconds, wherever a file is taken."""

import os
import socket
import subprocess
import sys

import pytest

#: Calls with the place of a file, `@`.
CALLS = [
    "load(@)",
    "evaluate(@)",
    "stress(@)",
    "explain(@)",
    "watch(@, out='a.png')",
    "resume(@)",
    "train('car-racing', config=@)",
    "train('car-racing', set={'recipe.init.weights': @})",
    "World('car-racing', variant='video:folder=' + @)",
    "World('car-racing', shifts=['background-image:5:file=' + @])",
    "World('digits', options={'data': @})",
]

PROGRAM = """
import sys
import foveate
from foveate.envs import World
call, kind = sys.argv[1:]
try:
    eval(call.replace("@", repr(kind)), {**vars(foveate), "World": World})
except (foveate.FoveateError, OSError) as error:
    print("one line:", len(str(error).splitlines()) == 1, error)
"""


@pytest.mark.parametrize("kind", ["fifo", "/dev/zero", "folder", "socket"])
def test_what_is_no_file_is_one_line(kind, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(tmp_path)
        listener.bind("socket")
        os.chdir(here)
    for call in CALLS:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, call, kind], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0 and done.stdout.startswith("one line: True"), (call, kind, done.stdout, done.stderr)
