#!/bin/bash
echo "job started on $(hostname) at $(date '+%F %T')"
python build_index.py --in /data/corpus
status=$?
echo
echo "python exited with status $status"
if [ $status -ne 0 ]; then
  dmesg -T 2>/dev/null | grep -i 'memory cgroup' | tail -n 1
fi
exit $status
