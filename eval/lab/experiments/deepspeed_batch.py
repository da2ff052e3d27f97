import argparse
import json

import deepspeed
import torch

ap = argparse.ArgumentParser()
ap.add_argument("--local_rank", type=int, default=0)
ap = deepspeed.add_config_arguments(ap)
args = ap.parse_args()
print(json.dumps(json.load(open(args.deepspeed_config))))
net = torch.nn.Linear(128, 128)
engine, *_ = deepspeed.initialize(args=args, model=net, model_parameters=net.parameters())
for step in range(4):
    loss = engine(torch.randn(2, 128)).pow(2).mean()
    engine.backward(loss)
    engine.step()
