"""What an all-reduce too many does to a gradient, on two real processes (gloo).

    python -m rlnb.toys.two_workers          prints one line of JSON

Each worker has the loss w x with its own x, 1 and 2; the gradient that both should use is the mean,
1.5. A correct trainer averages gradients once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

__all__ = ["XS", "measure", "worker"]

XS = (1.0, 2.0)


def worker(rank: int, meeting: str) -> dict[str, float]:
    """One of the two: joins at the file `meeting`, returns what it ends up with."""
    import torch.distributed as dist
    from torch.distributed.nn.functional import all_reduce as in_graph

    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group(
        "gloo", init_method=Path(meeting).as_uri(), rank=rank, world_size=len(XS)
    )
    x = XS[rank]

    def mean(value: torch.Tensor) -> torch.Tensor:
        dist.all_reduce(value)
        return value / len(XS)

    def gradient(reduced_loss: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        w = torch.ones(1, requires_grad=True)
        loss = w * x
        (in_graph(loss) if reduced_loss else loss).sum().backward()
        assert w.grad is not None
        return w.grad, loss.detach()

    found = {}
    one, loss = gradient()
    found["once, mean"] = mean(one).item()
    found["a second mean"] = mean(mean(gradient()[0])).item()
    extra = mean(gradient()[0])
    dist.all_reduce(extra)
    found["a sum too many"] = extra.item()
    dist.all_reduce(extra)
    found["two sums too many"] = extra.item()
    found["loss summed inside the graph"] = mean(gradient(reduced_loss=True)[0]).item()
    logged = loss.clone()
    dist.all_reduce(logged)
    found["a detached loss summed for the log"] = mean(gradient()[0]).item()
    found["that log"] = logged.item()
    dist.destroy_process_group()
    return found


def measure(timeout: float = 60.0) -> dict[str, float]:
    """Two processes of this module; what the first one found. Raises RuntimeError if one fails."""
    with tempfile.TemporaryDirectory() as folder:
        meeting = str(Path(folder) / "meeting")
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "rlnb.toys.two_workers", str(rank), meeting],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            for rank in range(len(XS))
        ]  # fmt: skip
        try:
            ends = [process.communicate(timeout=timeout) for process in processes]
        finally:
            for process in processes:
                if process.poll() is None:
                    process.kill()
        for process, (_, said) in zip(processes, ends, strict=True):
            if process.returncode:
                raise RuntimeError(f"two_workers: a worker failed: {said.strip()[-300:]}")
        found: dict[str, float] = json.loads(ends[0][0])
        return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    if len(sys.argv) == 3:
        print(json.dumps(worker(int(sys.argv[1]), sys.argv[2])))
    else:
        print(json.dumps(measure()))
