import os
import time

import numpy as np
import ray

ray.init(
    num_cpus=2,
    object_store_memory=80 * 1024 * 1024,
    include_dashboard=False,
    _temp_dir="/tmp/ray",
)


@ray.remote
def rollout(i):
    time.sleep(0.1)
    return {"tokens": np.random.randint(0, 151936, size=(1024, 1536)), "logp": np.random.randn(1024, 1536)}


print("tmp:", os.statvfs("/tmp").f_bavail * os.statvfs("/tmp").f_frsize // 2**20, "MiB free")
kept = []
for i in range(64):
    kept.append(rollout.remote(i))
    ready, _ = ray.wait([kept[-1]], timeout=25)
    print(f"collected {i + 1}/64 batches (ready={len(ready)})", flush=True)
    ray.get(kept[-1], timeout=40)
merged = sum(ray.get(r)["logp"].mean() for r in kept)
print("done", merged)
