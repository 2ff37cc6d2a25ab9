"""GitHub issues to a leak-free dataset of duplicate pairs (GIS; Li & Li, ACL 2024, section 4 and appendix B)."""
