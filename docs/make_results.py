"""Pages of results, made of the rows that benchmarks have left in the repository.

The build of the documentation calls `write_results`, which writes
``docs/results/*.md``. Words are in ``docs/results_templates``; every number comes from
``benchmarks/results`` or ``benchmarks/speed/results``.
"""

import json
import sys
from pathlib import Path
from string import Template

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
RESULTS = BENCHMARKS / "results"
TEMPLATES = ROOT / "docs" / "results_templates"
sys.path[:0] = [str(ROOT / "src"), str(BENCHMARKS), str(BENCHMARKS / "paper")]

import compare  # noqa: E402
import pandas as pd  # noqa: E402

import agreement  # noqa: E402
import missing_views as missing  # noqa: E402
import records  # noqa: E402
from mkclust import METHODS  # noqa: E402
from mkclust.bench import tables  # noqa: E402
from mkclust.bench.rows import read_rows  # noqa: E402
from sets import FAMILIES, REAL  # noqa: E402
from speed import table as speed_table  # noqa: E402


def read_json(name):
    """Return a file of results."""
    return json.loads((RESULTS / name).read_text())


def digits(value, places=3):
    """Return a number with so many decimals; nothing where there is none."""
    return "" if value is None or value != value else f"{value:.{places}f}"


def markdown(header, rows):
    """Return a table in Markdown."""
    return pd.DataFrame(rows, columns=header).to_markdown(
        index=False, disable_numparse=True
    )


def class_names(keys):
    """Return the classes of methods, in code marks."""
    return [f"`{METHODS[key].__name__}`" for key in keys]


def score_tables(rows, selection):
    """Return the tables of all scores, one below the other."""
    frame = tables.outcomes(rows, selection)
    made = [tables.SELECTIONS[selection], *compare.caveat_notes(rows)]
    for score, title in tables.TITLES.items():
        made += [f"**{title}**", tables.score_table(frame, score).to_markdown()]
    return "\n\n".join(made)


def origin(*names):
    """Return what measured results, in Markdown: commands, versions, machines, days."""
    stamps = [records.read_stamp(BENCHMARKS / name) for name in names]
    commands = dict.fromkeys(each["command"] for each in stamps)
    unknown = "an earlier version, which was not written down"
    measured = dict.fromkeys(records.in_words(each) or unknown for each in stamps)
    lines = ["```", *commands, "```", "", f"Measured by {'; '.join(measured)}."]
    return {"origin": "\n".join(["The rows were made by", "", *lines])}


# The folders of the experiments of the paper.
EXPERIMENTS = ("paper", "resample", "released")


def paper():
    """Return what reproduces of the paper, and the scores of all methods."""
    rows, resampled, released = (read_rows(RESULTS / name) for name in EXPERIMENTS)
    default = tables.outcomes(rows)
    ranking = tables.rank_methods(tables.score_matrix(default, "acc"))
    reproduction = compare.reproduction(compare.comparison(rows))
    return {
        "n_rows": f"{len(rows):,}",
        "n_resampled": f"{len(resampled):,}",
        **origin(*(f"results/{name}/rows.jsonl.gz" for name in EXPERIMENTS)),
        "reproduction": reproduction.to_markdown(index=False),
        "default": score_tables(rows, "default"),
        "oracle": score_tables(rows, "oracle"),
        "ranks": f"{ranking.summary}\n\n{ranking.table.to_markdown(floatfmt='.2f')}",
        "resampled": score_tables(resampled, "default"),
        "released": score_tables(released, "default"),
    }


# A difference of adjusted Rand indices that is worth a word.
CLEAR = 0.02


def compared():
    """Return what other packages find on all sets, and where they are better."""
    record = read_json("peers.json")
    rows = pd.DataFrame(record["rows"])
    is_real = rows["set"].isin(REAL)
    by_set = rows.pivot_table("ari", "set", "contestant", sort=False)
    means = {
        "real sets": rows[is_real].pivot_table("ari", "contestant").ari,
        "families": by_set.loc[list(FAMILIES)].mean(),
        "cite": by_set.loc["cite"],
        "seconds": rows.groupby("contestant").seconds.sum(),
    }
    overview = pd.DataFrame(means).sort_values("real sets", ascending=False)
    ours = "AgreementKKM"
    others = overview.index.drop(ours)
    body = [
        [name, *map(digits, row[:-1]), f"{row.iloc[-1]:.0f}"]
        for name, row in overview.iterrows()
    ]

    wins = []
    for name in others:
        ahead = by_set.index[by_set[name] > by_set[ours] + CLEAR]
        families = [each for each in ahead if each not in REAL]
        real = [each for each in ahead if each in REAL]
        behind = int((by_set[name] < by_set[ours] - CLEAR)[list(REAL)].sum())
        wins.append([name, ", ".join(families), str(len(real)), str(behind)])

    tables_of = {}
    columns = list(overview.index)
    for part, names in (("families", (*FAMILIES, "cite")), ("real", REAL)):
        lines = [[name, *map(digits, by_set.loc[name, columns])] for name in names]
        tables_of[part] = markdown(["set", *columns], lines)
    failed = rows[rows.get("refused").notna()]
    return {
        **origin("results/peers.json"),
        "n_real": len(REAL),
        "n_families": len(FAMILIES),
        "n_seeds": rows[~is_real].seed.nunique(),
        "overview": markdown(["", *means], body),
        "wins": markdown(
            ["", "better on families", "better on real sets", "worse on real sets"],
            wins,
        ),
        "failed": "; ".join(
            f"{row.contestant} on {row.set} ({row.refused})"
            for row in failed.itertuples()
        ),
        **tables_of,
    }


def alternatives(words):
    """Return words as a list that ends with "or"."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def bad_views():
    """Return what views that say nothing do to every method."""
    variants = ("as it is", "noise", "levels", "shuffled", "copies", "two camps")
    header = [
        "method",
        *("category" if kind == "levels" else kind for kind in variants),
    ]
    path = RESULTS / "agreement/rows.jsonl.gz"
    found = records.read_rows(path).variant.unique()
    made = origin("results/agreement/rows.jsonl.gz")
    for kind in ("noise", "levels", "copies"):
        counts = [name.split()[1] for name in found if name.startswith(kind)]
        made[kind] = alternatives(sorted(counts, key=int))
    for title, means in agreement.mean_scores(path).items():
        keys = [key for key in METHODS if key in means.index]
        scores = [[digits(means.loc[key][kind]) for kind in variants] for key in keys]
        body = [
            [name, *row] for name, row in zip(class_names(keys), scores, strict=True)
        ]
        made["small" if title.startswith("small") else "all_data"] = markdown(
            header, body
        )
    return made


def missing_views():
    """Return what samples that are missing from views do."""
    rows = records.read_rows(RESULTS / "missing_views/rows.jsonl.gz")
    tables_of = {s.upper(): missing.mean_table(rows, s) for s in ("acc", "nmi", "ari")}
    overviews = (
        f"**{s}**\n\n{t.to_markdown(floatfmt='.1f')}" for s, t in tables_of.items()
    )
    return {
        **origin("results/missing_views/rows.jsonl.gz"),
        "n_seeds": rows.seed.nunique(),
        "overviews": "\n\n".join(overviews).replace(" nan ", "  -  "),
    }


def speed():
    """Return times and memory of SimpleMKKM, and times of all methods."""
    files = sorted((BENCHMARKS / "speed/results").glob("*.json"))
    names = [path.relative_to(BENCHMARKS) for path in files]
    return {
        **origin(*names, "results/times/rows.jsonl.gz"),
        "simple": speed_table.render(speed_table.read_results()),
        "times": tables.in_seconds(tables.time_table(read_rows(RESULTS / "times"))),
    }


def gpu():
    """Return what one GPU takes."""
    record = read_json("gpu.json")
    parts = record["parts"]
    million, flying, far = (parts[name] for name in ("million", "flying", "far"))
    any_number = parts["any_number"]
    solves = []
    for row in parts["solve"]["problems"]:
        sizes = [*(f"{row[key]:,}" for key in ("n", "m", "k")), row["dtype"]]
        gap, certificate = f"{row['relative_gap']:.0e}", row["certificate"].split()[0]
        found = digits(row["seconds"]), gap, certificate, str(row["passes"])
        solves.append([*sizes, *found, digits(row["memory_beside_kernels"], 2)])
    header = [
        "n",
        "m",
        "k",
        "type",
        "seconds",
        "gap",
        "certificate",
        "passes",
        "memory",
    ]
    k_means = []
    for row in parts["k_means"]:
        times = min(row["host_seconds"].values()), row["device_seconds"]
        k_means.append([f"{row['n']:,}", str(row["k"]), *(digits(s, 2) for s in times)])
    return {
        **origin("results/gpu.json"),
        **{key: record["versions"][key] for key in ("device", "torch")},
        "solves": markdown(header, solves),
        "million": digits(million["seconds"], 2),
        "flying_n": f"{flying['n']:,}",
        "flying_seconds": digits(flying["fit_seconds"], 1),
        "flying_gb": digits(flying["peak_gigabytes"], 1),
        "any_n": f"{any_number['n']:,}",
        "any_seconds": digits(any_number["fit_seconds"], 0),
        "any_gb": digits(any_number["peak_gigabytes"], 1),
        "far_n": f"{far['n']:,}",
        "far_seconds": digits(far["solve_seconds"], 0),
        "far_passes": far["passes"],
        "far_gb": digits(far["peak_gigabytes"], 1),
        "far_certificate": far["certificate"],
        "k_means": markdown(
            ["rows", "clusters", "on the host", "on the device"], k_means
        ),
    }


# The fits of parts of `scale.py`: one, or one by the name of a method or way.
OF_ONE_FIT = {
    "million": "SimpleMKKM, 200 landmarks per view",
    "cluster": "... by two dask workers",
    "ten_million": "SimpleMKKM, 200 landmarks per view, views in files",
    "any_number": "AgreementKKM",
    "any_million": "AgreementKKM",
    "files": "SimpleMKKM, kernels streamed from a file",
    "wide": "command line, a compressed text file of 20,000 columns",
}
OF_MANY_FITS = {
    "hdigit": "SimpleMKKM, Hdigit, {}",
    "sparse": "{}, one view sparse, 200 landmarks per view",
    "neighborhoods": "{}, neighborhoods, {}",
}


def fits_of(part):
    """Yield the names and figures of the fits of a part, however deep they are."""
    for name, found in part.items():
        if "seconds" in found:
            yield (name,), found
        else:
            yield from (((name, *names), fit) for names, fit in fits_of(found))


def scale():
    """Return what many samples take."""
    parts = read_json("scale.json")["parts"]
    growth, compared = parts["growth"], parts.get("compared")
    fits = [(title, parts[name]) for name, title in OF_ONE_FIT.items() if name in parts]
    for name, title in OF_MANY_FITS.items():
        found = fits_of(parts.get(name, {}))
        fits += [(title.format(*names), fit) for names, fit in found]
    plain = ""
    if compared is not None:
        runs = [turn["fit_plain"] for turn in compared["runs"]]
        fits += [("scikit-learn alone", run) for run in runs[:1]]
        plain = (
            f"SimpleMKKM took {compared['ratio']:.2f} times as long as scikit-learn "
            "alone, in turns."
        )
    keys = {"seconds": 1, "peak_gb": 2, "ari": 3}
    body = [
        [
            title,
            f"{fit.get('n_samples', 0):,}",
            *(digits(fit.get(k), keys[k]) for k in keys),
        ]
        for title, fit in fits
    ]
    pairs = zip(growth["n_samples"], growth["seconds"], strict=True)
    return {
        **origin("results/scale.json"),
        "fits": markdown(["what", "samples", *keys], body),
        "growth": ", ".join(f"{n:,} samples {s:.0f} s" for n, s in pairs),
        "exponent": digits(growth["exponent"], 2),
        "plain": plain,
    }


# Names of the criteria of the number of clusters, and of those that are added.
CRITERIA = {"eigengaps": "eigengap", "agreements": "agreement"}
HALVES = ("first", "untouched")


def rule_name(criteria):
    """Return the name of a rule that adds criteria."""
    return " + ".join(CRITERIA.get(each, each) for each in criteria.split(" + "))


def table_of_rules(found):
    """Return how often rules are right or within one, and what they lose, by part."""
    body = []
    for name, parts in found["rules"].items():
        cells = [rule_name(name)]
        for part in ("real", "families", "mixtures"):
            each = parts[part]
            right, within = each["right"], each["within one"]
            cells.append(f"{right} / {within} of {each['of']}, {each['regret']:.3f}")
            cells[-1] += f", {each['bias']:+.1f}"
        body.append(cells)
    return markdown(["rule", "real sets", "families", "mixtures"], body)


def table_of_sets(part):
    """Return what was found on the sets of a part, for both halves of the seeds."""
    rows = read_json("n_clusters/sets.json")["rows"]
    if part != "real":
        rows += read_json("n_clusters/sets-untouched.json")["rows"]
    body = []
    for row in rows:
        if row["part"] == part:
            candidates = ", ".join(map(str, row["candidates"]))
            cells = [row["set"], str(row["seed"]), str(row["true"]), candidates]
            body.append([*cells, digits(row["ari"]), digits(row["at true"])])
    header = ["set", "seed", "true", "candidates", "ARI of the best", "of the true"]
    return markdown(header, body)


def number_of_clusters():
    """Return how often a suggested number of clusters is right."""
    record, cost = (read_json(f"n_clusters/{name}.json") for name in ("rules", "cost"))
    judged = read_json("n_clusters/evidence-untouched.json")["rows"]
    kinds = dict.fromkeys((row["part"], row["set"]) for row in judged)
    evidence = []
    for part, name in kinds:
        given = [row["evidence"] for row in judged if row["set"] == name]
        counts = [str(given.count(word)) for word in ("none", "weak", "strong")]
        title = "without clusters" if part == "without" else "continuum"
        evidence.append([title, name, *counts])
    about = [
        [what, *(f"{record[half]['candidates'][what]:g}" for half in HALVES)]
        for what in record["first"]["candidates"]
    ]
    return {
        **origin("results/n_clusters/rules.json"),
        "first": table_of_rules(record["first"]),
        "untouched": table_of_rules(record["untouched"]),
        "candidates": markdown(["", "first seeds", "untouched seeds"], about),
        "evidence": markdown(["data", "kind", "none", "weak", "strong"], evidence),
        "without": digits(cost["without evidence, in fits"], 1),
        "with": digits(cost["with evidence, in fits"], 1),
        **{part: table_of_sets(part) for part in ("real", "families", "mixtures")},
    }


def cells():
    """Return what is found in cells, by every contestant and size."""
    record = read_json("cells.json")
    rows = pd.DataFrame(record["rows"])
    cite = rows[rows["cells"] == "cite"]
    first = cite[cite["seed"] == 1]

    def by_size(text):
        """Return a table by contestant and number of cells."""
        table = first.assign(text=text).pivot(
            index="contestant", columns="n", values="text"
        )
        header = ["", *(f"{n:,} cells" for n in table.columns)]
        kept = table.loc[first["contestant"].unique()]
        return markdown(header, kept.reset_index().to_numpy())

    def summary(part):
        """Return the mean, the range and the types of several samples."""
        body = []
        for name, each in part.groupby("contestant", sort=False):
            score = each["ari"]
            spread = f"{score.mean():.3f} ({score.min():.3f} to {score.max():.3f})"
            body.append([name, spread, span(each["types"])])
        return markdown(["", "adjusted Rand index", "types"], body)

    real = rows[rows["cells"].isin(["SNARE", "A549"])]
    scores = real.pivot(index="contestant", columns="cells", values="ari")
    scores = scores.loc[real["contestant"].unique()].map(digits)

    found = pd.DataFrame(record["numbers"]["cells"])
    rules = [
        [rule, span(each["clusters"]), span(each["types"]), span(each["ari"])]
        for rule, each in found.groupby("rule", sort=False)
    ]
    others = [
        [rule, *(digits(record["numbers"][part][rule]["mean"]) for part in OTHERS)]
        for rule in found["rule"].unique()
    ]
    costs = first["seconds"].astype(str) + " s, " + first["peak_gb"].astype(str) + " GB"
    return {
        **origin("results/cells.json"),
        "scores": by_size(first["ari"].map(digits) + ", " + first["types"].astype(str)),
        "costs": by_size(costs),
        "seeds": summary(cite[cite["n"] == 3000]),
        "multiome": summary(rows[rows["cells"] == "multiome"]),
        "real": markdown(["", *scores.columns], scores.reset_index().to_numpy()),
        "cells_by_rule": markdown(["", "clusters", "types", "adjusted Rand"], rules),
        "others_by_rule": markdown(["", "43 real sets", "15 families"], others),
    }


# Parts of `cells.py` on which the number of clusters is found, other than cells.
OTHERS = ("real", "families")


def span(values):
    """Return the range of values in words."""
    if values.min() == values.max():
        return f"{values.min():g}"
    return f"{values.min():g} to {values.max():g}"


PAGES = {"paper": paper, "agreement": bad_views}
PAGES |= {"missing_views": missing_views, "speed": speed, "gpu": gpu, "scale": scale}
PAGES |= {"compared": compared, "number_of_clusters": number_of_clusters}
PAGES |= {"cells": cells}


def write_results(folder=ROOT / "docs" / "results"):
    """Write all pages into a folder, and return their paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    made = {"index": {"pages": "\n".join(PAGES)}} | {
        name: make() for name, make in PAGES.items()
    }
    for name, values in made.items():
        template = Template((TEMPLATES / f"{name}.md.in").read_text(encoding="utf-8"))
        (folder / f"{name}.md").write_text(
            template.substitute(values), encoding="utf-8"
        )
    return [folder / f"{name}.md" for name in made]
