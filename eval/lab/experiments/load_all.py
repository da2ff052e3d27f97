import time

import numpy as np

print("loading corpus into memory")
docs = []
for i in range(64):
    docs.append(np.random.randint(0, 2**16, size=(64, 1024, 512), dtype=np.uint16))
    print(f"\rfile {i + 1:3d}/64  {sum(d.nbytes for d in docs) / 1e9:6.2f} GB", end="", flush=True)
    time.sleep(0.05)
print("\ntokenizing")
