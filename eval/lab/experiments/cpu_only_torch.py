import torch

print("torch", torch.__version__, "cuda", torch.version.cuda)
model = torch.nn.TransformerEncoderLayer(256, 8, batch_first=True)
model = model.to("cuda", dtype=torch.bfloat16)
x = torch.randn(2, 128, 256, device="cuda", dtype=torch.bfloat16)
print(model(x).shape)
