"""`Trainer` on the CPU: training, evaluation, a schedule, checkpoints and going on from one; a data collator"""

import tempfile

import torch
import transformers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
)

transformers.logging.set_verbosity_error()
transformers.set_seed(0)
sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
config = BertConfig(
    vocab_size=50,
    intermediate_size=64,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    **sizes,
)
rows = torch.randint(2, 50, (32, 6))
data = [{"input_ids": row, "labels": row[0] % 2} for row in rows]
with tempfile.TemporaryDirectory() as folder:
    options = TrainingArguments(
        folder,
        num_train_epochs=3,
        per_device_train_batch_size=8,
        learning_rate=1e-2,
        warmup_steps=2,
        lr_scheduler_type="cosine",
        save_steps=6,
        logging_steps=4,
        eval_strategy="epoch",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    count = lambda p: {"right": float((p.predictions.argmax(1) == p.label_ids).mean())}
    trainer = Trainer(
        BertForSequenceClassification(config),
        options,
        train_dataset=data,
        eval_dataset=data,
        compute_metrics=count,
    )
    trainer.remove_callback(transformers.PrinterCallback)
    print(trainer.train().training_loss)
    for row in trainer.state.log_history:
        print(
            {
                k: v
                for k, v in row.items()
                if k
                in (
                    "loss",
                    "eval_loss",
                    "eval_right",
                    "learning_rate",
                    "step",
                    "grad_norm",
                )
            }
        )
    print(trainer.predict(data).predictions[:2].round(4).tolist())
    again = Trainer(
        BertForSequenceClassification(config),
        options,
        train_dataset=data,
        eval_dataset=data,
    )
    again.remove_callback(transformers.PrinterCallback)
    again.train(resume_from_checkpoint=f"{folder}/checkpoint-6")
    print(
        again.state.global_step,
        abs(again.evaluate()["eval_loss"] - trainer.evaluate()["eval_loss"]) < 1e-4,
    )
