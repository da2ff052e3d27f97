import numpy as np
import ray

ray.init(num_cpus=2, object_store_memory=100 * 1024 * 1024, include_dashboard=False)


@ray.remote
def tokenize(shard):
    rng = np.random.default_rng(shard)
    return rng.integers(0, 32000, size=(256, 2048), dtype=np.int64)


refs = []
for shard in range(8):
    ref = tokenize.remote(shard)
    refs.append(ref)
    ids = ray.get(ref)
    print(f"shard {shard}: {ids.shape} {ids.dtype} {ids.nbytes / 2**20:.1f} MiB")

print("packing shards for the trainer ...")
packed = np.concatenate([ray.get(r) for r in refs], axis=0).repeat(6, axis=0)
packed_ref = ray.put(packed)
print("packed", packed.shape, packed_ref)
