import logging

import ray
from ray.util.placement_group import placement_group

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
log = logging.getLogger("launcher")

ray.init(num_cpus=2, include_dashboard=False)
cfg = {"nnodes": 1, "n_gpus_per_node": 8, "strategy": "STRICT_PACK"}
log.info("resource pool: %s", cfg)
pg = placement_group([{"CPU": 1, "GPU": 1} for _ in range(cfg["n_gpus_per_node"])], strategy=cfg["strategy"])
log.info("waiting for %s", pg.id.hex())
ray.get(pg.ready(), timeout=45)
log.info("placement group ready")
