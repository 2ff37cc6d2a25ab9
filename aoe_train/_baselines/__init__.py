"""What the papers compare with, a file each; ARCHITECTURE.md ("Baselines") says which shapes they have."""
