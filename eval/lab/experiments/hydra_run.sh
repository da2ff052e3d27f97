set -x
python main.py \
    data.max_prompt_length=2048 \
    actor.optim.lr=5e-7 \
    trainer.nodes=2 \
    trainer.n_gpus_per_node=4
