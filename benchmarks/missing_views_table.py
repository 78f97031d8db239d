"""Tables and a picture of the rows that `missing_views.py` writes."""

from collections import defaultdict

import numpy as np

SCORES = ("acc", "nmi", "ari")
TITLES = {"digit": "UCI Digit", "digits": "Digits", "msrc-v5": "MSRC-v5", "bbcsport": "BBCSport"}
OURS = ("SimpleMKKM, rescale", "SimpleMKKM, zero", "SimpleMKKM, learn")
OURS += ("AgreementKKM, rescale", "AgreementKKM, zero", "AgreementKKM, learn")
SIMPLE_FILLS = ("zero fill", "mean fill", "kNN fill", "kNN fill, balanced")
OTHERS = ("inner join + predict", *SIMPLE_FILLS, "NEMO", "EE-IMVC", "EE-IMVC, same kernels")
PARTIAL = "inner join"
FILLS = ("rescale", "zero", "learn")
ABLATION = ("SimpleMKKM", "SimpleMKKM (gaussian)", "MKKM")
STYLES = {
    "SimpleMKKM, rescale": ("C0", "-", "o"),
    "SimpleMKKM, learn": ("C0", "--", "s"),
    "AgreementKKM, rescale": ("C1", "-", "o"),
    "AgreementKKM, learn": ("C1", "--", "s"),
    "inner join + predict": ("C2", ":", "v"),
    "zero fill": ("0.7", "--", "^"),
    "mean fill": ("0.6", ":", "^"),
    "kNN fill": ("0.4", "-", "x"),
    "kNN fill, balanced": ("0.2", "--", "x"),
    "NEMO": ("C4", "-", "d"),
    "EE-IMVC, same kernels": ("C3", "-", "d"),
}


class Scores:
    """Scores in percent by data set, competitor and rate; those that gave no answer are absent."""

    def __init__(self, rows):
        self.values = defaultdict(dict)
        self.failures = defaultdict(list)
        self.missing = defaultdict(list)
        self.scored = defaultdict(list)
        for row in rows:
            key = row["dataset"], row["competitor"], row["rate"]
            self.missing[row["dataset"], row["rate"]].append(row["missing"])
            if row["status"] != "ok":
                self.failures[key].append(row["status"])
                continue
            self.scored[key].append(row["scored"])
            for score in SCORES:
                self.values[*key, score][row["seed"]] = 100 * row[score]
        seeds = [len(found) for found in self.values.values()]
        self.n_seeds = max(seeds, default=0)
        self.datasets = [name for name in TITLES if any(key[0] == name for key in self.missing)]
        self.rates = sorted({rate for _, rate in self.missing})

    def mean(self, dataset, competitor, rate, score="acc"):
        """Return the mean over seeds, NaN where one of them has no answer."""
        found = self.values.get((dataset, competitor, rate, score))
        if not found or (dataset, competitor, rate) in self.failures:
            return np.nan
        return float(np.mean(list(found.values())))

    def cell(self, dataset, competitor, rate, score, is_best=False):
        """Return mean and standard deviation in words."""
        found = list(self.values.get((dataset, competitor, rate, score), {}).values())
        if not found:
            return "-"
        deviation = np.std(found, ddof=1) if len(found) > 1 else 0.0
        mean = f"**{np.mean(found):.1f}**" if is_best else f"{np.mean(found):.1f}"
        note = f" ({len(found)})" if len(found) < self.n_seeds else ""
        return f"{mean} ± {deviation:.1f}{note}"


def print_table(found, dataset, score):
    """Print all competitors of a data set by rate, the best of those on all samples bold."""
    rates = found.rates
    print(f"\n**{TITLES[dataset]}, {score.upper()}**\n")
    print("| missing per view, % |", " | ".join(map(str, rates)), "|")
    print("| --- |" + " --- |" * len(rates))
    shares = [found.missing.get((dataset, rate)) for rate in rates]
    cells = ["-" if share is None else f"{100 * np.mean(share):.0f}" for share in shares]
    print("| missing of all samples x views, % |", " | ".join(cells), "|")
    complete = [c for c in (*OURS, *OTHERS) if any((dataset, c, r) in found.scored for r in rates)]
    best = {}
    for rate in rates:
        means = [found.mean(dataset, c, rate, score) for c in complete]
        best[rate] = np.nanmax(means) if not np.isnan(means).all() else np.nan
    for competitor in complete:
        cells = []
        for rate in rates:
            mean = found.mean(dataset, competitor, rate, score)
            cells.append(found.cell(dataset, competitor, rate, score, mean >= best[rate] - 0.05))
        print(f"| {competitor} |", " | ".join(cells), "|")
    cells, covered = [], []
    for rate in rates:
        cells.append(found.cell(dataset, PARTIAL, rate, score))
        share = found.scored.get((dataset, PARTIAL, rate))
        covered.append(f"{100 * np.mean(share):.0f}" if share else "-")
    print(f"| *{PARTIAL}, on its own samples* |", " | ".join(cells), "|")
    print("| *these are of all samples, %* |", " | ".join(covered), "|")


def print_verdict(found, dataset, competitor):
    """Say in a sentence where a competitor is below the best simple fill, in accuracy."""
    below, compared = [], 0
    for rate in filter(None, found.rates):
        own = found.values.get((dataset, competitor, rate, "acc"), {})
        fills = {fill: found.values.get((dataset, fill, rate, "acc"), {}) for fill in SIMPLE_FILLS}
        seeds = set(own).intersection(*fills.values())
        if not seeds:
            continue
        compared += 1
        means = {fill: np.mean([scores[s] for s in seeds]) for fill, scores in fills.items()}
        best, mean = max(means, key=means.get), np.mean([own[seed] for seed in seeds])
        if mean < means[best] - 0.05:
            below.append(f"{rate} % ({mean:.1f} for {means[best]:.1f}, {best})")
    if not compared:
        return
    where = f"below the best simple fill at {', '.join(below)}" if below else ""
    where = where or f"at least as good as the best simple fill at all {compared} rates"
    print(f"- {TITLES[dataset]}: {competitor} is {where}.")


def print_overview(found, score):
    """Print means over data sets."""
    print(f"\n**Mean over data sets, {score.upper()}**\n")
    print("| missing per view, % |", " | ".join(map(str, found.rates)), "|")
    print("| --- |" + " --- |" * len(found.rates))
    rows = {}
    for competitor in (*OURS, *OTHERS):
        means = [
            np.mean([found.mean(name, competitor, rate, score) for name in found.datasets])
            for rate in found.rates
        ]
        if not np.isnan(means).all():
            rows[competitor] = means
    best = np.max(np.nan_to_num(list(rows.values())), axis=0)
    for competitor, means in rows.items():
        cells = [
            "-" if np.isnan(mean) else f"**{mean:.1f}**" if mean >= top - 0.05 else f"{mean:.1f}"
            for mean, top in zip(means, best, strict=True)
        ]
        print(f"| {competitor} |", " | ".join(cells), "|")


def print_ablation(found, rows):
    """Print accuracies less those of the complete views, by method, kernels and way to fill."""
    seeds = {row["seed"] for row in rows if row["competitor"].startswith("MKKM")}
    rates = sorted({row["rate"] for row in rows if row["competitor"].startswith("MKKM")})
    if not seeds:
        return
    few = Scores([row for row in rows if row["seed"] in seeds])
    print(f"\n**Accuracy less that of the complete views** ({len(seeds)} seeds)\n")
    lost = [rate for rate in rates if rate]
    titles = [f"{TITLES[name]}, {rate} %" for name in few.datasets for rate in lost]
    print("| method, missing_views |", " | ".join(titles), "|")
    print("| --- |" + " --- |" * len(titles))
    for method in ABLATION:
        for fill in FILLS:
            cells = []
            for name in few.datasets:
                complete = few.mean(name, f"{method}, {fill}", 0)
                means = [few.mean(name, f"{method}, {fill}", rate) for rate in lost]
                cells += ["-" if np.isnan(m - complete) else f"{m - complete:+.1f}" for m in means]
            print(f"| {method}, {fill} |", " | ".join(cells), "|")


def draw(found, path):
    """Draw accuracy against rate, a panel a data set."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(found.datasets), figsize=(4 * len(found.datasets), 4.4))
    for axis, dataset in zip(np.atleast_1d(axes), found.datasets, strict=True):
        for competitor, (color, line, marker) in STYLES.items():
            means = [found.mean(dataset, competitor, rate) for rate in found.rates]
            style = {"color": color, "linestyle": line, "marker": marker, "markersize": 4}
            axis.plot(found.rates, means, label=competitor, **style)
        axis.set(title=TITLES[dataset], xlabel="missing per view, %")
        axis.grid(alpha=0.3)
    np.atleast_1d(axes)[0].set_ylabel("accuracy on all samples, %")
    handles, labels = np.atleast_1d(axes)[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=5, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.12, 1, 1))
    figure.savefig(path, dpi=150)


def print_failures(found):
    """Print what competitors without an answer said, once each."""
    said = defaultdict(set)
    for (dataset, competitor, rate), messages in found.failures.items():
        for message in messages:
            said[competitor, message].add((dataset, rate))
    for (competitor, message), where in sorted(said.items()):
        places = ", ".join(f"{dataset} {rate} %" for dataset, rate in sorted(where))
        print(f"- {competitor}: {message} ({places})")


def print_tables(rows, options):
    """Print the tables, what they say in words, and draw the picture."""
    keys = ("dataset", "rate", "seed", "competitor")
    rows = list({tuple(row[key] for key in keys): row for row in rows}.values())
    found = Scores(rows)
    print(
        f"Means and standard deviations over {found.n_seeds} seeds, or as many as are in brackets; "
        "in percent, on all samples."
    )
    for score in SCORES:
        print_overview(found, score)
    print()
    for competitor in OURS:
        for dataset in found.datasets:
            print_verdict(found, dataset, competitor)
    print_ablation(found, rows)
    for score in SCORES:
        for dataset in found.datasets:
            print_table(found, dataset, score)
    if found.failures:
        print("\nWithout an answer:\n")
        print_failures(found)
    if options.picture:
        draw(found, options.picture)
