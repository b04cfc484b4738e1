"""Mixtures of any two or more models (end of section 2): they read score files and nothing else."""


rule mix_scores:
    """One mixture: weights fixed, or learnt on validation; then the scores of all splits."""
    input:
        rules.build_tokens.output,
        components=component_scores,
        code=modules("mixture", "em", "ngram/interpolated", "ngram/counts", "scoring"),
    output:
        scores_of(f"{RESULTS}/{{policy}}/{{model}}/seed{{seed}}/scores"),
        weights=f"{RESULTS}/{{policy}}/{{model}}/seed{{seed}}/weights.json",
    log:
        f"{LOGS}/mix_scores/{{policy}},{{model}},{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/mix_scores/{{policy}},{{model}},{{seed}}.tsv"
    wildcard_constraints:
        model=any_of(models_of("mixture")),
    group:
        "results"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=doubling(1000),
        runtime=1,
    params:
        components=component_options,
        weights=row_value("weights"),
        tokens=subpath(input[0], parent=True),
        folder=subpath(output[0], parent=True),
    message:
        "Mixing {wildcards.model}, seed {wildcards.seed}"
    shell:
        "python -m nplm2003 mix --tokens {params.tokens:q} {params.components} --weights {params.weights}"
        " --model {wildcards.model} --seed {wildcards.seed} --output {params.folder:q}"
        " --weights-output {output.weights:q} > {log:q} 2>&1"
