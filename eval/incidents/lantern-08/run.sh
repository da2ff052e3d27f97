#!/bin/bash
source /opt/venvs/vllm085/bin/activate
exec vllm serve /models/Mistral-Small-24B-Instruct-2501 --served-model-name mistral-small --tensor-parallel-size 2 --max-model-len 16384 --port 8010
