"""Credentials and e-mail addresses in texts: what they look like, and how they are taken out."""

from gis_builder.pairing.secrets.scrub import EMAIL, SECRET, scrub_secrets
from gis_builder.pairing.secrets.values import KINDS

__all__ = ["EMAIL", "KINDS", "SECRET", "scrub_secrets"]
