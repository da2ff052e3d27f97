import argparse
import time

import numpy as np
import ray

ap = argparse.ArgumentParser()
ap.add_argument("--model")
ap.add_argument("--k", type=int)
a = ap.parse_args()

ray.init(num_cpus=2, object_store_memory=120 * 1024 * 1024, include_dashboard=False, log_to_driver=True)


@ray.remote(max_retries=2)
def run_tests(problem_id, k):
    outputs = []
    for s in range(k):
        # one candidate of problem 37 prints in an endless loop
        size = 1 << 20 if problem_id != 37 else 400 << 20
        outputs.append(np.ones(size, dtype=np.uint8).tobytes())
        time.sleep(0.05)
    return sum(len(o) for o in outputs) > 0


passed = 0
for first in range(0, 64, 2):
    res = ray.get([run_tests.remote(i, a.k) for i in (first, first + 1)])
    passed += sum(res)
    print(f"problems {first + 2}/64  pass@{a.k}={passed / (first + 2):.3f}")
