import argparse
import os

import torch
from safetensors.torch import load_file, save_file

ap = argparse.ArgumentParser()
ap.add_argument("--to")
ap.add_argument("--load")
a = ap.parse_args()
if a.to:
    os.makedirs(os.path.dirname(a.to), exist_ok=True)
    sd = {f"model.layers.{i}.mlp.down_proj.weight": torch.randn(512, 1024) for i in range(8)}
    save_file(sd, a.to, metadata={"format": "pt"})
    print(f"wrote {a.to} ({os.path.getsize(a.to)} bytes)")
if a.load:
    print("loading", a.load)
    state = load_file(a.load)
    print(len(state), "tensors")
