"""`python -m gis_builder` is `gis`."""

from gis_builder.cli import main

main()
