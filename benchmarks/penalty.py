"""How heavy should the penalty on (log Z)^2 be? Networks of Table 1 by sampled softmax with several, on validation.

Takes the tokens and the trigram's scores of a study that has run (results/brown/top16383), trains each network with
each alpha, one seed, and writes results/penalty.csv: the validation perplexity of the network and of its mixture with
the trigram in equal parts, and how far both lie from those by exact softmax (results/exact-softmax-table1.csv, the
same seed). Test is not looked at. A network takes about two minutes of one core.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from common import ROOT, presets, read_csv, write_csv
from growth import network_options
from objectives import NETWORKS

from nplm2003.evaluation import perplexity
from nplm2003.mixture import mix
from nplm2003.neural.scoring import load_network, score
from nplm2003.outcomes import gap_percent
from nplm2003.vocabulary import TokenStore

COLUMNS = ("network", "self_normalisation", "valid", "valid_percent", "mixture", "mixture_percent")
MIXTURES = {"MLP1": "MLP2", "MLP3": "MLP4", "MLP5": "MLP6", "MLP7": "MLP8", "MLP9": "MLP10"}
EXACT = ROOT / "benchmarks" / "results" / "exact-softmax-table1.csv"
SEED = 1


def train(tokens: Path, network: str, alpha: float, home: Path) -> Path:
    """The folder of the network, trained by `nplm2003 train`."""
    preset = presets()["modern"] | {"self_normalisation": alpha}
    (home / "presets.json").write_text(json.dumps({"presets": {"one": preset}}), encoding="utf-8")
    command = [sys.executable, "-m", "nplm2003", "train", "--tokens", str(tokens), *network_options(NETWORKS[network])]
    command += ["--preset-file", str(home / "presets.json"), "--preset", "one", "--seed", str(SEED)]
    subprocess.run([*command, "--output", str(home / "net")], check=True)
    return home / "net"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", type=Path, default=ROOT / "results" / "brown" / "top16383", help="its main folder")
    parser.add_argument("--networks", nargs="+", default=["MLP5", "MLP9"], choices=sorted(MIXTURES))
    parser.add_argument("--alphas", type=float, nargs="+", default=[0.0, 0.003, 0.02, 0.1])
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "penalty.csv")
    options = parser.parse_args()
    exact = {line["model"]: float(line["valid"]) for line in read_csv(EXACT)}
    store = TokenStore(options.study / "tokens")
    trigram = np.load(options.study / "interpolated-trigram" / "seed0" / "scores" / "valid.npy").astype(np.float64)
    records = []
    for network in options.networks:
        for alpha in options.alphas:
            with tempfile.TemporaryDirectory() as name:
                model = load_network(train(options.study / "tokens", network, alpha, Path(name)) / "weights.pt", store)
            scores = np.concatenate(list(score(model, store, "valid"))).astype(np.float64)
            record = {"network": network, "self_normalisation": alpha, "valid": perplexity(scores)}
            record["mixture"] = perplexity(mix(np.stack([scores, trigram], axis=1), np.array([0.5, 0.5])))
            for key, row in (("valid", network), ("mixture", MIXTURES[network])):
                record[f"{key}_percent"] = gap_percent(record[key], exact[row])
            records.append(record)
            print(record, flush=True)
    write_csv(options.output, COLUMNS, records)


if __name__ == "__main__":
    main()
