"""One module a task; ``setpo_envs.ENVIRONMENTS`` registers them."""
