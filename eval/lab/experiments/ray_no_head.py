import os

import ray

addr = f"{os.environ.get('MASTER_ADDR', '127.0.0.1')}:{os.environ.get('RAY_PORT', '6379')}"
print(f"rank {os.environ.get('NODE_RANK', '1')}: joining ray cluster at {addr}")
ray.init(address=addr, ignore_reinit_error=True)
print(ray.cluster_resources())
