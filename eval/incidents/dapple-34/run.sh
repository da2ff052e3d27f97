docker run --gpus all -p 8000:8000 -v /opt/w:/w vllm/vllm-openai:v0.6.3 --model /w/Yi-1.5-34B-Chat-AWQ --quantization awq --dtype bfloat16 --max-model-len 4096 --enforce-eager
