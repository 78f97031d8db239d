"""Classes of 13 samples in many columns: AR10P, and simulated sets like it.

    MKCLUST_DATA=DATA python benchmarks/small_classes.py

writes ``results/small_classes.json``. AR10P has ten persons with 13 pictures each, in
the same 13 conditions (light, expression, sunglasses, scarf). A simulated set has ten
classes, and conditions that cross them: each row is the center of its class, that of
its condition and normal noise, in four views of 600 columns. Views agree on classes and
on conditions. All scores are means over seeds.
"""

import warnings

import numpy as np

from mkclust import AgreementKKM, AverageKKM, SimpleMKKM
from mkclust.datasets import DatasetError
from mkclust.metrics import adjusted_rand_index
from paper.datasets import load
from records import parse, write_record

METHODS = (AgreementKKM, SimpleMKKM, AverageKKM)
CLASSES, VIEWS, COLUMNS = 10, 4, 600
# Sizes of classes, and spreads of the centers of classes and of conditions.
SETS = (
    (13, 0.3, 0.0),
    (13, 0.2, 0.0),
    (13, 0.3, 0.3),
    (26, 0.3, 0.3),
)
# Nearest samples among which those of the same class are counted.
NEAREST = (1, 5, 10)


def simulate(size, class_spread, condition_spread, seed):
    """Return views, and the class and the condition of every sample."""
    rng = np.random.default_rng(seed)
    classes = np.repeat(np.arange(CLASSES), size)
    conditions = np.tile(np.arange(size), CLASSES)
    views = {}
    for number in range(VIEWS):
        centers = class_spread * rng.normal(size=(CLASSES, COLUMNS))
        shifts = condition_spread * rng.normal(size=(size, COLUMNS))
        noise = rng.normal(size=(CLASSES * size, COLUMNS))
        views[f"view {number}"] = centers[classes] + shifts[conditions] + noise
    return views, classes, conditions


def same_class(similarities, classes):
    """Return the share of the nearest samples that are of the same class."""
    hidden = similarities.astype(float)
    np.fill_diagonal(hidden, -np.inf)
    order = np.argsort(-hidden, axis=1)
    return {
        f"same class among {count} nearest": float(
            np.mean(classes[order[:, :count]] == classes[:, None])
        )
        for count in NEAREST
    }


def measure(X, classes, conditions, seed, **options):
    """Return the scores of all methods on one set, for classes and conditions."""
    found = {}
    models = {method.__name__: method(CLASSES) for method in METHODS}
    for method in METHODS[1:]:
        models[f"{method.__name__}, unit"] = method(CLASSES, rounding="unit")
    for name, model in models.items():
        model.set_params(random_state=seed, **options).fit(X)
        found[name] = adjusted_rand_index(classes, model.labels_)
        found[f"{name}, conditions"] = adjusted_rand_index(conditions, model.labels_)
    return found | same_class(models["AverageKKM"].mixed_kernel(X), classes)


def means(rows):
    """Return the mean of every figure."""
    return {
        name: round(float(np.mean([row[name] for row in rows])), 3) for name in rows[0]
    }


def main():
    options = parse(__doc__, "small_classes.json", seeds={"type": int, "default": 5})
    warnings.simplefilter("ignore")
    record = {"seeds": options.seeds, "sets": []}
    try:
        data = load("ar10p")
    except DatasetError as error:
        print(error)
    else:
        kernels = np.array(data.kernels)
        # The pictures of every person are in the same order.
        pictures = np.tile(np.arange(13), CLASSES)
        rows = [
            measure(kernels, data.y, pictures, seed, kernels="precomputed")
            for seed in range(options.seeds)
        ]
        record["sets"].append({"set": "AR10P"} | means(rows))
        print(record["sets"][-1], flush=True)
    for size, class_spread, condition_spread in SETS:
        rows = []
        for seed in range(options.seeds):
            views, *truth = simulate(size, class_spread, condition_spread, seed)
            rows.append(measure(views, *truth, seed))
        name = f"{CLASSES} x {size}, classes {class_spread}"
        record["sets"].append(
            {"set": f"{name}, conditions {condition_spread}"} | means(rows)
        )
        print(record["sets"][-1], flush=True)
    write_record(options.out, record)


if __name__ == "__main__":
    main()
