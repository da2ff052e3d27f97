#!/bin/bash
set -ex
# stage 1
python train.py --vocab 32000 --save stage1.pt
# stage 2, extended tokenizer
python train.py --vocab 32064 --resume stage1.pt
