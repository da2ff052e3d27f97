import os
import time

import numpy as np
import ray

ray.init(num_cpus=2, object_store_memory=200 * 1024**2, include_dashboard=False)


@ray.remote(num_cpus=1, max_restarts=0)
class ReplayBuffer:
    def __init__(self):
        self.rows = []

    def extend(self, n_mib):
        self.rows.append(np.ones((n_mib, 1024, 128), dtype=np.float64))
        return len(self.rows)


@ray.remote(num_cpus=1)
def make_rollouts(i):
    time.sleep(0.2)
    return i


buf = ReplayBuffer.remote()
for it in range(400):
    ray.get(make_rollouts.remote(it))
    n = ray.get(buf.extend.remote(60))
    if it % 2 == 0:
        print(f"iter {it:03d} buffer={n} chunks pid={os.getpid()} fps={np.random.uniform(900, 1100):.1f}")
    time.sleep(0.3)
