CUDA_VISIBLE_DEVICES=0 \
swift sft \
    --model Qwen/Qwen2.5-VL-7B-Instruct \
    --train_type lora \
    --dataset AI-ModelScope/LaTeX_OCR#20000 \
    --torch_dtype bfloat16 \
    --num_train_epochs 1
