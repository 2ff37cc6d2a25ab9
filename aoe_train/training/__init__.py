"""Training: choose settings, build the model, run the loop, write the folder."""
