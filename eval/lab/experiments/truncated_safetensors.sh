set -x
python export.py --to weights/model-00001-of-00001.safetensors
rsync --version >/dev/null 2>&1 || true
# copy to the fast disk like the cluster prolog does
head -c 9000000 weights/model-00001-of-00001.safetensors > fast.safetensors
python export.py --load fast.safetensors
