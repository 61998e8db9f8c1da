"""The data source `mire`: artifacts, index entries and records as tables, read in batches, as a stream, and written."""
