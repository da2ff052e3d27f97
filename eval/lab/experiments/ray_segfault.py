import ctypes
import time

import numpy as np
import ray


class FastTokenCounter:
    """Thin wrapper over the shared tokenizer buffer."""

    def __init__(self, n):
        self.buf = (ctypes.c_long * n)(*range(n))
        self.addr = ctypes.addressof(self.buf)

    def count(self, i):
        if i >= 6:
            self.addr = 0
        return ctypes.c_long.from_address(self.addr).value


@ray.remote
class RolloutWorker:
    def __init__(self, rank):
        self.rank = rank
        self.counter = FastTokenCounter(1024)

    def generate(self, step):
        time.sleep(0.3)
        n = self.counter.count(step if self.rank == 1 else 0)
        return np.random.rand(16) + n


ray.init(num_cpus=2, include_dashboard=False)
workers = [RolloutWorker.options(name=f"rollout_{r}").remote(r) for r in range(2)]
for step in range(50):
    out = ray.get([w.generate.remote(step) for w in workers])
    print(f"[step {step}] generated {sum(o.size for o in out)} samples, mean score {np.mean(out):.4f}")
