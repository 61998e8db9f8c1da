"""The shipped test kit: strategies, processes that die between two file operations, S3 and GCS servers with faults."""
