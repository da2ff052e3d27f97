import ray

runtime_env = {
    "env_vars": {"TOKENIZERS_PARALLELISM": "true", "NCCL_DEBUG": "WARN"},
    "pip": ["math-verify==0.7.0", "latex2sympy2-extended==1.10.1"],
}
ray.init(num_cpus=2, include_dashboard=False, runtime_env=runtime_env)


@ray.remote
class RewardManager:
    def score(self, answer, truth):
        from math_verify import parse, verify

        return float(verify(parse(truth), parse(answer)))


rm = RewardManager.remote()
print("smoke test:", ray.get(rm.score.remote("\\boxed{4}", "4")))
