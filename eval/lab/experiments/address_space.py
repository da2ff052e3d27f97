import torch

print("内存限制: 4 GB (ulimit -v)，开始构建 KV 缓存")
cache = []
for layer in range(96):
    k = torch.zeros(1, 32, 4096, 128, dtype=torch.bfloat16)
    v = torch.zeros_like(k)
    cache.append((k, v))
    print(f"第 {layer + 1} 层: 累计 {sum(a.nbytes + b.nbytes for a, b in cache) / 2**20:.0f} MiB")
