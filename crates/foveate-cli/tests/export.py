"""Asks an exported model what an agent was asked, and prints the largest differences as JSON.

    export.py onnx MODEL RECORD
    export.py torch FOLDER RECORD BACK

The second also writes the weights of the module to BACK. RECORD is a folder with record.json and what it names, as tests/suite/export.rs writes it.
"""

import json
import sys
from pathlib import Path

import numpy as np


class Onnx:
    """A model in ONNX Runtime, one decision after the other."""

    def __init__(self, path, record):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options)
        self.names = [output.name for output in self.session.get_outputs()]
        inputs = self.session.get_inputs()
        states = [port for port in inputs if f"next_{port.name}" in self.names]
        self.seen = next(port.name for port in inputs if port.name in ("observation", "image"))
        sizes = {"sensors": record["shape"][0]}
        self.first = {
            port.name: np.zeros([sizes.get(size, size) for size in port.shape], np.float32) for port in states
        }
        self.told = any(port.name == "reward" for port in inputs)
        for name, at in record["first"].items():
            self.first[name][at] = 1

    def begin(self):
        self.state = dict(self.first)

    def acted(self, before):
        self.state["before"] = before

    def decide(self, observation, reward, choice):
        asked = {self.seen: observation, **self.state}
        if self.told:
            asked["reward"] = np.array([reward], np.float32)
            asked["last_choice"] = np.array([choice], np.int64)
        answer = dict(zip(self.names, self.session.run(None, asked), strict=True))
        self.state = {name: answer[f"next_{name}"] for name in self.state}
        return answer


class Torch:
    """A module in the folder of an export, which imports nothing of Foveate."""

    def __init__(self, path, _record):
        import torch

        torch.set_num_threads(1)
        folder = Path(path)
        sys.path.insert(0, path)
        (source,) = folder.glob("*.py")
        module = __import__(source.stem)
        assert "foveate" not in sys.modules
        about, _ = module.read_safetensors(folder / "weights.safetensors")
        agents = [value for value in vars(module).values() if getattr(value, "name", None) == about["agent"]]
        self.torch, self.agent = torch, agents[-1].load(folder / "weights.safetensors")
        self.agent.load_state_dict(self.agent.state_dict())
        self.agent.save(sys.argv[4])

    def begin(self):
        self.state = None

    def acted(self, before):
        self.state["before"] = self.torch.from_numpy(before).unsqueeze(0)

    def decide(self, observation, reward, choice):
        torch = self.torch
        if self.state is not None and "reward" in self.state:
            self.state |= {"reward": torch.tensor([reward]), "choice": torch.tensor([choice])}
        with torch.no_grad():
            seen = torch.from_numpy(observation.copy()).unsqueeze(0)
            action, attention, self.state = self.agent(seen, self.state)
            answer = {"action": action[0].numpy(), "attention": attention[0].numpy()}
            if hasattr(self.agent, "look"):
                answer["selected"] = self.agent.look(seen)[1][0].numpy()
            if hasattr(self.agent, "value_of") and self.agent.config["critic"]:
                answer["value"] = self.agent.value_of(seen)[0].numpy()
        return answer


def main():
    kind, path, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    record = json.loads((folder / "record.json").read_text())
    read = lambda name, kind: np.fromfile(folder / name, kind).reshape(len(record["starts"]), -1)  # noqa: E731
    observations = read("observations", record["kind"])
    attention, actions, selected = read("attention", "<f4"), read("actions", "<f4"), read("selected", "<u4")
    model = {"onnx": Onnx, "torch": Torch}[kind](path, record)
    worst = {"steps": len(observations), "attention": 0.0, "action": 0.0, "value": 0.0, "ties": 0, "choices": 0}
    differs = False
    for step, start in enumerate(record["starts"]):
        if start:
            model.begin()
            differs = False
        elif record["bounds"]:
            # The agent is told what was really done.
            low, high = np.array(record["bounds"]).T
            model.acted(((2 * actions[step - 1] - low - high) / (high - low)).astype(np.float32))
        seen = observations[step].reshape(record["shape"])
        answer = model.decide(seen, record["rewards"][step], record["choices"][step])
        pairs = [("attention", attention[step], answer["attention"].ravel())]
        if "selected" in answer and (answer["selected"] != selected[step]).any():
            # Patches of almost as many votes; what the controller was told differs until the end of the episode.
            votes = [attention[step][selected[step]], attention[step][answer["selected"].astype(int)]]
            assert np.allclose(*votes, rtol=1e-5, atol=0), (step, votes)
            worst["ties"] += 1
            differs = True
        if not differs:
            scores = answer.get("action", answer.get("scores"))
            pairs.append(("action", actions[step], scores))
            if "value" in answer:
                pairs.append(("value", np.array(record["values"][step : step + 1]), answer["value"]))
            if "choice" in answer:
                worst["choices"] += int(answer["choice"] != np.argmax(actions[step]))
        for name, ours, theirs in pairs:
            assert ours.shape == theirs.shape, (name, ours.shape, theirs.shape)
            assert np.isfinite(theirs).all(), name
            # Beside numbers above 1, as a share of the largest.
            worst[name] = max(worst[name], float(np.abs(ours - theirs).max() / max(1.0, np.abs(ours).max())))
    print(json.dumps(worst))


main()
