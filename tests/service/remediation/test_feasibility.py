"""What cannot be a change of this job is never shown as one: the simplest checks, each with what it lets
through.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from corpus.library import Library
from corpus.message import Message
from corpus.schema import Remedy, SettingSpec
from ingest.logs.configs.launch import Setting
from ingest.logs.facts import Fact
from ingest.logs.report import CrashReport
from service.patching.diagnosis_patch import StepPatch, patch_first_step, writable_first
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from service.remediation.changes import propose_changes
from service.remediation.feasibility import ALREADY, DEFAULT, WHOLE_LIST, Grounds, overlap, refused
from service.remediation.gpu_cards import largest_gib
from service.remediation.setting_values import is_least
from tests.factories import whole_corpus
from tests.service.factories import case, change, failed, library, proposal, report, setting, spec, text
from tests.warm import explained

NAMES = ("data.size", "data.old_size")


def why(
    *,
    specs: Sequence[SettingSpec] = (),
    settings: Sequence[Setting] = (),
    to: object = 128,
    key: str = "data.size",
    framework: str = "verl",
    seen: Sequence[tuple[str, str]] = (("verl", ""),),
    launches: Sequence[str] = (),
    shelf: Library | None = None,
    **fields: bool,
) -> str:
    """Say why a change is refused for a job of these settings and files."""
    told = report(failed(), frameworks=seen, launches=tuple(launches))
    grounds = Grounds(told, shelf or library(*(specs or (spec(),))), settings)
    return refused(proposal(key, to, framework=framework), grounds, **fields)  # type: ignore[arg-type]  # any value may be asked about


def test_that_a_value_is_another_than_the_present_one_and_than_the_default() -> None:
    aliased = spec(aliases=[{"key": "data.old_size"}])
    rows = [
        (why(to=128), ""),
        (why(to=64), Message(DEFAULT)),
        (why(to="64"), Message(DEFAULT)),
        (why(to=128, settings=[setting("data.size", "128")]), Message(ALREADY)),
        (why(to=128, settings=[setting("data.old_size", "128")], specs=[aliased]), Message(ALREADY)),
        # However the value is written: a type with its module, a script's value for want of another.
        (
            why(to="half", settings=[setting("data.size", "torch.half")], specs=[spec(type="str")]),
            Message(ALREADY),
        ),
        (why(to=128, settings=[setting("data.size", "${SIZE:-128}")]), Message(ALREADY)),
        # What the job's own file says by the name of an argument is handed on to it.
        (
            why(
                to="half",
                settings=[setting("training.size", "half")],
                specs=[spec(type="str", spelled="python")],
            ),
            Message(ALREADY),
        ),
        (why(to="half", settings=[setting("training.size", "half")], specs=[spec(type="str")]), ""),
        (why(to=128, settings=[setting("data.size", "${SIZE:-256}")]), ""),
        # Who sets another value goes back to the default by it; so does what the failure proves to be set.
        (why(to=64, settings=[setting("data.size", "128")]), ""),
        (why(to=64, set_otherwise=True), ""),
        (why(to=True, specs=[spec(type="bool", default=True)]), Message(DEFAULT)),
        (why(to=False, specs=[spec(type="bool", default=True)]), ""),
        (why(to=64, specs=[spec(default=None)]), ""),
    ]
    assert [found for found, _ in rows] == [wanted for _, wanted in rows]


def test_that_a_message_about_a_setting_shows_it_to_be_set() -> None:
    """Whatever the files show: code may set it, where nobody sees it. A single word may mean anything."""
    rows = []
    for key, message in (
        ("model.free_cache", "ValueError: this model takes no free cache."),
        ("model.free_cache", "ValueError: `free_cache` is for engines alone"),
        ("model.free_cache", "ValueError: this model is no good"),
        ("model.cache", "ValueError: this model takes no cache."),
    ):
        told = report(replace(failed(), body=message), frameworks=(("verl", ""),))
        known = library(spec(key=key, type="bool", default=False))
        rows.append(refused(proposal(key, False, framework="verl"), Grounds(told, known, ())))
    assert rows == ["", "", Message(DEFAULT), Message(DEFAULT)]


def test_that_a_setting_is_one_of_a_framework_that_the_job_runs() -> None:
    none = "the job does not run {}"
    rows = [
        ("verl", (("verl", ""),), "", True),
        ("kubernetes", (("verl", ""),), "", False),
        ("slurm", (("verl", ""),), "", False),
        ("docker", (), "", False),
        ("docker", (), "docker run --gpus all image python train.py", True),
        ("slurm", (("verl", ""),), "#!/bin/bash\n#SBATCH --time=1:00:00\npython train.py\njob.sbatch", True),
        ("kubernetes", (("pytorch", ""),), "apiVersion: v1\nkind: Pod\npod.yaml", True),
        ("transformers", (("trl", ""),), "", True),
        ("vllm", (("sglang", ""),), "", False),
        ("nccl", (), "", True),
        ("openrlhf", (("pytorch", ""),), "deepspeed --module openrlhf.cli.train_sft", True),
        ("ray", (("verl", ""),), "", True),
        ("ray", (("transformers", ""),), "", False),
    ]
    shelf = {name: spec(framework=name) for name, *_ in rows}
    found = {
        place: why(framework=name, seen=seen, launches=[launch] if launch else [], shelf=_with(shelf[name]))
        for place, (name, seen, launch, _) in enumerate(rows)
    }
    assert found == {
        place: "" if runs else none.format(name) for place, (name, _, _, runs) in enumerate(rows)
    }


def test_that_the_failure_itself_may_show_what_starts_the_job() -> None:
    """Shared memory runs out in containers, named or not; beside Slurm none is guessed."""
    implied = spec(framework="docker", implied_by=["root:torch.cuda-oom"])
    unlike = spec(framework="docker", implied_by=["root:linux.*"])
    none = "the job does not run docker"
    rows = [
        (implied, (), ""),
        (implied, (("pytorch", ""),), ""),
        (implied, (("slurm", ""),), none),
        (unlike, (), none),
    ]
    found = [why(framework="docker", seen=seen, shelf=_with(shelf)) for shelf, seen, _ in rows]
    assert found == [wanted for _, _, wanted in rows]


def _with(*specs: SettingSpec) -> Library:
    made = library(*specs)
    return Library(made.causes, made.cases, made.specs)


def test_that_the_program_which_runs_takes_the_setting() -> None:
    rows = [
        ("openrlhf", "vllm_num_engines", 2, "deepspeed --module openrlhf.cli.train_ppo", False),
        ("openrlhf", "vllm_num_engines", 2, "ray job submit -- python3 -m openrlhf.cli.train_ppo_ray", True),
        ("openrlhf", "vllm_num_engines", 2, "", True),
        ("openrlhf", "micro_train_batch_size", 1, "python train_sft.py", True),
        ("slurm", "--requeue", True, "srun python train.py", False),
        ("slurm", "--requeue", True, "#SBATCH --nodes=1\nsrun python t.py", True),
        ("slurm", "--requeue", True, "salloc --gres=gpu:8 bash", False),
        ("slurm", "--exclude", "gpu-7", "srun python train.py", True),
        ("trl", "vllm_mode", "server", "trl sft --config a.yaml", False),
        ("trl", "vllm_mode", "server", "trl grpo --config a.yaml", True),
        ("trl", "max_length", 512, "trl grpo --config a.yaml", False),
        ("trl", "max_length", 512, "trl sft --config a.yaml", True),
        ("transformers", "optim", "sgd", "python run.py --num_train_epochs 3", True),
        ("transformers", "optim", "sgd", "transformers/models/llama/modeling_llama.py", False),
        ("transformers", "optim", "sgd", "transformers/trainer.py transformers/models/m.py", True),
        ("transformers", "torch_dtype", "bfloat16", "transformers/models/m.py", True),
        ("verl", "data.max_prompt_length", 4096, "torchrun -m verl.trainer.fsdp_sft_trainer", False),
        ("verl", "data.truncation", "left", "torchrun -m verl.trainer.fsdp_sft_trainer", True),
        ("verl", "data.max_prompt_length", 4096, "python3 -m verl.trainer.main_ppo", True),
        ("verl", "data.max_length", 4096, "python3 -m verl.trainer.main_ppo", False),
        ("llamafactory", "vllm_gpu_util", 0.5, "llamafactory-cli train dpo.yaml", False),
        ("llamafactory", "vllm_gpu_util", 0.5, "llamafactory-cli api model.yaml", True),
        ("llamafactory", "resize_vocab", True, "python scripts/vllm_infer.py --template qwen", False),
        # What it extends it runs by the same program.
        ("transformers", "optim", "sgd", "llamafactory-cli chat model.yaml", False),
        ("ms-swift", "--deepspeed", "zero3", "swift infer --model m", False),
        ("ms-swift", "--deepspeed", "zero3", "swift sft --model m", True),
    ]
    found = [
        (
            *row[:4],
            "no such option"
            not in why(
                framework=row[0],
                key=row[1],
                to=row[2],
                seen=((row[0], ""),),
                launches=[row[3]],
                shelf=whole_corpus(),
            ),
        )
        for row in rows
    ]
    assert found == rows


def test_that_a_setting_which_the_job_reads_to_no_effect_is_refused() -> None:
    """Nothing is shared out over one rank; what belongs to ZeRO-3 does nothing below it."""
    bucket, stage = "zero_optimization.stage3_prefetch_bucket_size", "zero_optimization.stage"
    rows: list[tuple[str, int, dict[str, str], bool]] = [
        (bucket, 1000, {"zero_optimization.stage": "2"}, False),
        (bucket, 1000, {"deepspeed": "conf/zero2.json"}, False),
        (bucket, 1000, {"zero_optimization.stage": "3"}, True),
        (bucket, 1000, {"deepspeed": "conf/ds.json"}, True),
        (stage, 3, {"nproc_per_node": "1"}, False),
        (stage, 3, {"nproc_per_node": "1", "nnodes": "2"}, True),
        (stage, 3, {"nproc_per_node": "8"}, True),
    ]
    found = []
    for key, to, settings, _ in rows:
        mine = tuple(setting(name, value) for name, value in settings.items())
        told = report(failed(), frameworks=(("deepspeed", ""),), settings=mine)
        reason = refused(proposal(key, to, framework="deepspeed"), Grounds(told, whole_corpus(), mine))
        found.append((key, to, settings, reason != Message("changes.no-effect")))
    assert found == rows


def test_that_names_of_two_versions_are_never_proposed_together() -> None:
    """What the job sets tells its version, as far as it goes; a name that others have too tells nothing."""
    new, old = spec("actor.new", versions=">=0.10.2"), spec("old_name", versions="<0.10.2")
    shared = [spec("config", versions="<0.10.2"), spec("config", framework="vllm")]
    rows = [
        (
            why(key="actor.new", specs=[new, old], settings=[setting("old_name", "3")]),
            "no version has both it and old_name, which the job sets",
        ),
        (why(key="actor.new", specs=[new, old]), ""),
        (why(key="actor.new", specs=[new, *shared], settings=[setting("config", "a.yaml")]), ""),
    ]
    assert [found for found, _ in rows] == [wanted for _, wanted in rows]
    wanted = [change("old_name", 3), change("actor.new", 3)]
    made, dropped = propose_changes(
        [case(changes=wanted)], report(failed(), frameworks=[("verl", "")]), library(new, old), [], "en"
    )
    assert [item.key for item in made] == ["old_name"]
    assert [item.why for item in dropped] == ["no version has both it and old_name, which is proposed"]


def test_that_specifiers_overlap_where_one_version_fits_both() -> None:
    rows = {
        ("<0.10.2", ">=0.10.2"): False,
        ("<0.10.2", ">=0.10.1"): True,
        ("", ">=3"): True,
        ("<=1.2", ">=1.2"): True,
        ("<1.2", ">1.1"): True,
        (">1.2", "<1.2"): False,
        (">=0.4,<0.5", ">=0.5,<0.6"): False,
        ("==1.2.*", "<1.2"): False,
        ("~=2.1", ">=2.3"): True,
    }
    assert {pair: overlap(*pair) for pair in rows} == rows


SHORT = "kv-cache-too-small"


def cached(
    needed: float, available: float, now: str | None = None, launches: Sequence[str] = ()
) -> tuple[dict[str, object], dict[str, str]]:
    """Propose for a cache that lacks memory: the values with their proofs, and what was dropped with its
    reason.
    """
    root = failed(cause=SHORT, pattern="vllm.kv-below-max-len-gib")
    fields = {"needed_gib": needed, "available_gib": available, "max_model_len": 131072, "estimated_n": 40960}
    settings = [setting("--gpu-memory-utilization", now)] if now else []
    told = report(
        root,
        frameworks=[("vllm", "0.8.5")],
        facts=[Fact("kv_cache", root.line, fields)],
        settings=settings,
        launches=tuple(launches),
    )
    made, dropped = propose_changes(
        [whole_corpus().cases["vllm/kv-cache-below-max-len"]], told, whole_corpus(), settings, "en"
    )
    return {item.key: (item.to, item.proof is not None) for item in made}, {
        item.what: item.why for item in dropped
    }


def test_that_a_change_which_the_logs_own_numbers_disprove_is_dropped_and_a_proved_one_comes_first() -> None:
    made, dropped = cached(16, 5, "0.9")
    assert next(iter(made.items())) == ("--max-model-len", (40960, True))
    assert "--gpu-memory-utilization" not in made
    assert "--kv-cache-dtype" not in made
    assert (
        dropped["vllm: --gpu-memory-utilization=0.95"] == "11 GiB are missing, and 0.95 of 80 GiB adds only 4"
    )
    assert (
        dropped["vllm: --kv-cache-dtype=fp8"]
        == "half of the 16 GiB that the cache needs is 8, and 5 are there"
    )
    made, _ = cached(6, 5, "0.85")
    assert made["--gpu-memory-utilization"] == (0.88, False), (
        "the card is not known, so the share is no proof"
    )
    assert made["--kv-cache-dtype"] == ("fp8", True)
    made, dropped = cached(6, 5, "0.85", ["# runs on a RTX 4090"])
    assert made["--gpu-memory-utilization"] == (0.91, True)
    _, dropped = cached(8, 5, "0.85", ["# runs on a RTX 4090"])
    assert (
        dropped["vllm: --gpu-memory-utilization=0.95"]
        == "3 GiB are missing, and 0.95 of 24 GiB adds only 2.4"
    )


def test_that_the_largest_card_of_a_text_counts() -> None:
    rows = {
        "GPU 0: NVIDIA GeForce RTX 4090": 24.0,
        "NVIDIA H100 80GB HBM3": 80.0,
        "NVIDIA A100-SXM4-40GB": 40.0,
        "NVIDIA A100-SXM4-80GB": 80.0,
        "Tesla T4 and NVIDIA L40S": 48.0,
        "no card": None,
        "H2000": None,
    }
    assert {text: largest_gib([text]) for text in rows} == {
        **rows,
        "Tesla T4 and NVIDIA L40S": largest_gib(["NVIDIA L40S"]),
    }


def test_that_scattered_memory_helps_only_where_it_is_enough() -> None:
    def made(asked: float, free: float, held: float) -> list[str]:
        root = failed()
        told = report(
            root,
            frameworks=[("pytorch", "2.6")],
            facts=[Fact("gpu_oom", root.line, {"asked_gib": asked, "free_gib": free, "reserved_gib": held})],
        )
        return [
            item.key for item in propose_changes([case(changes=[wanted])], told, whole_corpus(), [], "en")[0]
        ]

    wanted = change("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", framework="env", kind="env")
    assert made(2, 1.2, 1) == ["PYTORCH_CUDA_ALLOC_CONF"]
    assert made(20, 1.2, 1) == []


def test_that_what_only_finds_out_stands_behind_the_cures_and_is_never_the_patch(triage: Triage) -> None:
    rows = [
        change("CUDA_LAUNCH_BLOCKING", 1, framework="env", kind="env"),
        change("OMP_NUM_THREADS", 4, framework="env", kind="env"),
    ]
    made, _ = propose_changes(
        [case(changes=rows)], report(failed(), frameworks=[("pytorch", "")]), whole_corpus(), [], "en"
    )
    assert [(item.key, item.purpose) for item in made] == [
        ("OMP_NUM_THREADS", "cure"),
        ("CUDA_LAUNCH_BLOCKING", "find-out"),
    ]
    files = [ConfigFile("run.sh", "#!/bin/bash\nexport A=1\ntorchrun train.py\n")]
    assert patch_first_step(made[1:], files, report(failed()), whole_corpus()) == StepPatch()
    (edit,) = patch_first_step(made, files, report(failed()), whole_corpus()).edits
    assert edit.after.count("OMP_NUM_THREADS") == 1


def test_that_a_variable_that_is_to_go_is_taken_out_of_the_script() -> None:
    """Its words can be written, and no catalogue need know a variable that nobody is to set."""
    files = [ConfigFile("run.sh", "export LD_PRELOAD=/opt/a.so\ntorchrun train.py\n")]
    gone = proposal("LD_PRELOAD", "unset it", kind="env", framework="env", status="unverified")
    (edit,) = patch_first_step([gone], files, report(failed()), whole_corpus()).edits
    assert edit.after == "export LD_PRELOAD=/opt/a.so\nunset LD_PRELOAD\ntorchrun train.py\n"
    told = gone.model_copy(update={"by": "model"})
    assert not patch_first_step([told], files, report(failed()), whole_corpus()).edits


def test_that_a_row_of_the_table_waits_for_what_it_requires() -> None:
    """`unless` and `launch:` are conditions like others, of cases and remedies alike."""
    rows = [
        ({"unless": ["framework:verl"]}, "", 0),
        ({"unless": ["framework:trl"]}, "", 1),
        ({"when": ["launch:SIGUSR1"]}, "", 0),
        ({"when": ["launch:SIGUSR1"]}, "signal.signal(signal.SIGUSR1, save)", 1),
    ]
    found = []
    for fields, launch, _ in rows:
        told = report(failed(), frameworks=[("verl", "")], launches=(launch,))
        found.append(
            len(propose_changes([case(changes=[change(**fields)])], told, library(spec()), [], "en")[0])
        )
    assert found == [number for _, _, number in rows]
    shared = Remedy.model_validate(
        {**change(to=3), "cause": "gpu-oom-training", "source": "https://example.org/", "why": text("x")}
    )
    assert shared.unless == ()


CANCELLED = (
    "step 120 loss 1.2\nstep 121 loss 1.1\nslurmstepd: error: *** JOB 481220 ON gpu-07 CANCELLED AT "
    "2025-04-11T12:00:02{} ***\n"
)
SRUN = "#!/bin/bash\nsrun --nodes=1 --gres=gpu:8 python train.py\n"
BATCH = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --time=24:00:00\nsrun python train.py\n"


def test_that_the_scheduler_is_told_only_what_helps_against_this_end(triage: Triage) -> None:
    """No job is requeued that a person cancelled, no option given to a command without it, no signal sent to
    who has no handler for it.
    """
    handled = BATCH + "# train.py: signal.signal(signal.SIGUSR1, save)\n"
    rows: list[tuple[str, str, str, list[str], str]] = [
        ("", SRUN, "run.sh", [], ""),
        ("", BATCH, "job.sbatch", [], ""),
        # How long the whole takes is told by no step here: a number of hours would be made up. Who has a
        # handler that saves is told early enough for it.
        (" DUE TO TIME LIMIT", BATCH, "job.sbatch", ["--time"], ""),
        (" DUE TO TIME LIMIT", handled, "job.sbatch", ["--signal", "--time"], "#SBATCH --signal=USR1@300"),
        (" DUE TO PREEMPTION", BATCH, "job.sbatch", ["--requeue"], "#SBATCH --requeue"),
        # The log tells of a batch job whose directives are not in this file; its `srun` takes no such option.
        (" DUE TO PREEMPTION", SRUN, "run.sh", ["--requeue"], ""),
    ]
    found = []
    for due, script, name, _, _ in rows:
        answer = explained(triage, CANCELLED.format(due), ConfigFile(name, script))
        added = [row[1:] for row in (answer.patch or "").split("\n") if re.match(r"\+[^+]", row)]
        found.append((due, script, name, [item.key for item in answer.changes], "".join(added)))
    assert found == rows


def test_that_the_patch_is_of_the_change_that_is_shown_first(triage: Triage) -> None:
    """A first change that cannot be written gives no patch, unless another is as good: then that one comes
    first.
    """
    files = [ConfigFile("run.sh", "python3 -m verl.trainer.main_ppo data.train_batch_size=64\n")]
    told: CrashReport = report(failed())
    words = proposal("data.max_prompt_length", "a length that fits", status="unverified")
    cures = proposal("data.train_batch_size", 32)
    assert patch_first_step([words, cures], files, told, whole_corpus()).edits == ()
    assert patch_first_step([cures, words], files, told, whole_corpus()).edits != ()
    as_good = writable_first([words, cures], files, told, whole_corpus())
    lesser = writable_first([words, cures.model_copy(update={"tier": 4})], files, told, whole_corpus())
    assert [item.key for item in as_good] == [cures.key, words.key]
    assert [item.key for item in lesser] == [words.key, cures.key]
    # That a variable goes can be written into any script, which speaks for none that the job does not set.
    unset = proposal("LIBRARY_PATH", "unset it", framework="env", kind="env")
    given = unset.model_copy(update={"from_": "/usr/lib"})
    script = [ConfigFile("run.sh", "export LIBRARY_PATH=/usr/lib\npython3 train.py\n")]
    found = [writable_first([words, item], script, told, whole_corpus())[0].key for item in (unset, given)]
    assert found == [words.key, unset.key]


def test_that_a_setting_is_one_of_the_part_that_failed() -> None:
    """What one part alone reads mends no other; what leaves memory to all of them may."""
    roles = ("critic", "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.ref")
    critic, actor, rollout, reference = roles
    rows = {
        ("ray::WorkerDict.critic_update_critic()", f"{critic}.ppo_micro_batch_size_per_gpu"): True,
        ("ray::WorkerDict.critic_update_critic()", f"{actor}.ppo_micro_batch_size_per_gpu"): False,
        ("ray::WorkerDict.actor_rollout_update_actor()", f"{critic}.ppo_micro_batch_size_per_gpu"): False,
        ("ray::WorkerDict.actor_rollout_update_actor()", f"{actor}.ppo_max_token_len_per_gpu"): True,
        ("ray::WorkerDict.actor_rollout_update_actor()", f"{rollout}.gpu_memory_utilization"): True,
        ("ray::WorkerDict.ref_compute_ref_log_prob()", f"{rollout}.log_prob_micro_batch_size_per_gpu"): False,
        (
            "ray::WorkerDict.ref_compute_ref_log_prob()",
            f"{reference}.log_prob_micro_batch_size_per_gpu",
        ): True,
        ("ray::WorkerDict.ref_compute_ref_log_prob()", f"{actor}.fsdp_config.param_offload"): True,
        ("torch.OutOfMemoryError: CUDA out of memory.", f"{critic}.ppo_micro_batch_size_per_gpu"): True,
    }
    found = {}
    for call, key in rows:
        told = report(failed(text=call, body=call), frameworks=[("verl", "")])
        grounds = Grounds(told, library(spec(key)), ())
        found[call, key] = not refused(proposal(key, 2), grounds)
    assert found == rows


def test_that_a_switch_that_the_run_printed_as_off_takes_its_framework_out() -> None:
    """The code names it all the same, and a default in the code is no print."""
    rows = [
        ([Setting("use_verl", "False", 1, "dump")], Message("changes.job-not-run", framework="verl")),
        ([Setting("args.verl", "None", 1, "dump")], Message("changes.job-not-run", framework="verl")),
        ([Setting("use_verl", "True", 1, "dump")], ""),
        ([Setting("use_verl", "False", 0, "dump")], ""),
    ]
    for printed, wanted in rows:
        told = report(failed(), frameworks=[("verl", "")], settings=printed)
        grounds = Grounds(told, library(spec()), printed)
        assert refused(proposal("data.size", 128, framework="verl"), grounds) == wanted


def test_that_what_the_log_shows_to_be_on_is_not_turned_on_again() -> None:
    """Whatever the settings say: the code may have turned it on. To turn it off is a change."""
    shown = spec(type="bool", default=False, on_when=["frame:'utils/checkpoint'"])
    told = report(failed(body="in torch/utils/checkpoint.py"), frameworks=[("verl", "")])
    settings = [setting("data.size", "False")]
    grounds = Grounds(told, library(shown), settings)
    assert refused(proposal("data.size", True, framework="verl"), grounds) == Message(ALREADY)
    assert refused(proposal("data.size", False, framework="verl"), grounds) == ""


def test_that_the_job_s_own_code_and_sections_tell_a_value() -> None:
    """A call's argument where all such calls give the same, a name of several words in any section."""
    code = [
        Setting("device_map", value, 0, "dump", file="run.py", scope=f"{owner}.from_pretrained")
        for owner, value in (("OPT", "auto"), ("Bloom", "auto"))
    ]
    section = [Setting("training.save_all_rows", "7", 0, "yaml", file="run.yaml")]
    known = library(
        spec(key="from_pretrained.device_map", type="str", spelled="python"), spec(key="save_all_rows")
    )
    grounds = Grounds(report(failed()), known, [*code, *section])
    assert grounds.value("verl", "from_pretrained.device_map") == "auto"
    assert grounds.value("verl", "save_all_rows") == "7"
    other = Setting("device_map", "cpu", 0, "dump", file="run.py", scope="GPT.from_pretrained")
    mixed = Grounds(report(failed()), known, [*code, other])
    assert mixed.value("verl", "from_pretrained.device_map") is None


def test_that_an_option_which_a_whole_print_lacks_is_none_of_the_program() -> None:
    """Megatron prints every argument that it has: an option that is not among many is of another version."""
    names = [f"--size-{number}" for number in range(WHOLE_LIST)]
    specs = [spec(name, framework="megatron", spelled="flag") for name in (*names, "--late", "--no-early")]

    def reason(key: str, printed: int, *more: str) -> str:
        shown = [Setting(name.strip("-").replace("-", "_"), "1", 5, "dump") for name in names[:printed]]
        shown += [Setting(name, "1", 5, "dump") for name in more]
        told = report(failed(), frameworks=(("megatron", ""),), settings=shown)
        return refused(
            proposal(key, 2, framework="megatron", kind="flag"), Grounds(told, library(*specs), shown)
        )

    assert reason("--late", WHOLE_LIST) == Message("changes.not-printed")
    assert reason("--late", WHOLE_LIST, "late") == ""
    assert reason("--late", WHOLE_LIST - 1) == ""
    # `--no-early` turns off what is printed as `early`.
    assert reason("--no-early", WHOLE_LIST, "early") == ""


def test_that_a_count_at_its_least_is_not_to_be_lowered() -> None:
    counted = spec("cards", type="int", min=1)
    rows = [("1", True), ("0", True), ("'1'", True), ("2", False), ("many", False), (None, False)]
    assert [is_least(now, counted) for now, _ in rows] == [least for _, least in rows]
    assert is_least("1", None)
