"""Where the jobs of a batch come from: folders, uploads, Slurm, Ray, Kubernetes."""
