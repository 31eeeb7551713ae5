"""The verifiers as reward functions of other trainers, one module a trainer; none of them imports the trainer."""
