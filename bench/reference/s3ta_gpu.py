"""Time of S3TA (Mott et al. 2019) in PyTorch on a GPU, acting and learning, beside `foveate-gpu check`.

    foveate-gpu check --only-gpu --out FOLDER > FOLDER/ours.json
    python s3ta_gpu.py FOLDER/ours.json [--precision tf32]

FOLDER holds weights, pictures, gradients and outputs as `foveate-gpu check` writes them.

Prints one JSON object: steps per second of acting and learning, the fastest of several calls, of PyTorch as it is, compiled by
torch.compile, and ours; and how far the logits and the gradient are from ours, by norm. Learning is what TorchBeast does: one
forward and one backward pass over an unroll of a batch, with everything that does not depend on the state computed for all
steps at once. The faster of channels first and channels last counts.
"""

import argparse
import json
import pathlib
import time

import numpy as np
import torch
from s3ta import CASES, S3ta


def fastest(step, calls=5):
    step()
    best = float("inf")
    for _ in range(calls):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - begin)
    return best


class OnGpu(S3ta):
    def state(self, batch):
        return [x.cuda() for x in super().state(batch)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ours", type=pathlib.Path)
    parser.add_argument("--precision", choices=["tf32", "f32"], default="tf32")
    parser.add_argument("--compiled", action="store_true")
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.precision == "tf32"
    torch.backends.cudnn.benchmark = True
    ours = json.loads(args.ours.read_text())
    folder, steps, batch = args.ours.parent, ours["steps"], ours["batch"]
    case = CASES["full"]
    floats = lambda name: np.frombuffer((folder / name).read_bytes(), np.float32)
    pictures = np.frombuffer((folder / "pictures").read_bytes(), np.uint8).reshape(steps, batch, *case["view"])
    pictures = torch.from_numpy(pictures.copy()).cuda()
    told = torch.zeros(steps, batch, 1 + case["actions"], device="cuda")
    d_logits = torch.from_numpy(floats("d_logits").copy()).cuda().view(steps, batch, -1)
    d_values = torch.from_numpy(floats("d_values").copy()).cuda().view(steps, batch)
    result = {"torch": torch.__version__, "device": torch.cuda.get_device_name(), "ours": ours}
    for name, layout in [("channels_first", torch.contiguous_format), ("channels_last", torch.channels_last)]:
        net = OnGpu(case, floats("params"), layout).cuda()
        unroll = torch.compile(net.unroll) if args.compiled else net.unroll

        def learn():
            net.zero_grad(set_to_none=False)
            logits, values = unroll(pictures, told)
            ((logits * d_logits).sum() + (values * d_values).sum()).backward()
            return logits

        logits = learn().detach().cpu().numpy().reshape(-1)
        gradient = np.concatenate(
            [(p.grad.permute(0, 2, 3, 1) if p.dim() == 4 else p.grad).reshape(-1).cpu().numpy() for p in net.parameters()]
        )
        away = lambda got, wanted: float(np.linalg.norm(got - wanted) / np.linalg.norm(wanted))
        seconds = fastest(learn)
        with torch.inference_mode():
            states = net.state(batch)
            acting = fastest(lambda: net.act(pictures[0], told[0], states)[0].cpu())
        result[name] = {
            "learning_steps_per_second": steps * batch / seconds,
            "acting_steps_per_second": batch / acting,
            "logits_differ_by": away(floats("logits"), logits),
            "gradient_differs_by": away(floats("gradient"), gradient),
        }
    for what in ("learning", "acting"):
        best = max(result[name][f"{what}_steps_per_second"] for name in ("channels_first", "channels_last"))
        result[f"{what}_ratio"] = ours[f"{what}_steps_per_second"] / best
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
