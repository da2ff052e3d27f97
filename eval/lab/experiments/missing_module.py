import logging

logging.basicConfig(format="%(levelname)s:%(name)s:%(message)s", level=logging.INFO)
logging.info("using seed 42")
try:
    import apex  # noqa: F401
except ImportError:
    logging.warning("apex is not installed, falling back to torch.nn.LayerNorm")

import torch
from flash_attn.bert_padding import pad_input, unpad_input

x, idx, cu, *_ = unpad_input(torch.randn(2, 8, 4), torch.ones(2, 8))
print(pad_input(x, idx, 2, 8).shape)
