"""Tables of what SimpleMKKM costs, of all architectures measured.

    python benchmarks/speed/table.py

prints them; ``docs/make_results.py`` writes the tables into the documentation. A figure
is the median of a run. The files are those that ``measure.py`` wrote into ``results``.
"""

import json
from pathlib import Path

import pandas as pd

RESULTS = Path(__file__).resolve().parent / "results"
# Columns of both tables by what they show of a part.
PROBLEMS = {
    "solve, kernels prepared": ("ratios", "solve_prepared / base"),
    "solve, centered and scaled on the fly": ("ratios", "solve_on_the_fly / base"),
    "whole `fit`": ("ratios", "fit / alternative"),
    "memory": ("memory", "solve_on_the_fly"),
}
GROWTH = {
    "mean and `eigsh`": ("exponents", "base"),
    "with k-means": ("exponents", "alternative"),
    "solve": ("exponents", "solve_prepared"),
    "whole `fit`": ("exponents", "fit"),
    "memory": ("memory_exponents", "solve_on_the_fly"),
}


def read_results(folder=RESULTS):
    """Return what was measured, by the name of the architecture in text."""
    files = sorted(Path(folder).glob("*.json"))
    return {file.stem.replace("_", "-"): json.loads(file.read_text()) for file in files}


def title_of(part, measured):
    """Return a problem, or what grows, in words."""
    if "problem" in measured:
        return measured["problem"]
    fixed = ", ".join(
        f"{size} = {measured['rows'][0][size]}" for size in "nmk" if size != part
    )
    return f"{part} from {measured['sizes'][0]} to {measured['sizes'][-1]} ({fixed})"


def table(results, columns, title):
    """Return a table with a row per problem, and one figure per architecture in a
    cell."""
    cells = {}
    # Problems in the order of the fullest file.
    for name, record in sorted(
        results.items(), key=lambda item: -len(item[1]["parts"])
    ):
        for part, measured in record["parts"].items():
            for column, (group, key) in columns.items():
                if group in measured:
                    value = measured[group][key]
                    value = value["median"] if isinstance(value, dict) else value
                    text = f"{value:.1f}" if group == "ratios" else f"{value:.2f}"
                    row = cells.setdefault(title_of(part, measured), {})
                    row.setdefault(column, dict.fromkeys(results, "-"))[name] = text
    made = [
        [problem, *(" / ".join(row[column].values()) for column in columns)]
        for problem, row in cells.items()
    ]
    frame = pd.DataFrame(made, columns=[title, *columns])
    return frame.to_markdown(index=False, disable_numparse=True)


def notes(name, record):
    """Return what was measured on, and how right the answers are."""
    parts = list(record["parts"].values())
    rows = [
        row for part in parts for row in part.get("rows", [part]) if "ratios" in row
    ]
    answers = pd.DataFrame(
        [answer for row in rows for answer in row["answers"].values()]
    )
    kinds = " or ".join(sorted(answers["certificate"].str.split().str[0].unique()))
    return (
        f"- {name}: mkclust {record['versions']['mkclust']}, "
        f"{record['machine']}, {rows[0]['repetitions']} "
        f"repetitions. Certificates: {kinds}, gaps up to "
        f"{answers['relative_gap'].max():.0e}; weights within "
        f"{answers['weights_differ_by'].max():.0e} of a solve with `tol=1e-9`."
    )


def render(results):
    """Return everything that the documentation says of these results."""
    versions = {
        name: f"{name} (mkclust {record['versions']['mkclust']})"
        for name, record in results.items()
    }
    texts = [
        f"Figures: {' / '.join(versions.values())}.",
        table(results, PROBLEMS, "problem"),
    ]
    texts += [table(results, GROWTH, "what grows")]
    return "\n\n".join([*texts, "\n".join(notes(*item) for item in results.items())])


if __name__ == "__main__":
    print(render(read_results()))
