"""The data pipeline on Spark: work on whole stores, as DataFrame jobs built from the same plans as everything else."""
