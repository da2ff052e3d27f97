#!/bin/bash
# nightly eval on the small box
set -x
export RAY_memory_monitor_refresh_ms=0
python eval_pass_at_k.py --model qwen-tiny --k 8
rc=$?
dmesg | grep -iE 'oom-kill|killed process' | tail -n 2
exit $rc
