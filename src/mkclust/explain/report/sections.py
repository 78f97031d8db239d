"""The sections of a report, in the order in which a person reads them."""

import base64
import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from mkclust.agreements import p_text
from mkclust.explain.diagnose import Diagnosis
from mkclust.explain.report.blocks import (
    Block,
    Column,
    Definitions,
    Download,
    Fold,
    Items,
    Picture,
    Quotation,
    Row,
    Section,
    Stack,
    Table,
    Text,
)
from mkclust.explain.report.collect import ReportData
from mkclust.explain.survival import SurvivalComparison
from mkclust.text import count, join_words, printable, spreadsheet_text
from mkclust.watch import steps

# Clusters up to which tables have a column for each.
MOST_COLUMNS = 30
# Features listed for each cluster and view.
N_FEATURES = 3

Pictures = Mapping[str, Picture]


def sections(
    data: ReportData, pictures: Pictures, methods: Sequence[str], run: Sequence[Block]
) -> list[Section]:
    """Return the sections that have something to say."""
    # Blocks, some of which take long, are made one section at a time.
    planned: list[tuple[str, str, Iterable[Block]]] = [
        ("clusters", "Sizes and stability", _clusters(data, pictures)),
        ("features", "What sets them apart", _features(data, pictures)),
        ("annotation", "Other variables", _variables(data, pictures)),
        ("classes", "Given classes", _classes(data, pictures)),
        ("numbers", "Numbers of clusters", _numbers(data, pictures)),
        ("kernels", "The views", _views(data, pictures)),
        ("missing", "Missing samples", _missing(data)),
        ("run", "Methods", [Quotation("Methods", methods)]),
        ("details", "Details", chain(_details(data, pictures), run)),
    ]
    made = [
        Section(name, title, list(blocks)) for name, title, blocks in steps(planned)
    ]
    return [section for section in made if section.blocks]


def _clusters(data: ReportData, pictures: Pictures) -> Iterator[Block]:
    """Yield the table of the clusters, the samples without one, and a map."""
    clusters = data.clusters
    sizes = clusters["size"].to_numpy()
    total = max(int(data.known.sum()), 1)
    columns = [
        Column("Cluster", data.titles),
        Column("Samples", sizes, ",d", bars=sizes / max(sizes.max(), 1)),
        Column("Percent", 100 * sizes / total, ".1f"),
    ]
    if data.clarity.separation is not None:
        shown = clusters["mean"].clip(0, 1)
        columns.append(
            Column(
                "Silhouette",
                clusters["mean"],
                ".2f",
                "from -1 to 1, how much nearer its samples are to it than to the next "
                "cluster; high for a cloud that is cut, too",
                shown,
            )
        )
    if data.stability is not None:
        stable = data.stability.clusters
        meaning = "share of the refits in which its samples stay in it"
        columns.append(Column("Stability", stable, ".2f", meaning, stable))
    if data.description is not None:
        # Two features of each of three views have room.
        n_features = 2
        if data.description.table["view"].nunique() > 3:
            n_features = 1
        words = [
            data.description.by_view(cluster, n_features)
            for cluster in range(len(data.titles))
        ]
        columns.append(Column("Set apart by", words))
    yield Table("The clusters", columns)
    if data.unknown:
        further = count(len(data.unknown), "further sample")
        yield Text(
            f"{further} without any entry in the views that are used, with the label "
            f"-1: {join_words(data.unknown, 30)}."
        )
    n = count(len(data.labels), "sample")
    yield Download(
        f"Save the clusters of {n} (CSV)", "clusters.csv", _base64(_labels_csv(data))
    )


def _features(data: ReportData, pictures: Pictures) -> Iterator[Block]:
    """Yield the heat map, which view separates which clusters, and the features."""
    if "heatmap" in pictures:
        yield pictures["heatmap"]
    beside: list[Block] = []
    if data.separation is not None:
        words = Items(data.separation.sentences())
        beside.append(Stack([pictures["separation"], words]))
    yield Row([*beside, pictures["map"]])
    if data.description is None:
        return
    effects = [
        row
        for cluster in range(len(data.titles))
        for view in data.description.table["view"].unique()
        for row in data.description.strongest(cluster, N_FEATURES, view)
    ]
    notes = [Text(note, "quiet") for note in data.description.notes]
    if not effects:
        yield Text("No feature stands out in any cluster.")
        yield from notes
        return
    titles = [data.titles[row.cluster] for row in effects]
    difference = "difference of means in pooled standard deviations, or of shares"
    table = Table(
        "Features of the clusters",
        [
            Column("Cluster", titles),
            Column("View", [row.view for row in effects]),
            Column("Feature", [row.feature for row in effects]),
            Column("Effect", [row.effect for row in effects], "+.2f", difference),
            Column("Inside", [row.mean_in for row in effects], ".4g"),
            Column("Outside", [row.mean_out for row in effects], ".4g"),
            Column("Missing", [row.n_missing for row in effects], ",d"),
        ],
    )
    why = Text(
        "There are no p-values: the clusters were made to differ in these features.",
        "quiet",
    )
    yield Fold("The features of each cluster", [table, why, *notes])


def _variables(data: ReportData, pictures: Pictures) -> Iterator[Block]:
    """Yield survival, variables that differ, and the tests of all variables."""
    found = data.annotation
    if found is None:
        return
    for name, comparison in found.comparisons.items():
        beside: list[Block] = [Items(found.about_survival(name))]
        if len(comparison.hazards):
            beside.append(_table_of_hazards(name, comparison))
        yield Row([pictures[f"survival {name}"], Stack(beside)])
    beside = [each for name, each in pictures.items() if name.startswith("variable")]
    tests = found.table[found.table["reason"] == ""]
    blocks: list[Block] = []
    if len(tests):
        columns = [
            Column("Variable", tests["variable"]),
            Column("Test", tests["test"]),
            Column("Samples", tests["n_samples"], ",d"),
            Column("Statistic", tests["statistic"], ".4g"),
            Column("p-value", tests["p_value"], found.p_text),
            Column("Adjusted p", tests["p_adjusted"], found.adjusted_text),
        ]
        yield Row(beside)
        yield Table("Variables against the clusters", columns)
        blocks.append(Text(found.about_p_values(), "quiet"))
    differences = found.differences
    if len(differences) and differences.shape[1] <= MOST_COLUMNS:
        columns = [
            Column("Variable", differences["variable"]),
            Column("Value", differences["value"]),
        ]
        columns += [Column(c, differences[c], ".3g") for c in differences.columns[2:]]
        blocks.append(
            Table(
                "Variables that differ (adjusted p-value below 0.05), by cluster",
                columns,
            )
        )
    for name, comparison in found.comparisons.items():
        pairs = comparison.pairs
        columns = [
            Column("Cluster", pairs["one"]),
            Column("Other", pairs["other"]),
            Column("Statistic", pairs["statistic"], ".3g"),
            Column("p-value", pairs["p_value"], p_text),
            Column("Adjusted p", pairs["p_adjusted"], p_text, "for all pairs, by Holm"),
        ]
        if len(pairs):
            blocks.append(Table(f"Survival of two clusters ({name})", columns))
    blocks += [Text(sentence, "quiet") for sentence in found.untested]
    yield Fold("Values by cluster, pairs, and what was not tested", blocks)


def _table_of_hazards(name: str, comparison: SurvivalComparison) -> Table:
    """Return hazard ratios, with what they are adjusted for and how many samples."""
    of = "unadjusted"
    if comparison.adjusted_for:
        of = f"adjusted for {join_words(comparison.adjusted_for)}"
    samples = count(comparison.n_samples, "sample")
    events = count(comparison.n_events, "event")
    hazards = comparison.hazards
    interval = [f"{each.low:.2f} to {each.high:.2f}" for each in hazards.itertuples()]
    return Table(
        f"Hazard ratios ({name}), {of}: {samples}, {events}",
        [
            Column("Compared", hazards["term"]),
            Column("Ratio", hazards["hazard_ratio"], ".2f"),
            Column("95% interval", interval),
            Column("p-value", hazards["p_value"], p_text),
        ],
    )


def _classes(data: ReportData, pictures: Pictures) -> Iterator[Block]:
    """Yield scores against given classes."""
    scores = data.class_scores
    if scores is None:
        return
    table = Table(
        "Scores against the given classes",
        [
            Column("Clusters of", scores.index),
            Column(
                "ACC", scores["acc"], ".1f", "percent in the cluster of their class"
            ),
            Column("NMI", scores["nmi"], ".1f", "mutual information, in percent"),
            Column(
                "Purity",
                scores["purity"],
                ".1f",
                "percent in their cluster's class",
            ),
            Column("ARI", scores["ari"], ".1f", "adjusted Rand index, in percent"),
        ],
    )
    yield Row([pictures["classes"], table])


def _numbers(data: ReportData, pictures: Pictures) -> Iterator[Block]:
    """Yield how other numbers of clusters compare, and the tree of the clusters."""
    found = data.suggestion
    if found is None:
        return
    yield Text(found.verdict().partition(". ")[2])
    yield Row([pictures["numbers"], pictures["tree"]])
    tight = "how near samples are to the centers of their clusters, from 0 to 1"
    columns = [
        Column("Clusters", found.k_values, "d"),
        Column("Score", found.scores, ".2f", "the next three, each from 0 to 1, added"),
        Column("Eigengap", found.eigengaps, ".3f", "drop of the graph's eigenvalues"),
        Column("Tightness", found.tightness, ".2f", tight),
        Column("Agreement", found.agreements, ".2f", "ARI of clusters in two graphs"),
        Column("Stability", found.stabilities, ".2f", "mean ARI of resamples"),
    ]
    yield Fold("All numbers that were tried", [Table("Numbers of clusters", columns)])


def _views(data: ReportData, pictures: Pictures) -> Iterator[Block]:
    """Yield weights and agreement of the views, and what stands out."""
    model = data.model
    drawn = [pictures[name] for name in ("weights", "agreement") if name in pictures]
    yield Row(drawn)
    found = data.diagnosis
    yield Items([*_about_views(data), *_about_groups(data)])
    noun = data.noun
    columns = [Column(noun.capitalize(), model.kernel_names_)]
    if not data.has_equal_weights:
        meaning = f"how much a {noun} counts. {_named(model.WEIGHT_MEANING, noun)}"
        columns.append(Column("Weight", model.weights_, ".3f", meaning.rstrip(".")))
    share = f"the share of the leading structure of a {noun} that is in the clusters"
    columns.append(Column("Alignment", model.alignments_, ".2f", share))
    if hasattr(model, "approximation_error_"):
        missed = f"share of the {noun} that the features do not capture"
        columns.append(Column("Missed", model.approximation_error_, ".3f", missed))
    if found is not None:
        columns += list(_columns_of_diagnosis(found))
    blocks: list[Block] = [Table(f"What each {noun} contributes", columns)]
    agreement = data.agreement
    if agreement is not None and agreement.n_independent_views > 1:
        blocks.append(_table_of_agreement(agreement))
        blocks.append(Text(_about_agreement(agreement), "quiet"))
    yield Fold("The views in numbers", blocks)


def _about_views(data: ReportData) -> Iterator[str]:
    """Yield which views are not used, whether they count the same, and what matters."""
    model = data.model
    noise: tuple[str, ...] = ()
    sentences = []
    if data.diagnosis is not None:
        noise = data.diagnosis.noise
        sentences = data.diagnosis.sentences()
        if not noise:  # the first lines of the page say which views agree
            sentences = data.diagnosis.about_clusters()
    for name in getattr(model, "set_aside_", ()):
        if name not in noise:
            yield f"{printable(name)} is not used: it agrees with no view that is."
    n_used = np.count_nonzero(model.weights_)
    if data.has_equal_weights and n_used > 1:
        yield f"The {n_used} {data.noun}s that are used have equal weights."
    yield from sentences


def _named(text: str, noun: str) -> str:
    """Return what the library says of kernels, by another name of them."""
    return text.replace("kernel", noun)


def _columns_of_diagnosis(found: Diagnosis) -> Iterator[Column]:
    """Yield what clustering again has found of each kernel."""
    table = found.table
    alone = f"ARI of the clusters of this {found.noun} alone with those above"
    without = f"ARI of the clusters without this {found.noun} with those above"
    gap = "relative gap in its spectrum at the number of clusters"
    yield Column("Alone", table["agreement"], ".2f", alone)
    yield Column("Without it", table["leave_one_out"], ".2f", without)
    yield Column("Cluster gap", table["cluster_gap"], ".2f", gap)
    top = "share of its trace in its leading eigenvalues"
    yield Column("Top share", table["top_share"], ".2f", top)


def _table_of_agreement(agreement: Any) -> Table:
    """Return which view each view agrees with most."""
    pairs = [(p, agreement.closest(p)) for p in range(len(agreement.names))]

    def of_pairs(matrix: Any) -> list[Any]:
        """Return the entries of a matrix for every view and the one closest to it."""
        return [matrix[pair] for pair in pairs]

    columns = [
        Column("View", agreement.names),
        Column("Closest to", [agreement.names[q] for _, q in pairs]),
        Column(
            "Shared",
            of_pairs(agreement.alignments),
            ".3f",
            "1 for copies, about 0 for independent views (debiased CKA)",
        ),
        Column(
            "Deviations", of_pairs(agreement.scores), ".1f", "from chance, standardized"
        ),
        Column(
            "p-value", of_pairs(agreement.p_values), p_text, "of sharing it by chance"
        ),
    ]
    if agreement.is_incomplete:
        common = of_pairs(agreement.pair_samples)
        columns.append(Column("Samples in common", common, ",d"))
    return Table("The closest view of each", columns)


def _about_agreement(agreement: Any) -> str:
    """Return when two views agree."""
    return f"Two views agree with p-values below {agreement.limits_in_words()}."


def _about_groups(data: ReportData) -> Iterator[str]:
    """Yield groups and copies of views, and what to ask if none agree."""
    agreement = data.agreement
    if agreement is None:
        return
    if agreement.n_independent_views == 1:
        yield "Kernels of one view prove nothing about each other."
    if len(agreement.groups) > 1:
        groups = [
            join_words([agreement.names[p] for p in group], 30)
            for group in agreement.groups
        ]
        yield (
            f"There are several answers, one for each group of views: "
            f"{'; '.join(groups)}. Fit the views of another group alone to see its "
            "clusters."
        )
    for copies in agreement.copies:
        yield f"Close copies, counted as one view: {join_words(copies, 30)}."
    if agreement.is_testable and not agreement.any_share:
        yield (
            "Each view may be noise, or have structure that no other has. Are samples "
            "compared as they should be (scales, sparse counts)? If you know that one "
            "view is right, cluster it alone."
        )


def _missing(data: ReportData) -> Iterator[Block]:
    """Yield whether clusters follow which views samples lack."""
    missing = getattr(data.model, "missingness_", None)
    if missing is None:
        return
    lacking = missing.view_counts.sum(1)
    total = missing.sizes.sum()
    mutual = "adjusted mutual information of the missing samples and the clusters"
    columns = [
        Column("View", missing.view_names),
        Column("Observed", total - lacking, ",d"),
        Column("Missing", lacking, ",d", bars=lacking / total),
        Column("AMI", missing.view_agreements, ".2f", mutual),
        Column("p-value", missing.view_p_values, missing.p_text),
    ]
    blocks: list[Block] = [Table("Views with missing samples", columns)]
    if len(data.titles) <= MOST_COLUMNS:
        patterns = list(missing.rows())
        columns = [Column("Missing from", [words for words, _ in patterns])]
        for cluster, title in enumerate(data.titles):
            values = [counts[cluster] for _, counts in patterns]
            columns.append(Column(title, values, ",d"))
        caption = "Samples by missing views (rows) and cluster (columns)"
        blocks.append(Table(caption, columns))
    yield Row(blocks)


def _details(data: ReportData, pictures: Pictures) -> Iterator[Block]:
    """Yield what a statistician asks for: stability, similarities, the solution."""
    found = data.stability
    worst = data.least_stable
    if found is not None and worst:
        yield Fold(
            "The least stable samples",
            [
                Text(
                    f"Refits on {found.size:,} of {int(data.known.sum()):,} samples "
                    f"agree to {found.agreements.min():.2f} at least (adjusted Rand "
                    "index).",
                    "quiet",
                ),
                Table(
                    "The least stable samples",
                    [
                        Column("Sample", [data.ids[each] for each in worst]),
                        Column("Cluster", [data.titles[c] for c in data.labels[worst]]),
                        Column("Stability", found.samples[worst], ".2f"),
                        Column("Silhouette", data.scores.silhouette[worst], ".2f"),
                        Column("Margin", data.scores.margin[worst], ".2f"),
                    ],
                ),
            ],
        )
    mixed = _named(data.model.describe_mixed_kernel(), data.noun)
    words = f"The similarities are {mixed}."
    yield Fold("Similarities", [pictures["similarities"], Text(words, "quiet")])
    solution = list(_solution(data))
    if "convergence" in pictures:
        solution.append(pictures["convergence"])
    if solution:
        yield Fold("Convergence and certificate", solution)


def _solution(data: ReportData) -> Iterator[Block]:
    """Yield the certificate, or whether the search converged, if there was one."""
    model = data.model
    if data.gap is not None:
        proof = f"It is {model.certificate_} that the eigensolver missed nothing."
        if model.certificate_.startswith("searched"):
            rest = model.certificate_.removeprefix("searched")
            proof = (
                "A search for eigenvectors that the eigensolver might have missed "
                f"found none{rest}."
            )
        yield Text(
            f"Certified: the objective is within a relative {data.gap} of the global "
            f"optimum of the{' approximated' if data.is_approximated else ''} relaxed "
            f"problem. {proof} This does not say that clusters exist, that their "
            f"number is right, or that the {data.noun}s are good."
        )
    elif not data.solves_one_problem:
        end = "converged" if model.converged_ else "stopped before it converged,"
        yield Text(
            f"{type(model).__name__} {end} after {count(model.n_iter_, 'iteration')}. "
            "It has no certificate: other weights may have a better objective."
        )
    if data.agreed_ari is not None:
        yield Text(
            "Adjusted Rand index with the clusters that the views agree on: "
            f"{data.agreed_ari:.2f}."
        )


def run_blocks(
    parameters: Mapping[str, str], versions: Mapping[str, str]
) -> list[Fold]:
    """Return the parameters and the versions of a fit."""
    return [
        Fold("Parameters", [Definitions(parameters)]),
        Fold("Versions", [Definitions(versions)]),
    ]


def _labels_csv(data: ReportData) -> bytes:
    """Return ids and clusters as the bytes of a table."""
    ids = [spreadsheet_text(name) for name in data.ids]
    table = pd.DataFrame({"id": ids, "cluster": data.labels})
    if data.names is not None:
        by_number = dict(enumerate(map(spreadsheet_text, data.names)))
        table["name"] = [by_number.get(label, "") for label in data.labels]
    # Quotes around all ids: some versions of Python leave a carriage return without
    # them.
    write = partial(table.to_csv, index=False, lineterminator="\n")
    return write(quoting=csv.QUOTE_NONNUMERIC).encode("utf-8", "backslashreplace")


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
