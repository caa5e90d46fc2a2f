# Answers questions to an ONNX model in place of the worker's host. Its state goes with every question and comes back with the answer,
# so that one worker serves all copies of an agent.


import stat


class Model:
    """The model, and the parent's questions. `env` of the request makes the environment whose observations the model takes; without
    it the model takes what the world shows."""

    def __init__(self, control, memory, request):
        try:
            import onnxruntime
            import numpy
        except ImportError as error:
            raise Refusal("onnxruntime cannot be imported (%s); install it with: %s" % (error, pip("onnxruntime")))
        self.np, self.control, self.original = numpy, control, None
        env = request.get("env")
        if env:
            if env["path"]:
                sys.path.insert(0, os.path.abspath(env["path"]))
            if env["more"]:
                exec(compile(env["more"], "<foveate worker>", "exec"), globals())
            gymnasium, _ = toolbox()
            made = make(gymnasium, env["id"], env["args"], True, env["wrapper"])
            eyes = Eyes(gymnasium, numpy, made.observation_space, env["image"], None, True)
            self.original = Original(gymnasium, numpy, made.observation_space, made.action_space, eyes, Refusal)
            made.close()
            MADE.clear()
        self.bound(request["megabytes"])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        try:
            # A pipe without a writer does not hold it up.
            with open(os.open(request["model"], os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
                about = os.fstat(file.fileno())
                if not stat.S_ISREG(about.st_mode):
                    raise Refusal("it is no regular file")
                # One byte more tells of a file that grows.
                data = file.read(min(about.st_size, request["most_bytes"]) + 1)
        except (OSError, MemoryError) as error:
            raise Refusal("it cannot be read: %s" % one_line(getattr(error, "strerror", None) or "too little memory"))
        if len(data) > request["most_bytes"]:
            raise Refusal("it has more than %d MB" % (request["most_bytes"] >> 20))
        try:
            # Of bytes, so that no other file is read with it, and without libraries of custom operators.
            session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise Refusal("onnxruntime does not read it: %s" % one_line(error)[:300])
        del data
        self.model = OnnxModel(session, numpy, Refusal)
        size = 0
        self.parts = []
        for name, kind, shape in request["parts"]:
            count = int(numpy.prod(shape))
            self.parts.append((name, numpy.dtype(kind), shape, size, count))
            size += count * numpy.dtype(kind).itemsize
        os.ftruncate(memory, max(size, 1))
        self.memory = mmap.mmap(memory, max(size, 1))
        self.most_state = request["most_state"]
        self.hello = {"protocol": PROTOCOL, "states": len(self.model.states)}

    @staticmethod
    def bound(more):
        """Lets the process use so many megabytes more: a model may ask for any number."""
        try:
            with open("/proc/self/statm") as file:
                now = int(file.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (now + (more << 20), resource.getrlimit(resource.RLIMIT_AS)[1]))
        except (OSError, ValueError):
            # No Linux, or a lower limit already.
            pass

    def shown(self):
        np = self.np
        arrays = {
            name: np.frombuffer(self.memory, kind, count, at).reshape(shape).copy() for name, kind, shape, at, count in self.parts
        }
        seen = arrays[""] if len(arrays) == 1 and "" in arrays else arrays
        return seen if self.original is None else self.original.observation(seen)

    def answer(self, state):
        np, model = self.np, self.model
        seen = self.shown()
        model.state = model.zeros(model.feed(seen)[2])
        size = sum(array.nbytes for array in model.state.values())
        if size > self.most_state or len(state) not in (0, size):
            raise Refusal("its state has %d bytes; at most %d are possible" % (max(size, len(state)), self.most_state))
        at = 0
        for name, array in model.state.items() if state else ():
            model.state[name] = np.frombuffer(state, array.dtype, array.size, at).reshape(array.shape)
            at += array.nbytes
        shapes = {name: (array.shape, array.dtype) for name, array in model.state.items()}
        try:
            action = model(seen)
        except Refusal:
            raise
        except Exception as error:
            raise Refusal("onnxruntime: %s" % one_line(error)[:300])
        if self.original is not None:
            action = self.original.action(action)
        action = np.asarray(action)
        if action.dtype.kind not in "fiub":
            raise Refusal("its action is %s, no numbers" % described(action))
        for name, array in model.state.items():
            if (array.shape, array.dtype) != shapes[name]:
                raise Refusal("its state %s was %s and is %s" % (name, shapes[name][0], array.shape))
        # A choice by its number; scores and numbers by themselves.
        choice = action.size == 1 and action.dtype.kind in "iu"
        numbers = np.ascontiguousarray(action.reshape(-1), "<f8")
        head = struct.pack("<II", 1 if choice else 0, numbers.size)
        return head + numbers.tobytes() + b"".join(np.ascontiguousarray(array).tobytes() for array in model.state.values())

    def serve(self):
        """Answers questions until the parent hangs up."""
        while True:
            head = self.control.recv(16, socket.MSG_WAITALL)
            if len(head) < 16:
                return
            (length,) = struct.unpack_from("<I", head, 8)
            state = read(length) if length else b""
            try:
                data = self.answer(state)
                self.control.sendall(REPLY.pack(FINE, 0, 0, len(data), seconds()) + data)
            except Refusal as error:
                text = str(error).encode()
                self.control.sendall(REPLY.pack(REFUSED, 0, 0, len(text), 0.0) + text)
            except BaseException as error:
                text = story(error).encode()
                self.control.sendall(REPLY.pack(RAISED, 0, 0, len(text), 0.0) + text)


JOBS["model"] = Model
