"""Gloo's all_reduce of f32 sums between two processes: gloo_ranks.py ROUNDS BYTES...

PyTorch's CPU tensors, without the copies of a device. Output: a line "BYTES SECONDS" for each
round, from the moment at which the last rank is ready until the last one has the result.
"""
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

RANKS, WARM_UP = 2, 3


def run(rank, store, rounds, sizes):
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank % os.cpu_count()]})
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    for size in sizes:
        data = torch.empty(size // 4)
        for i in range(-WARM_UP, rounds):
            data.fill_(rank + 1)
            dist.barrier()
            ready = time.monotonic()
            dist.all_reduce(data)
            moments = torch.tensor([ready, time.monotonic()], dtype=torch.float64)
            assert data[-1] == RANKS * (RANKS + 1) / 2
            dist.all_reduce(moments, op=dist.ReduceOp.MAX)
            if rank == 0 and i >= 0:
                print(size, f"{(moments[1] - moments[0]).item():.9f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        arguments = (os.path.join(folder, "store"), int(sys.argv[1]), [int(a) for a in sys.argv[2:]])
        mp.spawn(run, args=arguments, nprocs=RANKS)
