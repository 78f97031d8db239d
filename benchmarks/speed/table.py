"""Tables of what SimpleMKKM costs, and a line for the README, of all architectures measured.

    python benchmarks/speed/table.py

prints them; ``docs/make_results.py`` writes the tables into the documentation. A figure is the
median of a run; several architectures are a range, with the figure of each. The files are those
that ``measure.py`` wrote into ``results``.
"""

import argparse
import json
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"
# Columns by what they show of a row.
OF_PROBLEMS = {
    "solve, kernels prepared": ("ratios", "solve_prepared / base"),
    "solve, centered and scaled on the fly": ("ratios", "solve_on_the_fly / base"),
    "whole `fit`": ("ratios", "fit / alternative"),
    "memory": ("memory", "solve_on_the_fly"),
}
OF_GROWTH = {
    "mean and `eigsh`": ("exponents", "base"),
    "with k-means": ("exponents", "alternative"),
    "solve": ("exponents", "solve_prepared"),
    "whole `fit`": ("exponents", "fit"),
    "memory": ("memory_exponents", "solve_on_the_fly"),
}
FIXED = {"n": ("m", "k"), "m": ("n", "k"), "k": ("n", "m")}


def read_results(folder):
    """Return what was measured, by the name of the architecture in text."""
    files = sorted(Path(folder).glob("*.json"))
    return {file.stem.replace("_", "-"): json.loads(file.read_text()) for file in files}


def in_digits(value, digits):
    """Return a number with so many decimals, none from ten on."""
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.{digits}f}"


def as_range(figures, digits=1):
    """Return figures by architecture as a range, and which is whose."""
    if not figures:
        return "-"
    text = {name: in_digits(value, digits) for name, value in figures.items()}
    ends = [in_digits(end(figures.values()), digits) for end in (min, max)]
    if ends[0] == ends[1]:
        return f"{ends[0]} ({', '.join(text)})"
    return f"{'-'.join(ends)} ({', '.join(f'{name} {value}' for name, value in text.items())})"


def parts_by_name(results, wanted):
    """Return the parts that are wanted, each by architecture, in the order of the fullest file."""
    found = {name: record["parts"] for name, record in results.items()}
    order = [part for parts in sorted(found.values(), key=len, reverse=True) for part in parts]
    by_part = {
        part: {name: parts[part] for name, parts in found.items() if part in parts}
        for part in dict.fromkeys(order)
    }
    return {part: by_name for part, by_name in by_part.items() if wanted(first_of(by_name))}


def first_of(by_name):
    """Return what the first architecture has."""
    return next(iter(by_name.values()))


def markdown(header, rows):
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def figure(measured, group, key):
    """Return the figure of a column: the median where there is a spread."""
    value = measured[group][key]
    return value["median"] if isinstance(value, dict) else value


def cells(by_name, columns):
    """Return one row's cells, a range over the architectures in each."""
    for group, key in columns.values():
        figures = {name: figure(measured, group, key) for name, measured in by_name.items()}
        yield as_range(figures, digits=2 if group == "memory" or "exponents" in group else 1)


def problem_table(results):
    """Return the table of ratios and memory by problem."""
    parts = parts_by_name(results, lambda measured: "ratios" in measured)
    rows = [
        [first_of(by_name)["problem"], *cells(by_name, OF_PROBLEMS)] for by_name in parts.values()
    ]
    return markdown(["problem", *OF_PROBLEMS], rows)


def growth_table(results):
    """Return the table of exponents by what grows."""
    parts = parts_by_name(results, lambda measured: "exponents" in measured)
    rows = []
    for part, by_name in parts.items():
        first = first_of(by_name)
        fixed = ", ".join(f"{letter} = {first['rows'][0][letter]}" for letter in FIXED[part])
        title = f"{part} from {first['sizes'][0]} to {first['sizes'][-1]} ({fixed})"
        rows.append([title, *cells(by_name, OF_GROWTH)])
    return markdown(["what grows", *OF_GROWTH], rows) if rows else ""


def rows_of(record):
    """Return every row that was measured on a machine."""
    parts = record["parts"].values()
    rows = [part for part in parts if "ratios" in part]
    return rows + [row for part in parts for row in part.get("rows", ())]


def library_text(pool):
    """Return a BLAS with its version and threads, and whose it is."""
    fields = ("internal_api", "version", "architecture")
    named = " ".join(pool[field] for field in fields if field in pool)
    n_threads = pool["num_threads"]
    return f"{named} with {n_threads} thread{'s' * (n_threads != 1)} ({pool['of']})"


def machine_line(name, record):
    """Return what was measured on, how often, how far figures vary, and how right answers are."""
    rows = rows_of(record)
    pools = [pool for pool in record["machine"]["threads"] if pool["user_api"] == "blas"]
    libraries = " and ".join(map(library_text, pools)) or "an unknown BLAS"
    spreads = [values for row in rows for values in row["ratios"].values()]
    off = max(abs(q / v["median"] - 1) for v in spreads for q in v["quartiles"])
    answers = [answer for row in rows for answer in row["answers"].values()]
    kinds = sorted({answer["certificate"].split()[0] for answer in answers})
    repetitions = sorted({row["repetitions"] for row in rows})
    return (
        f"- {name}: {record['machine']['cores']} cores, {libraries}; "
        f"{' or '.join(map(str, repetitions))} repetitions, in which the quartiles of a "
        f"ratio lie within {100 * off:.0f} % of its median. Certificates: {' or '.join(kinds)}, "
        f"gaps up to {max(answer['relative_gap'] for answer in answers):.0e}; weights within "
        f"{max(answer['weights_differ_by'] for answer in answers):.0e} of a solve with `tol=1e-9`."
    )


def released_line(results):
    """Return how many times as long older ways take, where that was measured."""
    parts = parts_by_name(results, lambda measured: "times_slower" in measured)
    if not parts:
        return ""
    ways = {
        way: as_range(
            {name: part["times_slower"][way]["median"] for name, part in parts["released"].items()}
        )
        for way in ("released", "reduced_gradient")
    }
    return (
        "On UCI Digit the authors' released routine takes "
        f"{ways['released']} times as long as the solve, and the tuned reduced gradient "
        f"{ways['reduced_gradient']} times."
    )


def million_line(results):
    """Return what many samples take beside scikit-learn alone, where that was measured."""
    by_name = parts_by_name(results, lambda measured: "million" in measured).get("million", {})
    if not by_name:
        return ""
    by_name = {name: measured["million"] for name, measured in by_name.items()}
    ranges = {
        key: as_range({name: measured[key] for name, measured in by_name.items()})
        for key in ("ratio_to_plain", "ratio_to_sampled", "peak_gb")
    }
    return (
        f"{first_of(by_name)['n_samples']:,} samples by features of 200 landmarks a view: "
        f"{ranges['ratio_to_plain']} times as long as the same by scikit-learn alone, "
        f"{ranges['ratio_to_sampled']} where its k-means learns from 50,000 rows; at most "
        f"{ranges['peak_gb']} GB, the data included (`benchmarks/speed/million.py`)."
    )


def render(results):
    """Return everything that the documentation says of these results."""
    machines = "\n".join(machine_line(*item) for item in results.items() if rows_of(item[1]))
    texts = problem_table, growth_table, released_line, million_line
    return "\n\n".join(text for text in (*(make(results) for make in texts), machines) if text)


def summary(results):
    """Return the line of the README: ranges over all problems and architectures."""
    parts = [part for record in results.values() for part in record["parts"].values()]
    rows = [part for part in parts if "ratios" in part]  # problems, none of those that grow
    ends = {}
    for name in ("solve_prepared / base", "fit / alternative"):
        medians = [row["ratios"][name]["median"] for row in rows]
        ends[name] = " to ".join(in_digits(end(medians), 1) for end in (min, max))
    return (
        f"Speed was measured on two cores ({' and '.join(results)}). A solve takes "
        f"{ends['solve_prepared / base']} times as long as averaging the kernels and one call of "
        f"`eigsh`. A whole `fit` takes {ends['fit / alternative']} times as long as the same two "
        "steps followed by k-means. The ratios are smallest for many clusters."
    )


def main(arguments=None):
    """Print the line of the README, and the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the JSON files")
    options = parser.parse_args(arguments)
    results = read_results(options.results)
    print(summary(results), render(results), sep="\n\n")


if __name__ == "__main__":
    main()
