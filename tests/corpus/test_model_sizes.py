"""What a model's name and a job's settings tell of its size."""

from __future__ import annotations

import pytest

from corpus.model_sizes import cards_of_weights, named_model, share_of_card

# The job's settings; the parameters in billions and the bytes of each that they tell.
NAMED: tuple[tuple[dict[str, str], tuple[float, float] | None], ...] = (
    ({"model": "Qwen/Qwen2.5-7B-Instruct"}, (7.0, 2)),
    ({"--model-path": "/models/some_org/Thing-0.5b"}, (0.5, 2)),
    ({"actor_rollout_ref.model.path": "~/models/R1-Distill-Llama-70B"}, (70.0, 2)),
    ({"data.path": "sets/words-7B.parquet"}, None),
    ({"model_name_or_path": "Mixtral-8x7B-v0.1"}, (8 * 7 * 0.82, 2)),
    ({"model": "Qwen3-30B-A3B"}, (30.0, 2)),
    ({"model": "opt-350m"}, (0.35, 2)),
    ({"model": "microsoft/phi-2"}, (2.78, 2)),
    ({"model": "org/Thing-13B-AWQ"}, (13.0, 0.65)),
    ({"model": "org/Thing-13B-FP8-dynamic"}, (13.0, 1.1)),
    ({"model": "org/Thing-13B", "load_in_4bit": "True"}, (13.0, 0.65)),
    ({"model": "org/Thing-13B", "--dtype": "float32"}, (13.0, 4)),
    ({"model": "bert-base-uncased"}, None),
    ({"model": "./out/checkpoint-1200"}, None),
    ({"batch": "7B"}, None),
    ({}, None),
)


def test_that_names_tell_parameters_and_bytes() -> None:
    """The last part of a path that tells a number; quantized by name, else by setting, else 16 bits."""
    found = []
    for settings, expected in NAMED:
        model = named_model(settings)
        told = None if model is None else (model.parameters_b, model.bytes_each)
        if told != (expected if expected is None else pytest.approx(expected)):
            found.append((settings, told))
    assert found == []


def test_that_weights_are_parameters_times_bytes_over_the_cards() -> None:
    """In GiB, not in units of a thousand million bytes."""
    settings = {
        "model": "Thing-7B",
        "tensor_parallel_size": "2",
        "--tensor-parallel-size": "2",
        "pipeline_parallel_size": "4",
        "gpu_memory_utilization": "0.85",
    }
    model = named_model(settings)
    assert model is not None
    assert model.weights_gib == pytest.approx(13.04, abs=0.01)
    assert (cards_of_weights(settings), share_of_card(settings)) == (8, 0.85)
    assert (cards_of_weights({}), share_of_card({"gpu_memory_utilization": "${SHARE}"})) == (1, None)
