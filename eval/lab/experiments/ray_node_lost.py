import threading
import time

import numpy as np
import ray
from ray.cluster_utils import Cluster

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
spot = cluster.add_node(num_cpus=1, resources={"spot": 1})
ray.init(address=cluster.address)
print(f"{len(ray.nodes())} nodes up")


@ray.remote(resources={"spot": 1}, num_cpus=1)
class Trainer:
    def __init__(self):
        self.w = np.random.randn(256, 256)

    def step(self, i):
        time.sleep(0.5)
        self.w = self.w @ self.w.T / 256
        self.w /= np.linalg.norm(self.w)
        return float(self.w.sum())


def reclaim():
    time.sleep(9)
    cluster.remove_node(spot, allow_graceful=False)


t = Trainer.remote()
threading.Thread(target=reclaim, daemon=True).start()
for i in range(300):
    for attempt in range(40):
        try:
            loss = ray.get(t.step.remote(i))
            break
        except ray.exceptions.ActorUnavailableError as e:
            print(f"{time.strftime('%H:%M:%S')} it={i} attempt {attempt}: {type(e).__name__}, waiting for the node", flush=True)
            time.sleep(2)
    print(f"{time.strftime('%H:%M:%S')} it={i} loss={loss:.6f}", flush=True)
