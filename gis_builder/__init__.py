"""GitHub issues to a leak-free dataset of duplicate pairs (GIS; Li & Li, ACL 2024, sections 4 and B)."""

__all__: list[str] = []
