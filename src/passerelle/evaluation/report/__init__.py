"""The report of an evaluation: one page of HTML that needs nothing else."""
