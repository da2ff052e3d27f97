import sys

import tiny
import torch
from transformers import HfArgumentParser, Trainer, TrainingArguments


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, i):
        ids = torch.randint(0, 100, (16,), generator=torch.Generator().manual_seed(i))
        return {"input_ids": ids, "labels": ids}


(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses(sys.argv[1:])
held_out = Tokens() if args.do_eval else None
trainer = Trainer(model=tiny.model(), args=args, train_dataset=Tokens(), eval_dataset=held_out)
trainer.train(resume_from_checkpoint=args.resume_from_checkpoint == "True" or args.resume_from_checkpoint)
print("training finished at step", trainer.state.global_step)
