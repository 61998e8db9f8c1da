"""Jobs: stages put together, with one commit by the driver at the end."""
