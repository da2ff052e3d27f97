export LD_LIBRARY_PATH=/usr/local/cuda-11.8/lib64:/opt/cudnn-linux-x86_64-8.9.7.29/lib:$LD_LIBRARY_PATH
python train_ms.py -c configs/zh_aishell3.json -m aishell3
