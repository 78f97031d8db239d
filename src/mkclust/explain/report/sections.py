"""The sections of a report, in the order in which a person reads them."""

import base64
import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import pandas as pd

from mkclust.agreements import Agreement, p_text
from mkclust.explain.annotation import Annotation
from mkclust.explain.report.blocks import Block, Column
from mkclust.explain.report.collect import ReportData
from mkclust.explain.stability import Stability
from mkclust.explain.survival import SurvivalComparison
from mkclust.fit.same_input import is_approximated
from mkclust.metrics import scores
from mkclust.text import count, join_words, printable, spreadsheet_text
from mkclust.watch import steps

# Clusters up to which tables have a column for each.
MOST_COLUMNS = 30
# Features listed for each cluster and view.
N_FEATURES = 3
# Unstable samples that are listed.
MOST_LISTED = 25

Pictures = Mapping[str, Block]


def sections(
    data: ReportData, pictures: Pictures, methods: Sequence[str], run: Sequence[Block]
) -> list[Block]:
    """Return the sections that have something to say."""
    # Blocks, some of which take long, are made one section at a time.
    planned: list[tuple[str, str, Iterable[Block]]] = [
        ("clusters", "Sizes and stability", _clusters(data)),
        ("features", "What sets them apart", _features(data, pictures)),
        ("annotation", "Other variables", _variables(data, pictures)),
        ("classes", "Given classes", _classes(data, pictures)),
        ("numbers", "Numbers of clusters", _numbers(data, pictures)),
        ("kernels", "The views", _views(data, pictures)),
        ("missing", "Missing samples", _missing(data)),
        ("run", "Methods", [Block("quotation", methods, "Methods")]),
        ("details", "Details", chain(_details(data, pictures), run)),
    ]
    made = [
        Block("section", list(blocks), title, name)
        for name, title, blocks in steps(planned)
    ]
    return [section for section in made if section.content]


def _clusters(data: ReportData) -> Iterator[Block]:
    """Yield the table of the clusters, the samples without one, and a file of all."""
    clusters = data.clusters
    sizes = clusters["size"].to_numpy()
    total = max(int(data.known.sum()), 1)
    columns = [
        Column("Cluster", data.titles),
        Column(
            "Samples",
            sizes,
            ",d",
            bars=sizes / max(sizes.max(), 1),
        ),
        Column("Percent", 100 * sizes / total, ".1f"),
    ]
    if data.clarity.separation is not None:
        meaning = (
            "from -1 to 1, how much nearer its samples are to it than to the next "
            "cluster; high for a cloud that is cut, too"
        )
        means = clusters["mean"]
        columns.append(
            Column(
                "Silhouette",
                means,
                ".2f",
                meaning,
                means.clip(0, 1),
            )
        )
    if data.stability is not None:
        stable = data.stability.clusters
        meaning = "share of the refits in which its samples stay in it"
        columns.append(
            Column(
                "Stability",
                stable,
                ".2f",
                meaning,
                stable,
            )
        )
    if data.description is not None:
        # Two features of each of three views have room.
        n_features = 2 if data.description.table["view"].nunique() <= 3 else 1
        every = range(len(data.titles))
        words = [data.description.by_view(cluster, n_features) for cluster in every]
        columns.append(Column("Set apart by", words))
    yield Block("table", columns, "The clusters")
    if data.unknown:
        further = count(len(data.unknown), "further sample")
        yield Block(
            "text",
            f"{further} without any entry in the views that are used, with the label "
            f"-1: {join_words(data.unknown, 30)}.",
        )
    title = f"Save the clusters of {count(len(data.labels), 'sample')} (CSV)"
    yield Block("download", _labels_csv(data), title, "clusters.csv")


def _labels_csv(data: ReportData) -> str:
    """Return ids and clusters as a table, in base64."""
    ids = [spreadsheet_text(name) for name in data.ids]
    table = pd.DataFrame({"id": ids, "cluster": data.labels})
    if data.names is not None:
        names = dict(enumerate(map(spreadsheet_text, data.names)))
        table["name"] = table["cluster"].map(names)
    # Quotes around all ids: some versions of Python leave a carriage return without
    # them.
    quoting = csv.QUOTE_NONNUMERIC
    text = table.to_csv(index=False, lineterminator="\n", quoting=quoting)
    return base64.b64encode(text.encode("utf-8", "backslashreplace")).decode()


def _features(data: ReportData, pictures: Pictures) -> Iterator[Block]:
    """Yield the heat map, which view separates which clusters, and the features."""
    if "heatmap" in pictures:
        yield pictures["heatmap"]
    places = [[pictures["map"]]]
    if data.separation is not None:
        words = Block("items", data.separation.sentences())
        places.insert(0, [pictures["separation"], words])
    yield Block("row", places)
    if data.description is None:
        return
    effects = [
        row
        for cluster in range(len(data.titles))
        for view in data.description.table["view"].unique()
        for row in data.description.strongest(cluster, N_FEATURES, view)
    ]
    difference = "difference of means in pooled standard deviations, or of shares"
    columns = [
        Column("Cluster", [data.titles[row.cluster] for row in effects]),
        Column("View", [row.view for row in effects]),
        Column("Feature", [row.feature for row in effects]),
        Column(
            "Effect",
            [row.effect for row in effects],
            "+.2f",
            difference,
        ),
        Column("Inside", [row.mean_in for row in effects], ".4g"),
        Column("Outside", [row.mean_out for row in effects], ".4g"),
        Column("Missing", [row.n_missing for row in effects], ",d"),
    ]
    table = Block("table", columns, "Features of the clusters")
    if not effects:
        table = Block("text", "No feature stands out in any cluster.")
    why = "There are no p-values: the clusters were made to differ in these features."
    notes = [Block("quiet", note) for note in (why, *data.description.notes)]
    yield Block("fold", [table, *notes], "The features of each cluster")


def _variables(data: ReportData, pictures: Pictures) -> Iterator[Block]:
    """Yield survival, variables that differ, and the tests of all variables."""
    found = data.annotation
    if found is None:
        return
    for name, comparison in found.comparisons.items():
        beside = [Block("items", found.about_survival(name))]
        if len(comparison.hazards):
            beside.append(_table_of_hazards(name, comparison))
        yield Block("row", [[pictures[f"survival {name}"]], beside])
    tests = found.table[found.table["reason"] == ""]
    if len(tests):
        columns = [
            Column("Variable", tests["variable"]),
            Column("Test", tests["test"]),
            Column("Samples", tests["n_samples"], ",d"),
            Column("Statistic", tests["statistic"], ".4g"),
            Column("p-value", tests["p_value"], found.p_text),
            Column("Adjusted p", tests["p_adjusted"], found.adjusted_text),
        ]
        drawn = [name for name in pictures if name.startswith("variable")]
        yield Block("row", [[pictures[name]] for name in drawn])
        yield Block("table", columns, "Variables against the clusters")
    details = list(_details_of_variables(found))
    yield Block("fold", details, "Values by cluster, pairs, and what was not tested")


def _table_of_hazards(name: str, comparison: SurvivalComparison) -> Block:
    """Return hazard ratios, with what they are adjusted for and how many samples."""
    of = "unadjusted"
    if comparison.adjusted_for:
        of = f"adjusted for {join_words(comparison.adjusted_for)}"
    samples = count(comparison.n_samples, "sample")
    events = count(comparison.n_events, "event")
    hazards = comparison.hazards
    interval = [f"{each.low:.2f} to {each.high:.2f}" for each in hazards.itertuples()]
    columns = [
        Column("Compared", hazards["term"]),
        Column("Ratio", hazards["hazard_ratio"], ".2f"),
        Column("95% interval", interval),
        Column("p-value", hazards["p_value"], p_text),
    ]
    return Block(
        "table",
        columns,
        f"Hazard ratios ({name}), {of}: {samples}, {events}",
    )


def _details_of_variables(found: Annotation) -> Iterator[Block]:
    """Yield values by cluster, pairs of clusters, and what was not tested."""
    if (found.table["reason"] == "").any():
        yield Block("quiet", found.about_p_values())
    differences = found.differences
    if len(differences) and differences.shape[1] <= MOST_COLUMNS:
        variable, value, *clusters = differences.columns
        columns = [
            Column("Variable", differences[variable]),
            Column("Value", differences[value]),
            *(Column(name, differences[name], ".3g") for name in clusters),
        ]
        title = "Variables that differ (adjusted p-value below 0.05), by cluster"
        yield Block("table", columns, title)
    for name, comparison in found.comparisons.items():
        pairs = comparison.pairs
        columns = [
            Column("Cluster", pairs["one"]),
            Column("Other", pairs["other"]),
            Column("Statistic", pairs["statistic"], ".3g"),
            Column("p-value", pairs["p_value"], p_text),
            Column(
                "Adjusted p",
                pairs["p_adjusted"],
                p_text,
                "for all pairs, by Holm",
            ),
        ]
        if len(pairs):
            yield Block("table", columns, f"Survival of two clusters ({name})")
    for sentence in found.untested:
        yield Block("quiet", sentence)


def _classes(data: ReportData, pictures: Pictures) -> Iterator[Block]:
    """Yield scores against given classes, also of the clusters that views agree on."""
    if data.y is None:
        return
    clusters = {"this model": data.labels}
    if hasattr(data.model, "baseline_labels_"):
        clusters["what the views agree on"] = np.asarray(data.model.baseline_labels_)
    y = data.y[data.known]
    found = pd.DataFrame(
        {name: scores(y, labels[data.known]) for name, labels in clusters.items()}
    )
    percent = 100 * found.T
    columns = [
        Column("Clusters of", percent.index),
        Column(
            "ACC",
            percent["acc"],
            ".1f",
            "percent in the cluster of their class",
        ),
        Column(
            "NMI",
            percent["nmi"],
            ".1f",
            "mutual information, in percent",
        ),
        Column(
            "Purity",
            percent["purity"],
            ".1f",
            "percent in their cluster's class",
        ),
        Column(
            "ARI",
            percent["ari"],
            ".1f",
            "adjusted Rand index, in percent",
        ),
    ]
    table = Block("table", columns, "Scores against the given classes")
    yield Block("row", [[pictures["classes"]], [table]])


def _numbers(data: ReportData, pictures: Pictures) -> Iterator[Block]:
    """Yield how other numbers of clusters compare, and the tree of the clusters."""
    found = data.suggestion
    if found is None:
        return
    yield Block("text", found.verdict().partition(". ")[2])
    yield Block("row", [[pictures["numbers"]], [pictures["tree"]]])
    tight = "how near samples are to the centers of their clusters, from 0 to 1"
    columns = [
        Column("Clusters", found.k_values, "d"),
        Column(
            "Score",
            found.scores,
            ".2f",
            "the next three, each from 0 to 1, added",
        ),
        Column(
            "Eigengap",
            found.eigengaps,
            ".3f",
            "drop of the graph's eigenvalues",
        ),
        Column(
            "Tightness",
            found.tightness,
            ".2f",
            tight,
        ),
        Column(
            "Agreement",
            found.agreements,
            ".2f",
            "ARI of clusters in two graphs",
        ),
        Column(
            "Stability",
            found.stabilities,
            ".2f",
            "mean ARI of resamples",
        ),
    ]
    table = Block("table", columns, "Numbers of clusters")
    yield Block("fold", [table], "All numbers that were tried")


def _views(data: ReportData, pictures: Pictures) -> Iterator[Block]:
    """Yield weights and agreement of the views, and what stands out."""
    model = data.model
    noun = data.noun
    drawn = ("weights", "agreement")
    yield Block("row", [[pictures[name]] for name in drawn if name in pictures])
    yield Block("items", [*_about_views(data), *_about_groups(data)])
    columns = [Column(noun.capitalize(), model.kernel_names_)]
    if not data.has_equal_weights:
        meaning = f"how much a kernel counts. {model.WEIGHT_MEANING.rstrip('.')}"
        columns.append(
            Column(
                "Weight",
                model.weights_,
                ".3f",
                meaning.replace("kernel", noun),
            )
        )
    share = f"the share of the leading structure of a {noun} that is in the clusters"
    columns.append(
        Column(
            "Alignment",
            model.alignments_,
            ".2f",
            share,
        )
    )
    if hasattr(model, "approximation_error_"):
        missed = f"share of the {noun} that the features do not capture"
        columns.append(
            Column(
                "Missed",
                model.approximation_error_,
                ".3f",
                missed,
            )
        )
    if data.diagnosis is not None:
        table = data.diagnosis.table
        alone = f"ARI of the clusters of this {noun} alone with those above"
        without = f"ARI of the clusters without this {noun} with those above"
        gap = "relative gap in its spectrum at the number of clusters"
        top = "share of its trace in its leading eigenvalues"
        columns += [
            Column(
                "Alone",
                table["agreement"],
                ".2f",
                alone,
            ),
            Column(
                "Without it",
                table["leave_one_out"],
                ".2f",
                without,
            ),
            Column(
                "Cluster gap",
                table["cluster_gap"],
                ".2f",
                gap,
            ),
            Column(
                "Top share",
                table["top_share"],
                ".2f",
                top,
            ),
        ]
    blocks = [Block("table", columns, f"What each {noun} contributes")]
    agreement = data.agreement
    if agreement is not None and agreement.n_independent_views > 1:
        limits = agreement.limits_in_words()
        blocks += [
            _table_of_agreement(agreement),
            Block("quiet", f"Two views agree with p-values below {limits}."),
        ]
    yield Block("fold", blocks, "The views in numbers")


def _about_views(data: ReportData) -> Iterator[str]:
    """Yield which views are not used, whether they count the same, and what matters."""
    model = data.model
    noise: Sequence[str] = ()
    sentences: Sequence[str] = ()
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


def _table_of_agreement(agreement: Agreement) -> Block:
    """Return which view each view agrees with most."""
    own = range(len(agreement.names))
    closest = [agreement.closest(p) for p in own]
    shared = "1 for copies, about 0 for independent views (debiased CKA)"
    chance = "from chance, standardized"
    columns = [
        Column("View", agreement.names),
        Column("Closest to", [agreement.names[q] for q in closest]),
        Column(
            "Shared",
            agreement.alignments[own, closest],
            ".3f",
            shared,
        ),
        Column(
            "Deviations",
            agreement.scores[own, closest],
            ".1f",
            chance,
        ),
        Column(
            "p-value",
            agreement.p_values[own, closest],
            p_text,
            "of sharing it by chance",
        ),
    ]
    if agreement.is_incomplete:
        common = agreement.pair_samples[own, closest]
        columns.append(Column("Samples in common", common, ",d"))
    return Block("table", columns, "The closest view of each")


def _about_groups(data: ReportData) -> Iterator[str]:
    """Yield groups and copies of views, and what to ask if none agree."""
    agreement = data.agreement
    if agreement is None:
        return
    if agreement.n_independent_views == 1:
        yield "Kernels of one view prove nothing about each other."
    if len(agreement.groups) > 1:
        names = np.array(agreement.names, dtype=object)
        groups = [join_words(names[list(group)], 30) for group in agreement.groups]
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
        Column(
            "Missing",
            lacking,
            ",d",
            bars=lacking / total,
        ),
        Column(
            "AMI",
            missing.view_agreements,
            ".2f",
            mutual,
        ),
        Column("p-value", missing.view_p_values, missing.p_text),
    ]
    places = [[Block("table", columns, "Views with missing samples")]]
    if len(data.titles) <= MOST_COLUMNS:
        words, counts = zip(*missing.rows(), strict=True)
        by_cluster = zip(data.titles, np.transpose(counts), strict=True)
        columns = [
            Column("Missing from", words),
            *(Column(title, values, ",d") for title, values in by_cluster),
        ]
        title = "Samples by missing views (rows) and cluster (columns)"
        places.append([Block("table", columns, title)])
    yield Block("row", places)


def _details(data: ReportData, pictures: Pictures) -> Iterator[Block]:
    """Yield what a statistician asks for: stability, similarities, the solution."""
    if data.stability is not None:
        yield from _least_stable(data, data.stability)
    mixed = data.model.describe_mixed_kernel().replace("kernel", data.noun)
    words = Block("quiet", f"The similarities are {mixed}.")
    yield Block("fold", [pictures["similarities"], words], "Similarities")
    solution = [Block("text", text) for text in _about_solution(data)]
    if "convergence" in pictures:
        solution.append(pictures["convergence"])
    if solution:
        yield Block("fold", solution, "Convergence and certificate")


def _least_stable(data: ReportData, found: Stability) -> Iterator[Block]:
    """Yield the samples that refits most often put elsewhere, if there are any."""
    shares = pd.Series(found.samples)
    moved = shares[shares < 1].sort_values(kind="stable").head(MOST_LISTED)
    if moved.empty:
        return
    worst = moved.index
    columns = [
        Column("Sample", [data.ids[each] for each in worst]),
        Column("Cluster", [data.titles[c] for c in data.labels[worst]]),
        Column("Stability", moved, ".2f"),
        Column("Silhouette", data.scores.silhouette[worst], ".2f"),
        Column("Margin", data.scores.margin[worst], ".2f"),
    ]
    about = (
        f"Refits on {found.size:,} of {int(data.known.sum()):,} samples agree to "
        f"{found.agreements.min():.2f} at least (adjusted Rand index)."
    )
    title = "The least stable samples"
    yield Block(
        "fold",
        [Block("quiet", about), Block("table", columns, title)],
        title,
    )


def _about_solution(data: ReportData) -> Iterator[str]:
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
        problem = "approximated relaxed" if is_approximated(model) else "relaxed"
        yield (
            f"Certified: the objective is within a relative {data.gap} of the global "
            f"optimum of the {problem} problem. {proof} This does not say that "
            "clusters exist, that their number is right, or that the "
            f"{data.noun}s are good."
        )
    elif not data.solves_one_problem:
        end = "converged" if model.converged_ else "stopped before it converged,"
        yield (
            f"{type(model).__name__} {end} after {count(model.n_iter_, 'iteration')}. "
            "It has no certificate: other weights may have a better objective."
        )
    if data.agreed_ari is not None:
        yield (
            "Adjusted Rand index with the clusters that the views agree on: "
            f"{data.agreed_ari:.2f}."
        )
