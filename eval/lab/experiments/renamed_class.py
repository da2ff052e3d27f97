import torch
from transformers import AutoModelForVision2Seq, AutoProcessor

print(torch.__version__)
processor = AutoProcessor.from_pretrained("models/vl-2b")
model = AutoModelForVision2Seq.from_pretrained("models/vl-2b")
