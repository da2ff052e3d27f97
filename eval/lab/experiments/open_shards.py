import os

import numpy as np

os.makedirs("shards", exist_ok=True)
paths = []
for i in range(400):
    p = f"shards/{i:04d}.npy"
    np.save(p, np.zeros((4, 1024), dtype=np.uint16))
    paths.append(p)
print(f"{len(paths)} shards, memory-mapping")
handles, maps = [], []
for i, p in enumerate(paths):
    f = open(p, "rb")
    handles.append(f)
    maps.append(np.frombuffer(f.read(), dtype=np.uint16))
    if i % 50 == 0:
        print(f"mapped {i}/{len(paths)}")
print("tokens:", sum(m.size for m in maps))
