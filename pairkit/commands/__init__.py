"""The commands of `pairs`, which know the face of the package alone."""
