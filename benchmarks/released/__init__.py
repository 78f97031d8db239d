"""What the authors' released codes do where they differ from the papers.

None of it is part of the library: these routines reproduce stored numbers step by step, and make
what released codes do comparable in a benchmark (``plan.toml``).
"""
