import os
import random
import time

import ray


@ray.remote(num_cpus=1)
class CodeVerifier:
    def __init__(self, pool):
        self.pool = pool
        self.done = 0

    def score(self, batch):
        time.sleep(0.4)
        self.done += len(batch)
        if self.done > 160:
            print(f"[verifier] sandbox pool {self.pool} exhausted: 0 of 4 workers answer, giving up", flush=True)
            os._exit(17)
        return [random.random() for _ in batch]


def main():
    ray.init(num_cpus=2, include_dashboard=False)
    print("ray resources:", ray.cluster_resources())
    verifier = CodeVerifier.remote("pool-a")
    for step in range(200):
        rewards = ray.get(verifier.score.remote(list(range(32))))
        print(f"step {step:4d} | reward/mean {sum(rewards) / len(rewards):.4f} | lr 1.0e-06 | kl 0.00{step}", flush=True)


if __name__ == "__main__":
    main()
