import os
import time

import numpy as np
import ray

ray.init(num_cpus=2, include_dashboard=False)


@ray.remote(max_retries=4)
def rollout(step, i):
    flag = f"/tmp/preempted_{step}_{i}"
    if step == 3 and not os.path.exists(flag):
        open(flag, "w").close()
        os.kill(os.getpid(), 9)
    time.sleep(0.1)
    return np.random.rand(64)


@ray.remote(max_restarts=2, max_task_retries=2)
class Scorer:
    def score(self, x, step):
        if step == 5 and not os.path.exists("/tmp/scorer"):
            open("/tmp/scorer", "w").close()
            raise_from = {"timeout": 30}
            try:
                raise TimeoutError(f"judge did not answer within {raise_from['timeout']}s")
            except TimeoutError:
                import traceback

                traceback.print_exc()
                print("retrying judge request (1/3)")
        return float(x.mean())


scorer = Scorer.remote()
best = 0.0
for step in range(14):
    xs = [rollout.remote(step, i) for i in range(4)]
    r = np.mean(ray.get([scorer.score.remote(x, step) for x in xs]))
    best = max(best, r)
    print(f"step {step:02d} reward={r:.4f} best={best:.4f}")
print("saved final checkpoint to outputs/final")
print("training finished")
