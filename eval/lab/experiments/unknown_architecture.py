import json
import os

import tiny
from transformers import AutoConfig, AutoModelForCausalLM

tiny.save("models/next")
path = "models/next/config.json"
cfg = json.load(open(path))
cfg.update(model_type="qwen7_moe_preview", architectures=["Qwen7MoePreviewForCausalLM"])
json.dump(cfg, open(path, "w"), indent=2)
print("files:", sorted(os.listdir("models/next")))
print(AutoConfig.from_pretrained("models/next"))
AutoModelForCausalLM.from_pretrained("models/next")
