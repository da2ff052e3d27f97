"""Where the jobs of a batch come from: uploads, folders, Ray clusters, Slurm, the logs of Kubernetes' pods."""
