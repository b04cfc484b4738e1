"""The explorer: a page that runs the models in a browser. Not part of `all`: `snakemake explorer`."""

TRIGRAM = plan.trigram_row(STUDY)


def explored(*names):
    """Files of these names of every network on the page, at its first seed."""
    return [
        f"{MAIN}/{row['model']}/seed{row['seeds'][0]}/{name}" for row in plan.explorer_rows(STUDY) for name in names
    ]


def explored_mixtures():
    """The evaluations of the trigram, and of its mixtures with the networks on the page."""
    found = [f"{MAIN}/{TRIGRAM['model']}/seed0/evaluation.json"] if TRIGRAM else []
    for row in plan.explorer_rows(STUDY):
        if mixture := plan.trigram_mixture(STUDY, row["model"]):
            found.append(f"{MAIN}/{mixture['model']}/seed{row['seeds'][0]}/evaluation.json")
    return found


def trigram_weights(policy):
    """The weights of the interpolated trigram; nothing where the study has none."""
    return [f"{RESULTS}/{policy}/{TRIGRAM['model']}/seed0/weights.json"] if TRIGRAM else []


rule add_sentence:
    """What one sentence more in train does to another one, and to controls (the example of the paper's section 1)."""
    input:
        rules.build_tokens.output,
        network=rules.train_network.output[0],
        training=rules.train_network.output[3],
        trigram=lambda wildcards: trigram_weights(wildcards.policy),
        code=modules(
            "added_sentence",
            "neural/model",
            "neural/outputs",
            "neural/objectives",
            "neural/training",
            "ngram/interpolated",
        ),
    output:
        f"{RESULTS}/{{policy}}/{{model}}/seed{{seed}}/added-sentence.json",
    log:
        f"{LOGS}/add_sentence/{{policy}},{{model}},{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/add_sentence/{{policy}},{{model}},{{seed}}.tsv"
    wildcard_constraints:
        model=any_of(models_of("network")),
    group:
        "explorer"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=doubling(1500),
        runtime=5,
    params:
        tokens=subpath(input[0], parent=True),
        network=subpath(input.network, parent=True),
        trigram=lambda wildcards, input: plan.options(trigram=next(iter(input.trigram), None)),
    message:
        "Adding a sentence to what {wildcards.model}, seed {wildcards.seed}, was trained on"
    shell:
        "python -m nplm2003 add-sentence --tokens {params.tokens:q} --network {params.network:q} {params.trigram}"
        " --output {output:q} > {log:q} 2>&1"


rule write_explorer:
    """The page. It holds the training text as numbers, so it is as free as the corpus is and never committed."""
    input:
        explored("weights.pt", "evaluation.json", "added-sentence.json"),
        explored_mixtures(),
        [f"{MAIN}/tokens/{name}" for name in ("train.npy", "valid.npy", "vocabulary.tsv", "corpus.json")],
        trigram_weights(POLICY),
        study=STUDY_FILE,
        page=sorted(str(path) for path in (ROOT / "src" / "nplm2003" / "page").iterdir()),
        code=modules("explorer", "plan", "neighbours", "outcomes", "neural/model", "ngram/interpolated"),
    output:
        f"{RESULTS}/explorer.html",
    log:
        f"{LOGS}/write_explorer.log",
    benchmark:
        f"{BENCHMARKS}/write_explorer/all.tsv"
    group:
        "explorer"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=doubling(1500),
        runtime=5,
    params:
        results=subpath(input.study, parent=True),
    message:
        "Writing the explorer page"
    shell:
        "python -m nplm2003 write-explorer --study {input.study:q} --results {params.results:q}"
        " --output {output:q} > {log:q} 2>&1"


rule explorer:
    input:
        rules.write_explorer.output,
    message:
        "The explorer is {input}: open it in a browser"
