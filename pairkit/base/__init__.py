"""What every package starts with: errors, settings, the command line, files and servers."""
