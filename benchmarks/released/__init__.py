"""What the authors' released codes do differently from the papers; for tests and
``plan.toml``."""
