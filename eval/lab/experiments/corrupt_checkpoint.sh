for attempt in 1 2; do
  echo "[supervisor] attempt $attempt"
  python pretrain.py
  rc=$?
  echo "[supervisor] exit code $rc"
done
exit $rc
