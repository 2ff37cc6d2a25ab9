"""Files, folders, databases, servers and machines."""
