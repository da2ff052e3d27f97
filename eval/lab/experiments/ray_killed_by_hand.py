import argparse
import time

import numpy as np
import ray

p = argparse.ArgumentParser()
p.add_argument("--rollout-n", type=int, default=4)
p.add_argument("--steps", type=int, default=100)
args = p.parse_args()


@ray.remote(num_cpus=1)
class PolicyWorker:
    def __init__(self):
        self.w = np.zeros((512, 512), dtype=np.float32)

    def update(self, step, n):
        g = np.random.randn(512, 512).astype(np.float32)
        self.w -= 1e-3 * g
        time.sleep(0.5)
        print(f"(update) step={step} grad_norm={np.linalg.norm(g):.3f} rollouts={n}")
        return float(np.abs(self.w).mean())


ray.init(num_cpus=2, include_dashboard=False)
print(f"config: {vars(args)}")
policy = PolicyWorker.remote()
for step in range(args.steps):
    m = ray.get(policy.update.remote(step, args.rollout_n))
    print(f"step:{step} - actor/w_abs:{m:.5f} - timing/step:0.5")
