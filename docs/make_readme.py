"""Pages with measured numbers, made of templates and of the committed results.

    python docs/make_readme.py

writes every page that has a template in ``docs/templates``, which mirrors the
repository. Words are in the templates; numbers come from ``benchmarks/results``.
"""

import json
import sys
from pathlib import Path
from string import Template

ROOT = Path(__file__).resolve().parents[1]
TEMPLATES = ROOT / "docs" / "templates"
RESULTS = ROOT / "benchmarks" / "results"
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from sets import FAMILIES, REAL  # noqa: E402

OURS = "AgreementKKM"
K_MEANS = "k-means, standardized"
AS_THEY_ARE = ", as they are"


def read_json(name):
    """Return a file of results."""
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def in_words(count):
    """Return a number of samples, with millions as a word."""
    millions, rest = divmod(count, 1_000_000)
    if millions == 1 and not rest:
        return "a million"
    if millions and not rest:
        return f"{millions} million"
    return f"{count:,}"


def compared_with_peers():
    """Return mean scores of the recommended method and of other packages."""
    means = {
        name.removesuffix(AS_THEY_ARE): found
        for name, found in read_json("peers.json")["means"].items()
    }
    ours = means.pop(OURS)

    values = {"n_peers": len(means)}
    for part in ("real", "families"):
        best = max(found[part] for found in means.values())
        values[part] = f"{ours[part]:.2f}"
        values[f"{part}_peer"] = f"{best:.2f}"
        values[f"{part}_k_means"] = f"{means[K_MEANS][part]:.2f}"
    return values


def with_noise():
    """Return mean scores without and with a view of noise added to every set."""
    means = read_json("neighborhoods.json")["means"]
    values = {}
    for name, disturbed in (("plain", "as they are"), ("noise", "noise view")):
        found = means[f"as it is, {disturbed}"]
        for part in ("real", "families"):
            values[f"{part}_{name}"] = f"{found[part]:.3f}"
    return values


def without_clusters():
    """Return in how many sets without clusters there is no evidence of any."""
    rows = read_json("n_clusters/evidence-untouched.json")["rows"]
    judged = [row["evidence"] for row in rows if row["part"] == "without"]
    return {"n_none": judged.count("none"), "n_without": len(judged)}


def largest():
    """Return the largest number of samples that were fitted, and the seconds."""
    fits = [
        {"n_samples": fit["n"], "seconds": fit["seconds"]}
        for fit in read_json("neighborhoods.json")["sizes"]
    ]
    parts = read_json("scale.json")["parts"]
    fits += [parts[name] for name in ("any_number", "any_million") if name in parts]

    size = max(fit["n_samples"] for fit in fits)
    seconds = [fit["seconds"] for fit in fits if fit["n_samples"] == size]
    return {"largest": in_words(size), "seconds": f"{max(seconds):.0f}"}


def numbers():
    """Return all that templates may name."""
    values = {"n_real": len(REAL), "n_families": len(FAMILIES)}
    for found in (compared_with_peers(), with_noise(), without_clusters(), largest()):
        values |= found
    return values


def pages():
    """Return the text of every page, by its path in the repository."""
    values = numbers()
    made = {}
    for path in sorted(TEMPLATES.rglob("*.in")):
        page = path.relative_to(TEMPLATES).with_suffix("").as_posix()
        template = Template(path.read_text(encoding="utf-8"))
        made[page] = template.substitute(values)
    return made


if __name__ == "__main__":
    for page, text in pages().items():
        (ROOT / page).write_text(text, encoding="utf-8")
