"""The report's figures, one a module; matplotlib is imported only when one is drawn."""
