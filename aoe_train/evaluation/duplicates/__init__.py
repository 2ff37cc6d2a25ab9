"""Is the report that a new one repeats found among all older reports of its tracker?"""
