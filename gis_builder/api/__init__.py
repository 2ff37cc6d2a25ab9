"""The public functions, from which the commands are derived; their stages are imported when called."""
