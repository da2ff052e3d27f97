import tiny
import torch
from transformers import AutoModelForCausalLM

tiny.save("tiny-qwen")
model = AutoModelForCausalLM.from_pretrained("tiny-qwen", attn_implementation="flash_attention_2", dtype=torch.bfloat16)
print(model.config._attn_implementation)
