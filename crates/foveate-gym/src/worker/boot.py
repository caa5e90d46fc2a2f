import sys
# `python -c` looks for modules in the current folder first: a numpy.py that lies there must not run.
sys.path[:] = [folder for folder in sys.path if folder]
import os, socket, struct
control = socket.socket(fileno=os.dup(0))
def read(count):
    data = b""
    while len(data) < count:
        more = control.recv(count - len(data))
        if not more:
            os._exit(0)
        data += more
    return data
source = read(struct.unpack("<I", read(4))[0]).decode()
exec(compile(source, "<foveate worker>", "exec"), {"control": control, "read": read, "__name__": "foveate_worker"})
