"""Rows of benchmarks."""


def made_row(method="mkkm", repetition=0, acc=0.5, **others):
    """Return a row as a benchmark writes it."""
    row = {
        "dataset": "a",
        "method": method,
        "parameters": "{}",
        "default": True,
        "resample": 1.0,
    }
    row |= {
        "repetition": repetition,
        "seed": repetition,
        "status": "ok",
        "solve_seconds": 1.0,
    }
    row |= {"grid_repetitions": 2, "converged": True, "message": "", "acc": acc}
    return row | {"nmi": row["acc"], "purity": row["acc"]} | others
