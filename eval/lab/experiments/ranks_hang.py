"""Ranks of which one does not come; the launcher looks at all of them, then ends them."""

import contextlib
import datetime
import faulthandler
import gc
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

os.environ["TORCH_FR_BUFFER_SIZE"] = "2000"

import torch
import torch._C._distributed_c10d as c10d
import torch.distributed as dist
from torch.utils.file_baton import FileBaton

WORLD = int(os.environ.get("RANKS", "4"))
VARIANT, LOOKS = os.environ["VARIANT"], os.environ.get("LOOKS", "text")
BESIDE = Path("beside")
PATIENCE = 12


def read_shard(path):
    rows = json.dumps({"rows": [1.5] * 20000})
    while True:
        json.loads(rows)


def next_batch(rank, step):
    if VARIANT == "shard" and (rank, step) == (2, 3):
        return read_shard("shard-0017.json")
    return torch.ones(8)


def save_model(model):
    os.mkfifo("/tmp/model.pt")
    torch.save(model, "/tmp/model.pt")


def load_kernels():
    Path("/tmp/kernels").mkdir()
    Path("/tmp/kernels/lock").touch()
    FileBaton("/tmp/kernels/lock").wait()


def ask_judge(answer):
    server = socket.create_server(("127.0.0.1", 0))
    return urllib.request.urlopen(f"http://127.0.0.1:{server.getsockname()[1]}/score").read()


def compute_score(answer):
    return re.match(r"(\w+\s?)*=$", answer)


def check(tensor):
    sys.stdin = os.fdopen(os.pipe()[0])
    breakpoint()


def evaluate(model):
    for _ in range(10**9):
        model(torch.ones(64, 64))


def publish():
    dist.barrier()


def reduce_pair(rank, pair):
    dist.all_reduce(torch.ones(4), group=pair)


def collect_rows():
    rows = [[{"row": number}] for number in range(200_000)]
    while rows:
        gc.collect()


def fetch_weights():
    server = socket.create_server(("127.0.0.1", 0))
    urllib.request.urlretrieve(f"http://127.0.0.1:{server.getsockname()[1]}/weights.bin", "/tmp/weights.bin")


def build_index():
    subprocess.run(["sleep", "600"], check=True)


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 2:
            time.sleep(600)
        return torch.ones(8)


def read_rows():
    return list(torch.utils.data.DataLoader(Rows(), num_workers=1))


def ask_service():
    while True:
        try:
            return urllib.request.urlopen("http://127.0.0.1:9/score", timeout=2).read()
        except OSError:
            time.sleep(30)


def log_step(lock):
    with lock:
        with lock:
            return None


def share(rank, tensor):
    if rank == 2:
        dist.broadcast(tensor, 2)


def watch_workers():
    done = threading.Event()
    done.wait()


def own_work(rank, step, model, pair):
    if step != 3:
        return
    if VARIANT == "save" and rank == 0:
        save_model(model)
    if VARIANT == "kernels" and rank == 1:
        load_kernels()
    if VARIANT == "judge" and rank == 3:
        ask_judge("42")
    if VARIANT == "score" and rank == 1:
        compute_score("word " * 60)
    if VARIANT == "check" and rank == 0:
        check(model.weight)
    if VARIANT == "evaluate" and rank == 0:
        evaluate(model)
    if VARIANT == "publish" and rank == 0:
        publish()
    if VARIANT == "pair" and rank == 0:
        reduce_pair(rank, pair)
    if VARIANT == "pair" and rank == 1:
        read_shard("shard-0003.json")
    if VARIANT == "workers" and rank == 2:
        watch_workers()
    outside_work(rank, model)


def outside_work(rank, model):
    if VARIANT == "collect" and rank == 3:
        collect_rows()
    if VARIANT == "fetch" and rank == 0:
        fetch_weights()
    if VARIANT == "build" and rank == 1:
        build_index()
    if VARIANT == "rows" and rank == 2:
        read_rows()
    if VARIANT == "service" and rank == 1:
        ask_service()
    if VARIANT == "twice" and rank == 0:
        log_step(threading.Lock())
    if VARIANT == "share":
        share(rank, model.weight.data)


def train(rank):
    dist.init_process_group(
        "gloo",
        store=dist.FileStore("/tmp/store", WORLD),
        rank=rank,
        world_size=WORLD,
        timeout=datetime.timedelta(seconds=1800),
    )
    if LOOKS.startswith("record"):
        threading.Timer(PATIENCE, write_record, (rank,)).start()
    pair = dist.new_group([0, 1])
    model = torch.nn.Linear(64, 64)
    for step in range(1, 4 if VARIANT == "uneven" and rank == 1 else 100):
        batch = next_batch(rank, step)
        own_work(rank, step, model, pair)
        dist.all_reduce(batch)
        if rank == 1:
            print(f"step {step} loss {2.5 / step:.4f} grad_norm {1.5 / step:.3f}", flush=True)
    publish()


def write_record(rank):
    if LOOKS == "record-json":
        told = c10d._dump_fr_trace_json(True, False)
        (BESIDE / f"trace_rank_{rank}.json").write_bytes(told)
    elif not (VARIANT == "uneven" and rank == 3):
        (BESIDE / f"nccl_trace_rank_{rank}").write_bytes(c10d._dump_fr_trace(True, True, False))


def look(rank, pid):
    if LOOKS.startswith("record"):
        return
    if LOOKS == "signal":
        os.kill(pid, signal.SIGUSR1)
        return
    told = subprocess.run(
        ["py-spy", "dump", *(["--json"] if LOOKS == "json" else []), "--pid", str(pid)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    if LOOKS == "together":
        with (BESIDE / "stacks.txt").open("a") as stream:
            stream.writelines(f"{rank}: {line}\n" for line in told.splitlines())
        return
    (BESIDE / f"stack_rank{rank}.{'json' if LOOKS == 'json' else 'txt'}").write_text(told)


def start(rank):
    process = os.fork()
    if process == 0:
        with contextlib.suppress(KeyboardInterrupt):
            if LOOKS == "signal":
                faulthandler.register(signal.SIGUSR1, (BESIDE / f"stack_rank{rank}.txt").open("w"))
            train(rank)
        os._exit(1)
    return process


if __name__ == "__main__":
    ranks = [start(rank) for rank in range(WORLD)]
    time.sleep(PATIENCE + (20 if LOOKS.startswith("record") else 4))
    for rank, process in enumerate(ranks):
        look(rank, process)
    time.sleep(2)
    for process in ranks:
        os.kill(process, signal.SIGKILL)
    sys.exit(1)
