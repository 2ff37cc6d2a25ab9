"""The papers' tables: a recipe names data, rows and figures, and each row is trained and scored."""
