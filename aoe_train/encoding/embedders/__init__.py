"""What turns texts into vectors to be judged: a model of this machine, or one behind an endpoint."""
