import concurrent.futures as cf
import time


def judge(i):
    """Ask the reward model (here: wait as a request would)."""
    time.sleep(3)
    return i % 2


print("启动奖励打分，并发数 512 ...")
t0 = time.time()
with cf.ThreadPoolExecutor(max_workers=512) as pool:
    futures = []
    for i in range(512):
        futures.append(pool.submit(judge, i))
        if i % 20 == 0:
            print(f"已提交 {i}/512 条样本，耗时 {time.time() - t0:.2f}s")
    scores = [f.result() for f in futures]
print("平均奖励:", sum(scores) / len(scores))
