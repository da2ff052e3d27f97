docker run -d --name segm-train-2 --gpus '"device=0"' -v /nvme/ct:/data/ct -v $PWD/out:/out segm:2.5 \
  python train.py --roi 128 --batch-size 4 --num-workers 24 --prefetch-factor 8 --cache-rate 0.3
